"""What only the end of a job tells, for the `posthoc` comparison with published results alone."""

from __future__ import annotations

import polars as pl

from premortem.jobs.frame import SCHEMA
from premortem.models.port import Array

# What is told of each job, in order.
HINDSIGHT = (
    "elapsed_s", "cpu_total_s", "cpu_share", "limit_share", "wait_s", "alloc_cpus", "max_rss_mb",
    "memory_share", "limit_left_s", "elapsed_past_minute_s", "elapsed_past_hour_s",
)  # fmt: skip

_INPUTS = (
    "submit_time", "start_time", "elapsed_s", "cpu_total_s", "alloc_cpus", "time_limit_s",
    "max_rss_mb", "req_memory_per_cpu_mb", "req_memory_per_node_mb", "req_memory_mb",
)  # fmt: skip


def hindsight(jobs: pl.DataFrame) -> Array:
    """Run time, CPU time, memory and wait of each job beside what it asked for: a column by name.

    A model that is shown these knows the answer, or nearly: never use them to predict.
    """
    missing = [pl.lit(None, SCHEMA[n]).alias(n) for n in _INPUTS if n not in jobs.columns]
    elapsed, cpus = pl.col("elapsed_s"), pl.col("alloc_cpus")
    asked_mb = pl.coalesce("req_memory_per_cpu_mb", "req_memory_per_node_mb", "req_memory_mb")
    columns = {
        "elapsed_s": elapsed,
        "cpu_total_s": pl.col("cpu_total_s"),
        "cpu_share": pl.col("cpu_total_s") / (elapsed * cpus),
        "limit_share": elapsed / pl.col("time_limit_s"),
        "wait_s": (pl.col("start_time") - pl.col("submit_time")).dt.total_seconds(),
        "alloc_cpus": cpus,
        "max_rss_mb": pl.col("max_rss_mb"),
        "memory_share": pl.col("max_rss_mb") / asked_mb,
        "limit_left_s": pl.col("time_limit_s") - elapsed,
        "elapsed_past_minute_s": elapsed % 60,
        "elapsed_past_hour_s": elapsed % 3600,
    }
    found = jobs.with_columns(missing).select(
        columns[name].cast(pl.Float32).fill_null(float("nan")).alias(name) for name in HINDSIGHT
    )
    return found.to_numpy()
