"""Profiles: groups that are there are found, again by the same seed, and told in plain words."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_strategies import frame
from sklearn.metrics import adjusted_rand_score

from premortem.errors import InvalidInput
from premortem.features.catalogue import CATALOGUE, Family
from premortem.features.points import START, SUBMIT
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.models.mixture import Mixture
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.profile_words import Part, Profile, Quartiles, in_words
from premortem.training.profiles import LEAST_SHARE, ProfileFit, describe, fit_profiles

NAMES = ["priority", "req_cpus", "req_gpus", "time_limit_s", "user_ended", "user_failure_rate",
         "wait_s"]  # fmt: skip
ROW_NAMES = [feature.name for feature in CATALOGUE]


def groups(rows: int = 1_500) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four groups far apart, and which is which; column 0 is noise nobody asked for."""
    rng = np.random.default_rng(4)
    which = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    values = np.full((rows, len(NAMES)), np.nan, dtype=np.float32)
    values[:, 0] = rng.normal(size=rows)
    values[:, 1] = np.exp(rng.normal(np.array([0.5, 3.0, 6.0, 3.0])[which], 0.15))
    values[:, 2] = np.where(which == 3, 4, np.nan)
    values[:, 3] = np.exp(rng.normal(np.array([6.0, 8.0, 11.0, 11.0])[which], 0.2))
    values[:, 4] = np.exp(rng.normal(np.array([7.0, 2.0, 7.0, 4.0])[which], 0.2))
    values[:, 5] = np.array([0.1, 0.5, 0.2, 0.8])[which] + rng.normal(0, 0.02, rows)
    values[:, 6] = rng.exponential(100, rows)
    return values, which


def fit(values: np.ndarray, **options: Any) -> ProfileFit:
    return fit_profiles(values, NAMES, **{"point": SUBMIT, "seed": 0, "most": 7, **options})


class TestFit:
    def test_groups_far_apart_are_found_and_so_is_their_number(self) -> None:
        values, which = groups()
        found = fit(values)
        profiles, closeness = found.mixture.assign(values)
        assert 4 <= found.mixture.profiles <= 5
        assert adjusted_rand_score(which, profiles) > 0.95
        assert closeness.mean() > 0.95
        assert found.elbow in (3, 4)
        assert not found.still_falling

    def test_the_whole_curve_is_kept(self) -> None:
        found = fit(groups()[0])
        assert [tried.number for tried in found.curve] == list(range(1, 8))
        assert found.chosen.bic == min(tried.bic for tried in found.curve)
        assert found.chosen.profiles == found.mixture.profiles
        inertia = [tried.inertia for tried in found.curve]
        assert inertia == sorted(inertia, reverse=True)
        assert found.curve[0].agreement == 1
        assert found.curve[3].agreement > 0.9

    def test_the_largest_comes_first_and_none_is_next_to_nothing(self) -> None:
        values, _ = groups()
        values[:3, 1:4] = 1e6
        found = fit(values)
        weights = found.mixture.weights
        assert (np.diff(weights) <= 0).all()
        assert weights.min() >= LEAST_SHARE
        assert weights.sum() == pytest.approx(1)

    def test_the_same_seed_gives_the_same_profiles(self) -> None:
        values, _ = groups()
        first = fit(values, sample=400, seed=3).as_dict()
        assert fit(values, sample=400, seed=3).as_dict() == first
        assert fit(values, sample=400, seed=4).as_dict() != first

    def test_large_data_is_sampled_and_all_of_it_can_be_assigned(self) -> None:
        values, which = groups(5_000)
        found = fit(values, sample=500)
        assert (found.jobs, found.sampled) == (5_000, 500)
        assert adjusted_rand_score(which, found.mixture.assign(values)[0]) > 0.9

    def test_it_reads_rows_as_it_was_given_and_survives_json(self) -> None:
        values, _ = groups()
        found = fit(values)
        saved = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        loaded = Mixture.from_dict(saved["mixture"], NAMES)
        assert (loaded.assign(values)[0] == found.mixture.assign(values)[0]).all()
        assert saved["profiles"] == found.mixture.profiles

    def test_progress_is_told(self) -> None:
        told: list[str] = []
        fit(groups(100)[0], most=3, progress=told.append)
        assert len(told) == 3
        assert told[-1] == "profiles: 3 of up to 3"


