"""Risk that follows the cluster: later ends correct later risks, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from premortem.models.following import MOST_OF_A_USER, Ends, followed

Array = np.ndarray[Any, np.dtype[Any]]

COUNT = 4000
LATE = slice(COUNT // 2, None)
MOMENTS = np.arange(COUNT, dtype=float)
HOURS = st.integers(0, 20)
JOBS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 1), HOURS, HOURS, st.integers(-1, 3)),
    min_size=1,
    max_size=30,
)


def drawn(risk: Array) -> Array:
    """Outcomes that happen as often as the risk says."""
    return (np.random.default_rng(1).random(len(risk)) < risk).astype(float)


def risks(low: float, high: float) -> Array:
    return np.random.default_rng(0).uniform(low, high, COUNT)


def told(risk: Array, outcomes: Array, users: Array = MOMENTS % 50) -> Array:
    """Each job's risk, told a second before it ends and after the one before it did."""
    return at_one_cluster(risk, outcomes, MOMENTS + 1, MOMENTS, users)


def at_one_cluster(
    risk: Array, outcomes: Array, ended: Array, moments: Array, users: Array
) -> Array:
    return followed(risk, Ends(outcomes, ended, users, np.zeros(len(risk))), moments)


def test_a_cluster_that_fails_more_than_expected_raises_the_risk() -> None:
    risk = risks(0.05, 0.3)
    outcomes = drawn(2 * risk)
    assert told(risk, outcomes)[LATE].mean() == pytest.approx(outcomes[LATE].mean(), abs=0.04)
    assert risk[LATE].mean() < outcomes[LATE].mean() - 0.1


def test_one_that_fails_as_expected_changes_little() -> None:
    risk = risks(0.05, 0.9)
    assert np.abs(told(risk, drawn(risk)) - risk).mean() < 0.03


def test_one_users_burst_says_less_of_the_cluster_than_everyones() -> None:
    risk, failed = np.full(COUNT, 0.1), np.ones(COUNT)
    burst = 200
    one = told(risk, failed, np.zeros(COUNT))[burst]
    many = told(risk, failed, np.arange(COUNT))[burst]
    nobody = told(risk, failed, np.full(COUNT, -1))[burst]
    assert risk[0] < one < many == nobody
    few = int(MOST_OF_A_USER) // 4
    assert told(risk, failed, np.zeros(COUNT))[few] == pytest.approx(
        told(risk, failed, np.arange(COUNT))[few], rel=0.2
    )


def test_before_any_end_the_risk_is_the_models_own() -> None:
    risk = np.array([0.2, 0.7, 0.4])
    asked = np.array([1.0, 50.0, 100.0])
    found = at_one_cluster(risk, np.ones(3), np.full(3, 100.0), asked, np.arange(3))
    assert found.tolist() == risk.tolist()


@given(JOBS, st.integers(0, 40))
def test_what_ends_at_a_moment_or_later_does_not_count(
    jobs: list[tuple[float, int, int, int, int]], instant: int
) -> None:
    risk, outcomes, moments, lasted, users = np.array(jobs, dtype=float).T
    ended = moments + lasted
    other = np.where(ended >= instant, 1 - outcomes, outcomes)
    before = moments <= instant
    one = at_one_cluster(risk, outcomes, ended, moments, users)
    two = at_one_cluster(risk, other, ended, moments, users)
    assert one[before].tolist() == two[before].tolist()
    assert ((one >= 0) & (one <= 1)).all()


@given(JOBS)
def test_jobs_told_at_one_moment_keep_their_order(
    jobs: list[tuple[float, int, int, int, int]],
) -> None:
    risk, outcomes, ended, _, users = np.array(jobs, dtype=float).T
    asked = np.full(len(risk), 10.0)
    found = at_one_cluster(risk, outcomes, ended, asked, users)
    assert (np.diff(found[np.argsort(risk)]) >= 0).all()


def test_jobs_that_count_for_nothing_and_those_that_run_change_nothing() -> None:
    risk, moments = np.full(4, 0.3), np.arange(4.0) + 10
    outcomes = np.array([np.nan, 1.0, 1.0, 0.0])
    ended = np.array([1.0, np.nan, np.nan, 50.0])
    found = at_one_cluster(risk, outcomes, ended, moments, np.zeros(4))
    assert found.tolist() == risk.tolist()


def test_each_cluster_is_followed_by_itself() -> None:
    risk, users = risks(0.05, 0.3), MOMENTS % 50
    outcomes, clusters = drawn(2 * risk), MOMENTS % 2
    outcomes[clusters == 1] = drawn(risk)[clusters == 1]
    found = followed(risk, Ends(outcomes, MOMENTS + 1, users, clusters), MOMENTS)
    for cluster in (0, 1):
        its = clusters == cluster
        alone = at_one_cluster(risk[its], outcomes[its], MOMENTS[its] + 1, MOMENTS[its], users[its])
        assert found[its].tolist() == alone.tolist()
    assert found[clusters == 0].mean() > found[clusters == 1].mean() + 0.1
