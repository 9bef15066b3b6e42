"""Boosted trees by XGBoost."""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost

from premortem.models.engines import PATIENCE, reading
from premortem.models.flat import FlatTrees
from premortem.models.flat_readers import flat_from_xgboost
from premortem.models.parameters import TreeParameters
from premortem.models.port import Array


class XGBoost:
    """The default engine."""

    file = "xgboost.ubj"

    def data(self, values: Array, outcomes: Array, weights: Array | None, like: Any = None) -> Any:
        """Quantised rows; those of `like` set the quantiles."""
        return xgboost.QuantileDMatrix(values, label=outcomes, weight=weights, ref=like)

    def train(
        self,
        data: Any,
        parameters: TreeParameters,
        *,
        seed: int,
        threads: int,
        watch: Any = None,
    ) -> tuple[Any, int]:
        """A booster and its number of rounds."""
        told = {
            "objective": "binary:logistic",
            "tree_method": "hist",
            "max_depth": parameters.depth,
            "learning_rate": parameters.learning_rate,
            "subsample": parameters.rows,
            "colsample_bytree": parameters.columns,
            "min_child_weight": parameters.leaf_weight,
            "reg_lambda": parameters.l2,
            "eval_metric": "logloss",
            "seed": seed,
            "nthread": threads,
            "verbosity": 0,
        }
        stops: dict[str, Any] = {}
        if watch is not None:
            stops = {
                "evals": [(watch, "watched")],
                "early_stopping_rounds": PATIENCE,
                "verbose_eval": False,
            }
        booster = xgboost.train(told, data, num_boost_round=parameters.rounds, **stops)
        if watch is None:
            return booster, parameters.rounds
        rounds = booster.best_iteration + 1
        return booster[:rounds], rounds

    def risk(self, booster: Any, values: Array, threads: int) -> Array:
        """The probability of failure of each row."""
        booster.set_param({"nthread": threads})
        found: Array = booster.inplace_predict(values, missing=np.nan)
        return found.astype(np.float64)

    def dump(self, booster: Any) -> bytes:
        """The booster as UBJSON."""
        return bytes(booster.save_raw("ubj"))

    def load(self, dumped: bytes) -> Any:
        """The booster that was dumped."""
        with reading("XGBoost", xgboost.core.XGBoostError):
            # What is cut short XGBoost may read past the end of.
            if not (dumped.startswith(b"{") and dumped.endswith(b"}")):
                raise ValueError("not the whole of an object")
            return xgboost.Booster(model_file=bytearray(dumped))

    def flat(self, booster: Any) -> FlatTrees:
        """Its trees as arrays."""
        return flat_from_xgboost(bytes(booster.save_raw("json")))


ENGINE = XGBoost()
