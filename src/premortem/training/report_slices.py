"""How a model does on parts of the judged jobs: by user, partition, size, time and cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from premortem.jobs.frame import SCHEMA
from premortem.models.port import Array
from premortem.training import metrics
from premortem.training.profile_words import activity_word

# With fewer jobs, or jobs of one outcome only, a part has counts and no scores.
FEWEST_JOBS = 20
MOST_PARTITIONS = 12
NOT_TOLD = "not told"
# Up to so many CPUs each.
_SIZES = (1, 4, 16, 64, 256, 1024)
_ACTIVITIES = ("new", "infrequent", "frequent")
# The longest of these times is told by of which there are so many, if there are jobs for them.
_ENOUGH_PERIODS = 5
_HOUR_S, _DAY_S = 3600, 86_400
_PERIODS = (
    (30 * _DAY_S, "1mo", "month"), (7 * _DAY_S, "1w", "week"), (_DAY_S, "1d", "day"),
    (6 * _HOUR_S, "6h", "quarter of a day"), (_HOUR_S, "1h", "hour"), (600, "10m", "ten minutes"),
    (60, "1m", "minute"),
)  # fmt: skip

Part = tuple[str, Array]


def slice_of(name: str, outcomes: Array, risk: Array, threshold: float) -> dict[str, Any]:
    """One part: its jobs, failures and warnings, and the scores if there are enough of either.

    What is decided is so at the threshold. `mean_risk` tells how many failures were expected.
    """
    failures = int((outcomes == 1).sum())
    foretold = risk >= threshold
    scores = None
    if len(outcomes) >= FEWEST_JOBS and 0 < failures < len(outcomes):
        scores = {
            "average_precision": metrics.average_precision(outcomes, risk),
            "auc": metrics.auc(outcomes, risk),
            "ece": metrics.calibration_error(outcomes, risk),
            **asdict(metrics.decided(outcomes, foretold)),
        }
    return {
        "name": name,
        "jobs": len(outcomes),
        "failures": failures,
        "warnings": int(foretold.sum()),
        "caught": int((foretold & (outcomes == 1)).sum()),
        "mean_risk": float(risk.mean()) if len(risk) else None,
        "scores": scores,
    }


def slices_of(
    parts: Iterable[Part], outcomes: Array, risk: Array, threshold: float
) -> list[dict[str, Any]]:
    """The parts that have any jobs."""
    return [
        slice_of(name, outcomes[member], risk[member], threshold)
        for name, member in parts
        if member.any()
    ]


def by_activity(user_ended: Array) -> list[Part]:
    """How many of the user's jobs had ended by then; the words are those of the profiles."""
    told = pl.select(activity_word(pl.lit(pl.Series(user_ended)).cast(pl.Float64).fill_nan(None)))
    words = told.to_series().fill_null(NOT_TOLD).to_numpy()
    return [(word, words == word) for word in (*_ACTIVITIES, NOT_TOLD)]


def by_partition(jobs: pl.DataFrame) -> list[Part]:
    """The partitions with the most jobs, the others together, and jobs without one."""
    partition = column(jobs, "partition")
    counts = partition.drop_nulls().value_counts(name="jobs")
    names = counts.sort("jobs", "partition", descending=[True, False])["partition"]
    first, others = names[:MOST_PARTITIONS], names[MOST_PARTITIONS:]
    parts = [(name, (partition == name).fill_null(value=False).to_numpy()) for name in first]
    if len(others):
        rest = partition.is_in(others.implode()).fill_null(value=False)
        parts.append((f"{len(others)} others", rest.to_numpy()))
    return [*parts, (NOT_TOLD, partition.is_null().to_numpy())]


def by_size(jobs: pl.DataFrame) -> list[Part]:
    """CPUs asked for, or where that is not told, those given."""
    told = pl.DataFrame([column(jobs, name) for name in ("req_cpus", "alloc_cpus")])
    known = told.select(pl.coalesce("req_cpus", "alloc_cpus").cast(pl.Float64)).to_series()
    cpus = known.fill_null(float("nan")).to_numpy()
    parts = [(_size_name(0, _SIZES[0]), cpus <= _SIZES[0])]
    parts += [(_size_name(low, up), (cpus > low) & (cpus <= up)) for low, up in pairwise(_SIZES)]
    parts.append((f"over {_SIZES[-1]:,} CPUs", cpus > _SIZES[-1]))
    return [*parts, (NOT_TOLD, np.isnan(cpus))]


def _size_name(low: int, up: int) -> str:
    if up == 1:
        return "1 CPU"
    return f"{low + 1:,} to {up:,} CPUs"


def by_time(submitted: pl.Series, zone: str) -> tuple[str, list[Part]]:
    """Minutes to months of submission by the site's clock, as the time they span suggests."""
    if not len(submitted):
        return "day", []
    # Without its zone: some clocks skip midnight, and days begin there all the same.
    local = submitted.dt.convert_time_zone(zone).dt.replace_time_zone(None)
    seconds = submitted.dt.epoch("s").to_numpy()
    wanted = min(max(len(submitted) // FEWEST_JOBS, 1), _ENOUGH_PERIODS)
    longest = (seconds.max() - seconds.min()) / wanted
    long, every, unit = next((one for one in _PERIODS if one[0] <= longest), _PERIODS[-1])
    name = "%Y-%m" if unit == "month" else "%Y-%m-%d" if long >= _DAY_S else "%Y-%m-%d %H:%M"
    names = local.dt.truncate(every).dt.strftime(name).to_numpy()
    return unit, [(name, names == name) for name in sorted(set(names))]


def by_cause(
    causes: Sequence[str], outcomes: Array, risk: Array, threshold: float, named: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Of the jobs that failed in each way, how many were warned of; the most frequent way first.

    `named` is the way thought most likely for each job: `right` counts those that were.
    """
    told = np.array(causes, dtype=object)
    failed, foretold = outcomes == 1, risk >= threshold
    right = np.array(named) == told if any(named) else None
    found = []
    for cause in sorted(set(told[failed])):
        member = failed & (told == cause)
        jobs, caught = int(member.sum()), int((member & foretold).sum())
        found.append(
            {
                "cause": cause,
                "jobs": jobs,
                "caught": caught,
                "recall": caught / jobs,
                "mean_risk": float(risk[member].mean()),
                "right": None if right is None else int((member & right).sum()),
            }
        )
    return sorted(found, key=lambda one: -one["jobs"])


def column(jobs: pl.DataFrame, name: str) -> pl.Series:
    """A field of all jobs; nulls if the log does not have it."""
    if name in jobs.columns:
        return jobs[name]
    return pl.Series(name, [None] * jobs.height, dtype=SCHEMA[name])
