"""Boosted trees that tell failed jobs from completed ones, by any engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from premortem.errors import InvalidInput
from premortem.models.engines import engine
from premortem.models.flat import FlatTrees
from premortem.models.parameters import TreeParameters
from premortem.models.port import Array, Moments

# For fewer rows, several threads cost more than they bring.
_ROWS_WORTH_THREADS = 5_000
# So that what is looked at on the way takes no memory to speak of.
_ROWS_AT_ONCE = 65_536


class BoostedTrees:
    """A binary classifier that takes missing values as they are; the same seed, the same model.

    Columns that are all missing in training are dropped: a tree cannot split on them. Values that
    are not finite count as missing. With `threads` 0 all cores are used.
    """

    def __init__(
        self,
        parameters: TreeParameters = TreeParameters(),
        *,
        engine: str = "xgboost",
        seed: int = 0,
        threads: int = 0,
    ) -> None:
        self.parameters = parameters
        self.engine = engine
        self._seed = seed
        self._threads = threads
        self._booster: Any = None
        self._width = 0
        self.used: Array = np.empty(0, dtype=np.intp)

    def fit(
        self,
        values: Array,
        outcomes: Array,
        moments: Moments | None = None,
        weights: Array | None = None,
        rows: Array | None = None,
    ) -> None:
        """Learn from rows that hold both outcomes; others are refused. Moments do not matter.

        With `rows`, their places, from those alone, of which no copy with all columns is made.
        """
        if len(values) != len(outcomes):
            raise InvalidInput(f"{len(values)} rows cannot have {len(outcomes)} outcomes")
        if rows is not None:
            outcomes = outcomes[rows]
        if set(np.unique(outcomes)) != {0, 1}:
            raise InvalidInput("training needs jobs that failed (1) and jobs that completed (0)")
        self._width, self.used = values.shape[1], used_columns(values, rows)
        library = engine(self.engine)
        data = library.data(finite(values, self.used, rows), outcomes, weights)
        self._booster, _ = library.train(
            data, self.parameters, seed=self._seed, threads=self._threads_for(len(outcomes))
        )

    def risk(self, values: Array) -> Array:
        """The probability of failure of each row, whose columns are those of `fit`."""
        if self._booster is None:
            raise InvalidInput("the model has not been trained: call fit first")
        if values.shape[1] != self._width:
            raise InvalidInput(f"expected {self._width} columns as in training, not {values.shape}")
        if not len(values):
            return np.empty(0)
        threads = self._threads_for(len(values))
        return engine(self.engine).risk(self._booster, finite(values, self.used), threads)

    def dump(self) -> bytes:
        """The trees in the engine's own format; their columns are those of `used`."""
        return engine(self.engine).dump(self._booster)

    def flat(self) -> FlatTrees:
        """The trees as arrays; their columns are those of `used`."""
        return engine(self.engine).flat(self._booster)

    def _threads_for(self, rows: int) -> int:
        """As many as wanted, 0 for all cores."""
        return self._threads or (1 if rows < _ROWS_WORTH_THREADS else 0)


def used_columns(values: Array, rows: Array | None = None) -> Array:
    """The places of the columns that have a value at all; with `rows`, in one of those."""
    chosen = slice(None) if rows is None else rows
    used = np.flatnonzero([_has_any(column[chosen]) for column in values.T])
    if not len(used):
        raise InvalidInput("training needs a column with values: all are missing")
    return used


def finite(values: Array, used: Array, rows: Array | None = None) -> Array:
    """These columns as the engines want them, with NaN for whatever is not a finite number.

    With `rows`, their places, of those alone. Where everything is wanted and nothing of it is
    infinite, it is given as it is.
    """
    if rows is not None:
        chosen: Array = values[np.ix_(rows, used)].astype(np.float32, copy=False)
    elif len(used) == values.shape[1] and values.dtype == np.float32:
        chosen = values
    else:
        chosen = values.take(used, axis=1).astype(np.float32, copy=False)
    for some in range(0, len(chosen), _ROWS_AT_ONCE):
        infinite = np.isinf(chosen[some : some + _ROWS_AT_ONCE])
        if infinite.any():
            chosen = chosen.copy() if chosen is values else chosen
            chosen[some : some + _ROWS_AT_ONCE][infinite] = np.nan
    return chosen


def _has_any(column: Array) -> bool:
    """Whether there is a finite number; most often one of the first is."""
    return bool(np.isfinite(column[:100]).any() or np.isfinite(column).any())