class TestColumns:
    def test_only_what_is_known_at_the_point_is_used(self) -> None:
        values, _ = groups()
        submit, start = fit(values, most=1), fit(values, most=1, point=START)
        used = ("req_cpus", "req_gpus", "time_limit_s", "user_ended", "user_failure_rate")
        assert submit.mixture.names == used
        assert set(start.mixture.names) == {*used, "wait_s"}
        assert submit.point == "submit"

    def test_the_restricted_family_knows_no_users(self) -> None:
        found = fit(groups()[0], most=1, family=Family.RESTRICTED)
        assert found.mixture.names == ("req_cpus", "req_gpus", "time_limit_s")

    def test_columns_that_tell_nothing_are_left_out_with_a_reason(self) -> None:
        values, _ = groups()
        values[:, 1] = np.nan
        values[:, 3] = 3600
        found = fit(values, most=1)
        assert found.mixture.names == ("req_gpus", "user_ended", "user_failure_rate")
        assert found.left_out == {
            "req_cpus": "missing in all jobs",
            "time_limit_s": "the same in all jobs",
        }

    def test_a_column_that_repeats_another_does_not_count_twice(self) -> None:
        values, _ = groups()
        values[:, 3] = values[:, 1] * 60
        assert fit(values, most=1).left_out == {"time_limit_s": "says the same as req_cpus"}

    def test_a_record_without_gpus_asked_for_none(self) -> None:
        values, _ = groups()
        without = values.copy()
        without[:, 2] = np.nan_to_num(values[:, 2])
        assert fit(values).as_dict() == fit(without).as_dict()

    def test_missing_values_count_as_the_median(self) -> None:
        values, _ = groups()
        values[::3, 3] = np.nan
        filled = values.copy()
        filled[::3, 3] = np.nanmedian(values[:, 3])
        assert (fit(values).mixture.means == fit(filled).mixture.means).all()


class TestTooLittle:
    @pytest.mark.parametrize("rows", [0, 1, 49])
    def test_few_jobs_are_refused_with_the_number_needed(self, rows: int) -> None:
        with pytest.raises(InvalidInput, match=f"at least 50 jobs, not {rows}"):
            fit(groups()[0][:rows])

    @pytest.mark.parametrize("value", [1.0, np.nan])
    def test_jobs_that_do_not_differ_are_refused(self, value: float) -> None:
        with pytest.raises(InvalidInput, match=r"at least 1 column.*req_cpus"):
            fit(np.full((60, len(NAMES)), value, dtype=np.float32))

    def test_rows_without_any_usable_column_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="at least 1 column"):
            fit_profiles(np.ones((60, 1)), ["priority"], point=SUBMIT, seed=0)

    def test_there_are_no_more_profiles_than_different_jobs(self) -> None:
        values = np.ones((60, len(NAMES)), dtype=np.float32)
        values[30:, 1] = 64
        found = fit(values)
        assert len(found.curve) == found.mixture.profiles == 2
        assert found.elbow is None

    def test_fifty_jobs_are_enough(self) -> None:
        assert fit(groups()[0][:50]).mixture.profiles >= 2

    @pytest.mark.parametrize(
        ("options", "says"), [({"most": 0}, "most >= 1"), ({"sample": 10}, "sample >= 50")]
    )
    def test_options_out_of_range_are_refused(self, options: dict[str, int], says: str) -> None:
        with pytest.raises(InvalidInput, match=says):
            fit(groups()[0], **options)

    def test_names_must_be_those_of_the_columns(self) -> None:
        with pytest.raises(InvalidInput, match="7 names"):
            fit(np.ones((60, 3)))


@cache
def described() -> tuple[pl.DataFrame, np.ndarray, list[Profile]]:
    """An invented cluster's jobs with their profiles."""
    jobs = LabelPolicy().label(
        pl.concat(SyntheticCluster(3_000, seed=3, users=20, days=40).frames())
    )
    rows = Replay().rows(jobs, SUBMIT)
    found = fit_profiles(rows.values, ROW_NAMES, point=SUBMIT, seed=0, most=6)
    profiles, _ = found.mixture.assign(rows.values)
    ended = rows.values[:, ROW_NAMES.index("user_ended")]
    return jobs[rows.jobs], profiles, describe(jobs[rows.jobs], profiles, ended)


