"""Samples of what a running job uses: a table beside that of the jobs.

A sample tells what was true of all of a job's processes together at one moment. It names the job by
its number alone; which run of a requeued job it belongs to follows from the moment.

What is known of a job from its samples is known from their moments on, and no earlier.
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

# The column of a job frame that holds each job's own samples, in order of time.
SAMPLES = "samples"
_OWN = [name for name in SAMPLE_SCHEMA if name not in ("cluster", "job_id")]
SAMPLES_DTYPE = pl.List(pl.Struct({name: SAMPLE_SCHEMA[name] for name in _OWN}))


def conform_samples(samples: pl.DataFrame) -> pl.DataFrame:
    """The samples with every column, in its type and order; absent ones are empty."""
    return samples.select(
        pl.col(name).cast(dtype) if name in samples.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in SAMPLE_SCHEMA.items()
    )


def no_samples() -> pl.DataFrame:
    """A frame of samples with nothing in it."""
    return pl.DataFrame(schema=SAMPLE_SCHEMA)


def with_samples(jobs: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """The jobs with a column of their own samples: those taken between their start and end.

    Jobs without any have null there.
    """
    if samples.is_empty():
        return jobs.with_columns(pl.lit(None, SAMPLES_DTYPE).alias(SAMPLES))
    runs = jobs.select("cluster", "job_id", "start_time", "end_time").with_row_index("place")
    own = (
        samples.lazy()
        .join(runs.lazy(), on=("cluster", "job_id"))
        .filter(pl.col("at") >= pl.col("start_time"))
        # Accounting counts whole seconds: one sample may come within the last of them.
        .filter(
            pl.col("end_time").is_null() | (pl.col("at") < pl.col("end_time").dt.offset_by("1s"))
        )
        .sort("place", "at")
        .group_by("place", maintain_order=True)
        .agg(pl.struct(_OWN).alias(SAMPLES))
        .collect()
    )
    placed = jobs.with_row_index("place").join(own, on="place", how="left", maintain_order="left")
    return placed.drop("place").with_columns(pl.col(SAMPLES).cast(SAMPLES_DTYPE))


def samples_of(jobs: pl.DataFrame) -> pl.DataFrame:
    """The samples that the jobs of a frame carry, as a table again."""
    if SAMPLES not in jobs.columns:
        return no_samples()
    carried = jobs.select("cluster", "job_id", SAMPLES).drop_nulls(SAMPLES)
    return conform_samples(carried.explode(SAMPLES).drop_nulls(SAMPLES).unnest(SAMPLES))


def has_samples(jobs: pl.DataFrame) -> bool:
    """Whether any job of a frame carries samples."""
    return SAMPLES in jobs.columns and jobs[SAMPLES].null_count() < jobs.height
