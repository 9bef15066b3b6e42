"""Boosted trees as they are trained for use: parameters searched for, risk calibrated."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise
from pathlib import Path

import numpy as np

from premortem.models.blended import BlendedTrees, blended_risk
from premortem.models.boosted import BoostedTrees
from premortem.models.calibration import Calibration
from premortem.models.engines import DEFAULT, installed
from premortem.models.parameters import Recipe
from premortem.models.port import Array, Moments
from premortem.training import metrics
from premortem.training.calibrating import calibrated
from premortem.training.imbalance import Balanced, Imbalance, arranged, weights_of
from premortem.training.ray_tuning import search_on_ray
from premortem.training.tuning import WORTHWHILE, Budget, Fold, Judge, Search, Trial, search

# Where the folds of a search are cut, among the times of submission; the last one's later jobs also
# calibrate.
CUTS = (0.6, 0.8)
FEWEST_JUDGED = 50
# Parameters that suit so many jobs suit more of them, too; more would only make trials slow.
MOST_LEARNED = 30_000
MOST_JUDGED = 20_000
# How a gain is told from chance: the jobs that judge are drawn so often, in so many stretches.
_DRAWS = 100
_STRETCHES = 20
_SURE = 0.9
# Instead of an engine's name: that of those installed which judges later jobs best, or several.
AUTO = "auto"


class TunedTrees:
    """A classifier that searches for its parameters, then calibrates its risk; both by later jobs.

    The search is Optuna's, here; or, with `on`, Ray's, see `search_on_ray`. With the engine `AUTO`
    each of those installed is searched with, the budget shared among them, and the best one taken,
    or the average of several. Whatever is found replaces the usual parameters only if it is better
    for sure, and not by chance. A search ends early when it is `stopped`. With a `journal`, a
    search of the same name on the same rows goes on where it ended.
    `recipes` given are followed as they are, without a search. After `fit`, `search` tells what was
    tried, `validation` which rows the calibration is made of (their places in order of time, and
    their uncalibrated risk by trees that had not seen them), and `judged` their outcomes and
    calibrated risk.
    """

    def __init__(
        self,
        *,
        engine: str = DEFAULT,
        budget: Budget = Budget(),
        recipes: Sequence[Recipe] | None = None,
        imbalance: Imbalance = Imbalance.NONE,
        seed: int = 0,
        on: str | None = None,
        journal: Path | None = None,
        name: str = "search",
        progress: Callable[[Trial], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine = engine
        self._budget = budget
        self._given = recipes
        self._imbalance = imbalance
        self._weigh = weights_of if imbalance is Imbalance.WEIGHTS else _unweighted
        self._seed = seed
        self._on = on
        self._journal = journal
        self._name = name
        self._progress = progress
        self._stopped = stopped
        self._forget()

    def _forget(self) -> None:
        usual = Recipe(DEFAULT if self._engine == AUTO else self._engine)
        self.search = Search(tuple(self._given) if self._given else (usual,))
        self.calibration = Calibration()
        self.validation: tuple[Array, Array] = (np.empty(0, dtype=np.intp), np.empty(0))
        self.judged: tuple[Array, Array] | None = None
        self.trees = self._make_trees()

    def fit(
        self,
        values: Array,
        outcomes: Array,
        moments: Moments | None = None,
        *,
        among: Array | None = None,
    ) -> None:
        """Search, calibrate, and learn from all rows in the end.

        With `among`, a truth value for each row, the others are as if they were not there.
        """
        self._forget()
        folds = time_folds(outcomes, moments, among) if moments else []
        if folds and self._given is None and self._budget.trials != 0:
            self.search = self._searched(values, outcomes, [_sampled(fold) for fold in folds])
        foretold: list[tuple[Array, Array]] = []
        for fold in folds:
            self._learn(values, outcomes, fold.learn)
            risk = self.trees.risk(values[fold.judge])
            foretold.append((outcomes[fold.judge], risk))
            self.validation = fold.judge, risk
        if foretold:
            became, risk = foretold[-1]
            self.calibration = calibrated(became, risk, *foretold[-2:-1])
            self.judged = became, self.calibration.apply(risk)
        self._learn(values, outcomes, None if among is None else np.flatnonzero(among))

    def risk(self, values: Array) -> Array:
        """The calibrated probability of failure of each row."""
        return self.calibration.apply(self.trees.risk(values))

    def _searched(self, values: Array, outcomes: Array, folds: list[Fold]) -> Search:
        """The search, or what several searches come to, one for each engine."""
        engines = installed() if self._engine == AUTO else (self._engine,)
        budget = _shared(self._budget, len(engines))
        became = [outcomes[fold.judge] for fold in folds]
        values, outcomes, folds = self._arranged(values, outcomes, folds)
        found: list[Search] = []
        foretold: dict[Recipe, list[Array]] = {}
        for engine in engines:
            if found and self._stopped():
                break
            judge = Judge(
                values, outcomes, folds, engine_name=engine, seed=self._seed, weigh=self._weigh
            )
            found.append(self._search_with(judge, budget, values, outcomes, folds))
            usual, (best,) = Recipe(engine), found[-1].best
            if not foretold:
                foretold[usual] = [risk for risk, _ in judge.risks(usual.parameters, stops=False)]
            foretold[best] = [risk for risk, _ in judge.risks(best.parameters)]
        trials = chain.from_iterable(search.trials for search in found)
        return Search(
            _chosen(foretold, became),
            tuple(replace(trial, number=number) for number, trial in enumerate(trials)),
            found[-1].interrupted or len(found) < len(engines),
        )

    def _arranged(
        self, values: Array, outcomes: Array, folds: list[Fold]
    ) -> tuple[Array, Array, list[Fold]]:
        """What each fold learns from, as the strategy arranges it: once, and for all trials.

        The rows arranged come after those there are; what is judged by stays as it is.
        """
        if self._imbalance in (Imbalance.NONE, Imbalance.WEIGHTS):
            return values, outcomes, folds
        learned = [
            arranged(
                self._imbalance, values[fold.learn], outcomes[fold.learn], self._make_trees,
                seed=self._seed,
            )
            for fold in folds
        ]  # fmt: skip
        ends = len(outcomes) + np.cumsum([len(rows) for _, rows in learned])
        places = [
            np.arange(end - len(rows), end) for end, (_, rows) in zip(ends, learned, strict=True)
        ]
        return (
            np.concatenate([values, *(rows for rows, _ in learned)]),
            np.concatenate([outcomes, *(rows for _, rows in learned)]),
            [Fold(learn, fold.judge) for learn, fold in zip(places, folds, strict=True)],
        )

    def _search_with(
        self, judge: Judge, budget: Budget, values: Array, outcomes: Array, folds: list[Fold]
    ) -> Search:
        if self._on:
            return search_on_ray(
                values, outcomes, folds, budget, on=self._on, engine_name=judge.engine,
                weigh=self._weigh, seed=self._seed, progress=self._progress,
                stopped=self._stopped,
            )  # fmt: skip
        name = f"{self._name} {judge.engine} {self._imbalance}"
        if self._journal:
            name += f" {_digest(values, outcomes, folds)}"
        return search(
            judge, budget, seed=self._seed, journal=self._journal, name=name,
            progress=self._progress, stopped=self._stopped,
        )  # fmt: skip

    def _learn(self, values: Array, outcomes: Array, rows: Array | None) -> None:
        learner = Balanced(self._imbalance, self._make_trees, seed=self._seed)
        learner.fit(values, outcomes, rows=rows)
        self.trees = learner.trees

    def _make_trees(self) -> BlendedTrees:
        return BlendedTrees(
            [
                BoostedTrees(recipe.parameters, engine=recipe.engine, seed=self._seed)
                for recipe in self.search.best
            ]
        )


def _shared(budget: Budget, parts: int) -> Budget:
    """A part of the budget, of one trial at least."""
    seconds = None if budget.seconds is None else budget.seconds / parts
    trials = None if budget.trials is None else max(1, budget.trials // parts)
    return Budget(trials, seconds)


def _chosen(
    foretold: Mapping[Recipe, Sequence[Array]], outcomes: Sequence[Array]
) -> tuple[Recipe, ...]:
    """The recipe, or those to be averaged, whose risks judged best.

    `foretold` are the risks in each fold, `outcomes` what became of the jobs. The first recipe is
    the usual one, and stays unless another choice is better for sure. Of many things tried the
    best one is lucky as well as good; parameters chosen so for a hair's breadth lose it again.
    """

    def risks(recipes: tuple[Recipe, ...]) -> list[Array]:
        by_fold = zip(*(foretold[recipe] for recipe in recipes), strict=True)
        return [blended_risk(parts) for parts in by_fold]

    def score(recipes: tuple[Recipe, ...]) -> float:
        told = map(metrics.average_precision, outcomes, risks(recipes))
        return float(np.mean([one or 0.0 for one in told])) - WORTHWHILE * len(recipes)

    usual = (next(iter(foretold)),)
    sizes = range(1, len(foretold) + 1)
    choices = chain.from_iterable(combinations(foretold, size) for size in sizes)
    # Two of one engine err alike, and a model keeps one file for each.
    best = max((one for one in choices if len({r.engine for r in one}) == len(one)), key=score)
    return best if surely_better(outcomes, risks(best), risks(usual)) else usual


def surely_better(
    outcomes: Sequence[Array], risks: Sequence[Array], others: Sequence[Array]
) -> bool:
    """Whether risks have the better average precision in every fold, and not by chance.

    One array for each fold, its jobs in order of time; sure is what holds in nine of ten draws of
    stretches of time. What one fold is sure of and another is not has passed already.
    """
    rng = np.random.default_rng(0)
    for became, ours, theirs in zip(outcomes, risks, others, strict=True):
        stretches = np.array_split(np.arange(len(became)), _STRETCHES)
        gains = []
        for _ in range(_DRAWS):
            drawn = np.concatenate(
                [stretches[k] for k in rng.integers(_STRETCHES, size=_STRETCHES)]
            )
            mine = metrics.average_precision(became[drawn], ours[drawn])
            yours = metrics.average_precision(became[drawn], theirs[drawn])
            gains.append((mine or 0.0) - (yours or 0.0))
        if np.quantile(gains, 1 - _SURE) <= 0:
            return False
    return True


def _sampled(fold: Fold) -> Fold:
    """The fold, or every so many of its jobs."""
    return Fold(_every(fold.learn, MOST_LEARNED), _every(fold.judge, MOST_JUDGED))


def _every(places: Array, most: int) -> Array:
    return places[:: -(-len(places) // most)] if len(places) > most else places


def _digest(values: Array, outcomes: Array, folds: Sequence[Fold]) -> str:
    """What tells these rows from others."""
    told = 0
    for part in (values, outcomes, *(part for fold in folds for part in (fold.learn, fold.judge))):
        told = zlib.crc32(np.ascontiguousarray(part).data, told)
    return f"{told:08x}"


def _unweighted(outcomes: Array) -> None:
    """Every job counts the same."""


def time_folds(outcomes: Array, moments: Moments, among: Array | None = None) -> list[Fold]:
    """Folds in order of time: learn from jobs that had ended by a cut, judge by those after it.

    A fold without both outcomes on either side, or with few jobs to judge, is left out. Those to
    judge by are in order of submission. With `among`, only those rows count.
    """
    found: list[Fold] = []
    there = np.ones(len(outcomes), dtype=bool) if among is None else among
    if not there.any():
        return found
    submitted, ended = moments.submitted, moments.ended
    cuts = [*np.quantile(submitted[there], CUTS), np.inf]
    for cut, until in pairwise(cuts):
        learn = np.flatnonzero(there & (ended < cut) & (submitted < cut))
        judge = np.flatnonzero(there & (submitted >= cut) & (submitted < until))
        judge = judge[np.argsort(submitted[judge], kind="stable")]
        both = len(np.unique(outcomes[learn])) == 2 and len(np.unique(outcomes[judge])) == 2
        if both and len(judge) >= FEWEST_JUDGED:
            found.append(Fold(learn, judge))
    return found
