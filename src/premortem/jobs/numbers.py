"""Job numbers as Slurm writes them: ``436277``, ``436277_4`` in an array, ``436277+1``."""

from __future__ import annotations

import polars as pl

# What a job is called by beside its own number, where it is a task or a component.
NUMBERS = ("array_job_id", "array_task_id", "het_job_id", "het_offset")

# The largest number that Slurm gives to a job.
LARGEST = 2**32 - 1


def task_number(array: pl.Expr, task: pl.Expr) -> pl.Expr:
    """A number for an array task whose own is not known; beyond all that Slurm gives out."""
    return array + (task + 1) * (LARGEST + 1)


def with_job_number(records: pl.DataFrame, written: pl.Series) -> pl.DataFrame:
    """Add the job's number and its place in an array or heterogeneous job, from its written form.

    `100_7` is task 7 of array 100 and `100+1` component 1 of job 100. A component's own number
    follows from its leader's; a task's does not, and is made up. What the records already tell
    stays.
    """
    parts = written.str.strip_chars().str.extract_groups(
        r"^(\d+)(?:\.0+|_(\d{1,8})|_\[[^\]]*\]|\+(\d{1,8}))?$"
    )
    places = {":base": "1", ":task": "2", ":offset": "3"}
    numbers = {
        name: parts.struct.field(place).cast(pl.Int64, strict=False)
        for name, place in places.items()
    }
    is_array = written.str.contains("_", literal=True)
    base, task, offset = map(pl.col, places)
    told = {
        "job_id": pl.coalesce(task_number(base, task), base + offset, base),
        "array_job_id": pl.when(is_array).then(base),
        "array_task_id": task,
        "het_job_id": pl.when(offset.is_not_null()).then(base),
        "het_offset": offset,
    }
    known = records.with_columns(**numbers)
    return known.select(
        pl.all().exclude(*numbers, *told),
        *[
            (pl.coalesce(name, value) if name in records.columns else value).alias(name)
            for name, value in told.items()
        ],
    )
