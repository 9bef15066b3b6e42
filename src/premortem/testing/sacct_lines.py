"""The lines of `sacct --parsable2`, for jobs and for their steps, in today's spelling."""

from __future__ import annotations

import polars as pl

from premortem.jobs.wording import filled
from premortem.testing.slurm_text import clock_text, decimal_text, size_text, time_text

SACCT_COLUMNS: tuple[str, ...] = (
    "JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID",
    "Submit", "Eligible", "Start", "End", "Elapsed", "ExitCode", "DerivedExitCode", "State",
    "NNodes", "NCPUS", "ReqCPUS", "ReqNodes", "ReqMem", "ReqTRES", "AllocTRES", "Timelimit",
    "NodeList", "JobName", "WorkDir", "SubmitLine", "Reason", "UserCPU", "SystemCPU", "TotalCPU",
    "MaxRSS", "AveDiskRead", "AveDiskWrite", "ConsumedEnergyRaw",
)  # fmt: skip

_ON_STEPS = ("MaxRSS", "AveDiskRead", "AveDiskWrite")
_CPU_TIMES = {"UserCPU": "cpu_user_s", "SystemCPU": "cpu_system_s", "TotalCPU": "cpu_total_s"}
_BATCH, _EXTERN, _FIRST = ".batch", ".extern", ".0"
# What little the shell around a step of its own uses.
_SHELL_RSS = "4332K"


def job_lines(jobs: pl.DataFrame) -> pl.DataFrame:
    """One line for each job, a text column for each of `SACCT_COLUMNS`; null is empty."""
    return jobs.select(**_job())


def with_step_lines(jobs: pl.DataFrame) -> pl.DataFrame:
    """The line of each job followed, if it started, by those of its steps.

    Every such job has a batch and an extern step. A job that failed because a step of it ran out
    of memory has that step too.
    """
    jobs = jobs.with_row_index("place")
    started = jobs.filter(pl.col("start_time").is_not_null())
    own_step = (pl.col("state") != "OUT_OF_MEMORY") & (pl.col("step_state") == "OUT_OF_MEMORY")
    own_step = own_step.fill_null(False)
    inner = started.filter(own_step)
    blank = {name: pl.lit(None, dtype=pl.String) for name in _ON_STEPS}
    parts = (
        jobs.select("place", **(_job() | blank)),
        started.select("place", **_batch(own_step)),
        started.select("place", **_extern()),
        inner.select("place", **_inner()),
    )
    ranked = [part.with_columns(rank=pl.lit(rank)) for rank, part in enumerate(parts)]
    return pl.concat(ranked).sort("place", "rank").select(SACCT_COLUMNS)


def _job() -> dict[str, pl.Expr]:
    cancelled_by_someone = (pl.col("state") == "CANCELLED") & pl.col("reason").ne_missing(
        "DependencyNeverSatisfied"
    )
    expressions = {
        "JobID": _shown_id(),
        "JobIDRaw": pl.col("job_id").cast(pl.String),
        "Cluster": pl.col("cluster"),
        "Partition": pl.col("partition"),
        "QOS": pl.col("qos"),
        "Account": pl.col("account"),
        "Group": pl.col("group"),
        "GID": pl.col("gid").cast(pl.String),
        "User": pl.col("user"),
        "UID": pl.col("uid").cast(pl.String),
        "Submit": time_text(pl.col("submit_time")).fill_null("Unknown"),
        "Eligible": time_text(pl.col("eligible_time")).fill_null("Unknown"),
        "Start": time_text(pl.col("start_time")).fill_null("None"),
        "End": time_text(pl.col("end_time")).fill_null("Unknown"),
        "Elapsed": clock_text(pl.col("elapsed_s") * 1000),
        "ExitCode": filled("{}:{}", "exit_code", "exit_signal"),
        "DerivedExitCode": filled("{}:{}", "derived_exit_code", "derived_exit_signal"),
        "State": pl.when(cancelled_by_someone & pl.col("uid").is_not_null())
        .then(filled("CANCELLED by {}", "uid"))
        .otherwise("state"),
        "NNodes": pl.coalesce("alloc_nodes", "req_nodes").cast(pl.String),
        "NCPUS": pl.col("alloc_cpus").fill_null(0).cast(pl.String),
        "ReqCPUS": pl.col("req_cpus").cast(pl.String),
        "ReqNodes": pl.col("req_nodes").cast(pl.String),
        "ReqMem": size_text(pl.col("req_memory_mb").round().cast(pl.Int64), "M"),
        "ReqTRES": pl.col("req_tres"),
        "AllocTRES": pl.col("alloc_tres"),
        "Timelimit": pl.when("time_unlimited")
        .then(pl.lit("UNLIMITED"))
        .otherwise(clock_text(pl.col("time_limit_s") * 1000).fill_null("Partition_Limit")),
        "NodeList": pl.col("node_list").fill_null("None assigned"),
        "JobName": pl.col("job_name"),
        "WorkDir": pl.col("work_dir"),
        "SubmitLine": pl.col("submit_line"),
        "Reason": pl.col("reason").fill_null("None"),
        **{name: _cpu_time(field) for name, field in _CPU_TIMES.items()},
        **_figures(),
        "ConsumedEnergyRaw": pl.col("energy_j").round().cast(pl.Int64).cast(pl.String),
    }
    return {name: expressions[name] for name in SACCT_COLUMNS}


