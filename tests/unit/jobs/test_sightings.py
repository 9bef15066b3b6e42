"""Several sightings of one job become one record."""

from datetime import UTC, datetime, timedelta

import polars as pl

from premortem.jobs.frame import SCHEMA
from premortem.jobs.sightings import differ, fold, tells_more, with_verdict

SUBMIT = datetime(2026, 1, 5, 8, tzinfo=UTC)


def hour(number):
    return SUBMIT + timedelta(hours=number)


def sightings(*rows):
    """A frame of sightings of job 1, unless they say otherwise; absent fields are null."""
    rows = [{"cluster": "c", "job_id": 1, "submit_time": SUBMIT} | row for row in rows]
    names = [name for name in SCHEMA if any(name in row for row in rows)]
    return pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in names},
        schema={name: SCHEMA[name] for name in names},
    )


def folded(*rows):
    records = fold(sightings(*rows))
    assert records.height == 1
    return records.row(0, named=True)


def test_what_was_asked_for_stays_as_first_seen():
    record = folded(
        {"time_limit_s": 3600, "partition": "long", "state": "PENDING", "seen_at": hour(0)},
        {"time_limit_s": 7200, "partition": "short", "state": "COMPLETED", "seen_at": hour(2)},
    )
    assert record["time_limit_s"] == 3600
    assert record["partition"] == "long"


def test_an_absent_value_is_completed_and_never_replaces_a_present_one():
    record = folded(
        {"user": None, "account": "physics", "end_time": hour(2), "state": "COMPLETED"},
        {"user": "ada", "account": None, "end_time": None, "state": "COMPLETED"},
    )
    assert (record["user"], record["account"]) == ("ada", "physics")
    assert record["end_time"] == hour(2)


def test_a_late_pending_changes_nothing_about_a_completed_job():
    ended = {"state": "COMPLETED", "exit_code": 0, "start_time": hour(1), "seen_at": hour(3)}
    late = {"state": "PENDING", "reason": "Resources", "start_time": hour(9), "seen_at": hour(4)}
    assert folded(ended, late) == sightings(ended | {"reason": None}, late).row(0, named=True)


def test_state_and_reason_come_from_the_same_sighting():
    record = folded(
        {"state": "PENDING", "reason": "Priority", "seen_at": hour(0)},
        {"state": "COMPLETED", "reason": None, "seen_at": hour(2)},
    )
    assert (record["state"], record["reason"]) == ("COMPLETED", None)


def test_a_sighting_without_state_does_not_undo_one():
    record = folded(
        {"state": "RUNNING", "seen_at": hour(0)},
        {"state": None, "node_list": "n1", "seen_at": hour(5)},
    )
    assert (record["state"], record["node_list"]) == ("RUNNING", "n1")


def test_running_counters_take_the_largest_value():
    record = folded(
        {"state": "RUNNING", "elapsed_s": 600, "max_rss_mb": 90.0, "seen_at": hour(2)},
        {"state": "COMPLETED", "elapsed_s": 900, "max_rss_mb": 50.0, "seen_at": hour(3)},
        {"state": "RUNNING", "elapsed_s": 60, "max_rss_mb": 10.0, "seen_at": hour(1)},
    )
    assert (record["elapsed_s"], record["max_rss_mb"]) == (900, 90.0)


def test_among_equals_the_later_sighting_tells_the_end():
    older = {"state": "FAILED", "exit_code": 1, "source": "sacct", "seen_at": hour(3)}
    newer = {"state": "TIMEOUT", "exit_code": 0, "source": "slurmdb", "seen_at": hour(4)}
    for order in ((older, newer), (newer, older)):
        record = folded(*order)
        assert (record["state"], record["exit_code"]) == ("TIMEOUT", 0)
        assert (record["source"], record["seen_at"]) == ("slurmdb", hour(4))


def test_where_nothing_else_decides_the_larger_value_does_in_any_order():
    one = {"state": "FAILED", "exit_signal": 0, "seen_at": hour(3)}
    other = {"state": "TIMEOUT", "exit_signal": 15, "seen_at": hour(3)}
    for pair in ((one, other), (other, one)):
        record = folded(*pair)
        assert (record["state"], record["exit_signal"]) == ("TIMEOUT", 15)


