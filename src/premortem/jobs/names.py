"""What a job's name or directory says beyond the numbers in it."""

from __future__ import annotations

import re

import polars as pl

_NUMBERS = "[0-9]+"


def name_stem(name: pl.Expr) -> pl.Expr:
    """The name with every number replaced by ``#``, so that `relax_01` and `relax_17` are alike.

    >>> pl.select(name_stem(pl.lit("relax_01.v2"))).item()
    'relax_#.v#'
    """
    return name.str.replace_all(_NUMBERS, "#")


def stem(name: str) -> str:
    """The same of a single name."""
    return re.sub(_NUMBERS, "#", name)
