"""Every spelling of a state means one state, or none."""

import pytest

from premortem.jobs.states import STATES, Progress, normal_state


@pytest.mark.parametrize("name", STATES)
def test_a_plain_state_means_itself(name):
    assert normal_state(name) == name
    assert normal_state(name.lower()) == name


@pytest.mark.parametrize(
    ("code", "meant"),
    {
        "PD": "PENDING",
        "R": "RUNNING",
        "S": "SUSPENDED",
        "ST": "SUSPENDED",
        "CD": "COMPLETED",
        "CA": "CANCELLED",
        "F": "FAILED",
        "TO": "TIMEOUT",
        "OOM": "OUT_OF_MEMORY",
        "NF": "NODE_FAIL",
        "BF": "BOOT_FAIL",
        "DL": "DEADLINE",
        "PR": "PREEMPTED",
        "CG": "RUNNING",
        "CF": "RUNNING",
        "RD": "PENDING",
        "RQ": "REQUEUED",
        "RF": "REQUEUED",
        "RH": "REQUEUED",
        "RS": "RESIZING",
        "RV": "REVOKED",
        "SE": "REQUEUED",
        "SI": "RUNNING",
        "SO": "RUNNING",
    }.items(),
)
def test_every_short_code_that_squeue_documents_is_known(code, meant):
    assert normal_state(code) == meant
    assert normal_state(code.lower()) == meant


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [
        ("CANCELLED by 1234", "CANCELLED"),
        ("  COMPLETED ", "COMPLETED"),
        ("CANCELLED+", "CANCELLED"),
        ("RUNNING+COMPLETING", "RUNNING"),
        ("FAILED,COMPLETING", "FAILED"),
        ("NODE_FAIL,REQUEUED", "REQUEUED"),
        ("COMPLETING", "RUNNING"),
        ("CONFIGURING", "RUNNING"),
        ("LAUNCH_FAILED", "BOOT_FAIL"),
        ("REQUEUE_HOLD", "REQUEUED"),
    ],
)
def test_dressed_up_text(spelling, meant):
    assert normal_state(spelling) == meant


@pytest.mark.parametrize(
    ("flags", "meant"),
    [
        (["COMPLETED"], "COMPLETED"),
        (["RUNNING", "COMPLETING"], "RUNNING"),
        (["COMPLETING", "CANCELLED"], "CANCELLED"),
        (["RUNNING", "CONFIGURING", "POWER_UP_NODE"], "RUNNING"),
        (["PENDING", "RESV_DEL_HOLD"], "PENDING"),
        (["PENDING", "REQUEUED"], "PENDING"),
        (["PENDING", "SPECIAL_EXIT"], "PENDING"),
        (["RUNNING", "REQUEUED"], "RUNNING"),
        (["COMPLETED", "UPDATE_DB"], "COMPLETED"),
    ],
)
def test_a_list_of_a_base_state_and_flags(flags, meant):
    assert normal_state(flags) == meant


@pytest.mark.parametrize("flag", ["REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"])
@pytest.mark.parametrize("base", ["FAILED", "NODE_FAIL", "PREEMPTED", "COMPLETED"])
def test_a_run_that_ended_and_was_queued_again_is_requeued(base, flag):
    assert normal_state([base, flag]) == "REQUEUED"
    assert normal_state([flag, base]) == "REQUEUED"


@pytest.mark.parametrize(
    "spelling", ["", "   ", "+", "DONE", "NONSENSE,COMPLETING", [], ["NONSENSE"], ["", ""]]
)
def test_what_is_no_state_means_none(spelling):
    assert normal_state(spelling) is None


def test_a_flag_of_a_later_release_does_not_cost_a_job_its_state():
    assert normal_state(["COMPLETED", "BRAND_NEW_FLAG"]) == "COMPLETED"
    assert normal_state("RUNNING+BRAND_NEW_FLAG") == "RUNNING"


def test_an_ended_job_has_come_further_than_a_running_and_a_waiting_one():
    assert STATES["COMPLETED"] > STATES["RUNNING"] > STATES["PENDING"]
    assert STATES["SUSPENDED"] is Progress.RUNNING
