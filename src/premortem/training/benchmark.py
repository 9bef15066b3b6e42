"""How well failure is predicted in a log, point by point, by a model and by what it has to beat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from premortem.errors import InvalidInput
from premortem.features.catalogue import Family, feature_set
from premortem.features.facts import Facts, facts_of
from premortem.features.points import DEFAULT_POINTS, SUBMIT, Point
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.models.boosted import BoostedTrees
from premortem.models.engines import ENGINES, engine
from premortem.models.parameters import BOLD, LIBRARY, TreeParameters
from premortem.models.port import Array, Classifier, Moments
from premortem.prediction.predict import risk_as_told
from premortem.training import metrics
from premortem.training.baselines import BASELINES, OnColumns, baselines
from premortem.training.hindsight import hindsight
from premortem.training.imbalance import Balanced, Imbalance, require_smote
from premortem.training.metrics import Decided
from premortem.training.splits import Split, splits, validation
from premortem.training.tuned import AUTO, TunedTrees
from premortem.training.tuning import USUAL_TRIALS, Budget

MODEL = "xgboost"
# What can be judged, and what is unless something else is asked for.
TUNED = "tuned"
UNTUNED = "untuned"
CONTENDERS = (*ENGINES, UNTUNED, TUNED, AUTO, *BASELINES)
USUAL = (MODEL, *BASELINES)
# With fewer jobs to judge by, or to learn from, a number would say nothing.
FEWEST_JOBS = 20


@dataclass(frozen=True, slots=True)
class PointResult:
    """How one model did at one point; or, in `message`, why there is nothing to tell.

    `precision` to `accuracy` are at a risk of 0.5, as are those of the completed jobs in
    `completed`; `at_threshold` at the threshold chosen on the last training jobs to end, or on what
    the fold before foretold. `fold` is None for the whole test: with several folds, all of their
    jobs together, each by the model of its fold; the threshold then differs from fold to fold and
    is None. `fit_seconds` is the time of the final
    training. `leaks` marks results that use what only the end of a job tells. `curve` holds points
    (recall, precision).
    """

    point: str
    model: str
    jobs: int
    train_jobs: int
    failure_share: float | None = None
    auc: float | None = None
    average_precision: float | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    accuracy: float | None = None
    completed: Decided = Decided()
    threshold: float | None = None
    at_threshold: Decided = Decided()
    ece: float | None = None
    fit_seconds: float | None = None
    score_seconds: float | None = None
    fold: int | None = None
    leaks: bool = False
    message: str | None = None
    curve: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the curve, as plain values."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "curve"}
        return {
            **found,
            "completed": asdict(self.completed),
            "at_threshold": asdict(self.at_threshold),
        }


def benchmark_log(
    jobs: pl.DataFrame,
    *,
    points: Sequence[Point] = DEFAULT_POINTS,
    policy: LabelPolicy = LabelPolicy(),
    seed: int = 0,
    folds: int = 1,
    family: Family = Family.GENERIC,
    without: Sequence[str] = (),
    zone: str = "UTC",
    quantile: float | None = None,
    trees: int = 400,
    models: Sequence[str] | None = None,
    imbalance: Sequence[Imbalance] = (),
    trials: int = USUAL_TRIALS,
    progress: Callable[[str], None] = lambda _: None,
) -> list[PointResult]:
    """The results for one log's jobs, whatever their order; leaking points come last.

    A point that cannot be judged gives one result with a message, and the others are not affected.
    `zone` is the site's, `quantile` where the cut (the first, with folds) is among the times of
    submission. `without` names chapters and fields whose features are left out, see `feature_set`.
    `models` are the names of those of `CONTENDERS` to judge, `USUAL` unless given;
    `tuned` searches for its parameters, in so many `trials`, `auto` for its engines, too; `untuned`
    has XGBoost's own, but for the number of trees. With
    `imbalance` the default model is also judged by each of these strategies.
    `progress` is told what is being done.
    """
    unknown = sorted(set(models or ()) - set(CONTENDERS))
    if unknown:
        raise InvalidInput(
            f"no such model: {', '.join(unknown)}; there are {', '.join(CONTENDERS)}"
        )
    for name in set(models or ()) & set(ENGINES):
        engine(name)
    if Imbalance.SMOTE in imbalance:
        require_smote()
    labelled = policy.label(jobs)
    facts = facts_of(labelled, zone=zone)
    outcomes = facts.outcomes
    cuts = splits(facts.submitted, folds=folds, quantile=quantile)
    results: list[PointResult] = []
    for point in sorted(dict.fromkeys(points), key=lambda point: point.leaks):
        progress(f"{point}: features")
        rows = Replay(zone).rows(labelled, SUBMIT if point.leaks else point, facts=facts)
        counted = ~np.isnan(outcomes[rows.jobs]) & ~np.isnan(facts.ended[rows.jobs])
        who = rows.jobs[counted]
        features = feature_set(SUBMIT if point.leaks else point, family, without=without)
        values = rows.values if counted.all() else rows.values[counted]
        contenders: dict[str, Classifier]
        if point.leaks:
            own = [
                place
                for place, feature in zip(features.places, features.features, strict=True)
                if feature.personal or feature.chapter != "history"
            ]
            values = np.hstack([values[:, own], hindsight(labelled)[who]])
            contenders = {MODEL: _bold_trees(trees, seed)}
        else:
            contenders = {
                name: OnColumns(_trees(trees, seed, name), features.places) for name in ENGINES
            }
            plain = BoostedTrees(replace(LIBRARY, rounds=trees), seed=seed)
            contenders[UNTUNED] = OnColumns(plain, features.places)
            for name, kind in ((TUNED, MODEL), (AUTO, AUTO)):
                tuned = TunedTrees(engine=kind, budget=Budget(trials), seed=seed)
                contenders[name] = OnColumns(tuned, features.places)
            contenders |= baselines(features, lambda: _trees(trees, seed))
            contenders = {n: c for n, c in contenders.items() if n in (models or USUAL)}
            for strategy in imbalance:
                learner = Balanced(strategy, lambda: _trees(trees, seed), seed=seed)
                contenders[f"{MODEL}+{strategy}"] = OnColumns(learner, features.places)
        population = _Population(
            point, values, outcomes[who], facts.submitted[who], facts.ended[who],
            rows.moments[counted], facts, who,
        )  # fmt: skip
        results += _judged(population, cuts, contenders, progress)
    return results


def _trees(trees: int, seed: int, kind: str = MODEL) -> BoostedTrees:
    return BoostedTrees(TreeParameters(rounds=trees), engine=kind, seed=seed)


def _bold_trees(trees: int, seed: int) -> BoostedTrees:
    """For hindsight: how a run that is over relates to its end does not change with time."""
    return BoostedTrees(replace(BOLD, rounds=trees), seed=seed)


@dataclass(frozen=True, slots=True)
class _Population:
    """The jobs of a point whose outcome counts, with their rows; `places` are theirs in `facts`."""

    point: Point
    values: Array
    outcomes: Array
    submitted: Array
    ended: Array
    moments: Array
    facts: Facts
    places: Array


@dataclass(frozen=True, slots=True)
class _Scored:
    """What one model said of the test jobs of one fold, and what became of them."""

    outcomes: Array
    risk: Array
    ended: Array
    threshold: float | None
    train_jobs: int
    fit_seconds: float
    score_seconds: float


def _judged(
    population: _Population,
    cuts: Sequence[Split],
    contenders: dict[str, Classifier],
    progress: Callable[[str], None],
) -> Iterator[PointResult]:
    point = population.point
    if not cuts or not len(population.outcomes):
        why = f": none {point.reached}" if point.reached else ""
        nothing = f"the log has no jobs to judge at {point}{why}"
        yield PointResult(point.name, MODEL, 0, 0, leaks=point.leaks, message=nothing)
        return
    scored: dict[str, list[_Scored]] = {name: [] for name in contenders}
    by_fold: list[PointResult] = []
    for split in cuts:
        training = split.training(population.submitted, population.ended)
        test = split.test(population.submitted)
        message = _unfit(population.outcomes[training], population.outcomes[test])
        if message:
            jobs, learned = int(test.sum()), int(training.sum())
            by_fold.append(
                PointResult(point.name, MODEL, jobs, learned, fold=split.fold,
                            leaks=point.leaks, message=message)
            )  # fmt: skip
            continue
        for name, contender in contenders.items():
            fold = f", fold {split.fold}" if split.fold else ""
            progress(f"{point}: {name}{fold}")
            before = scored[name][-1] if scored[name] else None
            try:
                found = _scored(contender, population, split, before)
            except InvalidInput as error:
                by_fold.append(
                    PointResult(point.name, name, int(test.sum()), int(training.sum()),
                                fold=split.fold, leaks=point.leaks, message=str(error))
                )  # fmt: skip
                continue
            scored[name].append(found)
            if split.fold:
                by_fold.append(_result(point, name, [found], split.fold))
    yield from (_result(point, name, found) for name, found in scored.items() if found)
    yield from by_fold


def _unfit(training: Array, test: Array) -> str | None:
    """Why a fold cannot be judged, if so."""
    if len(test) < FEWEST_JOBS:
        return f"too few jobs were submitted after the cut: {len(test)}, not {FEWEST_JOBS}"
    if len(training) < FEWEST_JOBS:
        return f"too few jobs had ended before the cut: {len(training)}, not {FEWEST_JOBS}"
    for outcomes, which in ((test, "submitted after the cut"), (training, "to learn from")):
        if not outcomes.any():
            return f"none of the {len(outcomes)} jobs {which} failed"
        if outcomes.all():
            return f"all of the {len(outcomes)} jobs {which} failed"
    return None


def _scored(
    model: Classifier, population: _Population, split: Split, before: _Scored | None
) -> _Scored:
    """The model trained for one fold, `before` being what it said in the fold before."""
    training = split.training(population.submitted, population.ended)
    test = split.test(population.submitted)
    values, outcomes = population.values[training], population.outcomes[training]
    moments = Moments(population.submitted[training], population.ended[training])
    threshold: float | None = 0.5
    if not population.point.leaks:
        threshold = _known_threshold(before, split) if before else None
        if threshold is None and not _judges_itself(model):
            threshold = _threshold(model, values, outcomes, moments)
    begun = perf_counter()
    model.fit(values, outcomes, moments)
    if threshold is None and isinstance(model, OnColumns) and model.judged:
        threshold = metrics.best_f1_threshold(*model.judged)
    fitted = perf_counter()
    risk = model.risk(population.values[test])
    if _judges_itself(model):
        # As it is used: every risk corrected by what was known of other jobs at its moment.
        risk = risk_as_told(
            risk, population.facts, population.places[test], population.moments[test]
        )
    done = perf_counter()
    return _Scored(
        population.outcomes[test], risk, population.ended[test], threshold, len(values),
        fitted - begun, done - fitted,
    )  # fmt: skip


def _judges_itself(model: Classifier) -> bool:
    return isinstance(model, OnColumns) and isinstance(model.model, TunedTrees)


def _known_threshold(before: _Scored, split: Split) -> float | None:
    """The best threshold for what was foretold in the fold before and is known by the cut."""
    known = before.ended < split.cut
    if known.sum() < FEWEST_JOBS:
        return None
    return metrics.best_f1_threshold(before.outcomes[known], before.risk[known])


def _threshold(model: Classifier, values: Array, outcomes: Array, moments: Moments) -> float | None:
    """The best threshold for the last jobs to end, by a model that has not seen them."""
    last = validation(moments.ended)
    if len(np.unique(outcomes[~last])) < 2:
        return None
    earlier = Moments(moments.submitted[~last], moments.ended[~last])
    model.fit(values[~last], outcomes[~last], earlier)
    return metrics.best_f1_threshold(outcomes[last], model.risk(values[last]))


def _result(
    point: Point, model: str, found: Sequence[_Scored], fold: int | None = None
) -> PointResult:
    """The measures over the jobs of one fold, or of several together."""
    outcomes = np.concatenate([one.outcomes for one in found])
    risk = np.concatenate([one.risk for one in found])
    at_half = metrics.decided(outcomes, risk >= 0.5)
    at_threshold = Decided()
    thresholds = [one.threshold for one in found]
    if None not in thresholds:
        foretold = np.concatenate([one.risk >= one.threshold for one in found])
        at_threshold = metrics.decided(outcomes, foretold)
    return PointResult(
        point=point.name,
        model=model,
        jobs=len(outcomes),
        train_jobs=max(one.train_jobs for one in found),
        failure_share=float(outcomes.mean()),
        auc=metrics.auc(outcomes, risk),
        average_precision=metrics.average_precision(outcomes, risk),
        precision=at_half.precision,
        recall=at_half.recall,
        f1=at_half.f1,
        accuracy=at_half.accuracy,
        completed=metrics.decided(1 - outcomes, risk < 0.5),
        threshold=thresholds[0] if len(found) == 1 else None,
        at_threshold=at_threshold,
        ece=metrics.calibration_error(outcomes, risk),
        fit_seconds=sum(one.fit_seconds for one in found),
        score_seconds=sum(one.score_seconds for one in found),
        fold=fold,
        leaks=point.leaks,
        curve=metrics.precision_recall_curve(outcomes, risk),
    )
