"""What every engine of boosted trees must do: learn, cope with gaps, repeat itself."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from requirements import require

from premortem.errors import InvalidInput
from premortem.models.boosted import BoostedTrees, finite
from premortem.models.engines import ENGINES, engine
from premortem.models.parameters import TreeParameters
from premortem.training import metrics


def sample(rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which the first column decides; another is noise, one is never filled."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(rows, 3))
    outcomes = (values[:, 0] > 0.5).astype(float)
    values[:, 2] = np.nan
    values[::7, 0] = np.nan
    return values, outcomes


QUICK = TreeParameters(rounds=20, learning_rate=0.3, leaf_weight=5.0)


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest) -> str:
    found = importlib.util.find_spec(request.param)
    require(found is not None, f"{request.param} is not installed")
    return str(request.param)


def trained(name: str, seed: int = 0, weights: np.ndarray | None = None) -> BoostedTrees:
    model = BoostedTrees(QUICK, engine=name, seed=seed)
    model.fit(*sample(), weights=weights)
    return model


def test_it_learns_and_gives_probabilities(name: str) -> None:
    values, outcomes = sample()
    risk = trained(name).risk(values)
    assert ((risk > 0) & (risk < 1)).all()
    known = ~np.isnan(values[:, 0])
    assert ((risk > 0.5) == (outcomes == 1))[known].mean() > 0.95


def test_the_same_seed_gives_the_same_model_and_another_another(name: str) -> None:
    values, _ = sample()
    assert (trained(name).risk(values) == trained(name).risk(values)).all()
    assert (trained(name).risk(values) != trained(name, seed=1).risk(values)).any()


def test_one_row_has_the_risk_it_has_among_many(name: str) -> None:
    values, _ = sample()
    model = trained(name)
    assert model.risk(values[3:4])[0] == pytest.approx(model.risk(values)[3], rel=1e-12)
    assert model.risk(values[:0]).shape == (0,)


def test_a_column_missing_in_training_does_not_matter_later(name: str) -> None:
    values, _ = sample()
    filled = values.copy()
    filled[:, 2] = 7.0
    model = trained(name)
    assert (model.risk(values) == model.risk(filled)).all()


def test_infinite_values_count_as_missing(name: str) -> None:
    values, _ = sample()
    endless = np.where(np.isnan(values), np.inf, values)
    assert (trained(name).risk(values) == trained(name).risk(endless)).all()


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
    name: str, values: np.ndarray, outcomes: np.ndarray, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        BoostedTrees(engine=name).fit(values, outcomes)


def test_risks_need_training_and_its_columns(name: str) -> None:
    with pytest.raises(InvalidInput, match="fit first"):
        BoostedTrees(engine=name).risk(np.ones((1, 1)))
    with pytest.raises(InvalidInput, match="3 columns"):
        trained(name).risk(np.ones((1, 2)))


def test_weights_move_the_risk(name: str) -> None:
    values, outcomes = sample()
    heavy = trained(name, weights=np.where(outcomes == 1, 20.0, 1.0))
    assert heavy.risk(values).mean() > trained(name).risk(values).mean()


def test_what_is_dumped_is_what_was_trained(name: str) -> None:
    values, _ = sample()
    model = trained(name)
    library = engine(name)
    kept = library.load(model.dump())
    assert library.risk(kept, finite(values, model.used), 1) == pytest.approx(model.risk(values))
    assert not model.dump().startswith(b"\x80")  # a pickle


def test_flat_trees_say_the_same(name: str) -> None:
    values, _ = sample()
    model = trained(name)
    flat = model.flat()
    assert flat.width == len(model.used) == 2
    assert flat.risk(finite(values, model.used)) == pytest.approx(model.risk(values), abs=1e-5)


def test_training_ends_when_the_watched_rows_gain_nothing_more(name: str) -> None:
    values, outcomes = sample(1200)
    rng = np.random.default_rng(2)
    noisy = np.where(rng.random(1200) < 0.3, 1 - outcomes, outcomes)
    library = engine(name)
    first = library.data(finite(values[:600], np.array([0, 1])), noisy[:600], None)
    later = library.data(finite(values[600:], np.array([0, 1])), noisy[600:], None, like=first)
    told = TreeParameters(rounds=500, learning_rate=0.5, leaf_weight=1.0)
    booster, rounds = library.train(first, told, seed=0, threads=1, watch=later)
    assert 0 < rounds < 500
    again, _ = library.train(first, replace(told, rounds=rounds), seed=0, threads=1)
    shown = finite(values[600:], np.array([0, 1]))
    scores = [
        metrics.average_precision(noisy[600:], library.risk(model, shown, 1))
        for model in (booster, again)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=0.03)


def test_a_name_that_is_no_engine() -> None:
    with pytest.raises(InvalidInput, match="no such model: oracle; there are xgboost"):
        engine("oracle")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda _: b"{",
        lambda _: b"{}",
        lambda _: b"these are no trees\n",
        lambda _: b"\x00\xff" * 50,
        lambda good: good[: len(good) // 2],
        lambda good: good[:-40],
    ],
    ids=["nothing", "begun", "empty", "text", "bytes", "half", "nearly all"],
)
def test_what_is_not_a_model_is_refused(name: str, spoil: Callable[[bytes], bytes]) -> None:
    spoilt = spoil(trained(name).dump())
    with pytest.raises(InvalidInput, match=r"not? (a )?.*model"):
        engine(name).load(spoilt)
