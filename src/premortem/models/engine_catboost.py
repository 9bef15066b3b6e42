"""Boosted trees by CatBoost."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import catboost
import numpy as np

from premortem.models.engines import PATIENCE, reading
from premortem.models.flat import FlatTrees
from premortem.models.flat_readers import flat_from_catboost
from premortem.models.parameters import TreeParameters
from premortem.models.port import Array


class CatBoost:
    """Grows symmetric trees; the least weight of a leaf means nothing to those."""

    file = "catboost.json"

    def data(self, values: Array, outcomes: Array, weights: Array | None, like: Any = None) -> Any:
        """A pool of rows."""
        return catboost.Pool(values, outcomes, weight=weights)

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
        model = catboost.CatBoostClassifier(
            iterations=parameters.rounds,
            learning_rate=parameters.learning_rate,
            depth=parameters.depth,
            l2_leaf_reg=parameters.l2,
            bootstrap_type="Bernoulli",
            subsample=parameters.rows,
            rsm=parameters.columns,
            eval_metric="Logloss",
            random_seed=seed,
            thread_count=threads or -1,
            logging_level="Silent",
            allow_writing_files=False,
        )
        if watch is None:
            model.fit(data)
        else:
            model.fit(data, eval_set=watch, early_stopping_rounds=PATIENCE, use_best_model=True)
        return model, int(model.tree_count_)

    def risk(self, booster: Any, values: Array, threads: int) -> Array:
        """The probability of failure of each row."""
        found: Array = booster.predict_proba(values, thread_count=threads or -1)
        return np.asarray(found[:, 1], dtype=np.float64)

    def dump(self, booster: Any) -> bytes:
        """The booster as CatBoost's own JSON."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self.file
            booster.save_model(str(path), format="json")
            return path.read_bytes()

    def load(self, dumped: bytes) -> Any:
        """The booster that was dumped."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self.file
            path.write_bytes(dumped)
            with reading("CatBoost", catboost.CatBoostError):
                # What is cut short or lacks a part, CatBoost may read past the end of.
                flat_from_catboost(json.loads(dumped))
                return catboost.CatBoostClassifier().load_model(str(path), format="json")

    def flat(self, booster: Any) -> FlatTrees:
        """Its trees as arrays."""
        return flat_from_catboost(json.loads(self.dump(booster)))


ENGINE = CatBoost()
