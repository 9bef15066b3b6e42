"""Each way a record can be bad, with its reason."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from premortem.jobs.checks import faults
from premortem.jobs.fields import FIELDS, Kind
from premortem.jobs.frame import SCHEMA

NOW = datetime(2026, 1, 10, tzinfo=UTC)
SUBMIT = datetime(2026, 1, 5, 8, tzinfo=UTC)
GOOD = {
    "cluster": "c",
    "job_id": 1,
    "submit_time": SUBMIT,
    "start_time": SUBMIT + timedelta(hours=1),
    "end_time": SUBMIT + timedelta(hours=2),
    "req_cpus": 4,
    "req_memory_mb": 4096.0,
    "time_limit_s": 3600,
}


def fault(**changes):
    """Why the good record is bad once changed so."""
    record = GOOD | changes
    frame = pl.DataFrame(
        {name: [value] for name, value in record.items()},
        schema={name: SCHEMA[name] for name in record},
    )
    return faults(frame, now=NOW).item()


def test_a_good_record_has_none():
    assert fault() is None


def test_absent_values_are_no_fault():
    assert fault(start_time=None, end_time=None, req_cpus=None, req_memory_mb=None) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cluster", "no cluster"),
        ("job_id", "no job id"),
        ("submit_time", "no submit time"),
    ],
)
def test_a_record_needs_its_whole_key(name, reason):
    assert fault(**{name: None}) == reason


def test_a_frame_without_a_column_of_the_key_is_bad_throughout():
    frame = pl.DataFrame({"cluster": ["c", "c"], "job_id": [1, 2]})
    assert faults(frame, now=NOW).to_list() == ["no submit time"] * 2


BOUNDED = [field for field in FIELDS if field.least is not None]


@pytest.mark.parametrize("field", BOUNDED, ids=lambda field: field.name)
def test_every_bounded_field_is_checked(field):
    below = int(field.least) - 1
    reason = fault(**{field.name: float(below) if field.kind is Kind.NUMBER else below})
    assert reason.startswith(f"{field.name} is {below}")
    assert "which is not between" in reason


def test_too_much_is_bad():
    assert fault(req_cpus=2_000_000_000) == (
        "req_cpus is 2000000000, which is not between 0 and 1000000000"
    )
    assert "not between 0 and 1e+12" in fault(req_memory_mb=1e13)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_bad(value):
    assert fault(req_memory_mb=value).startswith("req_memory_mb is ")


def test_bounds_themselves_are_good():
    assert fault(req_cpus=0, job_id=2**63 - 1, req_memory_mb=1e12) is None


@pytest.mark.parametrize("name", ["submit_time", "start_time", "end_time"])
def test_times_lie_between_1970_and_tomorrow(name):
    ahead = {"submit_time": SUBMIT, "start_time": None, "end_time": None}
    soon, later = NOW + timedelta(hours=23), NOW + timedelta(hours=25)
    assert fault(**ahead | {name: soon}) is None
    assert fault(**ahead | {name: later}) == f"{name} 2026-01-11T01:00:00Z lies in the future"
    past = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert fault(**ahead | {name: past}) == f"{name} 1969-12-31T23:59:59Z lies before 1970"


def test_an_eligible_time_may_lie_ahead():
    assert fault(eligible_time=NOW + timedelta(days=30)) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"start_time": SUBMIT - timedelta(1)}, "the job starts before it is submitted"),
        (
            {"start_time": None, "end_time": SUBMIT - timedelta(1)},
            "the job ends before it is submitted",
        ),
        ({"end_time": SUBMIT + timedelta(minutes=30)}, "the job ends before it starts"),
    ],
)
def test_times_come_in_order(changes, reason):
    assert fault(**changes) == reason


def test_only_the_bad_ones_have_a_reason():
    frame = pl.DataFrame(
        [GOOD, GOOD | {"req_cpus": -1}, GOOD | {"job_id": 2}],
        schema={name: SCHEMA[name] for name in GOOD},
    )
    assert [reason is None for reason in faults(frame, now=NOW)] == [True, False, True]
