"""What a job's name says beyond the numbers in it."""

from __future__ import annotations

import polars as pl


def name_stem(name: pl.Expr) -> pl.Expr:
    """The name with every number replaced by ``#``, so that `relax_01` and `relax_17` are alike.

    >>> pl.select(name_stem(pl.lit("relax_01.v2"))).item()
    'relax_#.v#'
    """
    return name.str.replace_all("[0-9]+", "#")
