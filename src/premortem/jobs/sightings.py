"""How several sightings of one job become one record.

A job is seen more than once: pending, running, ended, from a dump and over the API. The record is
the fold of its sightings, and the rule follows from when a field becomes known:

- known at submit: the first value seen stays (Slurm shows limits as last amended, not as asked);
- known while running: the largest value stays (these are counters);
- known at start or end: the value of the sighting in which the job had come furthest; among
  equals, of the latest;
- state and reason: together from that sighting, so a late PENDING cannot undo a COMPLETED.

An absent value never replaces a present one. Sightings that agree give the same record in any
order, and seeing the same thing twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from premortem.jobs.fields import BY_NAME, KEY, PROVENANCE, Group, KnownAt
from premortem.jobs.frame import SCHEMA
from premortem.jobs.states import STATES

# These two belong together: the reason is the reason for that state.
_VERDICT = ("state", "reason")


def fold(sightings: pl.DataFrame) -> pl.DataFrame:
    """One record for each job, from sightings in their order of arrival.

    The records come in the order in which their jobs were first seen.
    """
    if sightings.select(pl.struct(KEY).is_unique().all()).item():
        return sightings
    ranked = sightings.with_columns(_progress=_progress(sightings))
    best_first = ["_progress", *(["seen_at"] if "seen_at" in sightings.columns else [])]
    return (
        ranked.group_by(KEY, maintain_order=True)
        .agg(_chosen(name, best_first) for name in sightings.columns if name not in KEY)
        .select(sightings.columns)
    )


def with_verdict(sightings: pl.DataFrame) -> pl.DataFrame:
    """The sightings with the columns that decide between them, empty where they had none.

    Needed before sightings of different columns are put under each other.
    """
    names = (*_VERDICT, "seen_at")
    return sightings.with_columns(
        pl.lit(None).cast(SCHEMA[name]).alias(name)
        for name in names
        if name not in sightings.columns
    )


def tells_more(records: pl.DataFrame, sightings: pl.DataFrame) -> pl.Series:
    """Whether each sighting has anything its record lacks or has otherwise; a cheap first look.

    Both frames list the same jobs in the same order with the same columns. Most sightings of a
    second load tell nothing, and need not be folded.
    """
    return _any_column(records, sightings, lambda old, new: new.is_not_null() & old.ne_missing(new))


def differ(before: pl.DataFrame, after: pl.DataFrame) -> pl.Series:
    """Whether each record says more or other than before; both frames list the same jobs in order.

    Provenance alone is not a difference: to hear the same thing again is not news.
    """
    return _any_column(before, after, lambda old, new: old.ne_missing(new))


def _any_column(
    before: pl.DataFrame, after: pl.DataFrame, test: Callable[[pl.Expr, pl.Expr], pl.Expr]
) -> pl.Series:
    names = [name for name in before.columns if name not in KEY and name not in PROVENANCE]
    if not names:
        return pl.repeat(False, before.height, dtype=pl.Boolean, eager=True)
    both = pl.concat(
        [before.select(names), after.select(names).rename(lambda name: f"{name}:after")],
        how="horizontal",
    )
    tests = [test(pl.col(name), pl.col(f"{name}:after")) for name in names]
    return both.select(pl.any_horizontal(pl.lit(False), *tests).alias("any")).to_series()


def _progress(sightings: pl.DataFrame) -> pl.Expr:
    if "state" not in sightings.columns:
        return pl.lit(-1)
    ranks = {state: int(progress) for state, progress in STATES.items()}
    return pl.col("state").replace_strict(ranks, default=-1, return_dtype=pl.Int8)


def _chosen(name: str, best_first: list[str]) -> pl.Expr:
    """The value of one field over a job's sightings; a stable sort keeps the first among equals."""
    field = BY_NAME[name]
    value = pl.col(name)
    if field.group is not Group.PROVENANCE and field.known is KnownAt.SUBMIT:
        return value.drop_nulls().first()
    if field.known is KnownAt.RUNNING:
        return value.max()
    ordered = value.sort_by(best_first, descending=True, nulls_last=True, maintain_order=True)
    return ordered.first() if name in _VERDICT else ordered.drop_nulls().first()
