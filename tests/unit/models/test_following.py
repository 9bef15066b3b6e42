"""Risk that follows the cluster: later ends correct later risks, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from premortem.models.following import followed

rng = np.random.default_rng(0)
HOURS = st.integers(0, 20)


def test_a_cluster_that_fails_more_than_expected_raises_the_risk() -> None:
    count = 4000
    moments = np.arange(count, dtype=float)
    risk = rng.uniform(0.05, 0.3, count)
    outcomes = (rng.random(count) < np.minimum(1, 2 * risk)).astype(float)
    found = followed(risk, outcomes, moments + 1, moments)
    late = slice(count // 2, None)
    assert found[late].mean() == pytest.approx(outcomes[late].mean(), abs=0.03)
    assert risk[late].mean() < outcomes[late].mean() - 0.1


def test_one_that_fails_as_expected_changes_little() -> None:
    count = 4000
    moments = np.arange(count, dtype=float)
    risk = rng.uniform(0.05, 0.9, count)
    outcomes = (rng.random(count) < risk).astype(float)
    found = followed(risk, outcomes, moments + 1, moments)
    assert np.abs(found - risk).mean() < 0.03


def test_before_any_end_the_risk_is_the_models_own() -> None:
    risk = np.array([0.2, 0.7, 0.4])
    found = followed(risk, np.ones(3), np.full(3, 100.0), np.array([1.0, 50.0, 100.0]))
    assert found.tolist() == risk.tolist()


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1), HOURS, HOURS), min_size=1, max_size=30),
    st.integers(0, 40),
)
def test_what_ends_at_a_moment_or_later_does_not_count(
    jobs: list[tuple[float, int, int, int]], instant: int
) -> None:
    risk, outcomes, moments, lasted = np.array(jobs, dtype=float).T
    ended = moments + lasted
    other = np.where(ended >= instant, 1 - outcomes, outcomes)
    before = moments <= instant
    one = followed(risk, outcomes, ended, moments)
    two = followed(risk, other, ended, moments)
    assert one[before].tolist() == two[before].tolist()
    assert ((one >= 0) & (one <= 1)).all()


def test_jobs_that_count_for_nothing_and_those_that_run_change_nothing() -> None:
    risk, moments = np.full(4, 0.3), np.arange(4.0) + 10
    outcomes = np.array([np.nan, 1.0, 1.0, 0.0])
    ended = np.array([1.0, np.nan, np.nan, 50.0])
    assert followed(risk, outcomes, ended, moments).tolist() == risk.tolist()
