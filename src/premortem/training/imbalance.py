"""What to do about failures being rare: nothing, weights, more of them, or fewer others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from importlib.util import find_spec
from typing import Generic, TypeVar

import numpy as np

from premortem.errors import InvalidInput, MissingExtra
from premortem.models.port import Array, Classifier, Moments, Weighed
from premortem.training.active import informative

# Neighbours of a failure among which SMOTE draws new ones; and the most failures it looks at.
_NEIGHBOURS = 5
_MOST_FAILURES = 10_000
_ROUNDING = 1e-6


class Imbalance(StrEnum):
    """The strategies."""

    NONE = "none"
    WEIGHTS = "weights"
    OVERSAMPLE = "oversample"
    SMOTE = "smote"
    ACTIVE = "active"


def parsed_strategies(names: Sequence[str]) -> list[Imbalance]:
    """The strategies of these names; `all` is every one."""
    unknown = [name for name in names if name not in (*Imbalance, "all")]
    if unknown:
        there = ", ".join(Imbalance)
        raise InvalidInput(f"no way to treat rare failures: {unknown[0]}; there are {there}, all")
    if "all" in names:
        return list(Imbalance)
    return [Imbalance(name) for name in names]


Rows = tuple[Array, Array]
Learner = TypeVar("Learner", bound=Weighed)


class Balanced(Generic[Learner]):
    """A model that learns from rows as a strategy arranges them; rows are in order of time.

    Only ever what is learned from is arranged: rows to judge by must stay as they are.
    """

    def __init__(
        self, strategy: Imbalance, make_model: Callable[[], Learner], *, seed: int = 0
    ) -> None:
        self._strategy = strategy
        self._make_model = make_model
        self._seed = seed
        self.trees = make_model()

    def fit(
        self,
        values: Array,
        outcomes: Array,
        moments: Moments | None = None,
        rows: Array | None = None,
    ) -> None:
        """Arrange the rows and learn from them; with `rows`, their places, from those alone."""
        self.trees = self._make_model()
        if self._strategy in (Imbalance.NONE, Imbalance.WEIGHTS):
            became = outcomes if rows is None else outcomes[rows]
            weights = weights_of(became) if self._strategy is Imbalance.WEIGHTS else None
            self.trees.fit(values, outcomes, weights=weights, rows=rows)
            return
        if rows is not None:
            values, outcomes = values[rows], outcomes[rows]
        self.trees.fit(
            *arranged(self._strategy, values, outcomes, self._make_model, seed=self._seed)
        )

    def risk(self, values: Array) -> Array:
        """The probability of failure of each row."""
        return self.trees.risk(values)


def arranged(
    strategy: Imbalance,
    values: Array,
    outcomes: Array,
    make_model: Callable[[], Classifier],
    *,
    seed: int = 0,
) -> Rows:
    """The rows to learn from by a strategy, given all of them in order of time.

    `make_model` is for active learning, which asks a model what it is least sure of. Without a
    strategy, or with weights, all rows are learned from as they are.
    """
    if strategy is Imbalance.ACTIVE:
        places = informative(values, outcomes, make_model, seed=seed)
        return values[places], outcomes[places]
    if strategy is Imbalance.OVERSAMPLE:
        return _oversampled(values, outcomes, np.random.default_rng(seed))
    if strategy is Imbalance.SMOTE:
        return _smote(values, outcomes, np.random.default_rng(seed))
    return values, outcomes


def weights_of(outcomes: Array) -> Array:
    """Weights by which both outcomes count as much as the other."""
    failed = float(outcomes.mean())
    if not 0 < failed < 1:
        raise InvalidInput("weights need jobs that failed and jobs that completed")
    weights: Array = np.where(outcomes == 1, 0.5 / failed, 0.5 / (1 - failed))
    return weights


def require_smote() -> None:
    """Raise `MissingExtra` if the library of SMOTE is not installed."""
    if find_spec("imblearn") is None:
        raise MissingExtra("imbalanced-learn", extra="smote")


def _oversampled(values: Array, outcomes: Array, rng: np.random.Generator) -> Rows:
    """The rarer outcome drawn again and again until there are as many of it."""
    rarer = 1.0 if outcomes.mean() < 0.5 else 0.0
    few = np.flatnonzero(outcomes == rarer)
    again = rng.choice(few, len(outcomes) - 2 * len(few))
    which = np.concatenate([np.arange(len(outcomes)), again])
    return values[which], outcomes[which]


def _smote(values: Array, outcomes: Array, rng: np.random.Generator) -> Rows:
    """New jobs of the rarer outcome between those there are, of which very many are not looked at.

    All columns count the same: they are brought between 0 and 1, and what is missing lies a whole
    unit below. Between two jobs that both lack a value, or nearer to the one that does, the new one
    lacks it, too.
    """
    require_smote()
    from imblearn.over_sampling import SMOTE

    rarer = 1.0 if outcomes.mean() < 0.5 else 0.0
    few, many = np.flatnonzero(outcomes == rarer), np.flatnonzero(outcomes != rarer)
    if len(few) <= _NEIGHBOURS:
        raise InvalidInput(f"SMOTE needs more than {_NEIGHBOURS} jobs of each outcome")
    looked_at = rng.permutation(few)[:_MOST_FAILURES]
    kept = np.concatenate([many, looked_at])
    known = np.where(np.isfinite(values), values, np.nan).astype(np.float64)
    lows, highs = (
        np.nanmin(known, axis=0, initial=np.inf),
        np.nanmax(known, axis=0, initial=-np.inf),
    )
    lows = np.where(np.isfinite(lows), lows, 0.0)
    spans = np.where(highs > lows, highs - lows, 1.0)
    scaled = np.nan_to_num((known[kept] - lows) / spans, nan=-1.0)
    sampler = SMOTE(
        sampling_strategy={int(rarer): len(looked_at) + len(many) - len(few)},
        k_neighbors=_NEIGHBOURS,
        random_state=int(rng.integers(2**31)),
    )
    made, _ = sampler.fit_resample(scaled, outcomes[kept].astype(int))
    made = made[len(kept) :]
    made = np.where(made < -_ROUNDING, np.nan, np.maximum(made, 0.0)) * spans + lows
    return (
        np.concatenate([values, made.astype(values.dtype)]),
        np.concatenate([outcomes, np.full(len(made), rarer)]),
    )
