"""The shape of a job frame: a Polars frame whose columns are fields of the table, or some of them.

A field without a column is absent from every job in the frame.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from premortem.errors import InvalidInput
from premortem.jobs.fields import BY_NAME, FIELDS, Kind

SCHEMA: dict[str, pl.DataType] = {field.name: field.kind.dtype for field in FIELDS}


def conform(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with the table's types and order of columns; unknown columns are an error.

    Times are whole seconds, as Slurm has them.
    """
    require_fields(frame.columns)
    return frame.select(_typed(name) for name in SCHEMA if name in frame.columns)


def _typed(name: str) -> pl.Expr:
    column = pl.col(name).cast(SCHEMA[name])
    return column.dt.truncate("1s") if BY_NAME[name].kind is Kind.TIME else column


def require_fields(names: Iterable[str]) -> None:
    """Raise `InvalidInput` unless every name is a field."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise InvalidInput(
            f"no such job field: {', '.join(unknown)} (docs/reference/fields.md lists them)"
        )
