"""Columns of text turned into job fields, each value checked as it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from premortem.jobs.fields import BY_NAME
from premortem.jobs.spellings import present
from premortem.jobs.wording import filled

# How a text that is not there is written; anything else may be a name.
_EMPTY = ("", "(null)")

Expression = Callable[[pl.Expr], pl.Expr]


def as_text(text: pl.Expr) -> pl.Expr:
    """The text itself: what users name things, were it `None`."""
    return text


def as_said(text: pl.Expr) -> pl.Expr:
    """The text, if it is not one of the words by which Slurm says nothing."""
    return present(text)


def everywhere(text: pl.Expr) -> pl.Expr:
    """True wherever there is a text."""
    return text.is_not_null()


@dataclass(frozen=True, slots=True)
class Reading:
    """How one field is read from one column of text.

    `expected` says in words what should stand there; a text that is there and cannot be read makes
    its record a bad one. `where` limits that to the texts that are meant for this field, such as
    those sizes that end in ``c`` for memory per CPU.
    """

    field: str
    column: str
    read: Expression = as_text
    expected: str = "text"
    where: Expression = everywhere


def read_fields(
    raw: pl.DataFrame, readings: Sequence[Reading]
) -> tuple[pl.DataFrame, pl.Series | None]:
    """The fields of each record, and why a record cannot be read (None where all can).

    Columns that no reading names are ignored.
    """
    columns = list(dict.fromkeys(reading.column for reading in readings))
    named = {reading.column for reading in readings if reading.read is as_text}
    texts = (
        raw.lazy()
        .select(pl.col(columns).str.strip_chars())
        .with_columns(
            *[present(pl.col(name)) for name in columns if name not in named],
            *[pl.when(~pl.col(name).is_in(_EMPTY)).then(pl.col(name)) for name in named],
        )
        .collect(engine="in-memory")
    )
    values = []
    for reading in readings:
        value = reading.read(pl.col(reading.column))
        if reading.where is not everywhere:
            value = pl.when(reading.where(pl.col(reading.column))).then(value)
        dtype = BY_NAME[reading.field].kind.dtype
        values.append(value.cast(dtype, strict=False).alias(reading.field))
    records = texts.lazy().select(values).collect(engine="in-memory")
    return records, _unreadable(texts, records, readings)


def _unreadable(
    texts: pl.DataFrame, records: pl.DataFrame, readings: Sequence[Reading]
) -> pl.Series | None:
    """Why each record cannot be read; None where all can."""
    given = texts.select(pl.all().is_not_null().sum()).row(0, named=True)
    found = records.select(pl.all().is_not_null().sum()).row(0, named=True)
    reasons = []
    for reading in readings:
        if reading.read in (as_text, as_said) or found[reading.field] == given[reading.column]:
            continue
        text = pl.col(reading.column)
        lost = reading.where(text) & text.is_not_null() & records[reading.field].is_null()
        message = filled(
            "{} is '{}', expected {}",
            pl.lit(reading.column),
            text.str.slice(0, 60),
            pl.lit(reading.expected),
        )
        reasons.append((lost, message))
    if not reasons:
        return None
    is_lost = texts.select(pl.any_horizontal(lost for lost, _ in reasons)).to_series()
    if not is_lost.any():
        return None
    return texts.select(pl.coalesce(pl.when(lost).then(text) for lost, text in reasons)).to_series()
