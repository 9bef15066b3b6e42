"""What the steps of a job tell about it, folded into the job's own line of a sacct dump."""

from __future__ import annotations

import polars as pl

from premortem.jobs.states import STEP_WEIGHT

# Slurm leaves these empty or zero on the job's own line and fills them on its steps.
_SUMMED = ("cpu_user_s", "cpu_system_s", "cpu_total_s", "energy_j")
_LARGEST = ("max_rss_mb", "avg_disk_read_mb", "avg_disk_write_mb")


def fold_steps(
    records: pl.DataFrame, ids: pl.Series, is_step: pl.Series, readable: pl.Series
) -> tuple[pl.DataFrame, pl.Series]:
    """The jobs, completed from the steps that follow each; and which steps follow no job.

    `ids` is the JobID of each line, such as ``100_7`` or ``100_7.batch``. Steps that are not
    `readable` are left out.
    """
    place = (~is_step).cum_sum()
    job_of = ids.str.strip_chars().str.split_exact(".", 1).struct.field("field_0")
    owner = pl.select(pl.when(~is_step).then(job_of).forward_fill()).to_series()
    orphans = is_step & owner.ne_missing(job_of)
    lines = records.with_columns(_place=place)
    jobs = lines.filter(~is_step)
    told = (
        lines.filter(is_step & ~orphans & readable).group_by("_place").agg(_told(records.columns))
    )
    folded = jobs.join(told, on="_place", how="left", maintain_order="left").with_columns(
        _completed(records.columns)
    )
    extra = ["step_state"] if "state" in records.columns else []
    return folded.select(*records.columns, *extra), orphans


def _told(columns: list[str]) -> list[pl.Expr]:
    told = [
        pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(f":{name}")
        for name in _SUMMED
        if name in columns
    ]
    told += [pl.col(name).max().alias(f":{name}") for name in _LARGEST if name in columns]
    if "state" in columns:
        weight = pl.col("state").replace_strict(STEP_WEIGHT, default=-1, return_dtype=pl.Int8)
        told.append(pl.col("state").sort_by(weight).last().alias("step_state"))
    return told


def _completed(columns: list[str]) -> list[pl.Expr]:
    own_or_steps = []
    for name in (*_SUMMED, *_LARGEST):
        if name in columns:
            own = pl.when(pl.col(name) > 0).then(pl.col(name))
            own_or_steps.append(pl.coalesce(own, pl.col(f":{name}"), pl.col(name)).alias(name))
    return own_or_steps
