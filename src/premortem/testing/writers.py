"""Job frames as the text that real tools print: `sacct --parsable2`, and workload archive logs."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from premortem.jobs.fields import FIELDS
from premortem.testing.sacct_lines import SACCT_COLUMNS, job_lines, with_step_lines

__all__ = ["SACCT_COLUMNS", "write_sacct", "write_swf"]

_COPIED_AT_ONCE = 1 << 20
_SWF_COMPLETED, _SWF_FAILED, _SWF_CANCELLED = 1, 0, 5
_SWF_STATUS = {
    "COMPLETED": _SWF_COMPLETED,
    "CANCELLED": _SWF_CANCELLED,
    "PREEMPTED": _SWF_CANCELLED,
    "DEADLINE": _SWF_CANCELLED,
}


def write_sacct(
    frames: Iterable[pl.DataFrame], path: str | Path, *, header: bool = True, steps: bool = False
) -> int:
    """Write what `sacct --parsable2` would print of these jobs; returns how many jobs.

    With `steps` every started job is followed by its steps, and as in real output memory and disk
    figures stand on those alone. Without them the figures stand on the job's own line, where
    `sacct -X` would leave them empty: a file that short would have no usage at all. Fields that a
    frame lacks are written as absent. Times are UTC.
    """
    written = 0
    with Path(path).open("wb") as file:
        if header:
            file.write(("|".join(SACCT_COLUMNS) + "\n").encode())
        for frame in frames:
            jobs = _with_every_field(frame)
            lines = with_step_lines(jobs) if steps else job_lines(jobs)
            lines.write_csv(file, include_header=False, separator="|", quote_style="never")
            written += frame.height
    return written


def write_swf(frames: Iterable[pl.DataFrame], path: str | Path) -> int:
    """Write these jobs as a Standard Workload Format log; returns how many jobs.

    Compressed if the path ends in `.gz`. Jobs are numbered from 1 in the order given, and users,
    groups, executables (job names) and queues (partitions) in order of appearance, so that the
    same jobs give the same bytes. The header, which counts the jobs, is written last: until then
    the lines are kept in a temporary file.
    """
    path = Path(path)
    numbers: dict[str, dict[str, int]] = {
        name: {} for name in ("user", "account", "job_name", "partition")
    }
    written, start, cluster = 0, 0, "unknown"
    with tempfile.TemporaryFile(dir=path.parent) as body:
        for frame in frames:
            if not frame.height:
                continue
            jobs = _with_every_field(frame)
            if not written:
                start = int(jobs["submit_time"].dt.epoch("s")[0])
                cluster = jobs["cluster"][0] or cluster
            _number(jobs, numbers)
            lines = jobs.select(**_swf_fields(start, written, numbers))
            lines.write_csv(body, include_header=False, separator=" ", float_precision=2)
            written += frame.height
        body.seek(0)
        with path.open("wb") as file:
            header = _swf_header(cluster, written, start, numbers["partition"])
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                    packed.write(header)
                    shutil.copyfileobj(body, packed, _COPIED_AT_ONCE)
            else:
                file.write(header)
                shutil.copyfileobj(body, file, _COPIED_AT_ONCE)
    return written


def _with_every_field(frame: pl.DataFrame) -> pl.DataFrame:
    missing = [f for f in FIELDS if f.name not in frame.columns]
    return frame.with_columns(pl.lit(None, dtype=f.kind.dtype).alias(f.name) for f in missing)


def _number(jobs: pl.DataFrame, numbers: dict[str, dict[str, int]]) -> None:
    """Give the next numbers to names not met before."""
    for name, known in numbers.items():
        for value in jobs[name].unique(maintain_order=True).drop_nulls():
            known.setdefault(value, len(known) + 1)


def _swf_fields(start: int, written: int, numbers: dict[str, dict[str, int]]) -> dict[str, pl.Expr]:
    """The 18 fields in the format's order; -1 is its word for unknown."""
    submit = pl.col("submit_time").dt.epoch("s")
    left_queue = pl.coalesce("start_time", "end_time").dt.epoch("s")
    ran = pl.col("start_time").is_not_null()
    cpus_of_task = pl.col("req_cpus") / pl.col("req_tasks")
    used_kb = (pl.col("max_rss_mb") * 1024 / cpus_of_task).round().cast(pl.Int64)
    asked_kb = (pl.col("req_memory_mb") * 1024 / pl.col("req_cpus")).round().cast(pl.Int64)
    status = pl.col("state").replace_strict(_SWF_STATUS, default=_SWF_FAILED, return_dtype=pl.Int64)
    fields = {
        "job": pl.int_range(written + 1, written + 1 + pl.len()),
        "submit": submit - start,
        "wait": left_queue - submit,
        "run": pl.when(ran).then("elapsed_s"),
        "processors": pl.col("alloc_cpus"),
        "cpu_used": pl.when(ran).then(pl.col("cpu_total_s") / pl.col("alloc_cpus")),
        "memory_used": used_kb,
        "processors_asked": pl.col("req_cpus"),
        "time_asked": pl.col("time_limit_s"),
        "memory_asked": asked_kb,
        "status": status,
    }
    for name, known in numbers.items():
        fields[name] = pl.col(name).replace_strict(known, default=-1, return_dtype=pl.Int64)
    for name in ("swf_partition", "preceding_job", "think_time"):
        fields[name] = pl.lit(-1)
    return {name: field.fill_null(-1) for name, field in fields.items()}


def _swf_header(cluster: str, jobs: int, start: int, queues: dict[str, int]) -> bytes:
    lines = [
        "Version: 2.2",
        f"Computer: {cluster}",
        "Note: written by premortem from job records",
        f"MaxJobs: {jobs}",
        f"MaxRecords: {jobs}",
        f"UnixStartTime: {start}",
        "TimeZoneString: UTC",
        f"MaxQueues: {len(queues)}",
        *(f"Queue: {number} {name}" for name, number in queues.items()),
    ]
    return "".join(f"; {line}\n" for line in lines).encode()