def test_a_sighting_without_a_reason_does_not_take_it_away():
    told = {"state": "TIMEOUT", "reason": "TimeLimit", "seen_at": hour(3)}
    silent = {"state": "TIMEOUT", "reason": None, "seen_at": hour(5)}
    assert folded(told, silent)["reason"] == "TimeLimit"


def test_the_reason_for_waiting_is_forgotten_when_the_job_ends():
    waiting = {"state": "PENDING", "reason": "Priority", "seen_at": hour(3)}
    ended = {"state": "COMPLETED", "reason": None, "seen_at": hour(5)}
    assert folded(waiting, ended)["reason"] is None


def test_a_limit_and_its_absence_are_not_mixed():
    asked = {"state": "PENDING", "time_limit_s": None, "time_unlimited": True}
    amended = {"state": "COMPLETED", "time_limit_s": 7200, "time_unlimited": False}
    record = folded(asked, amended)
    assert (record["time_limit_s"], record["time_unlimited"]) == (None, True)


def test_memory_is_completed_only_where_the_total_agrees():
    total = {"req_memory_mb": 100.0}
    agreeing = {"req_memory_mb": 100.0, "req_memory_per_cpu_mb": 25.0}
    other = {"req_memory_mb": 200.0, "req_memory_per_cpu_mb": 50.0}
    assert folded(total, agreeing)["req_memory_per_cpu_mb"] == 25.0
    assert folded(total, other)["req_memory_per_cpu_mb"] is None


def test_duplicates_are_one_record():
    row = {"state": "COMPLETED", "user": "ada", "seen_at": hour(3)}
    assert folded(row, row, row) == sightings(row).row(0, named=True)


def test_sightings_need_neither_a_state_nor_a_time():
    assert folded({"user": "ada"}, {"user": "bob"})["user"] == "ada"


def test_jobs_with_another_part_of_the_key_are_other_jobs():
    records = fold(
        sightings(
            {"job_id": 2, "user": "a"},
            {"job_id": 1, "user": "b"},
            {"cluster": "d", "user": "c"},
            {"submit_time": hour(1), "user": "d"},
            {"job_id": 2, "user": "e"},
        )
    )
    assert records["user"].to_list() == ["a", "b", "c", "d"]


def test_jobs_seen_once_come_back_as_they_are():
    once = sightings({"job_id": 2}, {"job_id": 1})
    assert fold(once).equals(once)


def test_deciding_columns_are_added_only_where_missing():
    completed = with_verdict(sightings({"state": "FAILED"}))
    assert completed.row(0, named=True) | {"state": None} == {
        "cluster": "c", "job_id": 1, "submit_time": SUBMIT,
        "state": None, "reason": None, "seen_at": None,
    }  # fmt: skip
    assert completed["state"].item() == "FAILED"


def test_a_sighting_tells_more_when_it_adds_or_contradicts():
    records = sightings(
        {"job_id": 1, "user": "ada", "exit_code": None},
        {"job_id": 2, "user": "ada", "exit_code": 0},
        {"job_id": 3, "user": "ada", "exit_code": 0},
        {"job_id": 4, "user": "ada", "exit_code": 0},
    )
    seen = sightings(
        {"job_id": 1, "user": None, "exit_code": 1},
        {"job_id": 2, "user": "ada", "exit_code": 2},
        {"job_id": 3, "user": None, "exit_code": None},
        {"job_id": 4, "user": "ada", "exit_code": 0},
    )
    assert tells_more(records, seen).to_list() == [True, True, False, False]


def test_records_differ_by_content_and_not_by_provenance():
    before = sightings(
        {"job_id": 1, "user": "ada", "source": "sacct", "seen_at": hour(1)},
        {"job_id": 2, "user": None, "source": "sacct", "seen_at": hour(1)},
        {"job_id": 3, "user": "ada", "source": "sacct", "seen_at": hour(1)},
    )
    after = sightings(
        {"job_id": 1, "user": "ada", "source": "slurmdb", "seen_at": hour(2)},
        {"job_id": 2, "user": "ada", "source": "sacct", "seen_at": hour(1)},
        {"job_id": 3, "user": None, "source": "sacct", "seen_at": hour(1)},
    )
    assert differ(before, after).to_list() == [False, True, True]
    assert tells_more(before, after).to_list() == [False, True, False]


def test_keys_alone_never_differ():
    keys = sightings({"job_id": 1}, {"job_id": 2})
    assert differ(keys, keys).to_list() == [False, False]
