"""Intervals by drawing anew: what is drawn, how wide they are, and where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as reference

from premortem.training import metrics
from premortem.training.intervals import (
    BY_TIME,
    BY_USER,
    FEWEST_USERS,
    Draws,
    around,
)

MEASURES = {
    "average_precision": metrics.average_precision,
    "auc": metrics.auc,
    "ece": metrics.calibration_error,
}


def cluster(users: int, seed: int = 0, jobs: int = 30) -> tuple[np.ndarray, ...]:
    """Users of different fortune, their jobs, the outcomes, and risks that know something."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(users), jobs)
    odds = rng.normal(-1, 1.2, users)[who] + rng.normal(0, 1, len(who))
    outcomes = (rng.random(len(who)) < 1 / (1 + np.exp(-odds))).astype(float)
    risk = 1 / (1 + np.exp(-odds - rng.normal(0, 0.5, users)[who]))
    return who, outcomes, risk


def test_a_draw_is_users_as_a_whole_weighed_by_how_often_they_come() -> None:
    users, outcomes, risk = cluster(20)
    risk = np.round(risk, 2)
    draws = Draws(users, np.arange(len(users)), draws=5)
    found = draws.measures(outcomes, risk) | draws.decided(outcomes, risk >= 0.5)
    # The same draws, told by hand: each job as often as its user.
    rng = np.random.default_rng(0)
    for draw in range(5):
        times = np.bincount(rng.integers(20, size=20), minlength=20)
        drawn = np.repeat(np.arange(len(users)), times[users])
        y, r = outcomes[drawn], risk[drawn]
        expected = reference.average_precision_score(y, r)
        assert found["average_precision"][draw] == pytest.approx(expected)
        assert found["auc"][draw] == pytest.approx(reference.roc_auc_score(y, r))
        decided = metrics.decided(y, r >= 0.5)
        for name in ("precision", "recall", "f1", "accuracy"):
            assert found[name][draw] == pytest.approx(getattr(decided, name))


def test_many_different_risks_are_told_apart_well_enough() -> None:
    users, outcomes, risk = cluster(40, jobs=100)
    drawn = Draws(users, np.arange(len(users))).measures(outcomes, risk)
    for name in ("average_precision", "auc"):
        assert np.median(drawn[name]) == pytest.approx(MEASURES[name](outcomes, risk), abs=0.02)


@pytest.mark.parametrize("name", MEASURES)
def test_an_interval_holds_the_estimate_and_shrinks_with_more_users(name: str) -> None:
    widths = []
    for count in (12, 50, 400):
        users, outcomes, risk = cluster(count)
        drawn = Draws(users, np.arange(len(users))).measures(outcomes, risk)[name]
        estimate = MEASURES[name](outcomes, risk)
        low, high = around(estimate, drawn)
        assert 0 <= low <= estimate <= high <= 1
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2] > 0


def test_alike_jobs_of_a_user_prove_less_than_as_many_users() -> None:
    users, outcomes, risk = cluster(60)
    estimate = metrics.auc(outcomes, risk)
    widths = []
    for owners in (users, np.arange(len(users))):
        drawn = Draws(owners, np.arange(len(users))).measures(outcomes, risk)["auc"]
        low, high = around(estimate, drawn)
        widths.append(high - low)
    assert widths[0] > 1.3 * widths[1]


def test_the_seed_decides() -> None:
    users, outcomes, risk = cluster(20)
    runs = [
        Draws(users, np.arange(len(users)), seed=seed).measures(outcomes, risk)["auc"]
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_few_users_are_not_drawn_but_stretches_of_time() -> None:
    users, outcomes, risk = cluster(FEWEST_USERS - 1)
    draws = Draws(users, np.random.default_rng(0).permutation(len(users)))
    assert draws.by == BY_TIME
    low, high = around(0.7, draws.measures(outcomes, risk)["auc"])
    assert high - low > 0.02
    assert Draws(*[np.arange(FEWEST_USERS)] * 2).by == BY_USER


def test_jobs_of_unknown_users_stand_for_themselves() -> None:
    users, outcomes, risk = cluster(20)
    half = np.where(np.arange(len(users)) % 2, users, -1)
    draws = Draws(half, np.arange(len(users)))
    assert draws.by == BY_USER
    assert np.isfinite(draws.measures(outcomes, risk)["auc"]).all()
    assert Draws(np.full(len(users), -1), np.arange(len(users))).by == BY_TIME


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_jobs_of_one_outcome_have_no_interval(outcome: float) -> None:
    users, _, risk = cluster(20)
    same = np.full(len(users), outcome)
    draws = Draws(users, np.arange(len(users)))
    drawn = draws.measures(same, risk) | draws.decided(same, risk >= 0.5)
    assert around(None, drawn["auc"]) is None
    assert np.isnan(drawn["average_precision"]).all()
    assert around(metrics.decided(same, risk >= 0.5).accuracy, drawn["accuracy"])


def test_no_jobs_at_all() -> None:
    nothing = np.empty(0)
    draws = Draws(nothing.astype(int), nothing)
    drawn = draws.measures(nothing, nothing) | draws.decided(nothing, nothing >= 0.5)
    assert all(around(None, found) is None for found in drawn.values())


def test_the_bins_are_those_of_the_calibration_error() -> None:
    _, outcomes, risk = cluster(20)
    for told in (risk, np.round(risk, 1), np.full(len(risk), 0.3)):
        bins = metrics.equal_bins(told)
        apart = [abs((told - outcomes)[bins == k].sum()) for k in np.unique(bins)]
        error = metrics.calibration_error(outcomes, told)
        assert sum(apart) / len(told) == pytest.approx(error)
