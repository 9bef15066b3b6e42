"""Boosted trees by XGBoost with fixed parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost

from premortem.errors import InvalidInput
from premortem.models.port import Array

# For fewer rows, several threads cost more than they bring.
_ROWS_WORTH_THREADS = 5_000


class BoostedTrees:
    """A binary classifier that takes missing values as they are; the same seed, the same model.

    Columns that are all missing in training are dropped: a tree cannot split on them. Values that
    are not finite count as missing. With `n_jobs` None all cores are used. The parameters are
    cautious: a cluster's habits change between the jobs learned from and those to come.
    """

    def __init__(
        self,
        *,
        n_estimators: int = 400,
        max_depth: int = 6,
        learning_rate: float = 0.02,
        subsample: float = 0.8,
        colsample_bytree: float = 0.5,
        min_child_weight: float = 20.0,
        reg_lambda: float = 10.0,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self._rounds = n_estimators
        self._parameters: dict[str, Any] = {
            "objective": "binary:logistic",
            "tree_method": "hist",
            "max_depth": max_depth,
            "learning_rate": learning_rate,
            "subsample": subsample,
            "colsample_bytree": colsample_bytree,
            "min_child_weight": min_child_weight,
            "reg_lambda": reg_lambda,
            "seed": seed,
            "verbosity": 0,
        }
        self._threads = n_jobs or 0
        self._booster: Any = None
        self._width = 0
        self._used: Array = np.empty(0, dtype=np.intp)

    def fit(self, values: Array, outcomes: Array) -> None:
        """Learn from rows that hold both outcomes; others are refused."""
        if len(values) != len(outcomes):
            raise InvalidInput(f"{len(values)} rows cannot have {len(outcomes)} outcomes")
        if set(np.unique(outcomes)) != {0, 1}:
            raise InvalidInput("training needs jobs that failed (1) and jobs that completed (0)")
        used = np.flatnonzero(np.isfinite(values).any(axis=0))
        if not len(used):
            raise InvalidInput("training needs a column with values: all are missing")
        self._width, self._used = values.shape[1], used
        threads = self._threads_for(values)
        data = xgboost.QuantileDMatrix(self._finite(values), label=outcomes, nthread=threads)
        parameters = {**self._parameters, "nthread": threads}
        self._booster = xgboost.train(parameters, data, num_boost_round=self._rounds)

    def risk(self, values: Array) -> Array:
        """The probability of failure of each row, whose columns are those of `fit`."""
        if self._booster is None:
            raise InvalidInput("the model has not been trained: call fit first")
        if values.shape[1] != self._width:
            raise InvalidInput(f"expected {self._width} columns as in training, not {values.shape}")
        if not len(values):
            return np.empty(0)
        self._booster.set_param({"nthread": self._threads_for(values)})
        found: Array = self._booster.inplace_predict(self._finite(values), missing=np.nan)
        return found.astype(np.float64)

    def _threads_for(self, values: Array) -> int:
        """As many as wanted, 0 for all cores."""
        return self._threads or (1 if len(values) < _ROWS_WORTH_THREADS else 0)

    def _finite(self, values: Array) -> Array:
        chosen = values[:, self._used].astype(np.float32, copy=True)
        chosen[~np.isfinite(chosen)] = np.nan
        return chosen