class TestDescribe:
    def test_every_job_is_in_one_profile(self) -> None:
        jobs, _, found = described()
        assert sum(profile.jobs for profile in found) == jobs.height
        assert sum(profile.share for profile in found) == pytest.approx(1)
        hours = (jobs["alloc_cpus"] * jobs["elapsed_s"] / 3600).sum()
        assert sum(profile.core_hours for profile in found) == pytest.approx(hours, abs=1)

    def test_the_numbers_are_those_of_the_jobs(self) -> None:
        jobs, profiles, found = described()
        for profile in found:
            own = jobs.filter(pl.Series(profiles == profile.number))
            outcomes = dict(own["outcome"].value_counts().iter_rows())
            assert {part.name: part.jobs for part in profile.outcomes} == outcomes
            failed = outcomes.get("failed", 0)
            counted = failed + outcomes.get("completed", 0)
            assert profile.failure_share == failed / counted
            assert sum(part.jobs for part in profile.causes) == failed
            cpus, told = own["req_cpus"].sort().to_list(), profile.resources["cpus"]
            for share, value in ((0.25, told.low), (0.5, told.median), (0.75, told.high)):
                assert cpus[int(share * (len(cpus) - 1))] <= value
                assert value <= cpus[-int((1 - share) * (len(cpus) - 1)) - 1]
            assert profile.users == own["user"].n_unique()

    def test_sentences_are_whole_and_titles_tell_profiles_apart(self) -> None:
        _, _, found = described()
        assert len({profile.title for profile in found}) == len(found)
        for profile in found:
            assert re.fullmatch(r"[A-Z0-9][^:]*: .*\d % of all jobs, .*fail.*\.", profile.sentence)
            assert not re.search(r"  | ,|,,|``|None|nan", profile.sentence)

    def test_it_is_plain_json(self) -> None:
        _, _, found = described()
        told = json.loads(json.dumps([profile.as_dict() for profile in found], allow_nan=False))
        assert told[0]["resources"]["cpus"].keys() == {"low", "median", "high"}
        assert told[0]["outcomes"][0].keys() == {"name", "jobs", "share"}

    @given(st.integers(0, 2**32 - 1), st.integers(1, 9))
    @settings(max_examples=10, deadline=None)
    def test_shares_sum_to_one_whatever_the_profiles(self, seed: int, number: int) -> None:
        jobs = described()[0].head(300)
        rng = np.random.default_rng(seed)
        ended = np.where(rng.random(300) < 0.2, np.nan, rng.integers(0, 300, 300))
        found = describe(jobs, rng.integers(number, size=300), ended)
        assert sum(profile.share for profile in found) == pytest.approx(1)
        for profile in found:
            tables = (profile.durations, profile.activity, profile.outcomes, profile.causes)
            for parts in filter(None, tables):
                assert sum(part.share for part in parts) == pytest.approx(1)

    def test_order_of_jobs_does_not_matter(self) -> None:
        jobs, profiles, _ = described()
        turned = describe(jobs.reverse(), profiles[::-1])
        for one, other in zip(turned, describe(jobs, profiles), strict=True):
            assert one == replace(
                other, core_hours=one.core_hours, core_hours_lost=one.core_hours_lost
            )
            assert one.core_hours == pytest.approx(other.core_hours, abs=0.2)

    def test_no_jobs_no_profiles(self) -> None:
        assert describe(described()[0].head(0), np.empty(0, dtype=int)) == []

    def test_what_does_not_fit_is_refused(self) -> None:
        jobs, profiles, _ = described()
        with pytest.raises(InvalidInput, match="3000 jobs"):
            describe(jobs, profiles[1:])
        with pytest.raises(InvalidInput, match="3000 jobs"):
            describe(jobs, profiles, np.ones(2))
        with pytest.raises(InvalidInput, match="label"):
            describe(jobs.drop("outcome"), profiles)


def job(number: int, **fields: Any) -> dict[str, Any]:
    told = {"cluster": "c", "job_id": number, "submit_time": datetime(2026, 1, 5, tzinfo=UTC)}
    return {"state": "COMPLETED", **told, **fields}


def told_of(*jobs: dict[str, Any], ended: list[float] | None = None) -> Profile:
    labelled = LabelPolicy().label(frame(list(jobs)))
    activity = None if ended is None else np.array(ended)
    (found,) = describe(labelled, np.zeros(len(jobs), dtype=int), activity)
    return found


