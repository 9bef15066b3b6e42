"""Ways to treat rare failures: what is learned from changes, what is judged by does not."""

from __future__ import annotations

import numpy as np
import pytest

from premortem.errors import InvalidInput
from premortem.models.boosted import BoostedTrees
from premortem.models.parameters import TreeParameters
from premortem.training import metrics
from premortem.training.active import chooses_among, density, informative
from premortem.training.imbalance import Balanced, Imbalance, weights_of

QUICK = TreeParameters(rounds=30, learning_rate=0.2, depth=3, leaf_weight=1.0)


def rare(count: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows with gaps, of which one in twenty or so fails, and the first two columns tell."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, 6)).astype(np.float32)
    outcomes = (values[:, 0] + values[:, 1] + rng.normal(0, 0.5, count) > 2.5).astype(float)
    values[rng.random(values.shape) < 0.1] = np.nan
    values[:, 5] = np.nan
    return values, outcomes


def make() -> BoostedTrees:
    return BoostedTrees(QUICK)


@pytest.mark.parametrize("strategy", list(Imbalance))
def test_every_strategy_learns_and_repeats_itself(strategy: Imbalance) -> None:
    values, outcomes = rare()
    later, became = rare(seed=1)
    first, again = (Balanced(strategy, make, seed=3) for _ in range(2))
    for learner in (first, again):
        learner.fit(values, outcomes)
    score = metrics.average_precision(became, first.risk(later))
    assert score is not None
    assert score > 5 * outcomes.mean()
    assert (first.risk(later) == again.risk(later)).all()


@pytest.mark.parametrize("strategy", ["weights", "oversample", "smote"])
def test_balance_makes_failure_look_more_likely(strategy: str) -> None:
    values, outcomes = rare()
    plain, balanced = Balanced(Imbalance.NONE, make), Balanced(Imbalance(strategy), make)
    plain.fit(values, outcomes)
    balanced.fit(values, outcomes)
    assert balanced.risk(values).mean() > 2 * plain.risk(values).mean()


def test_what_is_given_is_not_changed() -> None:
    values, outcomes = rare()
    before = values.copy(), outcomes.copy()
    for strategy in Imbalance:
        Balanced(strategy, make).fit(values, outcomes)
    assert np.array_equal(values, before[0], equal_nan=True)
    assert (outcomes == before[1]).all()


def test_weights_make_both_outcomes_count_the_same() -> None:
    _, outcomes = rare()
    weights = weights_of(outcomes)
    assert weights[outcomes == 1].sum() == pytest.approx(weights[outcomes == 0].sum())
    assert weights.mean() == pytest.approx(1)
    with pytest.raises(InvalidInput, match="failed"):
        weights_of(np.zeros(3))


def test_what_smote_makes_up_lacks_what_its_like_lack() -> None:
    values, outcomes = rare()
    values[:, 1] = np.where(outcomes == 1, np.nan, 5.0)
    values[:, 2] = np.nan
    model = Balanced(Imbalance.SMOTE, make)
    model.fit(values, outcomes)
    risk = model.risk(values)
    assert risk[outcomes == 1].min() > 0.5 > risk[outcomes == 0].max()


def test_smote_needs_neighbours() -> None:
    values, outcomes = rare(100)
    outcomes[:] = 0
    outcomes[:3] = 1
    with pytest.raises(InvalidInput, match="SMOTE needs more than 5"):
        Balanced(Imbalance.SMOTE, make).fit(values, outcomes)


class TestActive:
    def test_it_learns_from_a_part_and_keeps_the_latest(self) -> None:
        values, outcomes = rare(8000)
        places = informative(values, outcomes, make)
        assert len(np.unique(places)) == len(places) < 8000
        assert set(range(6400, 8000)) <= set(places.tolist())
        assert outcomes[places[places < 6400]].mean() > 1.5 * outcomes.mean()

    def test_few_rows_are_all_learned_from(self) -> None:
        values, outcomes = rare(900)
        assert informative(values, outcomes, make).tolist() == list(range(900))
        assert not chooses_among(1250)
        assert chooses_among(1252)

    def test_without_failures_to_begin_with_all_rows_are_learned_from(self) -> None:
        values, outcomes = rare(2000)
        outcomes[:1600] = 0
        assert outcomes[1600:].any()
        assert informative(values, outcomes, make).tolist() == list(range(2000))

    def test_a_crowd_is_denser_than_a_stranger(self) -> None:
        values, _ = rare(2000)
        values[0] = 50.0
        found = density(values, np.random.default_rng(0))
        assert found[0] < np.quantile(found, 0.05)
        assert ((found > 0) & (found <= 1)).all()
        nothing = np.full((5, 2), np.nan, dtype=np.float32)
        assert density(nothing, np.random.default_rng(0)).tolist() == [1.0] * 5
