"""Reasons: a topic for each feature, effects that add up, the strongest first, true counts."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_strategies import logs

from premortem.errors import InvalidInput
from premortem.features import layout, memory
from premortem.features.catalogue import CATALOGUE, Feature
from premortem.features.facts import facts_of
from premortem.features.points import START, SUBMIT, Point
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.prediction.reasons import GROUPS, known_values, reasons, tally, topic_of
from premortem.testing.synthetic import SyntheticCluster

NAMES = [feature.name for feature in CATALOGUE]
MISSING = np.full(len(CATALOGUE), np.nan, dtype=np.float32)
RELAX = {"user": "ada", "job_name": "relax_01", "partition": "gpu"}


def row_of(**values: float) -> np.ndarray[Any, Any]:
    row = MISSING.copy()
    for name, value in values.items():
        row[NAMES.index(name)] = value
    return row


def why(row: np.ndarray[Any, Any], effects: dict[str, float], **options: Any) -> list[Any]:
    return reasons(row, list(effects), np.array(list(effects.values())), RELAX, **options)


class TestTopics:
    def test_every_feature_belongs_to_one_of_few(self) -> None:
        kinds = Counter(topic_of(feature).partition(".")[2] for feature in CATALOGUE)
        assert set(kinds) == {
            "", "outcomes", "times", "activity", "changes", "largest", "likeness",
            "size", "limit", "memory", "gpus", "array", "care", "shape", "unbalanced",
            "cpu", "data", "processes",
        }  # fmt: skip
        alone = {topic_of(f) for f in CATALOGUE if "." not in topic_of(f)}
        assert alone == {"calendar", "start", "progress"}

    def test_the_groups_are_those_of_the_layout(self) -> None:
        first = [layout.GROUPS_AT + place * layout.GROUP_WIDTH for place in range(layout.GROUPS)]
        assert [f"{group}_ended" for group in GROUPS] == [NAMES[place] for place in first]

    @pytest.mark.parametrize(
        ("name", "topic"),
        [
            ("req_cpus", "request.size"),
            ("core_hours_asked", "request.size"),
            ("limit_past_day_s", "request.limit"),
            ("time_unlimited", "request.limit"),
            ("memory_per_cpu_mb", "request.memory"),
            ("req_gpus", "request.gpus"),
            ("depends", "request.array"),
            ("submit_week", "calendar"),
            ("user_since_submit_s", "user.activity"),
            ("name_memory_change", "name.changes"),
            ("shape_retry_unchanged", "shape.changes"),
            ("partition_node_memory_of_largest", "partition.largest"),
            ("directory_likeness", "directory.likeness"),
            ("wait_s", "start"),
            ("alloc_share", "start"),
            ("limit_left_s", "progress"),
            ("name_limit_failure_rate", "name.outcomes"),
            ("user_since_failure_s", "user.outcomes"),
            ("executable_survivor_failure_rate", "executable.outcomes"),
            ("account_last_limit_share", "account.times"),
            ("node_elapsed_unusual", "node.times"),
            ("cluster_limit_slack", "cluster.times"),
            ("cluster_ends_1h", "cluster.activity"),
            ("directory_ended", "directory.activity"),
            ("script_failure_rate", "script.outcomes"),
            ("script_stops_on_error", "script.care"),
            ("program_streak", "program.outcomes"),
            ("usage_growth_mb_s", "usage.memory"),
        ],
    )
    def test_a_feature_falls_into_the_topic_of_its_kind(self, name: str, topic: str) -> None:
        assert topic_of(CATALOGUE[NAMES.index(name)]) == topic

    @pytest.mark.parametrize(
        ("name", "chapter", "topic"),
        [
            ("user_failure_rate_90d", "history", "user.outcomes"),
            ("node_usual_gpu_share", "history", "node.times"),
            ("req_gpu_memory_mb", "request", "request.memory"),
            ("name_gpus_change", "comparison", "name.changes"),
            ("usage_cpu_share_now", "usage", "usage.cpu"),
            ("usage_gpu_memory_mb", "usage", "usage.memory"),
            ("script_heredocs", "script", "script.shape"),
        ],
    )
    def test_so_does_a_new_one(self, name: str, chapter: str, topic: str) -> None:
        assert topic_of(Feature(name, chapter, (), "")) == topic


class TestChoice:
    def test_the_effect_of_a_topic_is_the_sum_of_its_features(self) -> None:
        row = row_of(req_cpus=64, req_nodes=4)
        (reason,) = why(row, {"req_cpus": 0.5, "req_nodes": -0.2})
        assert reason.effect == pytest.approx(0.3)
        assert reason.topic == "request.size"
        assert reason.numbers == {"req_cpus": 64, "req_nodes": 4}

    def test_the_strongest_come_back_and_those_that_raise_the_risk_come_first(self) -> None:
        effects = {"req_cpus": -0.9, "time_limit_s": 0.3, "req_gpus": 0.5, "submit_hour": -0.2}
        found = why(MISSING, effects)
        assert [r.topic for r in found] == ["request.gpus", "request.limit", "request.size"]
        assert [r.topic for r in why(MISSING, effects, most=1)] == ["request.size"]
        assert why(MISSING, effects, most=0) == []

    def test_weak_topics_are_left_out(self) -> None:
        effects = {"req_cpus": 0.04, "time_limit_s": -0.06, "req_gpus": math.nan}
        assert [r.topic for r in why(MISSING, effects)] == ["request.limit"]
        assert [r.topic for r in why(MISSING, effects, least=0.1)] == []

    def test_the_most_telling_numbers_come_first_and_missing_ones_not_at_all(self) -> None:
        row = row_of(user_streak=2, user_failure_rate=0.5)
        effects = {"user_failure_rate": 0.1, "user_streak": 0.4, "user_last_cause": 0.3}
        (reason,) = why(row, effects)
        assert list(reason.numbers) == ["user_streak", "user_failure_rate"]
        json.dumps(reason.as_dict(), allow_nan=False)

    def test_what_several_topics_say_is_said_once_with_the_effect_of_all(self) -> None:
        row = row_of(user_ended=0)
        effects = {"user_ended": 0.5, "user_failure_rate": 0.3, "req_gpus": 0.2, "depends": 0.1}
        found = why(row, effects, most=2)
        assert [r.text for r in found] == [
            "this is the first of your jobs seen here",
            "whether it asks for GPUs is not known",
        ]
        assert found[0].effect == pytest.approx(0.8)
        assert found[0].topic == "user.activity"

    @pytest.mark.parametrize(
        ("values", "text", "usual"),
        [
            ({"req_cpus": 4, "req_nodes": 1, "user_cpus_unusual": np.log(5 / 2)},
             "it asks for 4 CPUs on 1 node", "; your jobs usually ask for 1 CPU"),
            ({"time_limit_s": 60, "user_limit_unusual": np.log(61 / 3601)},
             "its time limit is 1 min", "; your jobs usually ask for 1 h"),
        ],
    )  # fmt: skip
    def test_a_request_stands_beside_the_usual_one_unless_that_is_private(
        self, values: dict[str, float], text: str, usual: str
    ) -> None:
        effects = {next(iter(values)): 0.5}
        (reason,) = why(row_of(**values), effects | {"user_streak": 0.0})
        assert reason.text == text + usual
        (reason,) = why(row_of(**values), effects)
        assert reason.text == text

    def test_columns_and_contributions_must_be_as_many(self) -> None:
        with pytest.raises(InvalidInput, match="1 columns"):
            reasons(MISSING, ["req_cpus"], np.array([0.1, 0.2]), {})


# --- counts out of shares ------------------------------------------------------------------------


def assert_tallies_are_true(jobs: pl.DataFrame, point: Point) -> int:
    """Hold every tally of every row against the log itself; returns how many there were."""
    facts, rows = facts_of(jobs, zone="UTC"), Replay().rows(jobs, point)
    outcome, ran = facts.values[:, layout.OUTCOME], facts.values[:, layout.RAN]
    began = facts.values[:, layout.STARTED] > 0
    failed, took = outcome == 1, (began | (ran > 0)) & ~np.isnan(ran)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(facts.values[:, layout.LIMIT] > 0, ran / facts.values[:, layout.LIMIT], 0)
    early = failed & took & (ran < memory.EARLY_S)
    at_limit = failed & took & (share >= memory.AT_LIMIT_SHARE)
    checked = 0
    for place, group in enumerate(GROUPS):
        members = facts.names[str(place)].to_numpy()
        counts = ~np.isnan(outcome) & (began if group == "node" else True)
        for job, row, moment in zip(rows.jobs, rows.values, rows.moments, strict=True):
            found = tally(known_values(row), group)
            if found is None:
                continue
            past = counts & (members == members[job]) & (facts.ended < moment)
            expected = [int((past & which).sum()) for which in (True, failed, at_limit, early)]
            assert [found.ended, found.failed, found.at_limit, found.early] == expected
            checked += 1
    return checked


@pytest.mark.parametrize("point", [SUBMIT, START], ids=str)
def test_counts_are_those_of_the_log(point: Point) -> None:
    jobs = LabelPolicy().label(next(SyntheticCluster(jobs=400, seed=5, users=9).frames()))
    assert assert_tallies_are_true(jobs, point) > 2000


@pytest.mark.parametrize("point", [SUBMIT, START], ids=str)
@settings(max_examples=25, deadline=None)
@given(jobs=logs)
def test_counts_are_those_of_the_log_whatever_groups_are_missing(
    jobs: pl.DataFrame, point: Point
) -> None:
    assert_tallies_are_true(jobs, point)


@given(
    ended=st.integers(1, 10**9),
    share=st.floats(0, 1),
    above=st.floats(0, 1),
)
def test_a_count_is_right_or_not_given_however_large_the_group(
    ended: int, share: float, above: float
) -> None:
    failed = round(ended * share)
    ended32 = float(np.float32(ended))
    rate = (failed + memory.PRIOR_WEIGHT * above) / (ended + memory.PRIOR_WEIGHT)
    row = row_of(cluster_failure_rate=above, partition_ended=ended, partition_failure_rate=rate)
    found = tally(known_values(row), "partition")
    assert found is not None
    assert found.ended == ended32
    assert found.failed is None or found.failed == failed
    assert found.failed is not None or failed > 10**6
    assert found.share == pytest.approx(failed / ended, abs=1e-5)


def test_shares_that_no_count_can_have_led_to_give_none() -> None:
    row = row_of(cluster_failure_rate=0.2, user_ended=10, user_failure_rate=0.5)
    found = tally(known_values(row), "user")
    assert found is not None
    assert found.failed is None
    assert found.share == pytest.approx(0.65)
    assert tally(known_values(MISSING), "user") is None
