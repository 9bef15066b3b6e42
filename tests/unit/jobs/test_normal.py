"""Parsed records brought to normal form."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from premortem.jobs.frame import SCHEMA
from premortem.jobs.normal import normalise

SUBMIT = datetime(2026, 1, 5, 8, tzinfo=UTC)
START = SUBMIT + timedelta(minutes=5)
END = SUBMIT + timedelta(minutes=15)


def normal(**fields):
    """The normal form of one record, without what is absent."""
    record = pl.DataFrame(
        {name: [value] for name, value in fields.items()},
        schema={name: SCHEMA[name] for name in fields},
    )
    row = normalise(record).row(0, named=True)
    return {name: value for name, value in row.items() if value is not None}


def test_the_planned_start_of_a_pending_job_is_dropped():
    job = normal(
        state="PENDING", reason="Resources", user="ada", time_limit_s=60,
        eligible_time=SUBMIT, start_time=START, end_time=END,
        alloc_cpus=4, node_list="n1", elapsed_s=0, exit_code=0, restart_count=2,
    )  # fmt: skip
    assert job == {"state": "PENDING", "reason": "Resources", "user": "ada", "time_limit_s": 60}


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED"])
def test_the_expected_end_of_a_running_job_is_dropped(state):
    job = normal(
        state=state, start_time=START, end_time=END, exit_code=0, step_state="COMPLETED",
        node_list="n1", alloc_cpus=4, elapsed_s=60,
    )  # fmt: skip
    assert job == {
        "state": state, "start_time": START, "node_list": "n1", "alloc_cpus": 4, "elapsed_s": 60,
    }  # fmt: skip


def test_the_false_start_of_a_job_cancelled_in_the_queue_is_dropped():
    job = normal(
        state="CANCELLED", start_time=END, end_time=END, elapsed_s=0, node_list=None,
        alloc_cpus=4, alloc_nodes=1,
    )  # fmt: skip
    assert job["end_time"] == END
    assert not {"start_time", "alloc_cpus", "alloc_nodes"} & set(job)


def test_a_job_that_ended_within_its_first_second_did_start():
    job = normal(
        state="FAILED", start_time=END, end_time=END, elapsed_s=0, node_list="n1", alloc_cpus=4
    )
    assert (job["start_time"], job["alloc_cpus"]) == (END, 4)


def test_an_ended_job_keeps_everything():
    fields = {
        "state": "FAILED", "start_time": START, "end_time": END, "elapsed_s": 600,
        "node_list": "n1", "alloc_cpus": 4, "exit_code": 3, "reason": "NonZeroExitCode",
    }  # fmt: skip
    assert normal(**fields) == fields


def test_an_allocation_of_nothing_is_none_but_a_first_run_has_restarted_zero_times():
    job = normal(state="COMPLETED", alloc_cpus=0, alloc_memory_mb=0.0, restart_count=0)
    assert job == {"state": "COMPLETED", "restart_count": 0}


def test_elapsed_time_follows_from_start_and_end():
    assert normal(state="COMPLETED", start_time=START, end_time=END)["elapsed_s"] == 600


def test_a_job_that_ends_before_it_starts_has_run_for_no_known_time():
    assert "elapsed_s" not in normal(state="COMPLETED", start_time=END, end_time=START)


def test_a_job_of_its_own_elapsed_time_keeps_it():
    """A suspended job has run for less than the time between its start and its end."""
    job = normal(state="COMPLETED", start_time=START, end_time=END, elapsed_s=500)
    assert job["elapsed_s"] == 500


def test_memory_is_totalled():
    assert normal(req_memory_per_node_mb=100.0, req_nodes=3)["req_memory_mb"] == 300
    assert normal(req_memory_per_cpu_mb=50.0, req_cpus=8)["req_memory_mb"] == 400
    both = {"req_nodes": 2, "req_cpus": 8, "req_memory_per_node_mb": None}
    assert normal(req_memory_per_cpu_mb=50.0, **both)["req_memory_mb"] == 400


def test_a_total_that_is_told_stays():
    job = normal(req_memory_mb=1.0, req_memory_per_node_mb=100.0, req_nodes=3)
    assert job["req_memory_mb"] == 1


def test_memory_of_an_unknown_number_of_nodes_has_no_total():
    assert "req_memory_mb" not in normal(req_memory_per_node_mb=100.0, req_nodes=None)
    assert "req_memory_mb" not in normal(req_memory_per_node_mb=100.0)


def test_each_record_is_judged_by_its_own_state():
    jobs = normalise(
        pl.DataFrame(
            {
                "state": ["PENDING", "RUNNING", "COMPLETED", None],
                "start_time": [START] * 4,
                "end_time": [END] * 4,
            },
            schema={name: SCHEMA[name] for name in ("state", "start_time", "end_time")},
        )
    )
    assert jobs["start_time"].is_null().to_list() == [True, False, False, False]
    assert jobs["end_time"].is_null().to_list() == [True, True, False, False]
