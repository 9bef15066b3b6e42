"""Boosted trees as they are trained for use: parameters searched for, risk calibrated."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from premortem.models.boosted import BoostedTrees
from premortem.models.calibration import Calibration
from premortem.models.parameters import TreeParameters
from premortem.models.port import Array, Moments
from premortem.training.calibrating import calibrated
from premortem.training.imbalance import Balanced, Imbalance, weights_of
from premortem.training.ray_tuning import search_on_ray
from premortem.training.tuning import Budget, Fold, Judge, Search, Trial, search

# Where the folds of a search are cut, among the times of submission; the last one's later jobs also
# calibrate.
CUTS = (0.6, 0.8)
FEWEST_JUDGED = 50


class TunedTrees:
    """A classifier that searches for its parameters, then calibrates its risk; both by later jobs.

    The search is Optuna's, here; or, with `on`, Ray's, see `search_on_ray`.
    `parameters` given are used as they are, without a search. After `fit`, `search` tells what was
    tried, `validation` which rows the calibration is made of (their places in order of time, and
    their uncalibrated risk by trees that had not seen them), and `judged` their outcomes and
    calibrated risk.
    """

    def __init__(
        self,
        *,
        engine: str = "xgboost",
        budget: Budget = Budget(),
        parameters: TreeParameters | None = None,
        imbalance: Imbalance = Imbalance.NONE,
        seed: int = 0,
        on: str | None = None,
        journal: Path | None = None,
        name: str = "search",
        progress: Callable[[Trial], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._budget = budget
        self._given = parameters
        self._imbalance = imbalance
        self._seed = seed
        self._on = on
        self._journal = journal
        self._name = name
        self._progress = progress
        self.search = Search(parameters or TreeParameters())
        self.calibration = Calibration()
        self.validation: tuple[Array, Array] = (np.empty(0, dtype=np.intp), np.empty(0))
        self.judged: tuple[Array, Array] | None = None
        self.trees = BoostedTrees(engine=engine, seed=seed)

    def fit(self, values: Array, outcomes: Array, moments: Moments | None = None) -> None:
        """Search, calibrate, and learn from all rows in the end."""
        folds = time_folds(outcomes, moments) if moments else []
        if folds and self._given is None and self._budget.trials > 0:
            self.search = self._searched(values, outcomes, folds)
        if folds:
            last = folds[-1]
            self._learn(values[last.learn], outcomes[last.learn])
            risk = self.trees.risk(values[last.judge])
            self.validation = (last.judge, risk)
            self.calibration = calibrated(outcomes[last.judge], risk)
            self.judged = outcomes[last.judge], self.calibration.apply(risk)
        self._learn(values, outcomes)

    def risk(self, values: Array) -> Array:
        """The calibrated probability of failure of each row."""
        return self.calibration.apply(self.trees.risk(values))

    def _searched(self, values: Array, outcomes: Array, folds: list[Fold]) -> Search:
        weigh = weights_of if self._imbalance is Imbalance.WEIGHTS else _unweighted
        if self._on:
            return search_on_ray(
                values, outcomes, folds, self._budget, on=self._on, engine_name=self._engine,
                weigh=weigh, seed=self._seed, progress=self._progress,
            )  # fmt: skip
        judge = Judge(
            values, outcomes, folds, engine_name=self._engine, seed=self._seed, weigh=weigh
        )
        return search(
            judge, self._budget, seed=self._seed, journal=self._journal, name=self._name,
            progress=self._progress,
        )  # fmt: skip

    def _learn(self, values: Array, outcomes: Array) -> None:
        learner = Balanced(self._imbalance, self._make_trees, seed=self._seed)
        learner.fit(values, outcomes)
        self.trees = learner.trees

    def _make_trees(self) -> BoostedTrees:
        return BoostedTrees(self.search.best, engine=self._engine, seed=self._seed)


def _unweighted(outcomes: Array) -> None:
    """Every job counts the same."""


def time_folds(outcomes: Array, moments: Moments) -> list[Fold]:
    """Folds in order of time: learn from jobs that had ended by a cut, judge by those after it.

    A fold without both outcomes on either side, or with few jobs to judge, is left out. Those to
    judge by are in order of submission.
    """
    found = []
    cuts = [*np.quantile(moments.submitted, CUTS), np.inf]
    for cut, until in pairwise(cuts):
        learn = np.flatnonzero((moments.ended < cut) & (moments.submitted < cut))
        judge = np.flatnonzero((moments.submitted >= cut) & (moments.submitted < until))
        judge = judge[np.argsort(moments.submitted[judge], kind="stable")]
        both = len(np.unique(outcomes[learn])) == 2 and len(np.unique(outcomes[judge])) == 2
        if both and len(judge) >= FEWEST_JUDGED:
            found.append(Fold(learn, judge))
    return found
