"""Sentences made of values, by whole columns."""

from __future__ import annotations

import polars as pl


def filled(template: str, *values: pl.Expr | str) -> pl.Expr:
    """The template with each ``{}`` replaced by a value, row by row.

    A value is an expression or the name of a column; where one is null, so is the whole.

    What `pl.format` should do: in Polars 2.1 that panics on a column in which a filter left an
    empty chunk.

    >>> pl.select(filled("{} of {}", pl.lit(3), pl.lit(5))).item()
    '3 of 5'
    """
    literals = template.split("{}")
    parts: list[pl.Expr | str] = [pl.lit(literals[0])]
    for value, literal in zip(values, literals[1:], strict=True):
        parts += [value, pl.lit(literal)]
    return pl.concat_str(parts)
