"""Which of sacct's columns fills which field, and how its text is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from premortem.jobs.fields import Kind
from premortem.jobs.spellings import (
    duration_s,
    exit_status,
    integer,
    once_each,
    quantity,
    size_mb,
    state,
    timestamp,
)
from premortem.sources.columns import Reading, as_said

_TIME = "a time such as 2026-01-05T08:00:00"
_DURATION = "a duration such as 1-12:00:00"
_COUNT = "a whole number"
_SIZE = "a size such as 48000M"
_EXIT = "an exit code such as 1:0"
_PER_CPU_FLAG = 2.0**31
_NO_LIMIT = ("UNLIMITED", "Partition_Limit", "INVALID")


# What to ask a recent sacct for: all that is read below, free text last. Energy and the steps' own
# figures come only without -X.
WANTED_COLUMNS = (
    "JobID", "JobIDRaw", "Cluster", "User", "UID", "Group", "GID", "Account", "Partition", "QOS",
    "Submit", "Eligible", "Start", "End", "Elapsed", "State", "ExitCode", "DerivedExitCode",
    "Reason", "ReqNodes", "ReqCPUS", "ReqMem", "ReqTRES", "Timelimit", "Constraints",
    "Reservation", "Priority", "AllocNodes", "AllocCPUS", "AllocTRES", "NodeList", "UserCPU",
    "SystemCPU", "TotalCPU", "MaxRSS", "AveDiskRead", "AveDiskWrite", "ConsumedEnergyRaw",
    "WorkDir", "JobName",
)  # fmt: skip


def readings_for(names: Sequence[str], zone: str) -> tuple[list[Reading], list[str]]:
    """How to read a dump with these columns, in any letter case, and which of them are not used.

    Where two columns tell the same field, the one listed first below is read.
    """
    spelled = {name.lower(): name for name in names}
    table = _table(zone)
    chosen: dict[str, Reading] = {}
    for reading in table:
        if reading.column in spelled:
            chosen.setdefault(reading.field, replace(reading, column=spelled[reading.column]))
    meant = {"jobid", *(reading.column for reading in table)}
    return list(chosen.values()), [name for name in names if name.lower() not in meant]


def _table(zone: str) -> tuple[Reading, ...]:
    time = partial(timestamp, zone=zone)
    # Most columns repeat a few texts over and over.
    count = once_each(integer, Kind.INTEGER)
    code, signal = (once_each(partial(exit_status, part=part), Kind.INTEGER) for part in (0, 1))
    limit = once_each(duration_s, Kind.NUMBER)
    memory = once_each(_memory, Kind.NUMBER)
    return (
        Reading("job_id", "jobidraw", _leading_number, "a job number"),
        Reading("cluster", "cluster"),
        Reading("submit_time", "submit", time, _TIME),
        Reading("eligible_time", "eligible", time, _TIME),
        Reading("start_time", "start", time, _TIME),
        Reading("end_time", "end", time, _TIME),
        Reading("user", "user"),
        Reading("uid", "uid", count, _COUNT),
        Reading("group", "group"),
        Reading("gid", "gid", count, _COUNT),
        Reading("account", "account"),
        Reading("partition", "partition", as_said),
        Reading("qos", "qos", as_said),
        Reading("job_name", "jobname"),
        Reading("work_dir", "workdir"),
        Reading("submit_line", "submitline"),
        Reading("features", "constraints", as_said),
        Reading("reservation", "reservation", as_said),
        Reading("priority", "priority", count, _COUNT),
        Reading("req_nodes", "reqnodes", count, _COUNT),
        Reading("req_cpus", "reqcpus", count, _COUNT),
        # Until Slurm 21.08 a letter told memory per node from memory per CPU; now it is a total.
        Reading("req_memory_per_node_mb", "reqmem", memory, _SIZE, _is_per_node),
        Reading("req_memory_per_cpu_mb", "reqmem", memory, _SIZE, _is_per_cpu),
        Reading("req_memory_mb", "reqmem", memory, _SIZE, _is_total),
        Reading("req_tres", "reqtres", as_said),
        Reading("req_gpus", "reqgres", _gpus, "resources such as gpu:2", _names_gpus),
        Reading("time_limit_s", "timelimit", limit, _DURATION, _is_limit),
        Reading("time_limit_s", "timelimitraw", _minutes, "minutes", _is_limit),
        Reading("time_unlimited", "timelimit", _is_unlimited),
        Reading("time_unlimited", "timelimitraw", _is_unlimited),
        Reading("alloc_nodes", "allocnodes", count, _COUNT),
        Reading("alloc_nodes", "nnodes", count, _COUNT),
        Reading("alloc_cpus", "alloccpus", count, _COUNT),
        Reading("alloc_cpus", "ncpus", count, _COUNT),
        Reading("alloc_tres", "alloctres", as_said),
        Reading("alloc_gpus", "allocgres", _gpus, "resources such as gpu:2", _names_gpus),
        Reading("node_list", "nodelist", as_said),
        Reading("restart_count", "restarts", count, _COUNT),
        Reading("state", "state", state, "one of Slurm's job states"),
        Reading("exit_code", "exitcode", code, _EXIT),
        Reading("exit_signal", "exitcode", signal, _EXIT),
        Reading("derived_exit_code", "derivedexitcode", code, _EXIT),
        Reading("derived_exit_signal", "derivedexitcode", signal, _EXIT),
        Reading("reason", "reason", as_said),
        Reading("elapsed_s", "elapsedraw", count, _COUNT),
        Reading("elapsed_s", "elapsed", limit, _DURATION),
        Reading("cpu_user_s", "usercpu", duration_s, _DURATION),
        Reading("cpu_system_s", "systemcpu", duration_s, _DURATION),
        Reading("cpu_total_s", "totalcpu", duration_s, _DURATION),
        Reading("max_rss_mb", "maxrss", size_mb, _SIZE),
        Reading("avg_disk_read_mb", "avediskread", size_mb, _SIZE),
        Reading("avg_disk_write_mb", "avediskwrite", size_mb, _SIZE),
        Reading("energy_j", "consumedenergyraw", quantity, "joules"),
        Reading("energy_j", "consumedenergy", partial(quantity, step=1000.0), "joules"),
    )


def _leading_number(text: pl.Expr) -> pl.Expr:
    return text.str.extract(r"^(\d+)(?:[.+].*)?$").cast(pl.Int64, strict=False)


def _memory(text: pl.Expr) -> pl.Expr:
    size = size_mb(text.str.strip_suffix("n").str.strip_suffix("c"), plain="M")
    return pl.when(_is_flagged(text)).then(size - _PER_CPU_FLAG).otherwise(size)


def _is_per_node(text: pl.Expr) -> pl.Expr:
    return text.str.ends_with("n") & ~_is_flagged(text)


def _is_per_cpu(text: pl.Expr) -> pl.Expr:
    return text.str.ends_with("c") | _is_flagged(text)


def _is_total(text: pl.Expr) -> pl.Expr:
    return ~text.str.contains("[nc]$")


def _is_flagged(text: pl.Expr) -> pl.Expr:
    """Whether the size carries the bit by which old releases marked memory per CPU."""
    size = size_mb(text.str.strip_suffix("n"), plain="M")
    return text.str.ends_with("n") & (size >= _PER_CPU_FLAG).fill_null(False)


def _gpus(text: pl.Expr) -> pl.Expr:
    """GPUs among generic resources such as ``gpu:2`` or ``gpu:a100:2``; one where none is told."""
    entries = text.str.extract_all(r"(?:^|[,/])gpu(?::[^:,()]*)*")
    told = pl.element().str.extract(r":(\d+)$").cast(pl.Int64, strict=False)
    counts = entries.list.eval(told.fill_null(1))
    return pl.when(counts.list.len() > 0).then(counts.list.sum())


def _names_gpus(text: pl.Expr) -> pl.Expr:
    return text.str.contains("gpu", literal=True)


def _is_limit(text: pl.Expr) -> pl.Expr:
    return ~text.is_in(_NO_LIMIT)


def _is_unlimited(text: pl.Expr) -> pl.Expr:
    return text == "UNLIMITED"


def _minutes(text: pl.Expr) -> pl.Expr:
    return integer(text) * 60
