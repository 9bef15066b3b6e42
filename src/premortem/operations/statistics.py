"""A store summed up: how many jobs, how they ended, who and what fails most, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import polars as pl

from premortem.jobs.fields import Kind
from premortem.jobs.labels import LABEL_INPUTS, LabelPolicy
from premortem.jobs.names import name_stem
from premortem.jobs.outcomes import Cause, Outcome
from premortem.jobs.usage import core_hours
from premortem.stores.port import JobQuery, Store

_COLUMNS = tuple(
    dict.fromkeys(
        ("cluster", "submit_time", "user", "partition", "alloc_partition", "job_name", "executable",
         "req_cpus", *LABEL_INPUTS)
    )
)  # fmt: skip

# The longest span shown in each step, so that a table has a dozen rows or two.
_STEPS = (
    (timedelta(days=2), "1h"),
    (timedelta(days=21), "1d"),
    (timedelta(days=180), "1w"),
    (timedelta(days=730), "1mo"),
    (timedelta.max, "1q"),
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """The numbers of a report; tables are frames, one row each for what they are about.

    Core-hours are CPUs times run time, whether used or idle: those the job got, or where the
    records do not tell, those it asked for.
    """

    jobs: int
    users: int
    clusters: list[str]
    first: datetime | None
    last: datetime | None
    outcomes: dict[str, int]
    causes: dict[str, int]
    core_hours: float
    core_hours_lost: float
    core_hours_lost_by_cause: dict[str, float]
    step: str
    over_time: pl.DataFrame
    top_users: pl.DataFrame
    top_names: pl.DataFrame
    top_partitions: pl.DataFrame

    def as_dict(self) -> dict[str, Any]:
        """The same numbers as plain values, for JSON."""
        return {
            "jobs": self.jobs,
            "users": self.users,
            "clusters": self.clusters,
            "first_submit": self.first,
            "last_submit": self.last,
            "outcomes": self.outcomes,
            "causes": self.causes,
            "core_hours": {
                "total": self.core_hours,
                "lost": self.core_hours_lost,
                "lost_by_cause": self.core_hours_lost_by_cause,
            },
            "over_time": {
                "step": self.step,
                "rows": [_nested(r) for r in self.over_time.to_dicts()],
            },
            "top_failing": {
                "users": self.top_users.to_dicts(),
                "names": self.top_names.to_dicts(),
                "partitions": self.top_partitions.to_dicts(),
            },
        }


def statistics(store: Store, policy: LabelPolicy, query: JobQuery, *, top: int = 5) -> Statistics:
    """Sum up the jobs wanted. Failure shares are of the jobs that completed or failed."""
    jobs = policy.label(store.jobs(query, _COLUMNS)).with_columns(
        failed=(pl.col("outcome") == "failed").fill_null(False),
        counted=pl.col("outcome").is_in(["failed", "completed"]),
        core_hours=core_hours(),
        partition=pl.coalesce("alloc_partition", "partition"),
        # An executable known by its number alone has no stem.
        name=pl.coalesce(name_stem(pl.col("job_name")), "executable"),
    )
    lost = jobs.filter("failed")
    step = _step(jobs)
    return Statistics(
        jobs=jobs.height,
        users=jobs.filter(pl.col("user").is_not_null()).select("cluster", "user").n_unique(),
        clusters=sorted(jobs["cluster"].unique()),
        first=jobs["submit_time"].min(),  # type: ignore[arg-type]
        last=jobs["submit_time"].max(),  # type: ignore[arg-type]
        outcomes=_counts(jobs["outcome"]),
        causes=_counts(lost["cause"]),
        core_hours=round(float(jobs["core_hours"].sum()), 1),
        core_hours_lost=round(float(lost["core_hours"].sum()), 1),
        core_hours_lost_by_cause=_lost_by_cause(lost),
        step=step,
        over_time=_over_time(jobs, step),
        top_users=_top(jobs, "user", top),
        top_names=_top(jobs, "name", top),
        top_partitions=_top(jobs, "partition", top),
    )


def _nested(row: dict[str, Any]) -> dict[str, Any]:
    """A period with its counts by outcome and by cause under names of their own."""
    nested: dict[str, Any] = {"outcomes": {}, "causes": {}}
    for name, value in row.items():
        column, colon, word = name.partition(":")
        if colon and value:
            nested[f"{column}s"][word] = value
        elif not colon:
            nested[name] = value
    return nested


def _counts(values: pl.Series) -> dict[str, int]:
    table = values.drop_nulls().value_counts(sort=True, name="n")
    return dict(table.sort(["n", values.name], descending=[True, False]).iter_rows())


def _lost_by_cause(lost: pl.DataFrame) -> dict[str, float]:
    table = lost.group_by("cause").agg(pl.col("core_hours").sum().round(1))
    return dict(table.sort(["core_hours", "cause"], descending=[True, False]).iter_rows())


def _step(jobs: pl.DataFrame) -> str:
    if jobs.is_empty():
        return "1d"
    span = jobs.select(pl.col("submit_time").max() - pl.col("submit_time").min()).item()
    return next(step for longest, step in _STEPS if span <= longest)


def _over_time(jobs: pl.DataFrame, step: str) -> pl.DataFrame:
    return (
        jobs.group_by(pl.col("submit_time").dt.truncate(step).alias("period"))
        .agg(*_tally(), *_counts_of("outcome", Outcome), *_counts_of("cause", Cause))
        .with_columns(_share())
        .with_columns(pl.col("period").cast(Kind.TIME.dtype))
        .sort("period")
    )


def _top(jobs: pl.DataFrame, column: str, count: int) -> pl.DataFrame:
    """Those with the most failed jobs; ties in the order of their names."""
    main_cause = pl.col("cause").drop_nulls().mode().sort().first()
    return (
        jobs.filter(pl.col(column).is_not_null())
        .group_by(column, "cluster")
        .agg(*_tally(), main_cause=main_cause)
        .with_columns(_share())
        .filter(pl.col("failed") > 0)
        .sort(["failed", column, "cluster"], descending=[True, False, False])
        .head(count)
    )


def _counts_of(column: str, words: type[StrEnum]) -> list[pl.Expr]:
    """How many rows have each word, in one column a word."""
    return [(pl.col(column) == str(word)).sum().alias(f"{column}:{word}") for word in words]


def _tally() -> list[pl.Expr]:
    return [
        pl.len().alias("jobs"),
        pl.col("counted").sum(),
        pl.col("failed").sum(),
        pl.col("core_hours").filter(pl.col("failed")).sum().round(1).alias("core_hours_lost"),
    ]


def _share() -> pl.Expr:
    counted = pl.col("counted")
    return pl.when(counted > 0).then((pl.col("failed") / counted).round(4)).alias("failure_share")
