"""Another future: what was known stays to the last field, and everything else may change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_strategies import BEGINNING, logs

from premortem.errors import InvalidInput
from premortem.jobs.fields import FIELDS, Kind, KnownAt
from premortem.jobs.samples import SAMPLES, SAMPLES_DTYPE
from premortem.jobs.states import STATES, Progress
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.futures import another_future, events

RANDOM = settings(max_examples=60, deadline=None)
unlabelled = logs.map(lambda jobs: jobs.drop("outcome", "cause"))
seeds = st.integers(0, 2**32).map(np.random.default_rng)


@cache
def log(jobs: int = 1200) -> pl.DataFrame:
    return pl.concat(SyntheticCluster(jobs, seed=3, users=20, days=40).frames())


def began_at(job: dict[str, Any]) -> datetime | None:
    if job["start_time"] is None and job["alloc_cpus"] is None:
        return None
    return max(job["start_time"] or job["submit_time"], job["submit_time"])


def ended_at(job: dict[str, Any]) -> datetime | None:
    if job["state"] is not None and STATES[job["state"]] is not Progress.ENDED:
        return None
    began = began_at(job) or job["submit_time"]
    ran = timedelta(seconds=job["elapsed_s"] or 0) if began_at(job) else timedelta()
    return max(job["end_time"] or began + ran, began)


def known_by(job: dict[str, Any], instant: datetime) -> set[int | None]:
    """Up to where a job may count as known; in the very second of an event, up to either side."""
    lives = [(KnownAt.END, ended_at(job)), (KnownAt.START, began_at(job))]
    lives += [(KnownAt.SUBMIT, job["submit_time"])]
    before = [known for known, at in lives if at is not None and at < instant]
    until = [known for known, at in lives if at is not None and at <= instant]
    return {max(before, default=None), max(until, default=None)}


@RANDOM
@given(jobs=unlabelled)
def test_events_are_those_of_the_records(jobs: pl.DataFrame) -> None:
    expected = [(j["submit_time"], began_at(j), ended_at(j)) for j in jobs.to_dicts()]
    assert events(jobs).rows() == expected


@RANDOM
@given(jobs=unlabelled, which=st.integers(0, 10**6), rng=seeds)
def test_what_was_known_stays_and_the_rest_comes_later(
    jobs: pl.DataFrame, which: int, rng: np.random.Generator
) -> None:
    times = sorted({time for row in events(jobs).rows() for time in row if time} | {BEGINNING})
    instant = times[which % len(times)]
    before = jobs.to_dicts()
    future = another_future(jobs, instant, rng)
    after = {job["place"]: job for job in future.to_dicts()}
    for place, job in enumerate(before):
        if place not in after:
            assert job["submit_time"] >= instant
            continue
        changed = after[place]
        known = changed["known"]
        assert known in known_by(job, instant)
        for field in FIELDS:
            if field.name in ("cluster", "job_id") or (known is not None and field.known <= known):
                assert changed[field.name] == job[field.name], field.name
        if known is None:
            assert changed["submit_time"] >= instant
        if known in (None, KnownAt.SUBMIT):
            assert (began_at(changed) or instant) >= instant
        if known != KnownAt.END:
            assert (ended_at(changed) or instant) >= instant


def filled() -> pl.DataFrame:
    """A log in which every field of every job has a value that no other job has."""
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    count = 400
    at = {"submit_time": 0, "eligible_time": 100, "start_time": 1000, "end_time": 9000}
    columns: dict[str, Any] = {}
    for field in FIELDS:
        match field.kind:
            case Kind.TIME:
                late = at.get(field.name, 0)
                columns[field.name] = [
                    begin + timedelta(seconds=600 * n + late + n % 7) for n in range(count)
                ]
            case Kind.TEXT:
                columns[field.name] = [f"{field.name}{n}" for n in range(count)]
            case Kind.FLAG:
                columns[field.name] = [n % 2 == 0 for n in range(count)]
            case _:
                columns[field.name] = list(range(1, count + 1))
    columns["state"] = ["COMPLETED", "FAILED"] * (count // 2)
    return pl.DataFrame(columns, schema={f.name: f.kind.dtype for f in FIELDS})


def test_every_field_of_the_table_changes_where_it_was_not_known() -> None:
    jobs = filled()
    future = another_future(jobs, jobs["start_time"][200], np.random.default_rng(1))
    assert set(future["known"].unique()) == {None, *(KnownAt.END, KnownAt.START, KnownAt.SUBMIT)}
    for field in FIELDS:
        for known in (None, KnownAt.SUBMIT, KnownAt.START):
            if field.name in ("cluster", "job_id") or (known is not None and field.known <= known):
                continue
            some = future.filter(pl.col("known").eq_missing(pl.lit(known, pl.Int32)))
            was = jobs[some["place"]][field.name]
            assert (some[field.name].ne_missing(was)).any(), f"{field.name} known up to {known}"


def test_some_jobs_never_come_and_others_come_at_other_times() -> None:
    instant = log()["submit_time"][600]
    future = another_future(log(), instant, np.random.default_rng(0))
    to_come = (log()["submit_time"] > instant).sum()
    gone = log().height - future.height
    assert 0.1 < gone / to_come < 0.3
    submitted = future.filter(pl.col("known").is_null())["submit_time"]
    assert (submitted == instant).any(), "some in the very second"
    assert submitted.n_unique() > 100


def test_the_seed_decides() -> None:
    instant = log()["submit_time"][600]
    first, again, other = (
        another_future(log(), instant, np.random.default_rng(seed)) for seed in (4, 4, 5)
    )
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.parametrize("absent", [["end_time"], ["start_time", "end_time"], ["elapsed_s"]])
def test_a_log_without_some_times_has_other_futures_too(absent: list[str]) -> None:
    jobs = log().drop(absent)
    instant = jobs["submit_time"][600]
    future = another_future(jobs, instant, np.random.default_rng(0))
    before, after = events(jobs)[future["place"]], events(future)
    for name in before.columns:
        past = before[name] < instant
        assert after.filter(past)[name].equals(before.filter(past)[name])
        assert not (after.filter(~past.fill_null(False))[name] < instant).any()
    assert not after["ended"].equals(before["ended"])


def test_labels_must_not_be_there_yet() -> None:
    with pytest.raises(InvalidInput, match="outcome"):
        another_future(
            log().with_columns(outcome=pl.lit("failed")), BEGINNING, np.random.default_rng(0)
        )


def test_no_jobs_have_no_future() -> None:
    assert another_future(log().head(0), BEGINNING, np.random.default_rng(0)).height == 0


def test_samples_taken_before_the_instant_stay_and_later_ones_are_anothers() -> None:
    jobs = log().head(40)
    moments = [BEGINNING + timedelta(seconds=60 * n) for n in range(6)]
    told = dict.fromkeys(("rss_mb", "read_mb", "written_mb", "processes"), 1)
    samples = [
        [{"at": at, "cpu_s": float(place), **told} for at in moments]
        for place in range(jobs.height)
    ]
    jobs = jobs.with_columns(pl.Series(SAMPLES, samples, dtype=SAMPLES_DTYPE))
    future = another_future(jobs, moments[3], np.random.default_rng(0))
    assert future.height > 20
    for place, told in future.select("place", SAMPLES).iter_rows():
        assert [s["at"] for s in told[:3]] == moments[:3]
        assert {s["cpu_s"] for s in told[:3]} == {float(place)}
        assert all(s["at"] >= moments[3] for s in told[3:])
    rows = future.select("place", SAMPLES).iter_rows()
    assert any(s["cpu_s"] != place for place, told in rows for s in told[3:])
