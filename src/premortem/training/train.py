"""Training for use: search, judge by the latest jobs, then learn from all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from premortem.errors import InvalidInput
from premortem.features.catalogue import CATALOGUE, Family, feature_set
from premortem.features.facts import Facts, facts_of, has_values
from premortem.features.points import START, SUBMIT, Point, running
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.jobs.samples import has_samples
from premortem.jobs.usage import core_hours
from premortem.models.engines import engine
from premortem.models.port import Array, Moments
from premortem.prediction.model import Booster, Model, PointModel, Trees, columns_of
from premortem.prediction.predict import risk_as_told
from premortem.training.causes import cause_models, likely_causes
from premortem.training.families import fitting_family
from premortem.training.imbalance import Imbalance, require_smote
from premortem.training.kinds import kinds_of
from premortem.training.ray_tuning import require_ray
from premortem.training.splits import splits, validation
from premortem.training.thresholds import (
    OutOfReach,
    Trade,
    chosen,
    parsed_rule,
    trade_of,
)
from premortem.training.tuned import AUTO, CUTS, FEWEST_JUDGED, TunedTrees, time_folds
from premortem.training.tuning import Budget, Search, Trial, require_journal

TRAINED_POINTS = (SUBMIT, START, running(120))
# The latest jobs judge what was learned from those before; then all are learned from.
JUDGED_SHARE = 0.15
# With fewer to learn from, too few are left to search, calibrate and choose a threshold by.
FEWEST_JOBS = round(FEWEST_JUDGED / (1 - CUTS[-1]))
FEWEST_FAILURES = 20


@dataclass(frozen=True, slots=True)
class Options:
    """How to train; `rule` chooses the threshold, as `thresholds.chosen` reads it.

    `engine` grows the trees; `auto` is whichever of those installed proves best, point by point.
    With `on`, the search runs on Ray: `ray` for this machine, or the `ray://` address of another.
    With `profiles`, the trees also look at which profile a job is of. Without a `family`, it is
    chosen by what the jobs can fill.
    """

    engine: str = "xgboost"
    budget: Budget = Budget()
    imbalance: Imbalance = Imbalance.NONE
    family: Family | None = None
    rule: str = "f1"
    seed: int = 0
    on: str | None = None
    profiles: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """The latest jobs, none of which was learned from: their rows, risk and outcome.

    `jobs` are their places in the labelled frame, `names` those of the rows' columns. `threshold`
    is the one chosen before they came.
    `named` is the way in which each would most likely fail, "" where ways were not told apart.
    `trade` is what the threshold was chosen from.
    """

    jobs: Array
    names: Sequence[str] = field(repr=False)
    values: Array = field(repr=False)
    outcomes: Array
    risk: Array
    threshold: float
    learned_from: int
    named: Sequence[str] = field(default=(), repr=False)
    trade: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TrainedPoint:
    """The model of one point, how it was found, and how the latest jobs judged its like.

    `learned_from` are the jobs it learned from in the end, those that judged among them. `note`
    tells why its threshold is not by the rule that was asked for.
    """

    model: PointModel
    search: Search
    judged: Judged
    learned_from: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Training:
    """Everything of one training; `left_out` tells why a point has no model.

    `notes` tell what else is not as one might have expected.
    """

    model: Model
    points: Mapping[str, TrainedPoint]
    left_out: Mapping[str, str]
    labelled: pl.DataFrame
    interrupted: bool = False
    notes: tuple[str, ...] = ()


def train(
    jobs: pl.DataFrame,
    *,
    points: Sequence[Point] = TRAINED_POINTS,
    policy: LabelPolicy = LabelPolicy(),
    options: Options = Options(),
    zone: str = "UTC",
    journal: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
    tried: Callable[[Point, Trial], None] = lambda _point, _trial: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Training:
    """Train a model for each point that has enough jobs; none at all is an error.

    When it is `stopped`, the search of the point at hand ends and what it found is used; points
    whose search has not begun are left out. If no point is left, `KeyboardInterrupt` is raised.
    `journal` keeps the trials, so that the same training goes on from there.
    """
    if journal and options.on:
        raise InvalidInput("a search on Ray keeps no journal: leave one of the two out")
    for point in points:
        if point.leaks:
            raise InvalidInput(f"{point} is for comparison only; nothing can be trained for it")
    parsed_rule(options.rule)
    _require_installed(options)
    if journal:
        require_journal(journal)
    fitting = fitting_family(jobs, points, options.family)
    labelled = policy.label(jobs)
    site = _Site(labelled, facts_of(labelled, zone=zone), zone, fitting.family)
    trained: dict[str, TrainedPoint] = {}
    left_out: dict[str, str] = {}
    interrupted = False
    for point in points:
        try:
            trained[point.name] = _train_point(
                site, point, options, journal, progress, partial(tried, point), stopped
            )
            interrupted |= trained[point.name].search.interrupted
        except _TooFew as error:
            left_out[point.name] = str(error)
        except _Stopped:
            left_out[point.name] = "the training was interrupted before its search"
            interrupted = True
    if interrupted and not trained:
        raise KeyboardInterrupt
    if not trained:
        told = "; ".join(f"{point}: {why}" for point, why in left_out.items())
        raise InvalidInput(f"nothing can be trained: {told}")
    model = Model(
        {name: one.model for name, one in trained.items()}, fitting.family, zone,
        policy.as_dict(), float(site.facts.submitted[_counted(site.facts)].max()),
    )  # fmt: skip
    notes = [f"{point}: {one.note}" for point, one in trained.items() if one.note]
    return Training(model, trained, left_out, labelled, interrupted, (*fitting.notes(), *notes))


def _require_installed(options: Options) -> None:
    """Tell of an extra that is not installed now, and not after the features of a long history."""
    if options.engine != AUTO:
        engine(options.engine)
    if options.imbalance is Imbalance.SMOTE:
        require_smote()
    if options.on:
        require_ray()


class _TooFew(Exception):
    """Why a point cannot be trained."""


@contextmanager
def _lacks_told() -> Iterator[None]:
    """What the jobs of one point do not allow is no reason to give up the other points."""
    try:
        yield
    except InvalidInput as error:
        raise _TooFew(str(error)) from error


class _Stopped(Exception):
    """The training was stopped before there was anything of a point to keep."""


@dataclass(frozen=True, slots=True)
class _Site:
    """All jobs of a site, with what the points share."""

    labelled: pl.DataFrame
    facts: Facts
    zone: str
    family: Family


def _counted(facts: Facts) -> Array:
    """Which jobs can be learned from."""
    counted: Array = ~np.isnan(facts.outcomes) & ~np.isnan(facts.ended)
    return counted


def _train_point(
    site: _Site,
    point: Point,
    options: Options,
    journal: Path | None,
    progress: Callable[[str], None],
    tried: Callable[[Trial], None],
    stopped: Callable[[], bool],
) -> TrainedPoint:
    if stopped():
        raise _Stopped
    progress(f"{point}: features")
    features = feature_set(point, site.family)
    counted = _counted(site.facts)
    told = has_values(site.facts, sampled=has_samples(site.labelled))
    places = [place for place in features.places if told[place]]
    rows = Replay(site.zone).rows(
        site.labelled, point, only=counted, columns=places, facts=site.facts
    )
    who, values = rows.jobs, rows.values
    outcomes = site.facts.outcomes[who]
    moments = Moments(site.facts.submitted[who], site.facts.ended[who])
    if not len(who):
        wanted = f"{point.reached} and has ended" if point.reached else "has ended"
        raise _TooFew(f"not one of the {site.labelled.height:,} jobs {wanted}")
    (split,) = splits(moments.submitted, quantile=1 - JUDGED_SHARE)
    before, after = split.training(moments.submitted, moments.ended), split.test(moments.submitted)
    _require_enough(site, point, outcomes, before)
    if not time_folds(outcomes, moments, before):
        raise _TooFew(
            f"no later part of the {before.sum():,} jobs to learn from has {FEWEST_JUDGED} of both "
            "outcomes, to calibrate and choose a threshold by: a longer history is needed"
        )
    names, kinds = [CATALOGUE[place].name for place in places], None
    if options.profiles:
        progress(f"{point}: profiles")
        with _lacks_told():
            profiles, kinds = kinds_of(
                values, names, before, site.labelled[who[before]],
                point=point, family=site.family, seed=options.seed,
            )  # fmt: skip
        values = np.hstack([values, profiles])
        names += kinds.columns

    if stopped():
        raise _Stopped
    progress(f"{point}: search")
    earlier = TunedTrees(
        engine=options.engine, budget=options.budget, imbalance=options.imbalance,
        seed=options.seed, on=options.on, journal=journal, name=point.name, progress=tried,
        stopped=stopped,
    )  # fmt: skip
    with _lacks_told():
        earlier.fit(values, outcomes, moments, among=before)
    spent = site.labelled.select(core_hours()).to_series().to_numpy()[who]
    threshold = _threshold(earlier, outcomes, spent, options)
    cause_of = site.labelled["cause"].gather(who)

    def causes_by(learned: Array) -> dict[str, Trees]:
        failed = learned & (outcomes == 1)
        return cause_models(
            values[failed],
            cause_of.filter(pl.Series(failed)).to_list(),
            validation(moments.ended[failed]),
            names,
            engine=earlier.search.best[0].engine,
            seed=options.seed,
        )

    foretold = risk_as_told(
        earlier.risk(values[after]), site.facts, who[after], rows.moments[after]
    )
    judged = Judged(
        who[after], names, values[after], outcomes[after], foretold, threshold.value,
        int(before.sum()), likely_causes(causes_by(before), values[after], names),
        threshold.trade.as_dict(),
    )  # fmt: skip

    progress(f"{point}: final training")
    final = TunedTrees(
        recipes=earlier.search.best, imbalance=options.imbalance,
        seed=options.seed,
    )  # fmt: skip
    final.fit(values, outcomes, moments)
    if len(final.validation[0]):
        threshold = _threshold(final, outcomes, spent, options)
    causes = causes_by(np.ones(len(who), dtype=bool))
    trees = Trees(
        tuple(Booster(part.engine, part.dump()) for part in final.trees.parts),
        columns_of(names, final.trees.used),
        final.calibration,
    )
    model = PointModel(
        point, features.fingerprint, trees, threshold.value, threshold.rule, causes,
        threshold.trade.as_dict(),
        {recipe.engine: recipe.parameters.as_dict() for recipe in earlier.search.best},
        kinds,
    )  # fmt: skip
    return TrainedPoint(model, earlier.search, judged, len(who), threshold.note)


def _require_enough(site: _Site, point: Point, outcomes: Array, before: Array) -> None:
    learned, failed = int(before.sum()), int(outcomes[before].sum())
    for count, least, what in (
        (learned, FEWEST_JOBS, "jobs"),
        (failed, FEWEST_FAILURES, "failed jobs"),
        (learned - failed, FEWEST_FAILURES, "completed jobs"),
    ):
        if count < least:
            reached = f"reached {point} and " if point.reached else ""
            raise _TooFew(
                f"{count} {what} to learn from, and {least} are needed: of "
                f"{site.labelled.height:,} jobs, {len(outcomes):,} {reached}completed or failed, "
                f"and {learned:,} of these had ended before the latest {JUDGED_SHARE * 100:.0f} %, "
                "which judge, were submitted"
            )


@dataclass(frozen=True, slots=True)
class _Threshold:
    """A threshold, the rule it is by, and what each would catch and cost."""

    value: float
    rule: str
    trade: Trade
    note: str | None = None


def _threshold(
    model: TunedTrees, outcomes: Array, core_hours: Array, options: Options
) -> _Threshold:
    """The threshold by the rule, or by the nearest to it there is, on the jobs that calibrated."""
    places, risk = model.validation
    calibrated = model.calibration.apply(risk)
    trade = trade_of(outcomes[places], calibrated, core_hours[places])
    try:
        value = chosen(trade, options.rule)
    except OutOfReach as error:
        nearest = error.nearest
        return _Threshold(chosen(trade, nearest), nearest, trade, f"{error}: {nearest} was taken")
    return _Threshold(value, options.rule, trade)
