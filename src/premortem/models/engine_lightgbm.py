"""Boosted trees by LightGBM."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

from premortem.models.engines import PATIENCE, reading
from premortem.models.flat import FlatTrees
from premortem.models.flat_readers import flat_from_lightgbm
from premortem.models.parameters import TreeParameters
from premortem.models.port import Array


class LightGBM:
    """Grows the leaf that gains most; as many leaves as the depth allows, but not more than 255."""

    file = "lightgbm.txt"

    def data(self, values: Array, outcomes: Array, weights: Array | None, like: Any = None) -> Any:
        """Binned rows; those of `like` set the bins."""
        quiet = {"verbosity": -1, "feature_pre_filter": False}
        found = lightgbm.Dataset(
            values, outcomes, weight=weights, reference=like, params=quiet, free_raw_data=False
        )
        return found.construct()

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
            "objective": "binary",
            "max_depth": parameters.depth,
            "num_leaves": min(2**parameters.depth, 255),
            "learning_rate": parameters.learning_rate,
            "bagging_fraction": parameters.rows,
            "bagging_freq": 1,
            "feature_fraction": parameters.columns,
            "min_sum_hessian_in_leaf": parameters.leaf_weight,
            "min_data_in_leaf": 1,
            "lambda_l2": parameters.l2,
            "metric": "binary_logloss",
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": threads,
            "verbosity": -1,
        }
        stops: dict[str, Any] = {}
        if watch is not None:
            stop = lightgbm.early_stopping(PATIENCE, verbose=False)
            stops = {"valid_sets": [watch], "callbacks": [stop]}
        booster = lightgbm.train(told, data, num_boost_round=parameters.rounds, **stops)
        return booster, booster.best_iteration if watch is not None else parameters.rounds

    def risk(self, booster: Any, values: Array, threads: int) -> Array:
        """The probability of failure of each row."""
        found: Array = booster.predict(values, num_threads=threads)
        return np.asarray(found, dtype=np.float64)

    def dump(self, booster: Any) -> bytes:
        """The booster as LightGBM's own text."""
        text: str = booster.model_to_string()
        return text.encode()

    def load(self, dumped: bytes) -> Any:
        """The booster that was dumped."""
        with reading("LightGBM", lightgbm.basic.LightGBMError):
            text = dumped.decode()
            # What is cut short LightGBM reads past the end of.
            if not text.startswith("tree\n") or "\nend of parameters\n" not in text:
                raise ValueError("not the whole text of a booster")
            return lightgbm.Booster(model_str=text)

    def flat(self, booster: Any) -> FlatTrees:
        """Its trees as arrays."""
        return flat_from_lightgbm(booster.dump_model())


ENGINE = LightGBM()
