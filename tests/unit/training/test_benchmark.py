"""The benchmark of one log: who is judged, by what, and what is said where nothing can be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache

import numpy as np
import polars as pl
import pytest

from premortem.features.points import POSTHOC, START, SUBMIT, running
from premortem.jobs.labels import LabelPolicy
from premortem.jobs.outcomes import Cause
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.benchmark import MODEL, PointResult, benchmark_log

FEW = 10


@cache
def log(jobs: int = 1200) -> pl.DataFrame:
    return pl.concat(SyntheticCluster(jobs, seed=3, users=20, days=40).frames())


def timeless(results: list[PointResult]) -> list[PointResult]:
    return [replace(result, fit_seconds=0, score_seconds=0) for result in results]


def test_a_model_and_its_baselines_at_each_point_and_what_leaks_last() -> None:
    results = benchmark_log(log(), points=[POSTHOC, SUBMIT, running(600)], trees=200)
    models = [
        MODEL, "majority", "user_last_outcome", "user_name_rate", "xgboost_request",
    ]  # fmt: skip
    expected = [(point, model) for point in ("submit", "running@10min") for model in models]
    assert [(r.point, r.model) for r in results] == [*expected, ("posthoc", MODEL)]
    assert [r.leaks for r in results] == [False] * 10 + [True]
    by_key = {(r.point, r.model): r for r in results}
    submit, posthoc = by_key["submit", MODEL], by_key["posthoc", MODEL]
    assert submit.average_precision > by_key["submit", "majority"].average_precision
    assert posthoc.average_precision > submit.average_precision
    assert posthoc.threshold == 0.5
    assert posthoc.at_threshold.f1 == posthoc.f1
    assert by_key["submit", "majority"].auc == 0.5
    assert by_key["running@10min", MODEL].jobs < submit.jobs


def test_populations_are_those_of_the_point() -> None:
    jobs = log()
    labelled = LabelPolicy().label(jobs)
    cut = np.quantile(jobs["submit_time"].dt.epoch("s").to_numpy(), 0.8)
    counted = labelled.filter(
        pl.col("outcome").is_in(["completed", "failed"]),
        pl.col("submit_time").dt.epoch("s") >= cut,
    )
    ran = (pl.col("end_time") - pl.col("start_time")).dt.total_seconds()
    expected = {
        "submit": counted.height,
        "start": counted.filter(pl.col("start_time").is_not_null()).height,
        "running@10min": counted.filter(ran > 600).height,
    }
    results = benchmark_log(jobs, points=[SUBMIT, START, running(600)], trees=2)
    assert {r.point: r.jobs for r in results if r.model == MODEL} == expected


def test_the_same_run_gives_the_same_numbers_whatever_the_order_of_the_log() -> None:
    shuffled = log().sample(fraction=1, shuffle=True, seed=1)
    runs = [benchmark_log(jobs, points=[SUBMIT], trees=FEW) for jobs in (log(), log())]
    assert timeless(runs[0]) == timeless(runs[1])
    again = benchmark_log(shuffled.sort("submit_time", "job_id"), points=[SUBMIT], trees=FEW)
    assert timeless(again) == timeless(runs[0])


def test_what_is_learned_after_the_last_submission_changes_nothing() -> None:
    jobs = log()
    late = pl.col("end_time") > pl.col("submit_time").max()
    told = jobs.with_columns(elapsed_s=pl.when(late).then(1).otherwise("elapsed_s"))
    runs = [benchmark_log(one, points=[SUBMIT], trees=FEW) for one in (jobs, told)]
    assert timeless(runs[0]) == timeless(runs[1])


def test_folds_are_told_one_by_one_and_together() -> None:
    results = benchmark_log(log(), points=[SUBMIT], folds=3, trees=FEW)
    model = [r for r in results if r.model == MODEL]
    assert [r.fold for r in model] == [None, 1, 2, 3]
    assert model[0].jobs == sum(r.jobs for r in model[1:])
    assert model[0].threshold is None
    assert model[0].at_threshold.f1 is not None
    assert model[1].train_jobs < model[2].train_jobs < model[3].train_jobs


def test_ignored_causes_are_not_judged() -> None:
    policy = LabelPolicy(ignored=frozenset(Cause) - {Cause.APPLICATION})
    everything, some = (
        next(r for r in benchmark_log(log(), points=[SUBMIT], policy=p, trees=2) if not r.message)
        for p in (LabelPolicy(), policy)
    )
    assert some.jobs < everything.jobs
    assert some.failure_share < everything.failure_share


class TestNothingToTell:
    """A message for each point, and the others are not affected."""

    @pytest.mark.parametrize(
        ("jobs", "says"),
        [
            (log().with_columns(state=pl.lit("COMPLETED")), "failed"),
            (log().with_columns(state=pl.lit("TIMEOUT")), "all of the"),
            (log().with_columns(state=pl.lit("PENDING")), "no jobs to judge"),
            (log().head(10), "too few"),
            (log().head(0), "no jobs to judge"),
            (log().with_columns(submit_time=pl.col("submit_time").first()), "too few"),
        ],
        ids=["no failures", "no successes", "none ended", "ten jobs", "empty", "one second"],
    )
    def test_of_the_whole_log(self, jobs: pl.DataFrame, says: str) -> None:
        results = benchmark_log(jobs, trees=2)
        assert len(results) == 6
        for result in results:
            assert says in result.message
            assert result.auc is None
            assert result.model == MODEL

    def test_of_jobs_that_never_started(self) -> None:
        never = pl.lit(None)
        jobs = log().with_columns(
            start_time=never.cast(log()["start_time"].dtype),
            alloc_cpus=never.cast(pl.Int64),
            elapsed_s=never.cast(pl.Int64),
        )
        results = benchmark_log(jobs, points=[SUBMIT, START, running(120)], trees=2)
        messages = {r.point: r.message for r in results if r.model == MODEL}
        assert messages["submit"] is None
        assert "started" in messages["start"]
        assert "120 s" in messages["running@2min"]

    def test_of_one_fold(self) -> None:
        begin = log()["submit_time"][0]
        calm = pl.col("submit_time") < begin + timedelta(days=24)
        jobs = log().with_columns(state=pl.when(calm).then(pl.lit("COMPLETED")).otherwise("state"))
        results = benchmark_log(jobs, points=[SUBMIT], folds=4, trees=2)
        assert "failed" in next(r.message for r in results if r.fold == 1)
        assert next(r for r in results if r.fold == 4).message is None
        assert next(r for r in results if r.fold is None).auc is not None


def test_one_user_and_no_wait_times_are_no_obstacle() -> None:
    jobs = log().with_columns(
        user=pl.lit("ada"), start_time=pl.lit(None).cast(log()["start_time"].dtype)
    )
    results = benchmark_log(jobs, points=[SUBMIT, START], trees=2)
    assert all(r.message is None for r in results)
