"""Samples find the run of the job that they were taken of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from premortem.jobs.frame import SCHEMA
from premortem.jobs.samples import conform_samples, no_samples, samples_of, with_samples

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def jobs(*rows: dict[str, Any]) -> pl.DataFrame:
    told = [{"cluster": "alpha", "submit_time": NOON, **row} for row in rows]
    names = ("cluster", "job_id", "submit_time", "start_time", "end_time")
    return pl.DataFrame(told, schema={name: SCHEMA[name] for name in names})


def sampled(*moments: tuple[int, float]) -> pl.DataFrame:
    rows = [{"cluster": "alpha", "job_id": job, "at": at(s), "cpu_s": s} for job, s in moments]
    return conform_samples(pl.DataFrame(rows))


def own(frame: pl.DataFrame) -> list[Any]:
    return [
        None if told is None else [s["cpu_s"] for s in told] for told in frame["samples"].to_list()
    ]


def test_each_run_of_a_requeued_job_has_its_own() -> None:
    runs = jobs(
        {"job_id": 1, "start_time": at(10), "end_time": at(20)},
        {"job_id": 1, "submit_time": at(30), "start_time": at(40), "end_time": None},
        {"job_id": 2, "start_time": at(10), "end_time": at(50)},
        {"job_id": 3, "start_time": None, "end_time": None},
    )
    taken = sampled((1, 45), (1, 12), (1, 20.5), (1, 21), (1, 9), (2, 49), (1, 41), (9, 12))
    assert own(with_samples(runs, taken)) == [[12, 20.5], [41, 45], [49], None]


def test_jobs_of_another_cluster_have_none() -> None:
    run = jobs({"job_id": 1, "start_time": at(10)}).with_columns(cluster=pl.lit("beta"))
    assert own(with_samples(run, sampled((1, 12)))) == [None]


def test_nothing_sampled_is_a_column_of_nothing() -> None:
    frame = with_samples(jobs({"job_id": 1}), no_samples())
    assert own(frame) == [None]
    assert samples_of(frame).is_empty()


def test_what_jobs_carry_is_a_table_again() -> None:
    runs = jobs(
        {"job_id": 1, "start_time": at(0)},
        {"job_id": 2, "start_time": at(0)},
        {"job_id": 3, "start_time": at(0)},
    )
    taken = sampled((1, 1), (1, 2), (3, 5))
    assert_frame_equal(samples_of(with_samples(runs, taken)), taken)
    assert samples_of(runs).is_empty()
