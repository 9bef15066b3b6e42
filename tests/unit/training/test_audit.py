"""The audit of one log: it holds for the replay, and finds whatever peeks, by its name."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_strategies import logs

from premortem.errors import InvalidInput
from premortem.features.catalogue import CATALOGUE, Family, Feature, feature_set
from premortem.features.points import POSTHOC, START, SUBMIT, Point, running
from premortem.features.replay import Replay, Rows
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.audit import HONEST_POINTS, POPULATION, MakeRows, audit_log

POINTS = (SUBMIT, START, running(120), running(600))


@cache
def log(jobs: int = 1200) -> pl.DataFrame:
    return pl.concat(SyntheticCluster(jobs, seed=3, users=20, days=40).frames())


def peeking(column: pl.Expr) -> MakeRows:
    """The replay's rows, and one column more."""

    def make_rows(labelled: pl.DataFrame, point: Point) -> Rows:
        rows = Replay().rows(labelled, point)
        values = column.cast(pl.Float32).fill_null(float("nan"))
        more = labelled.select(values).to_series().to_numpy()[rows.jobs]
        return Rows(np.column_stack([rows.values, more]), rows.jobs, rows.moments)

    return make_rows


class TestItHolds:
    def test_for_the_replay_at_every_point(self) -> None:
        audit = audit_log(log(), trials=4)
        assert audit.leaks == ()
        assert audit.holds
        assert [trial.point for trial in audit.trials] == [
            p.name for p in HONEST_POINTS for _ in "1234"
        ]
        for trial in audit.trials:
            width = len(feature_set(next(p for p in HONEST_POINTS if p.name == trial.point)).places)
            assert trial.values_compared == trial.rows_compared * width
            assert log()["submit_time"].min() < trial.instant < log()["end_time"].max()
        changed, later = (
            sum(getattr(trial, name) for trial in audit.trials)
            for name in ("later_rows_changed", "later_rows")
        )
        assert changed > 0.9 * later > 1000

    @settings(max_examples=30, deadline=None)
    @given(jobs=logs, seed=st.integers(0, 2**32))
    def test_for_random_logs(self, jobs: pl.DataFrame, seed: int) -> None:
        audit = audit_log(jobs.drop("outcome", "cause"), points=POINTS, trials=1, seed=seed)
        assert audit.leaks == ()

    @pytest.mark.parametrize("absent", ["start_time", "end_time", "elapsed_s", "state", "user"])
    def test_for_a_log_without_some_field(self, absent: str) -> None:
        assert audit_log(log().drop(absent), points=POINTS[:3], trials=2).holds

    def test_whatever_the_order_of_the_log(self) -> None:
        shuffled = log().sample(fraction=1, shuffle=True, seed=1)
        assert audit_log(shuffled, points=[START], trials=2).holds

    def test_the_seed_decides_on_the_instants(self) -> None:
        runs = [audit_log(log(), points=[SUBMIT], trials=2, seed=seed) for seed in (1, 1, 2)]
        assert runs[0] == runs[1]
        assert runs[0].trials[0].instant != runs[2].trials[0].instant


FAILED = pl.col("outcome") == "failed"
LEAKS = {
    "final_elapsed_s": pl.col("elapsed_s"),
    "user_failures_of_all_times": FAILED.mean().over("user"),
    "user_jobs_to_come": pl.col("submit_time").rank("max", descending=True).over("user"),
    "is_never_unlucky": FAILED,
    "node_after_all": pl.col("node_list").str.len_chars(),
}


