"""Another future for a log: the same story up to an instant, and from there on a different one.

What was known at the instant follows from the table of fields, and from when each job was
submitted, began and ended. Neither the features nor the replay are asked: they are what is to be
tested with it.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np
import polars as pl

from premortem.jobs.fields import BY_NAME, KEY, Field, Kind, KnownAt
from premortem.jobs.frame import SCHEMA, require_fields
from premortem.jobs.labels import LABEL_INPUTS, LabelPolicy
from premortem.jobs.outcomes import Outcome
from premortem.jobs.samples import SAMPLES

_INPUTS = (*KEY, *LABEL_INPUTS, "end_time")
# Of the jobs yet to be submitted, how many never are.
_NEVER = 0.2
# Where time after the instant is short, as at the end of a log.
_LEAST_HORIZON_S = 3600.0


def events(jobs: pl.DataFrame) -> pl.DataFrame:
    """The seconds in which each job was `submitted`, `began` and `ended`; null for never.

    A job with an allocation but no start began when it was submitted, as in logs without wait
    times. Nothing ends before it began, and what never began and has no end was over at once.
    """
    told = _whole(jobs).with_columns(
        began=pl.col("start_time").is_not_null() | pl.col("alloc_cpus").is_not_null(),
        over=LabelPolicy().label(_whole(jobs))["outcome"] != str(Outcome.UNFINISHED),
        submitted=_second("submit_time"),
    )
    ran = pl.duration(seconds=pl.col("elapsed_s").fill_null(0))
    return (
        told.lazy()
        .with_columns(
            began=pl.when("began").then(pl.max_horizontal(_second("start_time"), "submitted"))
        )
        .with_columns(ended=pl.coalesce(_second("end_time"), pl.col("began") + ran, "submitted"))
        .select(
            "submitted",
            "began",
            ended=pl.when("over").then(pl.max_horizontal("ended", "began", "submitted")),
        )
        .collect()
    )


def another_future(jobs: pl.DataFrame, instant: datetime, rng: np.random.Generator) -> pl.DataFrame:
    """The same unlabelled jobs as far as anyone could know them at `instant`, a whole second.

    Whatever a job had still before it happens as it did to another job of the log, drawn at random,
    and at or after the instant; of the jobs yet to be submitted some never are. What happens in the
    very second of the instant stays for about half of the jobs and changes for the others. Added
    are `place`, where the job was in the log, and `known`, the moment of its life up to which it is
    left as it was: null for the jobs yet to be submitted.
    """
    require_fields(name for name in jobs.columns if name != SAMPLES)
    samples = jobs.select(SAMPLES) if SAMPLES in jobs.columns else None
    told = _whole(jobs.drop(SAMPLES, strict=False))
    when = events(told)
    known = _known(when, instant, rng)
    drawn = rng.integers(max(told.height, 1), size=told.height)
    never = known.is_null().to_numpy() & (rng.random(told.height) < _NEVER)
    fields = [
        BY_NAME[name]
        for name in told.columns
        if name not in ("cluster", "job_id") and told[name].null_count() < told.height
    ]
    retold = (
        told.hstack(told[drawn].select(pl.all().name.prefix("other_")))
        .lazy()
        .with_columns(known=known, began=when["began"], next=_seconds_after(when, instant, rng))
        .with_columns(shift=pl.col("next") - _next_of_the_other())
        .with_columns(_retold(field, instant) for field in fields)
        .with_columns(_no_end_in_the_past(), _no_run_that_is_over())
        .with_row_index("place")
        .select("place", "known", *told.columns)
        .filter(~pl.Series(never))
        .collect()
    )
    if samples is None:
        return retold
    others = samples.hstack(samples[drawn].rename({SAMPLES: "other"}))
    return retold.hstack(others.select(_other_samples(instant)).filter(~pl.Series(never)))


def _other_samples(instant: datetime) -> pl.Expr:
    """What was sampled before the instant, and after it what was sampled of the other job."""
    at = pl.element().struct.field("at")
    moment = pl.lit(instant).cast(Kind.TIME.dtype)
    own = pl.col(SAMPLES).list.filter(at < moment)
    late = pl.col("other").list.eval(
        pl.element().struct.with_fields(at=pl.max_horizontal(pl.field("at"), moment))
    )
    return pl.concat_list(own.fill_null([]), late.fill_null([])).alias(SAMPLES)


def _whole(jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs with every column that is needed here."""
    missing = [name for name in _INPUTS if name not in jobs.columns]
    return jobs.with_columns(pl.lit(None, SCHEMA[name]).alias(name) for name in missing)


def _second(name: str) -> pl.Expr:
    return pl.col(name).dt.truncate("1s")


def _known(when: pl.DataFrame, instant: datetime, rng: np.random.Generator) -> pl.Series:
    stays = pl.Series(rng.random(when.height) < 0.5)

    def past(event: str) -> pl.Expr:
        return (pl.col(event) < instant) | ((pl.col(event) == instant) & pl.lit(stays))

    return when.select(
        pl.when(past("ended"))
        .then(int(KnownAt.END))
        .when(past("began"))
        .then(int(KnownAt.START))
        .when(past("submitted"))
        .then(int(KnownAt.SUBMIT))
    ).to_series()


def _seconds_after(when: pl.DataFrame, instant: datetime, rng: np.random.Generator) -> pl.Series:
    """A second at or after the instant for each job: rather soon than late, and within the log."""
    last = when.select(pl.max_horizontal(pl.all().max())).item() or instant
    horizon = max((last - instant).total_seconds(), _LEAST_HORIZON_S)
    delays = np.floor(np.expm1(rng.uniform(0, np.log1p(horizon), when.height)))
    return pl.Series(delays.astype(np.int64) * 1_000_000).cast(pl.Duration("us")) + instant


def _next_of_the_other() -> pl.Expr:
    """When that happened to the other job which is to happen next to this one."""
    return (
        pl.when(pl.col("known").is_null())
        .then("other_submit_time")
        .when(pl.col("known") == int(KnownAt.SUBMIT))
        .then(pl.coalesce("other_start_time", "other_end_time"))
        .otherwise("other_end_time")
    )


def _retold(field: Field, instant: datetime) -> pl.Expr:
    """The field as it is where it was known, and elsewhere that of the other job."""
    other = pl.col(f"other_{field.name}")
    if field.kind is Kind.TIME:
        other = (other + pl.col("shift")).clip(instant)
    if field.known is KnownAt.START:
        # An allocation without a start would mean that the job began when it was submitted.
        never_starts = pl.col("known").is_not_null() & pl.col("other_start_time").is_null()
        other = pl.when(~never_starts).then(other)
    untold = pl.col("known").is_null() | (pl.col("known") < int(field.known))
    return pl.when(untold).then(other).otherwise(field.name).alias(field.name)


def _no_end_in_the_past() -> pl.Expr:
    """A job that still waits and will never start has an end: without, it was over long ago."""
    waits = (pl.col("known") == int(KnownAt.SUBMIT)) & pl.col("start_time").is_null()
    end = pl.col("end_time")
    return pl.when(waits & end.is_null()).then("next").otherwise(end).alias("end_time")


def _no_run_that_is_over() -> pl.Expr:
    """A job that runs has run up to its new end, which in some logs only its run time tells."""
    ran = (pl.col("next") - pl.col("began")).dt.total_seconds()
    runs = pl.col("known") == int(KnownAt.START)
    return pl.when(runs).then(ran).otherwise("elapsed_s").alias("elapsed_s")
