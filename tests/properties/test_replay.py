"""History as the replay sees it: what the oracle says, nothing of the future, in any order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from job_strategies import jobs as job_records
from log_strategies import BEGINNING, labelled, logs
from replay_oracle import oracle_rows

from premortem.features import points
from premortem.features.catalogue import CATALOGUE
from premortem.features.facts import facts_of, facts_of_one
from premortem.features.points import Point, running
from premortem.features.replay import Replay, Rows
from premortem.jobs.fields import FIELDS, KEY, KnownAt
from premortem.jobs.outcomes import Cause

RANDOM = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
POINTS = (points.SUBMIT, points.START, running(120), running(600))
at_every_point = pytest.mark.parametrize("point", POINTS, ids=str)
zones = st.sampled_from(("UTC", "Europe/Zurich", "America/St_Johns", "Australia/Lord_Howe"))
seeds = st.integers(0, 2**32).map(Random)


def replayed(jobs: pl.DataFrame, point: Point, zone: str = "UTC") -> Rows:
    return Replay(zone=zone).rows(jobs, point)


def by_job(jobs: pl.DataFrame, rows: Rows, *, until: float = np.inf) -> dict[Any, bytes]:
    """Each job's row to the bit, by the job's key; of those made no later than `until`."""
    keys = jobs.select(KEY).rows()
    return {
        keys[job]: row.tobytes()
        for job, row, moment in zip(rows.jobs, rows.values, rows.moments, strict=True)
        if moment <= until
    }


@at_every_point
@RANDOM
@given(jobs=logs, zone=zones)
def test_the_rows_are_those_of_the_oracle(jobs: pl.DataFrame, point: Point, zone: str) -> None:
    found, expected = replayed(jobs, point, zone), oracle_rows(jobs, point, zone=zone)
    assert found.jobs.tolist() == expected.jobs
    assert found.moments.tolist() == expected.moments
    same = np.isclose(found.values, expected.values, rtol=1e-5, atol=1e-6, equal_nan=True)
    differing = [
        f"{CATALOGUE[place].name} of job {found.jobs[row]}: "
        f"{found.values[row, place]}, not {expected.values[row, place]}"
        for row, place in np.argwhere(~same)
    ]
    assert not differing


@at_every_point
@RANDOM
@given(jobs=logs, columns=st.lists(st.integers(0, len(CATALOGUE) - 1), max_size=9))
def test_columns_asked_for_are_those_of_the_whole_rows(
    jobs: pl.DataFrame, point: Point, columns: list[int]
) -> None:
    whole, some = replayed(jobs, point), Replay().rows(jobs, point, columns=columns)
    assert some.values.tobytes() == whole.values[:, columns].tobytes()


# --- nothing of the future ----------------------------------------------------------------------


def another_future(jobs: pl.DataFrame, instant: datetime, random: Random) -> pl.DataFrame:
    """The same log as far as anyone could know it at `instant`; what came after is another story.

    What happens in the very second of `instant` is not yet known to the rows of that second either,
    but a job's own submission or start makes its row, and so stays.
    """
    changed = []
    for record in jobs.to_dicts():
        submitted, began = record["submit_time"], began_at(record)
        ended = ended_at(record)
        if ended is not None and ended < instant:
            changed.append(record)
            continue
        record["samples"] = other_samples(record["samples"], instant, random)
        if submitted > instant and (began is None or began > instant):
            if random.random() < 0.5:
                continue
            record |= {"submit_time": later(instant, random), "user": random.choice("xyz")}
            record |= {"req_cpus": random.randint(1, 9)}
        if began is None or began > instant:
            record |= another_start(instant, random)
        record |= another_end(record, random)
        if ended == instant:
            record["end_time"] = instant
            record["outcome"] = record["outcome"].replace("unfinished", "ignored")
        else:
            record["end_time"] = later(instant, random)
        changed.append(record)
    return pl.DataFrame(changed, schema=jobs.schema)


def other_samples(samples: Any, instant: datetime, random: Random) -> Any:
    """Those taken before the instant, and others after it."""
    kept = [sample for sample in samples or () if sample["at"] < instant]
    numbers = dict.fromkeys(("cpu_s", "rss_mb", "read_mb", "written_mb"), 77.0)
    if random.random() < 0.5:
        kept.append({"at": later(instant, random), **numbers, "processes": 9})
    return kept


def later(instant: datetime, random: Random) -> datetime:
    return instant + timedelta(seconds=random.choice((1, 2, 60, 121, 5000)))


def began_at(record: dict[str, Any]) -> datetime | None:
    if record["start_time"] is None and record["alloc_cpus"] is None:
        return None
    return max(record["start_time"] or record["submit_time"], record["submit_time"])


def ended_at(record: dict[str, Any]) -> datetime | None:
    if record["outcome"] == "unfinished":
        return None
    began = began_at(record) or record["submit_time"]
    ran = timedelta(seconds=record["elapsed_s"] or 0)
    return max(record["end_time"] or began + ran, began)


def another_start(instant: datetime, random: Random) -> dict[str, Any]:
    never = {"start_time": None, "alloc_cpus": None, "node_list": None, "elapsed_s": None}
    if random.random() < 0.5:
        return never
    return {
        "start_time": later(instant, random),
        "alloc_cpus": random.randint(1, 9),
        "node_list": random.choice(("n01", "n[01-03]", "m7")),
    }


def another_end(record: dict[str, Any], random: Random) -> dict[str, Any]:
    """Another outcome, cause and usage; whether the job had started stays as it was."""
    outcome = random.choice(("completed", "failed", "ignored", "unfinished"))
    began = began_at(record)
    return {
        "outcome": outcome,
        "cause": str(random.choice(list(Cause))) if outcome == "failed" else None,
        "elapsed_s": None if began is None else random.choice((1, 119, 120, 7000)),
        "max_rss_mb": random.choice((None, 1.0, 1e6)),
        "state": random.choice(("COMPLETED", "FAILED", None)),
        "exit_code": random.choice((None, 0, 137)),
    }


@at_every_point
@RANDOM
@given(jobs=logs, which=st.integers(0, 10**6), random=seeds)
def test_what_happens_later_changes_no_row(
    jobs: pl.DataFrame, point: Point, which: int, random: Random
) -> None:
    rows = replayed(jobs, point)
    moments = sorted({*rows.moments.tolist(), BEGINNING.timestamp()})
    instant = moments[which % len(moments)]
    changed = another_future(jobs, datetime.fromtimestamp(instant, UTC), random)
    before = by_job(jobs, rows, until=instant)
    after = by_job(changed, replayed(changed, point), until=instant)
    assert after == before


# --- the order of things ------------------------------------------------------------------------


@RANDOM
@given(jobs=logs, random=seeds)
def test_the_order_of_the_log_does_not_matter(jobs: pl.DataFrame, random: Random) -> None:
    shuffled = jobs[random.sample(range(jobs.height), jobs.height)]
    for point in POINTS:
        assert by_job(shuffled, replayed(shuffled, point)) == by_job(jobs, replayed(jobs, point))


@settings(RANDOM, max_examples=15)
@given(jobs=logs, others=logs, name=st.sampled_from(("abacus", "omega")))
def test_another_cluster_is_another_world(
    jobs: pl.DataFrame, others: pl.DataFrame, name: str
) -> None:
    both = pl.concat([others.with_columns(cluster=pl.lit(name)), jobs])
    for point in POINTS:
        rows = by_job(both, replayed(both, point))
        mine = {key: row for key, row in rows.items() if key[0] == "alpha"}
        assert mine == by_job(jobs, replayed(jobs, point))


# --- populations --------------------------------------------------------------------------------


@RANDOM
@given(jobs=logs, after=st.sampled_from((1, 120, 600, 3600)))
def test_a_point_has_the_jobs_that_were_there_then(jobs: pl.DataFrame, after: int) -> None:
    log = jobs.to_dicts()
    began = {n: began_at(job) for n, job in enumerate(log) if began_at(job) is not None}
    moments = {n: start + timedelta(seconds=after) for n, start in began.items()}
    left = [n for n, at in moments.items() if (end := ended_at(log[n])) is None or end > at]
    assert replayed(jobs, points.SUBMIT).jobs.tolist() == list(range(jobs.height))
    assert replayed(jobs, points.START).jobs.tolist() == list(began)
    assert replayed(jobs, running(after)).jobs.tolist() == left


# --- live ---------------------------------------------------------------------------------------


def known_by(job: dict[str, Any], moment: KnownAt) -> dict[str, Any]:
    """What a live source could tell of a job then; its outcome only at the end."""
    told = {field.name: job[field.name] for field in FIELDS if field.known <= moment}
    told["samples"] = job["samples"]
    if moment is KnownAt.END:
        return told | {"outcome": job["outcome"], "cause": job["cause"]}
    return told | {"outcome": "unfinished", "cause": None}


def agenda(jobs: pl.DataFrame, random: Random) -> list[tuple[datetime, str, dict[str, Any], Any]]:
    """All events of the log and all rows to ask for, in time, in no order within a second.

    With an event comes the time its source tells, which a clock that was put back makes wrong; with
    a row the point, and the row of the batch.
    """
    tasks = []
    for job in jobs.to_dicts():
        tasks.append(
            (job["submit_time"], "submit", known_by(job, KnownAt.SUBMIT), job["submit_time"])
        )
        if (began := began_at(job)) is not None:
            told = job["start_time"] or began
            tasks.append((began, "start", known_by(job, KnownAt.START), told))
        if (ended := ended_at(job)) is not None:
            told = job["end_time"] or ended
            tasks.append((ended, "end", known_by(job, KnownAt.END), told))
    for point in POINTS:
        known = min(point.known, KnownAt.START)
        rows = replayed(jobs, point)
        log = jobs[rows.jobs].to_dicts()
        for job, row, moment in zip(log, rows.values, rows.moments, strict=True):
            at = datetime.fromtimestamp(moment, UTC)
            tasks.append((at, "row", known_by(job, known), (point, row)))
    random.shuffle(tasks)
    return sorted(tasks, key=lambda task: task[0])


@RANDOM
@given(jobs=logs, random=seeds)
def test_a_live_row_is_the_row_of_the_batch(jobs: pl.DataFrame, random: Random) -> None:
    replay = Replay(zone="UTC")
    for at, what, job, told in agenda(jobs, random):
        if what == "row":
            point, row = told
            assert_same(replay.row(job, point, at), row, f"{job['job_id']} at {point}")
        else:
            replay.observe(what, job, told)


@RANDOM
@given(jobs=logs, random=seeds)
def test_a_restored_replay_goes_on_as_if_nothing_had_been(
    tmp_path: Path, jobs: pl.DataFrame, random: Random
) -> None:
    tasks = agenda(jobs, random)
    stops = {random.randrange(len(tasks)) for _ in range(2)}
    replay = Replay(zone="UTC")
    for n, (at, what, job, told) in enumerate(tasks):
        if n in stops:
            replay.save(tmp_path / "state")
            replay = Replay.restore(tmp_path / "state")
        if what == "row":
            point, row = told
            assert_same(replay.row(job, point, at), row, f"{job['job_id']} at {point}")
        else:
            replay.observe(what, job, told)


def as_known_before(jobs: pl.DataFrame, instant: datetime) -> pl.DataFrame:
    """The log as a site had it before that second: later jobs missing, others unfinished."""
    records = []
    for record in jobs.to_dicts():
        began, ended = began_at(record), ended_at(record)
        if record["submit_time"] >= instant:
            continue
        if ended is None or ended >= instant:
            record |= {"outcome": "unfinished", "cause": None, "end_time": None, "max_rss_mb": None}
            # Whatever the job has run by now, it is a sign that it has started.
            record["elapsed_s"] = 1 if began is not None and began < instant else None
        if began is None or began >= instant:
            record |= {"start_time": None, "alloc_cpus": None, "node_list": None}
        records.append(record)
    return pl.DataFrame(records, schema=jobs.schema)


@RANDOM
@given(jobs=logs, random=seeds)
def test_live_goes_on_from_where_a_log_ends(jobs: pl.DataFrame, random: Random) -> None:
    tasks = agenda(jobs, random)
    instant = random.choice(tasks)[0]
    replay = Replay(zone="UTC")
    replay.rows(as_known_before(jobs, instant), random.choice(POINTS))
    for at, what, job, told in tasks:
        if at < instant:
            continue
        if what == "row":
            point, row = told
            assert_same(replay.row(job, point, at), row, f"{job['job_id']} at {point}")
        else:
            replay.observe(what, job, told)


@RANDOM
@given(record=job_records(), fraction=st.integers(0, 999_999))
def test_the_facts_of_one_job_are_those_of_its_frame(record: dict[str, Any], fraction: int) -> None:
    if "start_time" in record:
        record["start_time"] += timedelta(microseconds=fraction)
    jobs = labelled([record])
    of_frame = facts_of(jobs, zone="Europe/Zurich")
    values, names = facts_of_one(jobs.row(0, named=True), zone="Europe/Zurich")
    assert values.tobytes() == of_frame.values[0].tobytes()
    assert tuple(names) == of_frame.names.row(0)


def assert_same(found: Any, expected: Any, whose: str) -> None:
    """The same row to the bit."""
    if found.tobytes() != expected.tobytes():
        differing = [
            f"{feature.name} of job {whose}: {mine}, not {its}"
            for feature, mine, its in zip(CATALOGUE, found, expected, strict=True)
            if mine.tobytes() != its.tobytes()
        ]
        pytest.fail("; ".join(differing))
