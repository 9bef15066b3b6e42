"""The report of a training: what it learned from, and how the latest jobs judged it.

Plain values for JSON, None where a number is not defined. `apps/report_page.py` makes a page of it.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import polars as pl

from premortem.features.facts import Facts, facts_of
from premortem.features.points import Point
from premortem.jobs.outcomes import Outcome
from premortem.models.port import Array
from premortem.prediction.model import PointModel
from premortem.training import metrics
from premortem.training import report_figures as figures
from premortem.training import report_slices as slices
from premortem.training.importance import importance_of
from premortem.training.intervals import DRAWS, Draws
from premortem.training.judged_rows import JudgedRows
from premortem.training.report_scores import baseline_risks, decided_scores, scores_of
from premortem.training.train import TrainedPoint, Training

FORMAT = 2
_LIBRARIES = ("premortem", "xgboost-cpu", "lightgbm", "catboost", "polars", "numpy", "scikit-learn")


def report_of(
    training: Training,
    *,
    seed: int = 0,
    profiles: Mapping[str, Any] | None = None,
    correlation: Mapping[str, Any] | None = None,
    made: datetime | None = None,
) -> dict[str, Any]:
    """Everything to be told of a training; the same seed, the same intervals.

    `made` is the time now. The version is not known yet: it is given when this is registered.

    `profiles` is `ProfileFit.as_dict()` with the dicts of `describe` under `described`;
    `correlation` is `Correlations.as_dict()`. Both are taken over as they are.
    """
    facts = facts_of(training.labelled, zone=training.model.zone)
    report = {
        "format": FORMAT,
        "made": made and f"{made.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        "data": _data(training),
        "points": {
            name: _point(training, one, facts, seed) for name, one in training.points.items()
        },
        "left_out": training.left_out,
        "interrupted": training.interrupted,
        "profiles": profiles,
        "correlation": correlation,
    }
    found: dict[str, Any] = plain(report)
    return found


def judged_again(told: Mapping[str, Any], model: PointModel, threshold: float) -> dict[str, Any]:
    """What a report tells of a point, for a model with another threshold to use.

    `threshold` is the one that the judged jobs are warned from.
    """
    rows = JudgedRows.from_dict(told["rows"])
    draws = Draws(rows.users, rows.order, seed=told["intervals"]["seed"])
    found: dict[str, Any] = plain(
        {**told, **_in_use(model), **_decided(rows, draws, threshold, told["scores"])}
    )
    return found


def plain(value: Any) -> Any:
    """The same as values that JSON has; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def _data(training: Training) -> dict[str, Any]:
    """What was learned from, and how it was read."""
    jobs, model = training.labelled, training.model
    causes = jobs["cause"].drop_nulls().value_counts(name="jobs")
    return {
        **_period(jobs, model.zone),
        "jobs": jobs.height,
        "users": _count_users(jobs),
        "clusters": slices.column(jobs, "cluster").drop_nulls().n_unique(),
        "outcomes": {str(word): int((jobs["outcome"] == str(word)).sum()) for word in Outcome},
        "causes": dict(causes.sort("jobs", "cause", descending=[True, False]).iter_rows()),
        "labels": model.labels,
        "family": str(model.family),
        "zone": model.zone,
        "engines": sorted({name for one in model.points.values() for name in one.trees.engines}),
        "versions": _versions(),
    }


