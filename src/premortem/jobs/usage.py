"""What jobs have used of a cluster."""

from __future__ import annotations

import polars as pl


def core_hours() -> pl.Expr:
    """The CPUs a job held times the hours it ran, busy or idle; 0 for one that never ran.

    Some tables tell only the CPUs that were asked for: then those count.
    """
    cpus = pl.coalesce("alloc_cpus", "req_cpus")
    return (cpus * pl.col("elapsed_s") / 3600.0).cast(pl.Float64).fill_null(0.0)
