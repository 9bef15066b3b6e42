"""What sstat prints about steps, and how it complains. Pure: no I/O.

Of its columns only sums over all tasks are read. Memory in them is that of the moment, unlike in
MaxRSS; the averages are cut to whole seconds for each task, and one byte is shown as ``1.00M``.
"""

from __future__ import annotations

import re

import polars as pl

from premortem.jobs.fields import Kind
from premortem.jobs.spellings import duration_s, size_mb

COLUMNS = ("JobID", "TRESUsageInTot", "TRESUsageOutTot")
STEP_SCHEMA: dict[str, pl.DataType] = {
    "job_id": Kind.INTEGER.dtype,
    "step": Kind.TEXT.dtype,
    "cpu_s": Kind.NUMBER.dtype,
    "rss_mb": Kind.NUMBER.dtype,
    "read_mb": Kind.NUMBER.dtype,
    "written_mb": Kind.NUMBER.dtype,
}

# What is said of a job that does not run; one that is complained of otherwise does.
NOT_RUNNING = "no step of it runs"
_REFUSED = re.compile(r"StepId=(\d+)[^:]*: (.*)")
_NOT_RUNNING = re.compile(r"(?:No steps running|couldn't get steps) for job (\d+)")
_NOT_YOURS = ("Invalid user id", "Access/permission denied")


def steps(text: str) -> pl.DataFrame:
    """A row of `STEP_SCHEMA` for each line; what cannot be read is null."""
    lines = pl.Series("line", text.splitlines(), dtype=pl.String)
    part = lines.str.split_exact("|", len(COLUMNS) - 1).struct.unnest()
    whose, used, put = (pl.col(f"field_{place}") for place in range(len(COLUMNS)))
    return part.select(
        job_id=whose.str.extract(r"^(\d+)\.").cast(pl.Int64, strict=False),
        step=whose.str.extract(r"^\d+\.(.+)$"),
        cpu_s=duration_s(_amount(used, "cpu")),
        rss_mb=size_mb(_amount(used, "mem")),
        read_mb=size_mb(_amount(used, "fs/disk")),
        written_mb=size_mb(_amount(put, "fs/disk")),
    ).cast(STEP_SCHEMA)  # type: ignore[arg-type]


def complaints(text: str) -> dict[int, str]:
    """Why sstat told nothing of some jobs, or not all, by their numbers."""
    found: dict[int, str] = {}
    for line in text.splitlines():
        if refused := _REFUSED.search(line):
            why = refused[2].strip()
            if why in _NOT_YOURS:
                why = "Slurm shows it to its owner and to operators alone"
            found[int(refused[1])] = why
        elif gone := _NOT_RUNNING.search(line):
            found.setdefault(int(gone[1]), NOT_RUNNING)
    return found


def _amount(text: pl.Expr, name: str) -> pl.Expr:
    return text.str.extract(rf"(?:^|,){name}=([^,]*)")