def _point(training: Training, one: TrainedPoint, facts: Facts, seed: int) -> dict[str, Any]:
    """How the model of one point did on the judged jobs, and what it is made of."""
    judged, model, zone = one.judged, one.model, training.model.zone
    outcomes, risk = judged.outcomes, judged.risk
    jobs = training.labelled[judged.jobs]
    names = list(judged.names)
    submitted = facts.submitted[judged.jobs]
    users, order = user_numbers(jobs), np.argsort(np.argsort(submitted, kind="stable"))
    draws = Draws(users, order, seed=seed)
    learned = _learned_outcomes(facts, model.point, before=submitted.min())
    rivals = baseline_risks(judged.values, names, float(learned.mean()))
    unit, times = slices.by_time(jobs["submit_time"], zone)
    ended = judged.values[:, names.index("user_ended")] if "user_ended" in names else None
    parts = {
        "activity": [] if ended is None else slices.by_activity(ended),
        "partition": slices.by_partition(jobs),
        "size": slices.by_size(jobs),
        "time": times,
    }
    causes = jobs["cause"].fill_null(slices.NOT_TOLD).to_list()
    rows = JudgedRows(outcomes, risk, users, order, parts, causes, judged.named)
    drawn = {"model": risk, **rivals}
    return {
        "learned_from": judged.learned_from,
        "judged": {
            **_period(jobs, zone),
            "jobs": len(outcomes),
            "failures": int((outcomes == 1).sum()),
            "users": _count_users(jobs),
        },
        "chosen_from": judged.trade,
        "intervals": {"drawn_by": draws.by, "draws": DRAWS, "seed": seed},
        "precision_recall": {
            name: metrics.precision_recall_curve(outcomes, told) for name, told in drawn.items()
        },
        "roc": {name: figures.roc_curve(outcomes, told) for name, told in drawn.items()},
        "histogram": figures.histogram(outcomes, risk),
        "calibration": figures.calibration_curve(outcomes, risk),
        "time_unit": unit,
        "importance": importance_of(model.trees, model.kinds),
        "search": {
            "trials": figures.search_history(one.search.trials),
            "best": dict(model.parameters),
            "interrupted": one.search.interrupted,
        },
        "rows": rows.as_dict(),
        **_in_use(model),
        **_decided(rows, draws, judged.threshold, scores_of(draws, outcomes, risk, rivals)),
    }


def _in_use(model: PointModel) -> dict[str, Any]:
    """The threshold of the model to be used, beside others."""
    return {
        "final_threshold": model.threshold,
        "rule": model.rule,
        "trade": figures.trade_table(model.trade, model.threshold),
    }


def _decided(
    rows: JudgedRows, draws: Draws, threshold: float, scores: Mapping[str, Any]
) -> dict[str, Any]:
    """What depends on the threshold that the judged jobs were warned from; the other scores too."""
    outcomes, risk = rows.outcomes, rows.risk
    at_threshold = decided_scores(draws, outcomes, risk >= threshold)
    return {
        "threshold": threshold,
        "scores": {**scores, "model": {**scores["model"], "at_threshold": at_threshold}},
        "confusion": figures.confusion(outcomes, risk, threshold),
        "slices": {
            kind: slices.slices_of(found, outcomes, risk, threshold)
            for kind, found in rows.parts.items()
        },
        "causes": slices.by_cause(rows.causes, outcomes, risk, threshold, rows.named),
    }


def user_numbers(jobs: pl.DataFrame) -> Array:
    """A number for the user of each job, -1 where it is not known; names are those of a cluster."""
    cluster = slices.column(jobs, "cluster").fill_null("")
    named = pl.DataFrame([cluster, slices.column(jobs, "user")]).select(
        pl.when(pl.col("user").is_not_null()).then(pl.struct("cluster", "user").rank("dense"))
    )
    return named.to_series().cast(pl.Int64).fill_null(0).to_numpy() - 1


def _count_users(jobs: pl.DataFrame) -> int:
    return len(set(user_numbers(jobs).tolist()) - {-1})


def _learned_outcomes(facts: Facts, point: Point, *, before: float) -> Array:
    """What became of the jobs in the point's population that had ended before."""
    outcomes = facts.outcomes
    learned = ~np.isnan(outcomes) & (facts.ended < before) & (facts.submitted < before)
    if point.after_start_s is not None:
        moment = facts.started + point.after_start_s
        learned &= ~np.isnan(moment)
        if point.after_start_s:
            learned &= facts.ended > moment
    return outcomes[learned]


def _period(jobs: pl.DataFrame, zone: str) -> dict[str, str | None]:
    """The minutes of the first and the last submission, by the site's clock."""
    times = slices.column(jobs, "submit_time").dt.convert_time_zone(zone)
    told = times.dt.strftime("%Y-%m-%d %H:%M")
    return {"from": told.min(), "until": told.max()}  # type: ignore[dict-item]


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name.removesuffix("-cpu")] = version(name)
        except PackageNotFoundError:
            continue
    return found
