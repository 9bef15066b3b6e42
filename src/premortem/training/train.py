"""Training for use: search, judge by the latest jobs, then learn from all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from premortem.errors import InvalidInput
from premortem.features.catalogue import Family, feature_set
from premortem.features.facts import Facts, facts_of
from premortem.features.points import START, SUBMIT, Point, running
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.jobs.usage import core_hours
from premortem.models.port import Array, Moments
from premortem.prediction.model import Model, PointModel, Trees, columns_of
from premortem.training.benchmark import outcomes_of
from premortem.training.causes import cause_models
from premortem.training.imbalance import Imbalance
from premortem.training.splits import splits, validation
from premortem.training.thresholds import FALSE_ALARM_COST, chosen, trade_of
from premortem.training.tuned import TunedTrees
from premortem.training.tuning import Budget, Search, Trial

TRAINED_POINTS = (SUBMIT, START, running(120))
# The latest jobs judge what was learned from those before; then all are learned from.
JUDGED_SHARE = 0.15
FEWEST_JOBS = 200
FEWEST_FAILURES = 20


@dataclass(frozen=True, slots=True)
class Options:
    """How to train; `rule` chooses the threshold, as `thresholds.chosen` reads it.

    With `on`, the search runs on Ray: `ray` for this machine, or the `ray://` address of another.
    """

    engine: str = "xgboost"
    budget: Budget = Budget()
    imbalance: Imbalance = Imbalance.NONE
    family: Family = Family.GENERIC
    rule: str = "f1"
    false_alarm_cost: float = FALSE_ALARM_COST
    seed: int = 0
    on: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The latest jobs, none of which was learned from: their rows, risk and outcome.

    `jobs` are their places in the labelled frame. `threshold` is the one chosen before they came.
    """

    jobs: Array
    values: Array = field(repr=False)
    outcomes: Array
    risk: Array
    threshold: float
    learned_from: int


@dataclass(frozen=True, slots=True)
class TrainedPoint:
    """The model of one point, how it was found, and how the latest jobs judged its like."""

    model: PointModel
    search: Search
    judged: Judged


@dataclass(frozen=True, slots=True)
class Training:
    """Everything of one training; `left_out` tells why a point has no model."""

    model: Model
    points: Mapping[str, TrainedPoint]
    left_out: Mapping[str, str]
    labelled: pl.DataFrame
    interrupted: bool = False


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
) -> Training:
    """Train a model for each point that has enough jobs; none at all is an error.

    An interruption ends the search of the point at hand: what it found is used, and points not yet
    begun are left out. `journal` keeps the trials, so that the same training goes on from there.
    """
    labelled = policy.label(jobs)
    site = _Site(labelled, facts_of(labelled, zone=zone), outcomes_of(labelled), zone)
    trained: dict[str, TrainedPoint] = {}
    left_out: dict[str, str] = {}
    interrupted = False
    for point in points:
        if point.leaks:
            raise InvalidInput(f"{point} is for comparison only; nothing can be trained for it")
        if interrupted:
            left_out[point.name] = "the training was interrupted before it"
            continue
        progress(f"{point}: features")
        try:
            trained[point.name] = _train_point(
                site, point, options, journal, progress, partial(tried, point)
            )
        except _TooFew as error:
            left_out[point.name] = str(error)
            continue
        interrupted = trained[point.name].search.interrupted
    if not trained:
        told = "; ".join(f"{point}: {why}" for point, why in left_out.items())
        raise InvalidInput(f"nothing can be trained: {told}")
    model = Model(
        {name: one.model for name, one in trained.items()}, options.family, zone,
        policy.as_dict(),
    )  # fmt: skip
    return Training(model, trained, left_out, labelled, interrupted)


class _TooFew(Exception):
    """Why a point cannot be trained."""


@dataclass(frozen=True, slots=True)
class _Site:
    """All jobs of a site, with what the points share."""

    labelled: pl.DataFrame
    facts: Facts
    outcomes: Array
    zone: str


def _train_point(
    site: _Site,
    point: Point,
    options: Options,
    journal: Path | None,
    progress: Callable[[str], None],
    tried: Callable[[Trial], None],
) -> TrainedPoint:
    features = feature_set(point, options.family)
    rows = Replay(site.zone).rows(site.labelled, point, columns=features.places)
    counted = ~np.isnan(site.outcomes[rows.jobs]) & ~np.isnan(site.facts.ended[rows.jobs])
    who = rows.jobs[counted]
    values = rows.values if counted.all() else rows.values[counted]
    outcomes = site.outcomes[who]
    moments = Moments(site.facts.submitted[who], site.facts.ended[who])
    if not len(who):
        raise _TooFew("there are no jobs")
    (split,) = splits(moments.submitted, quantile=1 - JUDGED_SHARE)
    before, after = split.training(moments.submitted, moments.ended), split.test(moments.submitted)
    _require_enough(outcomes[before])

    progress(f"{point}: search")
    earlier = TunedTrees(
        engine=options.engine, budget=options.budget, imbalance=options.imbalance,
        seed=options.seed, on=options.on, journal=journal, name=point.name, progress=tried,
    )  # fmt: skip
    earlier.fit(
        values[before], outcomes[before], Moments(moments.submitted[before], moments.ended[before])
    )
    spent = site.labelled.select(core_hours()).to_series().to_numpy()[who]
    threshold, _ = _threshold(earlier, outcomes[before], spent[before], options)
    judged = Judged(
        who[after], values[after], outcomes[after], earlier.risk(values[after]), threshold,
        int(before.sum()),
    )  # fmt: skip

    progress(f"{point}: final training")
    final = TunedTrees(
        engine=options.engine, parameters=earlier.search.best, imbalance=options.imbalance,
        seed=options.seed,
    )  # fmt: skip
    final.fit(values, outcomes, moments)
    threshold, trade = _threshold(final, outcomes, spent, options)
    failed = outcomes == 1
    causes = cause_models(
        values[failed],
        site.labelled["cause"].gather(who[failed]).to_list(),
        validation(moments.ended[failed]),
        features.names,
        engine=options.engine,
        seed=options.seed,
    )
    trees = Trees(
        options.engine, columns_of(features.names, final.trees.used), final.trees.dump(),
        final.calibration,
    )  # fmt: skip
    model = PointModel(
        point, features.fingerprint, trees, threshold, options.rule, causes, trade,
        earlier.search.best.as_dict(),
    )  # fmt: skip
    return TrainedPoint(model, earlier.search, judged)


def _require_enough(outcomes: Array) -> None:
    failed = int(outcomes.sum())
    for count, least, what in (
        (len(outcomes), FEWEST_JOBS, "jobs"),
        (failed, FEWEST_FAILURES, "failed jobs"),
        (len(outcomes) - failed, FEWEST_FAILURES, "completed jobs"),
    ):
        if count < least:
            raise _TooFew(f"{count} {what} to learn from, and {least} are needed")


def _threshold(
    model: TunedTrees, outcomes: Array, core_hours: Array, options: Options
) -> tuple[float, dict[str, Any]]:
    """The threshold by the rule, and what each would cost, on the jobs that calibrated."""
    places, risk = model.validation
    if not len(places):
        return 0.5, {}
    calibrated = model.calibration.apply(risk)
    trade = trade_of(outcomes[places], calibrated, core_hours[places])
    return chosen(trade, options.rule, false_alarm=options.false_alarm_cost), trade.as_dict()
