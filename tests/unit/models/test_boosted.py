"""The boosted trees: they learn, take what is missing, and repeat themselves."""

from __future__ import annotations

import numpy as np
import pytest

from premortem.errors import InvalidInput
from premortem.models.boosted import BoostedTrees


def sample(rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which the first column decides; another is noise, one is never filled."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(rows, 3))
    outcomes = (values[:, 0] > 0.5).astype(float)
    values[:, 2] = np.nan
    values[::7, 0] = np.nan
    return values, outcomes


def trained(seed: int = 0) -> BoostedTrees:
    model = BoostedTrees(n_estimators=20, learning_rate=0.3, seed=seed)
    model.fit(*sample())
    return model


def test_it_learns_and_gives_probabilities() -> None:
    values, outcomes = sample()
    risk = trained().risk(values)
    assert ((risk > 0) & (risk < 1)).all()
    known = ~np.isnan(values[:, 0])
    assert ((risk > 0.5) == (outcomes == 1))[known].mean() > 0.95


def test_the_same_seed_gives_the_same_model_and_another_another() -> None:
    values, _ = sample()
    assert (trained().risk(values) == trained().risk(values)).all()
    assert (trained().risk(values) != trained(seed=1).risk(values)).any()


def test_one_row_has_the_risk_it_has_among_many() -> None:
    values, _ = sample()
    model = trained()
    assert model.risk(values[3:4])[0] == model.risk(values)[3]
    assert model.risk(values[:0]).shape == (0,)


def test_a_column_missing_in_training_does_not_matter_later() -> None:
    values, _ = sample()
    filled = values.copy()
    filled[:, 2] = 7.0
    model = trained()
    assert (model.risk(values) == model.risk(filled)).all()


def test_infinite_values_count_as_missing() -> None:
    values, _ = sample()
    endless = np.where(np.isnan(values), np.inf, values)
    assert (trained().risk(values) == trained().risk(endless)).all()


@pytest.mark.parametrize(
    ("values", "outcomes", "says"),
    [
        (np.ones((3, 1)), np.zeros(3), "failed"),
        (np.ones((3, 1)), np.ones(3), "completed"),
        (np.ones((0, 1)), np.ones(0), "failed"),
        (np.full((2, 1), np.nan), np.array([0, 1]), "missing"),
        (np.ones((2, 1)), np.array([0, 1, 1]), "2 rows"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    values: np.ndarray, outcomes: np.ndarray, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        BoostedTrees().fit(values, outcomes)


def test_risks_need_training_and_its_columns() -> None:
    with pytest.raises(InvalidInput, match="fit first"):
        BoostedTrees().risk(np.ones((1, 1)))
    with pytest.raises(InvalidInput, match="3 columns"):
        trained().risk(np.ones((1, 2)))