class TestWords:
    def test_jobs_of_which_little_is_known(self) -> None:
        assert told_of(job(1), job(2)).sentence == "Mixed jobs: all jobs, none fail."
        assert told_of(job(1, state="RUNNING")).sentence == "Mixed job: all jobs."

    def test_a_single_job_is_told_in_the_singular(self) -> None:
        failed = job(
            1, user="ada", state="TIMEOUT", elapsed_s=30, req_cpus=1, alloc_cpus=1, partition="p"
        )
        assert told_of(failed, ended=[7]).sentence == (
            "Short single-core job of an infrequent user in `p`: all jobs, it failed at the time "
            "limit."
        )

    def test_several_jobs_are_told_in_the_plural(self) -> None:
        shape = {"elapsed_s": 9_000, "req_cpus": 64, "req_nodes": 2, "alloc_cpus": 64}
        jobs = [job(n, user=f"u{n}", **shape) for n in range(8)]
        jobs += [job(n, user="v", state="OUT_OF_MEMORY", **shape) for n in (8, 9)]
        assert told_of(*jobs, ended=[500.0] * 10).sentence == (
            "Medium-length 64-core jobs of frequent users on 2 nodes: all jobs, 20 % fail, always "
            "for lack of memory."
        )

    def test_gpus_stand_before_cores_and_absent_ones_are_none(self) -> None:
        most = [job(n, req_cpus=8, req_gpus=1) for n in range(3)]
        assert told_of(*most, job(4, req_cpus=8)).title == "Single-GPU jobs"
        few = [job(n, req_cpus=8) for n in range(3)]
        found = told_of(*few, job(4, req_cpus=8, req_gpus=1))
        assert found.title == "8-core jobs"
        assert found.resources["gpus"] == Quartiles(0, 0, 0)
        assert "gpus" not in told_of(*few).resources

    def test_jobs_that_never_ran_have_no_run_time(self) -> None:
        found = told_of(job(1, state="CANCELLED", elapsed_s=0), job(2, state="CANCELLED"))
        assert found.run_s is None
        assert found.durations == ()
        assert found.sentence.endswith("all fail, always by cancellation before the start.")

    def test_memory_is_judged_by_the_median_of_all_jobs(self) -> None:
        sizes = [1_000.0] * 5 + [2_000.0] * 5 + [8_000.0] * 5
        jobs = frame([job(n, req_cpus=1, req_memory_mb=mb) for n, mb in enumerate(sizes)])
        found = describe(LabelPolicy().label(jobs), np.repeat([0, 1, 2], 5))
        assert [profile.kind for profile in found] == ["compute", "balanced", "memory"]
        assert [profile.title for profile in found] == [
            "Memory-light single-core jobs", "Single-core jobs", "Memory-heavy single-core jobs",
        ]  # fmt: skip

    def test_what_nearly_all_jobs_have_is_not_said_of_each_profile(self) -> None:
        # A partition and a length of time may go by the same name.
        jobs = frame(
            [job(n, req_cpus=1 + n % 2, partition="short", elapsed_s=60 + 20_000 * (n % 2),
                 alloc_cpus=1) for n in range(10)]
        )  # fmt: skip
        found = describe(LabelPolicy().label(jobs), np.arange(10) % 2)
        assert [profile.title for profile in found] == [
            "Short single-core jobs", "Long 2-core jobs",
        ]  # fmt: skip

    def test_a_cause_that_all_failures_have_is_not_said_of_each_profile(self) -> None:
        jobs = frame([job(n, state="FAILED", req_cpus=1 + n % 2) for n in range(4)])
        found = describe(LabelPolicy().label(jobs), np.arange(4) % 2)
        assert found[0].sentence == "Single-core jobs: 50 % of all jobs, all fail."

    def test_profiles_of_one_title_are_told_apart_by_their_times(self) -> None:
        jobs = frame(
            [job(n, elapsed_s=60 + 100 * (n % 2), time_limit_s=600 * (1 + n % 2), req_cpus=4,
                 alloc_cpus=4) for n in range(10)]
        )  # fmt: skip
        found = describe(LabelPolicy().label(jobs), np.arange(10) % 2)
        assert [profile.title for profile in found] == [
            "4-core jobs, usually running 60 s with a limit of 10 min",
            "4-core jobs, usually running 3 min with a limit of 20 min",
        ]

    def test_names_from_users_cannot_break_the_sentence(self) -> None:
        name = "run`\n\x1b[31m" + "x" * 100
        title = told_of(job(1, job_name=name, partition="``"), job(2, job_name=name)).title
        assert title == f"Jobs named `run[#m{'x' * 33}…`"

    @pytest.mark.parametrize(
        ("failed", "says"),
        [
            ([("time_limit", 3), ("cancelled", 3), ("application", 1)], "most often at the time"),
            ([("node_failure", 3), ("cancelled", 1)], "mostly through node failure"),
            ([("deadline", 2)], "always at a deadline"),
            ([("preempted", 1)], "fail, by preemption"),
        ],
    )
    def test_causes_are_weighed(self, failed: list[tuple[str, int]], says: str) -> None:
        total = sum(count for _, count in failed)
        causes = tuple(Part(name, count, count / total) for name, count in failed)
        outcomes = (Part("completed", 100 - total, 1 - total / 100), Part("failed", total, 0.1))
        bare = replace(
            told_of(job(1)), jobs=100, outcomes=outcomes, causes=causes, failure_share=total / 100
        )
        assert says in in_words([bare])[0].sentence
