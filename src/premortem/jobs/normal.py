"""Parsed records brought to normal form: nothing said before it can be known, totals filled in."""

from __future__ import annotations

import polars as pl

from premortem.jobs.fields import BY_NAME, Group, KnownAt
from premortem.jobs.states import STATES, Progress

# A job's state and the reason for it are always those of the moment.
_CURRENT = ("state", "reason")
# How a job can end without having started, and what it would have got if it had: the surest first.
_ENDS_IN_QUEUE = ("CANCELLED", "DEADLINE")
_SIGNS_OF_A_RUN = ("node_list", "alloc_tres", "alloc_cpus")
_KNOWN_BY = {Progress.PENDING: KnownAt.SUBMIT, Progress.RUNNING: KnownAt.RUNNING}


def normalise(records: pl.DataFrame) -> pl.DataFrame:
    """Drop what a record cannot know yet, undo Slurm's fillers, and total the memory.

    Slurm shows a planned start for a pending job, an expected end for a running one, and a start
    for a job that was cancelled in the queue: none of them happened.
    """
    records = without_the_future(records)
    records = _without_false_starts(_with_elapsed(records))
    return _with_total_memory(_with_partition(records))


def without_the_future(records: pl.DataFrame) -> pl.DataFrame:
    """Drop what jobs that wait or run cannot know yet."""
    if "state" not in records.columns:
        return records
    for progress, known in _KNOWN_BY.items():
        states = [state for state, reached in STATES.items() if reached is progress]
        if not records.select(pl.col("state").is_in(states).any()).item():
            continue
        records = records.with_columns(
            pl.when(~pl.col("state").is_in(states).fill_null(False)).then(pl.col(name)).alias(name)
            for name in records.columns
            if BY_NAME[name].known > known and name not in _CURRENT
        )
    return records


def _without_false_starts(records: pl.DataFrame) -> pl.DataFrame:
    allocation = [name for name in records.columns if BY_NAME[name].group is Group.ALLOCATION]
    counts = [name for name in allocation if BY_NAME[name].kind.dtype.is_numeric()]
    counts = [name for name in counts if name != "restart_count"]
    records = records.with_columns(pl.when(pl.col(name) != 0).then(pl.col(name)) for name in counts)
    if not {"start_time", "state"} <= set(records.columns):
        return records
    # sacct shows the CPUs asked for where none were given: the nodes are the better sign.
    sign = next((name for name in _SIGNS_OF_A_RUN if name in records.columns), None)
    got_nothing = pl.col(sign).is_null() if sign else pl.lit(True)
    ran = pl.col("elapsed_s").fill_null(0) > 0 if "elapsed_s" in records.columns else pl.lit(False)
    never_started = pl.col("state").is_in(_ENDS_IN_QUEUE).fill_null(False) & got_nothing & ~ran
    return records.with_columns(
        pl.when(~never_started).then(pl.col(name)).alias(name)
        for name in ("start_time", *allocation)
    )


def _with_partition(records: pl.DataFrame) -> pl.DataFrame:
    """A job that started did so in the partition its record names, unless it tells another."""
    if not {"partition", "start_time"} <= set(records.columns):
        return records
    own = [pl.col("alloc_partition")] if "alloc_partition" in records.columns else []
    started = pl.col("start_time").is_not_null()
    return records.with_columns(
        alloc_partition=pl.when(started).then(pl.coalesce(*own, "partition"))
    )


def _with_elapsed(records: pl.DataFrame) -> pl.DataFrame:
    if not {"start_time", "end_time"} <= set(records.columns):
        return records
    own = [pl.col("elapsed_s")] if "elapsed_s" in records.columns else []
    between = (pl.col("end_time") - pl.col("start_time")).dt.total_seconds()
    between = pl.when(between >= 0).then(between)
    return records.with_columns(elapsed_s=pl.coalesce(*own, between))


def _with_total_memory(records: pl.DataFrame) -> pl.DataFrame:
    products = [
        pl.col(f"req_memory_per_{share}_mb") * pl.col(f"req_{share}s")
        for share in ("node", "cpu")
        if {f"req_memory_per_{share}_mb", f"req_{share}s"} <= set(records.columns)
    ]
    known = [pl.col("req_memory_mb")] if "req_memory_mb" in records.columns else []
    if not products:
        return records
    return records.with_columns(req_memory_mb=pl.coalesce(*known, *products))
