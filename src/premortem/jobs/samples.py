"""Samples of what a running job uses: a table beside that of the jobs.

A sample tells what was true of all of a job's processes together at one moment. It names the job by
its number alone; which run of a requeued job it belongs to follows from the moment.
"""

from __future__ import annotations

import polars as pl

from premortem.jobs.fields import Kind

SAMPLE_SCHEMA: dict[str, pl.DataType] = {
    "cluster": Kind.TEXT.dtype,
    "job_id": Kind.INTEGER.dtype,
    # When the sample was taken.
    "at": Kind.TIME.dtype,
    # CPU time spent so far, in seconds, all processes together, those that ended included.
    "cpu_s": Kind.NUMBER.dtype,
    # Resident memory at that moment, in MiB.
    "rss_mb": Kind.NUMBER.dtype,
    # Data read and written so far, in MiB.
    "read_mb": Kind.NUMBER.dtype,
    "written_mb": Kind.NUMBER.dtype,
    # Processes alive at that moment.
    "processes": Kind.INTEGER.dtype,
}
SAMPLE_KEY = ("cluster", "job_id", "at")


def conform_samples(samples: pl.DataFrame) -> pl.DataFrame:
    """The samples with every column, in its type and order; absent ones are empty."""
    return samples.select(
        pl.col(name).cast(dtype) if name in samples.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in SAMPLE_SCHEMA.items()
    )
