"""How several sightings of one job become one record.

A job is seen more than once: pending, running, ended, from a dump and over the API. The record is
the fold of its sightings, and the rule follows from when a field becomes known:

- known at submit: the first value seen stays (Slurm shows limits as last amended, not as asked);
- known while running: the largest value stays (these are counters);
- known at start or end: the value of the sighting in which the job had come furthest; among
  equals, of the latest, and then the larger value, so that no order of arrival can decide;
- the reason: only from sightings in which the job had come as far as its state says, so that a
  late PENDING cannot undo a COMPLETED, nor leave its reason behind.

Fields that tell one thing together, such as a limit and that there is none, are completed only by
sightings that do not contradict the first.
An absent value never replaces a present one. Sightings that agree give the same record in any
order, and seeing the same thing twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from premortem.jobs.fields import BY_NAME, KEY, PROVENANCE, Group, KnownAt
from premortem.jobs.frame import SCHEMA
from premortem.jobs.states import STATES, UNFINISHED

# What decides between sightings, and what goes with it.
_VERDICT = ("state", "reason")

# Fields of which one is empty because another is filled.
_TOGETHER = (
    ("time_limit_s", "time_unlimited"),
    ("req_memory_per_node_mb", "req_memory_per_cpu_mb", "req_memory_mb"),
)


def fold(sightings: pl.DataFrame) -> pl.DataFrame:
    """One record for each job, from sightings in their order of arrival.

    The records come in the order in which their jobs were first seen.
    """
    if sightings.select(pl.struct(KEY).is_unique().all()).item():
        return sightings
    ranked = with_verdict(sightings).with_columns(_progress=_progress())
    return (
        ranked.group_by(KEY, maintain_order=True)
        .agg(_chosen(name, sightings.columns) for name in sightings.columns if name not in KEY)
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


def last_seen_later(before: pl.DataFrame, after: pl.DataFrame) -> pl.Series:
    """Whether each record that may still change was seen later than before, if only unchanged.

    What is loaded afterwards may have been seen in between: it must not count as the latest.
    """
    later = before["seen_at"].is_null() | (before["seen_at"] < after["seen_at"])
    return (later & before["state"].is_in(UNFINISHED)).fill_null(False)


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


def _progress() -> pl.Expr:
    ranks = {state: int(progress) for state, progress in STATES.items()}
    return pl.col("state").replace_strict(ranks, default=-1, return_dtype=pl.Int8)


def _agrees_with_first(value: pl.Expr) -> pl.Expr:
    return value.is_null() | (value == value.drop_nulls().first())


def _chosen(name: str, columns: Sequence[str]) -> pl.Expr:
    """The value of one field over the sightings of one job."""
    field = BY_NAME[name]
    value = pl.col(name)
    if field.group is not Group.PROVENANCE and field.known is KnownAt.SUBMIT:
        together = next((names for names in _TOGETHER if name in names), ())
        agreeing = [_agrees_with_first(pl.col(n)) for n in together if n in columns]
        return value.filter(pl.all_horizontal(pl.lit(True), *agreeing)).drop_nulls().first()
    if field.known is KnownAt.RUNNING:
        return value.max()
    if name == "reason":
        value = value.filter(pl.col("_progress") == pl.col("_progress").max())
        order = [pl.col("seen_at").filter(pl.col("_progress") == pl.col("_progress").max()), value]
    else:
        order = [pl.col("_progress"), pl.col("seen_at"), value]
    ordered = value.sort_by(order, descending=True, nulls_last=True)
    return ordered.drop_nulls().first()
