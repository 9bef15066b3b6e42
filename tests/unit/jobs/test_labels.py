"""From the end of a job to its outcome and cause."""

import json
from datetime import UTC, datetime

import polars as pl
import pytest

from premortem.jobs.frame import SCHEMA
from premortem.jobs.labels import LABEL_INPUTS, LabelPolicy
from premortem.jobs.outcomes import Cause
from premortem.jobs.states import STATES

START = datetime(2026, 1, 5, tzinfo=UTC)


def verdict(policy=LabelPolicy(), **fields):
    """Outcome and cause of one job that has only these fields."""
    job = pl.DataFrame(
        {name: [value] for name, value in fields.items()},
        schema={name: SCHEMA[name] for name in fields},
    )
    return policy.label(job).select("outcome", "cause").row(0)


@pytest.mark.parametrize(
    ("state", "outcome", "cause"),
    [
        ("COMPLETED", "completed", None),
        ("FAILED", "failed", "application"),
        ("CANCELLED", "failed", "cancelled"),
        ("TIMEOUT", "failed", "time_limit"),
        ("OUT_OF_MEMORY", "failed", "out_of_memory"),
        ("NODE_FAIL", "failed", "node_failure"),
        ("BOOT_FAIL", "failed", "node_failure"),
        ("DEADLINE", "failed", "deadline"),
        ("PREEMPTED", "ignored", None),
        ("REQUEUED", "ignored", None),
        ("RESIZING", "ignored", None),
        ("REVOKED", "ignored", None),
        ("PENDING", "unfinished", None),
        ("RUNNING", "unfinished", None),
        ("SUSPENDED", "unfinished", None),
    ],
)
def test_the_default_policy(state, outcome, cause):
    assert verdict(state=state, start_time=START) == (outcome, cause)


def test_every_state_has_a_verdict():
    jobs = pl.DataFrame({"state": list(STATES)})
    labelled = LabelPolicy().label(jobs)
    bare = labelled.filter((pl.col("outcome") == "failed") & pl.col("cause").is_null())
    assert bare.is_empty()


@pytest.mark.parametrize("sign", [{"step_state": "OUT_OF_MEMORY"}, {"derived_exit_signal": 125}])
def test_a_failed_job_whose_step_was_killed_for_memory_is_out_of_memory(sign):
    assert verdict(state="FAILED", exit_code=1, **sign) == ("failed", "out_of_memory")


@pytest.mark.parametrize("sign", [{"step_state": "OUT_OF_MEMORY"}, {"derived_exit_signal": 125}])
def test_a_job_that_survived_a_killed_step_is_completed(sign):
    assert verdict(state="COMPLETED", **sign) == ("completed", None)


def test_another_signal_or_step_state_stays_an_application_failure():
    assert verdict(state="FAILED", derived_exit_signal=9) == ("failed", "application")
    assert verdict(state="FAILED", step_state="TIMEOUT") == ("failed", "application")


@pytest.mark.parametrize("trace", [{"start_time": START}, {"alloc_cpus": 4}, {"elapsed_s": 3}])
def test_a_cancelled_job_with_a_trace_of_a_start_was_cancelled_while_running(trace):
    assert verdict(state="CANCELLED", **trace) == ("failed", "cancelled")


def test_a_cancelled_job_without_one_was_cancelled_before_its_start():
    assert verdict(state="CANCELLED") == ("failed", "cancelled_before_start")
    assert verdict(state="CANCELLED", elapsed_s=0) == ("failed", "cancelled_before_start")


def test_exit_codes_name_the_cause_of_application_failures_only():
    policy = LabelPolicy(exit_codes={137: Cause.OUT_OF_MEMORY})
    assert verdict(policy, state="FAILED", exit_code=137) == ("failed", "out_of_memory")
    assert verdict(policy, state="FAILED", exit_code=1) == ("failed", "application")
    assert verdict(policy, state="FAILED") == ("failed", "application")
    assert verdict(policy, state="TIMEOUT", exit_code=137) == ("failed", "time_limit")
    assert verdict(policy, state="COMPLETED", exit_code=137) == ("completed", None)


def test_a_policy_can_ignore_and_forgive_causes():
    policy = LabelPolicy(
        ignored=frozenset({Cause.CANCELLED_BEFORE_START}),
        completed=frozenset({Cause.TIME_LIMIT}),
    )
    assert verdict(policy, state="CANCELLED") == ("ignored", None)
    assert verdict(policy, state="CANCELLED", start_time=START) == ("failed", "cancelled")
    assert verdict(policy, state="TIMEOUT") == ("completed", None)
    assert verdict(policy, state="PREEMPTED") == ("failed", "preempted")
    assert verdict(policy, state="REQUEUED") == ("ignored", None)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"exit_code": 0}, ("completed", None)),
        ({"exit_code": 0, "exit_signal": 0}, ("completed", None)),
        ({"exit_code": 3}, ("failed", "application")),
        ({"exit_code": 0, "exit_signal": 11}, ("failed", "application")),
        ({"exit_code": None}, ("ignored", None)),
    ],
)
def test_a_job_without_state_is_judged_by_its_raw_exit_code(fields, expected):
    assert verdict(**fields) == expected
    assert verdict(state=None, **fields) == expected


def test_raw_exit_codes_follow_the_policy():
    policy = LabelPolicy(exit_codes={140: Cause.TIME_LIMIT})
    assert verdict(policy, exit_code=140) == ("failed", "time_limit")


def test_labels_are_added_and_nothing_else_changes():
    jobs = pl.DataFrame({"job_name": ["a", "b"], "state": ["FAILED", "COMPLETED"]})
    labelled = LabelPolicy().label(jobs)
    assert set(labelled.columns) == {"job_name", "state", "outcome", "cause"}
    assert labelled.select("job_name", "state").equals(jobs)


def test_no_jobs_give_no_labels():
    jobs = pl.DataFrame(schema={name: SCHEMA[name] for name in LABEL_INPUTS})
    assert LabelPolicy().label(jobs).height == 0


def test_a_policy_survives_as_plain_values():
    policy = LabelPolicy(
        frozenset({Cause.PREEMPTED, Cause.CANCELLED}),
        frozenset({Cause.DEADLINE}),
        {137: Cause.OUT_OF_MEMORY},
    )
    assert LabelPolicy.from_dict(json.loads(json.dumps(policy.as_dict()))) == policy
