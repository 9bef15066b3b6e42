"""What fields known too late would have gained: the benchmark's numbers, and those in between."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

from premortem.features.points import POSTHOC, SUBMIT
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.benchmark import MODEL, benchmark_log
from premortem.training.gain import gain_of_hindsight
from premortem.training.hindsight import HINDSIGHT, hindsight

TREES = 20


@cache
def log(jobs: int = 1200) -> pl.DataFrame:
    return pl.concat(SyntheticCluster(jobs, seed=3, users=20, days=40).frames())


def test_nothing_and_everything_are_the_numbers_of_the_benchmark() -> None:
    gain = gain_of_hindsight(log(), trees=TREES)
    results = benchmark_log(log(), points=[SUBMIT, POSTHOC], trees=TREES)
    honest, posthoc = (r for r in results if r.model == MODEL)
    assert [row.fields for row in gain.rows] == ["none", *HINDSIGHT, "all"]
    for row, result in ((gain.rows[0], honest), (gain.rows[-1], posthoc)):
        assert (row.auc, row.average_precision) == (result.auc, result.average_precision)
    assert gain.as_dicts()[0] == {
        "fields": "none", "auc": honest.auc, "average_precision": honest.average_precision,
    }  # fmt: skip


def test_the_field_that_gives_it_away_stands_out() -> None:
    completed = pl.col("state") == "COMPLETED"
    jobs = log(4000).with_columns(max_rss_mb=pl.when(completed).then(1.0).otherwise(2.0))
    auc = {row.fields: row.auc for row in gain_of_hindsight(jobs, trees=TREES).rows}
    assert auc["max_rss_mb"] > 0.99 > max(auc["none"], auc["elapsed_s"])


def test_fields_that_no_job_has_are_left_out() -> None:
    jobs = log().drop("max_rss_mb", "cpu_total_s")
    told = [row.fields for row in gain_of_hindsight(jobs, trees=2).rows]
    assert told == [
        "none", "elapsed_s", "limit_share", "wait_s", "alloc_cpus", "limit_left_s",
        "elapsed_past_minute_s", "elapsed_past_hour_s", "all",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        (log().with_columns(state=pl.lit("COMPLETED")), "failed"),
        (log().head(10), "too few"),
        (log().head(0), "no jobs to judge"),
    ],
    ids=["no failures", "ten jobs", "empty"],
)
def test_a_log_that_cannot_be_judged_has_a_message(jobs: pl.DataFrame, says: str) -> None:
    gain = gain_of_hindsight(jobs, trees=2)
    assert gain.rows == ()
    assert says in (gain.message or "")


def test_hindsight_has_a_column_for_each_of_its_names() -> None:
    told = hindsight(log())
    assert told.shape == (log().height, len(HINDSIGHT))
    elapsed = log()["elapsed_s"].fill_null(-1).to_list()
    place = HINDSIGHT.index("elapsed_s")
    assert [-1 if value != value else value for value in told[:, place]] == elapsed
