"""What a TRES list says: ``cpu=4,mem=16G,node=1,gres/gpu=2``."""

from __future__ import annotations

import polars as pl

from premortem.jobs.fields import BY_NAME, Kind
from premortem.jobs.spellings import quantity, size_mb

_COUNTED = {"nodes": "node", "cpus": "cpu", "memory_mb": "mem", "gpus": "gres/gpu"}


def tres_count(text: pl.Expr, resource: str) -> pl.Expr:
    """How much of a resource a TRES list names; memory in MiB.

    Typed GPUs (``gres/gpu:a100=2``) are counted by the untyped entry that Slurm writes beside them,
    and by their sum where it is missing.

    >>> pl.select(tres_count(pl.lit("cpu=4,mem=16G,gres/gpu=2"), "mem")).item()
    16384.0
    """
    entry = text.str.extract(rf"(?:^|,){resource}=([\d.]+[KMGTPE]?)(?:,|$)")
    if resource == "mem":
        return size_mb(entry, plain="M")
    if resource == "gres/gpu":
        typed = text.str.extract_all(r"gres/gpu:[^=,]+=\d+")
        told = pl.element().str.extract(r"=(\d+)$").cast(pl.Float64, strict=False)
        total = typed.list.eval(told).list.sum()
        return pl.coalesce(quantity(entry), pl.when(typed.list.len() > 0).then(total))
    return quantity(entry)


def with_tres_counts(records: pl.DataFrame) -> pl.DataFrame:
    """Fill counts from the TRES lists where the source has no figure of its own for them."""
    for prefix in ("req", "alloc"):
        tres = f"{prefix}_tres"
        if tres not in records.columns:
            continue
        counts = {f"{prefix}_{what}": resource for what, resource in _COUNTED.items()}
        table = records.select(pl.col(tres).unique().drop_nulls()).with_columns(
            # Cut to what a whole number can hold; the check of bounds refuses it by name.
            tres_count(pl.col(tres), resource).clip(upper_bound=2.0**62).alias(f":{name}")
            for name, resource in counts.items()
        )
        joined = records.join(table, on=tres, how="left", maintain_order="left")
        records = joined.with_columns(
            pl.coalesce(
                *([pl.col(name)] if name in records.columns else []),
                pl.col(f":{name}").cast(_dtype(name)),
            ).alias(name)
            for name in counts
        ).drop([f":{name}" for name in counts])
    return records


def _dtype(name: str) -> pl.DataType:
    return (Kind.NUMBER if BY_NAME[name].kind is Kind.NUMBER else Kind.INTEGER).dtype
