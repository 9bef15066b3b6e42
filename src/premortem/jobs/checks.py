"""What makes a job record bad: one check for every source, derived from the table of fields."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from premortem.jobs.fields import BY_NAME, KEY, Kind
from premortem.jobs.wording import filled

# Clocks of two machines may disagree by this much before a time counts as lying in the future.
CLOCK_TOLERANCE = timedelta(days=1)

_ORDERED_TIMES = (
    ("submit_time", "start_time", "the job starts before it is submitted"),
    ("submit_time", "end_time", "the job ends before it is submitted"),
    ("start_time", "end_time", "the job ends before it starts"),
)
# A begin time or a planned start may well lie ahead; these can not.
_PAST_TIMES = ("submit_time", "start_time", "end_time")


def faults(jobs: pl.DataFrame, *, now: datetime) -> pl.Series:
    """Why each record is bad, in words; null for the good ones."""
    problems = [*_missing_key(jobs), *_out_of_bounds(jobs), *_impossible_times(jobs, now)]
    is_bad = jobs.select(pl.any_horizontal(bad for bad, _ in problems).fill_null(False))
    places = is_bad.to_series().arg_true()
    reasons = pl.repeat(None, jobs.height, dtype=pl.String, eager=True).alias("reason")
    if places.is_empty():
        return reasons
    # Words are found for the bad records alone: they cost more than the checks.
    words = jobs[places].select(pl.coalesce(pl.when(bad).then(word) for bad, word in problems))
    return reasons.scatter(places, words.to_series())


_Problem = tuple[pl.Expr, pl.Expr]


def _missing_key(jobs: pl.DataFrame) -> list[_Problem]:
    return [
        (
            pl.col(name).is_null() if name in jobs.columns else pl.lit(True),
            pl.lit(f"no {name.replace('_', ' ')}"),
        )
        for name in KEY
    ]


def _out_of_bounds(jobs: pl.DataFrame) -> list[_Problem]:
    problems = []
    for name in jobs.columns:
        field = BY_NAME[name]
        if field.least is None or field.most is None:
            continue
        value = pl.col(name)
        bad = (value < field.least) | (value > field.most)
        if field.kind is Kind.NUMBER:
            bad = bad | value.is_nan()
        reason = filled(
            f"{name} is {{}}, which is not between {field.least:.12g} and {field.most:.12g}", value
        )
        problems.append((bad, reason))
    return problems


def _impossible_times(jobs: pl.DataFrame, now: datetime) -> list[_Problem]:
    horizon = pl.lit(now + CLOCK_TOLERANCE).cast(Kind.TIME.dtype)
    dawn = pl.lit(0).cast(Kind.TIME.dtype)
    problems = []
    for name in _PAST_TIMES:
        if name in jobs.columns:
            text = pl.col(name).dt.strftime("%Y-%m-%dT%H:%M:%SZ")
            ahead = filled(f"{name} {{}} lies in the future", text)
            before = filled(f"{name} {{}} lies before 1970", text)
            problems += [(pl.col(name) > horizon, ahead), (pl.col(name) < dawn, before)]
    for earlier, later, reason in _ORDERED_TIMES:
        if earlier in jobs.columns and later in jobs.columns:
            problems.append((pl.col(later) < pl.col(earlier), pl.lit(reason)))
    return problems
