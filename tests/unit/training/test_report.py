"""The report of a training: the numbers are those of the measures, and nothing is left over."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from trainings import judged_otherwise, small_training

from premortem.features.catalogue import Family, feature_set
from premortem.features.points import SUBMIT
from premortem.training import metrics, report_figures, report_slices
from premortem.training.baselines import FirstKnown
from premortem.training.importance import group_of
from premortem.training.report import judged_again, plain, report_of, user_numbers
from premortem.training.report_scores import baseline_risks
from premortem.training.train import Judged, Training
from premortem.training.tuning import Trial


@pytest.fixture(scope="module")
def training() -> Training:
    return small_training()


@pytest.fixture(scope="module")
def report(training: Training) -> dict[str, Any]:
    return report_of(training)


@pytest.fixture(scope="module")
def submit(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = report["points"]["submit"]
    return found


@pytest.fixture(scope="module")
def judged(training: Training) -> Judged:
    return training.points["submit"].judged


class TestScores:
    def test_they_are_those_of_the_measures(self, training: Training, report: Any) -> None:
        for name, one in training.points.items():
            outcomes, risk = one.judged.outcomes, one.judged.risk
            scores = report["points"][name]["scores"]["model"]
            whole = {
                "average_precision": metrics.average_precision(outcomes, risk),
                "auc": metrics.auc(outcomes, risk),
                "ece": metrics.calibration_error(outcomes, risk),
            }
            assert {measure: scores[measure]["value"] for measure in whole} == whole
            for at, threshold in (("at_half", 0.5), ("at_threshold", one.judged.threshold)):
                decided = asdict(metrics.decided(outcomes, risk >= threshold))
                assert {m: told["value"] for m, told in scores[at].items()} == decided

    def test_every_interval_holds_its_score(self, report: Any) -> None:
        found = [told for told in _everything(report) if set(told) == {"value", "low", "high"}]
        assert len(found) > 40
        for told in found:
            if told["low"] is not None:
                assert told["low"] <= told["value"] <= told["high"]

    def test_baselines_see_the_same_rows(
        self, training: Training, submit: Any, judged: Judged
    ) -> None:
        names = feature_set(SUBMIT).names
        rule = FirstKnown([names.index("user_last_outcome")])
        rule.fit(judged.values[:0], np.array([0.2]))
        last = rule.risk(judged.values)
        told = submit["scores"]["baselines"]
        assert list(told) == ["majority", "user_last_outcome", "user_name_rate"]
        expected = metrics.average_precision(judged.outcomes, last)
        assert told["user_last_outcome"]["average_precision"]["value"] == pytest.approx(
            expected, abs=0.02
        )
        assert told["majority"]["auc"]["value"] == 0.5
        own = submit["scores"]["model"]["average_precision"]["value"]
        for one in told.values():
            ahead = one["ahead"]["value"]
            assert ahead == pytest.approx(own - one["average_precision"]["value"])

    def test_the_majority_is_that_of_the_jobs_learned_from(
        self, training: Training, submit: Any, judged: Judged
    ) -> None:
        first = training.labelled["submit_time"].gather(judged.jobs).min()
        before = training.labelled.filter(
            pl.col("end_time") < first, pl.col("outcome").is_in(["completed", "failed"])
        )
        assert abs(before.height - judged.learned_from) <= 5
        share = (before["outcome"] == "failed").mean()
        expected = metrics.calibration_error(judged.outcomes, np.full(len(judged.risk), share))
        assert submit["scores"]["baselines"]["majority"]["ece"]["value"] == pytest.approx(expected)

    def test_a_family_without_users_has_no_baseline_of_them(self) -> None:
        names = feature_set(SUBMIT, Family.RESTRICTED).names
        assert list(baseline_risks(np.zeros((3, len(names))), names, 0.2)) == ["majority"]


class TestSlices:
    def test_each_kind_adds_up_to_the_whole(self, submit: Any, judged: Judged) -> None:
        assert set(submit["slices"]) == {"activity", "partition", "size", "time"}
        made = submit["confusion"]
        for parts in submit["slices"].values():
            assert sum(one["jobs"] for one in parts) == len(judged.outcomes)
            assert sum(one["failures"] for one in parts) == judged.outcomes.sum()
            assert sum(one["caught"] for one in parts) == made["caught"]
            warnings = sum(one["warnings"] for one in parts)
            assert warnings == made["caught"] + made["false_alarms"]

    def test_scores_are_those_of_the_part_alone(
        self, training: Training, submit: Any, judged: Judged
    ) -> None:
        partition = training.labelled["partition"].gather(judged.jobs).to_numpy()
        first = submit["slices"]["partition"][0]
        member = partition == first["name"]
        expected = metrics.average_precision(judged.outcomes[member], judged.risk[member])
        assert first["scores"]["average_precision"] == expected

    def test_few_jobs_or_one_outcome_have_counts_only(self) -> None:
        rng = np.random.default_rng(0)
        for outcomes in (rng.integers(0, 2, 19).astype(float), np.zeros(50), np.ones(50)):
            told = report_slices.slice_of("part", outcomes, np.full(len(outcomes), 0.7), 0.5)
            assert told["scores"] is None
            assert (told["jobs"], told["warnings"]) == (len(outcomes), len(outcomes))

    def test_many_partitions_are_put_together_and_missing_ones_told(self) -> None:
        names = [f"p{k:02}" for k in range(20) for _ in range(20 - k)]
        parts = report_slices.by_partition(pl.DataFrame({"partition": [*names, None, None]}))
        assert [name for name, _ in parts[:2]] == ["p00", "p01"]
        assert [name for name, _ in parts[-2:]] == ["8 others", report_slices.NOT_TOLD]
        assert sum(member.sum() for _, member in parts) == len(names) + 2
        assert parts[-1][1].sum() == 2

    def test_sizes_are_asked_for_or_else_given(self) -> None:
        jobs = pl.DataFrame({"req_cpus": [1, None, 5000, None], "alloc_cpus": [64, 4, None, None]})
        found = {name: int(m.sum()) for name, m in report_slices.by_size(jobs) if m.any()}
        assert found == {"1 CPU": 1, "2 to 4 CPUs": 1, "over 1,024 CPUs": 1, "not told": 1}

    @pytest.mark.parametrize(
        ("days", "unit", "first"),
        [(5, "day", "2024-03-01"), (60, "week", "2024-02-26"), (400, "month", "2024-03")],
    )
    def test_time_by_the_span_and_the_clock_of_the_site(
        self, days: int, unit: str, first: str
    ) -> None:
        begin = pl.datetime(2024, 2, 29, 23, time_zone="UTC", time_unit="us")
        times = pl.select(begin + pl.duration(hours=pl.int_range(0, 24 * days, 12))).to_series()
        found, parts = report_slices.by_time(times, "Europe/Paris")
        assert (found, parts[0][0]) == (unit, first)
        assert sum(member.sum() for _, member in parts) == len(times)

    @pytest.mark.parametrize(
        ("minutes", "jobs", "unit", "first", "rows"),
        [
            (20, 500, "minute", "2024-03-01 00:07", 20),
            (90, 500, "ten minutes", "2024-03-01 00:00", 10),
            (9 * 60, 500, "hour", "2024-03-01 00:00", 10),
            (40 * 60, 500, "quarter of a day", "2024-03-01 00:00", 7),
            # Too few jobs for five parts with scores.
            (40 * 60, 45, "quarter of a day", "2024-03-01 00:00", 7),
            (40 * 60, 30, "day", "2024-03-01", 2),
            (0, 30, "minute", "2024-03-01 00:07", 1),
        ],
    )
    def test_little_time_has_several_rows_if_there_are_jobs(
        self, minutes: int, jobs: int, unit: str, first: str, rows: int
    ) -> None:
        begin = datetime(2024, 2, 29, 23, 7, tzinfo=UTC)
        times = [begin + timedelta(minutes=minutes * k / jobs) for k in range(jobs)]
        found, parts = report_slices.by_time(pl.Series(times), "Europe/Paris")
        assert (found, parts[0][0], len(parts)) == (unit, first, rows)

    def test_activity_is_that_of_the_users(self) -> None:
        ended = np.array([0, 4, 5, 99, 100, np.nan], dtype=np.float32)
        found = {name: int(member.sum()) for name, member in report_slices.by_activity(ended)}
        assert found == {"new": 2, "infrequent": 2, "frequent": 1, "not told": 1}

    def test_causes_are_those_of_the_failures(self, submit: Any, judged: Judged) -> None:
        assert sum(one["jobs"] for one in submit["causes"]) == judged.outcomes.sum()
        assert sum(one["caught"] for one in submit["causes"]) == submit["confusion"]["caught"]
        assert {one["right"] for one in submit["causes"]} == {None}

    def test_the_causes_that_were_named_are_counted(self) -> None:
        causes = pl.Series(["time_limit", "application", "time_limit", None, "application"])
        outcomes = np.array([1.0, 1, 1, 0, 1])
        named = ["time_limit", "time_limit", "application", "application", "application"]
        found = report_slices.by_cause(causes, outcomes, outcomes, 0.5, named)
        assert {one["cause"]: (one["jobs"], one["right"]) for one in found} == {
            "application": (2, 1),
            "time_limit": (2, 1),
        }


class TestAnotherThreshold:
    @pytest.mark.parametrize("threshold", [0.0, 0.2, 1.01])
    def test_a_point_judged_again_is_as_if_it_had_been_judged_so(
        self, training: Training, report: Any, threshold: float
    ) -> None:
        model = replace(training.points["submit"].model, threshold=threshold, rule=f"{threshold}")
        one = replace(training.points["submit"], model=model)
        changed = replace(training, points={**training.points, "submit": one})
        expected = report_of(judged_otherwise(changed, threshold=threshold))["points"]["submit"]
        kept = json.loads(json.dumps(report["points"]["submit"]))
        assert judged_again(kept, model, threshold) == expected
        assert expected != kept

    def test_nothing_kept_of_a_job_names_it_or_its_user(self, submit: Any, judged: Judged) -> None:
        rows = submit["rows"]
        assert len(rows["risk"]) == len(judged.risk)
        assert {type(number) for number in rows["user"]} == {int}


class TestFigures:
    def test_the_area_below_the_roc_curve_is_the_auc(self, judged: Judged) -> None:
        for risk in (judged.risk, np.round(judged.risk, 1)):
            curve = report_figures.roc_curve(judged.outcomes, risk)
            assert (curve[0], curve[-1]) == ((0.0, 0.0), (1.0, 1.0))
            x, y = zip(*curve, strict=True)
            area = np.trapezoid(y, x)
            assert area == pytest.approx(metrics.auc(judged.outcomes, risk), abs=0.01)

    def test_every_job_is_in_the_histogram_and_the_calibration(
        self, submit: Any, judged: Judged
    ) -> None:
        found = submit["histogram"]
        assert sum(found["failed"]) == judged.outcomes.sum()
        assert sum(found["failed"]) + sum(found["completed"]) == len(judged.outcomes)
        bins = submit["calibration"]
        assert sum(one["jobs"] for one in bins) == len(judged.outcomes)
        apart = sum(one["jobs"] * abs(one["risk"] - one["failed"]) for one in bins)
        error = metrics.calibration_error(judged.outcomes, judged.risk)
        assert apart / len(judged.outcomes) == pytest.approx(error)
        assert all(one["low"] <= one["failed"] <= one["high"] for one in bins)

    def test_the_trade_marks_the_threshold_in_use(self, training: Training, submit: Any) -> None:
        rows = submit["trade"]["rows"]
        (used,) = [row for row in rows if row["in_use"]]
        assert used["threshold"] == training.points["submit"].model.threshold
        assert [row["threshold"] for row in rows] == sorted(row["threshold"] for row in rows)
        assert rows[0]["recall"] == 1

    def test_the_search_tells_the_best_so_far(self, training: Training, submit: Any) -> None:
        usual = training.points["submit"].search.best[0].parameters
        scores = (0.4, None, 0.3, 0.6)
        trials = [Trial(k, usual, score, 1.0) for k, score in enumerate(scores)]
        history = report_figures.search_history(trials)
        assert [one["best"] for one in history] == [0.4, 0.4, 0.4, 0.6]
        assert [one["number"] for one in submit["search"]["trials"]] == [0, 1]

    def test_importance_is_of_the_columns_and_sums_to_one(self, submit: Any) -> None:
        found = submit["importance"]
        shares = [one["share"] for one in found["features"]]
        assert shares == sorted(shares, reverse=True)
        assert 5 < len(shares) <= 20
        assert sum(one["share"] for one in found["groups"]) == pytest.approx(1)
        groups = {group_of(feature) for feature in feature_set(SUBMIT).features}
        assert {one["group"] for one in found["groups"]} <= groups


class TestWhole:
    def test_it_goes_through_json_unchanged(self, report: Any) -> None:
        assert json.loads(json.dumps(report, allow_nan=False)) == report

    def test_the_same_seed_the_same_report(self, training: Training, report: Any) -> None:
        assert report_of(training) == report
        assert report_of(training, seed=1) != report

    def test_the_data_card_counts_all_jobs(self, training: Training, report: Any) -> None:
        data = report["data"]
        assert data["jobs"] == training.labelled.height == sum(data["outcomes"].values())
        assert sum(data["causes"].values()) == data["outcomes"]["failed"]
        assert data["users"] == training.labelled["user"].n_unique()
        assert (data["family"], data["zone"], data["engines"]) == ("generic", "UTC", ["xgboost"])
        assert data["labels"]["ignored"] == ["preempted"]
        assert {"python", "premortem", "xgboost"} <= set(data["versions"])
        assert data["from"] < data["until"]

    def test_points_left_out_say_why(self, report: Any) -> None:
        assert list(report["points"]) == ["submit", "running@2min"]
        assert list(report["left_out"]) == ["running@9999999s"]

    def test_what_else_is_given_is_taken_over(self, training: Training) -> None:
        told = {"described": [], "elbow": float("nan"), "means": np.array([1.5])}
        found = report_of(training, profiles=told, correlation={"map": ((1.0, None),)})
        assert found["profiles"] == {"described": [], "elbow": None, "means": [1.5]}
        assert found["correlation"] == {"map": [[1.0, None]]}

    @pytest.mark.parametrize("outcome", [0.0, 1.0])
    def test_judged_jobs_of_one_outcome(self, training: Training, outcome: float) -> None:
        one = replace(training, points={"submit": training.points["submit"]})
        jobs = len(one.points["submit"].judged.outcomes)
        found = report_of(judged_otherwise(one, outcomes=np.full(jobs, outcome)))
        json.dumps(found, allow_nan=False)
        point = found["points"]["submit"]
        scores = point["scores"]["model"]
        assert scores["auc"] == {"value": None, "low": None, "high": None}
        assert scores["at_half"]["accuracy"]["value"] is not None
        assert point["roc"]["model"] == []
        assert all(part["scores"] is None for part in point["slices"]["partition"])

    def test_logs_that_tell_little(self, training: Training) -> None:
        bare = training.labelled.drop("partition", "req_cpus", "alloc_cpus", "user")
        one = replace(training, points={"submit": training.points["submit"]}, labelled=bare)
        found = report_of(one)
        point = found["points"]["submit"]
        assert found["data"]["users"] == 0
        assert point["intervals"]["drawn_by"] == "stretch of time"
        assert [part["name"] for part in point["slices"]["partition"]] == ["not told"]
        assert [part["name"] for part in point["slices"]["size"]] == ["not told"]


def test_users_are_told_apart_by_cluster() -> None:
    jobs = pl.DataFrame(
        {"cluster": ["a", "b", "a", None, "a"], "user": ["ada", "ada", "ada", "bob", None]}
    )
    numbers = user_numbers(jobs).tolist()
    assert numbers[0] == numbers[2] != numbers[1]
    assert numbers[4] == -1
    assert len(set(numbers)) == 4


def test_plain_values() -> None:
    given = {1: (np.float32(0.5), np.int64(2), True), "x": [float("inf"), np.nan, SUBMIT]}
    assert plain(given) == {"1": [0.5, 2, True], "x": [None, None, "submit"]}


def _everything(value: Any) -> list[dict[str, Any]]:
    """Every dict in a report."""
    if isinstance(value, dict):
        return [value, *(one for part in value.values() for one in _everything(part))]
    return [one for part in value for one in _everything(part)] if isinstance(value, list) else []