def _figures() -> dict[str, pl.Expr]:
    return {
        "MaxRSS": size_text((pl.col("max_rss_mb") * 1024).round().cast(pl.Int64), "K"),
        "AveDiskRead": decimal_text(pl.col("avg_disk_read_mb")) + "M",
        "AveDiskWrite": decimal_text(pl.col("avg_disk_write_mb")) + "M",
    }


def _step(suffix: str, changes: dict[str, pl.Expr]) -> dict[str, pl.Expr]:
    """A step's line: what it shares with its job, its own figures, and nothing elsewhere."""
    job = _job()
    shared = ("Cluster", "Account", "Start", "End", "Elapsed", "AllocTRES", "NodeList", "NCPUS")
    line = {name: pl.lit(None, dtype=pl.String) for name in SACCT_COLUMNS}
    line |= {name: job[name] for name in (*shared, "NNodes", *_CPU_TIMES, *_ON_STEPS)}
    line |= {
        "JobID": job["JobID"] + suffix,
        "JobIDRaw": job["JobIDRaw"] + suffix,
        "Submit": job["Start"],
        "Eligible": job["Start"],
        "ReqCPUS": job["NCPUS"],
        "JobName": pl.lit(suffix.removeprefix(".")),
        "AllocTRES": job["AllocTRES"].str.replace(r"^billing=\d+,", ""),
    }
    return line | changes


def _batch(own_step: pl.Expr) -> dict[str, pl.Expr]:
    """The script itself, on the first node; it used nothing to speak of if a step did the work."""
    job = _job()
    state = pl.when(own_step).then(pl.lit("FAILED")).otherwise("step_state")
    stopped = pl.col("step_state") == "CANCELLED"
    line = _step(
        _BATCH,
        {
            "State": state,
            "ExitCode": pl.when(stopped).then(pl.lit("0:15")).otherwise(job["ExitCode"]),
            "NNodes": pl.lit("1"),
            "NodeList": pl.col("node_list").str.replace(r"\[(\d+).*\]$", "${1}"),
        },
    )
    idle = dict.fromkeys(_CPU_TIMES, "00:00:00")
    idle |= {"MaxRSS": _SHELL_RSS, "AveDiskRead": "0.00M", "AveDiskWrite": "0.00M"}
    for name, text in idle.items():
        line[name] = pl.when(own_step).then(pl.lit(text)).otherwise(line[name])
    return line


def _extern() -> dict[str, pl.Expr]:
    nothing = dict.fromkeys(_CPU_TIMES, "00:00:00") | {"MaxRSS": "0", "AveDiskRead": "0.00M"}
    nothing |= {"AveDiskWrite": "0.00M", "State": "COMPLETED", "ExitCode": "0:0"}
    return _step(_EXTERN, {name: pl.lit(text) for name, text in nothing.items()})


def _inner() -> dict[str, pl.Expr]:
    job = _job()
    return _step(
        _FIRST,
        {
            "State": pl.lit("OUT_OF_MEMORY"),
            "ExitCode": job["DerivedExitCode"],
            "JobName": pl.col("job_name"),
            "SubmitLine": pl.concat_str(pl.lit("srun ./"), "job_name"),
        },
    )


def _shown_id() -> pl.Expr:
    task = filled("{}_{}", "array_job_id", "array_task_id")
    return pl.coalesce(task, pl.col("job_id").cast(pl.String))


def _cpu_time(field: str) -> pl.Expr:
    return clock_text((pl.col(field) * 1000).round().cast(pl.Int64))