class TestItFinds:
    @pytest.mark.parametrize("name", LEAKS)
    def test_a_feature_that_knows_the_future(self, name: str) -> None:
        feature = Feature(name, "history", ("submit_time",), "Lies about its inputs.")
        audit = audit_log(
            log(), points=[SUBMIT], catalogue=(*CATALOGUE, feature), make_rows=peeking(LEAKS[name])
        )
        assert not audit.holds
        (leak,) = audit.leaks
        assert (leak.point, leak.feature) == ("submit", name)
        assert leak.before != leak.after
        (job,) = log().filter(job_id=leak.job).to_dicts()
        assert job["submit_time"] <= leak.instant
        assert leak.instant in {trial.instant for trial in audit.trials}
        if name == "final_elapsed_s":
            assert leak.before == np.float32(job["elapsed_s"])

    def test_a_feature_that_is_known_later_than_it_says(self) -> None:
        """What a job gets is known at its start: there it is no leak, before it is."""
        got = peeking(pl.col("alloc_cpus") * 2)
        told = {"submit_time": False, "alloc_cpus": True}
        for field, holds in told.items():
            catalogue = (*CATALOGUE, Feature("twice_the_cpus", "run", (field,), ""))
            audit = audit_log(log(), points=[SUBMIT, START], catalogue=catalogue, make_rows=got)
            assert audit.holds is holds
            assert [leak.point for leak in audit.leaks] == ([] if holds else ["submit"])

    def test_a_row_that_sees_its_own_second(self) -> None:
        feature = Feature("submitted_this_second", "history", ("submit_time",), "")
        seeing = peeking(pl.len().over("submit_time"))
        audit = audit_log(
            log(), points=[SUBMIT], trials=20, catalogue=(*CATALOGUE, feature), make_rows=seeing
        )
        (leak,) = audit.leaks
        assert leak.feature == feature.name
        (job,) = log().filter(job_id=leak.job).to_dicts()
        assert job["submit_time"] == leak.instant

    def test_a_population_chosen_by_what_came_later(self) -> None:
        def only_the_lucky(labelled: pl.DataFrame, point: Point) -> Rows:
            rows = Replay().rows(labelled, point)
            kept = (labelled["outcome"] == "completed").to_numpy()[rows.jobs]
            return Rows(rows.values[kept], rows.jobs[kept], rows.moments[kept])

        (leak,) = audit_log(log(), points=[SUBMIT], make_rows=only_the_lucky).leaks
        assert leak.feature == POPULATION
        assert None in (leak.before, leak.after)

    def test_each_feature_is_told_once_for_a_point(self) -> None:
        feature = Feature("luck", "history", (), "")
        audit = audit_log(
            log(), points=[SUBMIT, START], trials=4,
            catalogue=(*CATALOGUE, feature), make_rows=peeking(FAILED),
        )  # fmt: skip
        assert [(leak.point, leak.feature) for leak in audit.leaks] == [
            ("submit", "luck"), ("start", "luck"),
        ]  # fmt: skip


class TestItShowsNothing:
    def test_where_later_rows_do_not_change_either(self) -> None:
        def blank(labelled: pl.DataFrame, point: Point) -> Rows:
            rows = Replay().rows(labelled, point)
            return Rows(np.zeros_like(rows.values), rows.jobs, rows.moments)

        audit = audit_log(log(), points=[SUBMIT], make_rows=blank)
        assert audit.holds
        assert all(trial.idle for trial in audit.trials)
        assert not any(trial.idle for trial in audit_log(log(), points=[SUBMIT]).trials)

    def test_where_nothing_can_be_compared(self) -> None:
        for jobs in (log().head(0), log().head(1)):
            audit = audit_log(jobs, points=[START])
            assert not audit.leaks
            assert not audit.holds or audit.values_compared

    def test_at_a_point_that_no_job_reaches(self) -> None:
        jobs = log().with_columns(start_time=None, alloc_cpus=None, elapsed_s=None)
        audit = audit_log(jobs.cast(dict(log().schema)), points=[SUBMIT, START], trials=2)
        assert [trial.point for trial in audit.trials] == ["submit", "submit"]
        assert audit.points == ("submit", "start")
        assert audit.holds

    def test_where_the_future_is_meant_to_leak(self) -> None:
        with pytest.raises(InvalidInput, match="posthoc leaks on purpose"):
            audit_log(log(), points=[SUBMIT, POSTHOC])


def test_features_are_told_with_when_they_are_known() -> None:
    told = audit_log(log(200), points=[SUBMIT, running(600)], family=Family.SWF).as_dict()
    assert set(told) == {"jobs", "holds", "trials", "leaks", "features"}
    by_name = {feature["name"]: feature for feature in told["features"]}
    assert by_name["limit_share"] == {
        "name": "limit_share", "known": "running", "inputs": ["elapsed_s", "time_limit_s"],
        "chapter": "run", "points": ["running@10min"],
    }  # fmt: skip
    assert by_name["user_pending"]["points"] == ["submit", "running@10min"]
    assert "name_pending" not in by_name
    assert set(told["trials"][0]) == {
        "point", "instant", "rows_compared", "values_compared", "later_rows", "later_rows_changed",
    }  # fmt: skip
