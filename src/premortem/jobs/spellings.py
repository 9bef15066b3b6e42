"""Slurm's ways of writing times, durations, sizes, exit codes and resources, by whole columns.

Each function takes an expression over text and gives an expression over values. What cannot be
read becomes null, so a value that was there before and is null after was a bad one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import polars as pl
from polars.exceptions import PolarsError

from premortem.errors import InvalidInput
from premortem.jobs.fields import Kind
from premortem.jobs.states import normal_state

# Words Slurm writes where there is nothing to say; a user may well be called so.
ABSENT_WORDS: tuple[str, ...] = ("", "Unknown", "None", "N/A", "(null)", "None assigned")

# A number beyond this, some three thousand years from 1970, is no time in seconds.
FARTHEST_S = 10**11

_BINARY_PREFIXES = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def present(text: pl.Expr) -> pl.Expr:
    """The text, or null where it is a word that means nothing; surrounding blanks count."""
    return pl.when(~text.is_in(ABSENT_WORDS)).then(text)


def timestamp(
    text: pl.Expr,
    zone: str,
    format: str = "%Y-%m-%dT%H:%M:%S",
    ambiguous: Literal["earliest", "latest"] = "earliest",
) -> pl.Expr:
    """The instant a clock in `zone` showed as `text`; a plain number is seconds since 1970, UTC.

    An hour that the clock showed twice, at the end of summer time, is read as the first of them,
    unless `ambiguous` asks for the latest.
    Where the format has the clock's own offset (``%z``), `zone` does not count. Fractions of a
    second are cut off.

    >>> pl.select(timestamp(pl.lit("2026-07-01T12:00:00"), "Europe/Berlin")).item().hour
    10
    """
    clock = text.str.to_datetime(format, time_unit="us", strict=False)
    if "%z" not in format:
        clock = clock.dt.replace_time_zone(zone, ambiguous=ambiguous, non_existent="null")
    if "f" in format:
        clock = clock.dt.truncate("1s")
    seconds = text.cast(pl.Int64, strict=False)
    epoch = pl.when(seconds.abs() <= FARTHEST_S).then(seconds * 1_000_000)
    return pl.coalesce(clock.dt.convert_time_zone("UTC"), epoch.cast(Kind.TIME.dtype))


def iso_timestamp(text: pl.Expr, zone: str) -> pl.Expr:
    """The instant an ISO 8601 date and time means, in any of its usual shapes; see `timestamp`.

    >>> pl.select(iso_timestamp(pl.lit("2026-07-01 12:00:00.5+02:00"), "UTC")).item().hour
    10
    """
    even = text.str.replace(" ", "T", literal=True).str.replace("Z$", "+0000")
    shapes = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d")
    zoned = ("%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S%.f%z")
    return pl.coalesce(timestamp(even, zone, shape) for shape in (*shapes, *zoned))


def require_zone(name: str) -> str:
    """The name of a time zone as it was given; raises `InvalidInput` if it is none."""
    problem = InvalidInput(f"'{name}' is not a time zone; expected one such as Europe/Berlin")
    if not name:
        raise problem
    try:
        pl.select(timestamp(pl.lit("2026-01-01T00:00:00"), name))
    except PolarsError as error:
        raise problem from error
    return name


def duration_s(text: pl.Expr) -> pl.Expr:
    """Seconds in a Slurm duration such as ``1-12:00:00`` or ``00:00.250``.

    The leading parts are optional, so ``02:30`` is minutes and seconds, not hours and minutes.
    Behind days it is the trailing ones that are: ``1-12`` and ``1-12:00`` are days and hours.

    >>> pl.select(duration_s(pl.lit("1-12:00:00"))).item()
    129600.0
    """
    clock = text.str.extract_groups(r"^(?:(\d{1,5}):)?([0-5]?\d):([0-5]?\d(?:\.\d+)?)$")
    after_days = text.str.extract_groups(
        r"^(\d{1,6})-(\d{1,2})(?::([0-5]?\d)(?::([0-5]?\d(?:\.\d+)?))?)?$"
    )
    hours, minutes, seconds = (_place(clock, place) for place in (1, 2, 3))
    short = hours.fill_null(0) * 3600 + minutes * 60 + seconds
    days, hours, minutes, seconds = (_place(after_days, place) for place in (1, 2, 3, 4))
    long = days * 86400 + hours * 3600 + minutes.fill_null(0) * 60 + seconds.fill_null(0)
    return pl.coalesce(short, long)


def quantity(text: pl.Expr, *, plain: float = 1.0, step: float = 1024.0) -> pl.Expr:
    """A number that may carry a prefix, each worth `step` times the one before it.

    `plain` is what a number without a prefix is multiplied by.

    >>> pl.select(quantity(pl.lit("1.5K"))).item()
    1536.0
    """
    parts = text.str.extract_groups(r"^(-?\d+(?:\.\d+)?)([KMGTPE]?)$")
    factor = parts.struct.field("2").replace_strict(
        {prefix: step**power for prefix, power in _BINARY_PREFIXES.items()} | {"": plain},
        default=None,
        return_dtype=pl.Float64,
    )
    return parts.struct.field("1").cast(pl.Float64, strict=False) * factor


def size_mb(text: pl.Expr, *, plain: str = "") -> pl.Expr:
    """MiB in a size such as ``48000M`` or ``12345K``; a number without prefix is in `plain`.

    >>> pl.select(size_mb(pl.lit("4G"))).item(), pl.select(size_mb(pl.lit("100"), plain="M")).item()
    (4096.0, 100.0)
    """
    return quantity(text, plain=1024.0 ** _BINARY_PREFIXES[plain]) / 1024.0**2


def integer(text: pl.Expr) -> pl.Expr:
    """A whole number, with or without a prefix: Slurm shortens large node counts to ``2K``."""
    value = pl.coalesce(text.cast(pl.Float64, strict=False), quantity(text))
    rounded = pl.when(value == value.floor()).then(value).cast(pl.Int64, strict=False)
    return pl.coalesce(text.cast(pl.Int64, strict=False), rounded)


def exit_status(text: pl.Expr, part: int) -> pl.Expr:
    """One half of an exit code such as ``1:9``: part 0 is the return value, part 1 the signal."""
    halves = text.str.extract_groups(r"^(\d+):(\d+)$")
    return halves.struct.field(str(part + 1)).cast(pl.Int64, strict=False)


def state(text: pl.Expr) -> pl.Expr:
    """The state meant by each spelling, see `normal_state`; null where it is none."""

    def meant(spellings: pl.Series) -> pl.Series:
        return pl.Series([normal_state(spelling) for spelling in spellings], dtype=pl.String)

    return _once_each(text, meant, pl.String())


def once_each(read: Callable[[pl.Expr], pl.Expr], kind: Kind) -> Callable[[pl.Expr], pl.Expr]:
    """The same reading, done once for each distinct text: worth it where texts repeat a lot."""

    def read_distinct(texts: pl.Series) -> pl.Series:
        return texts.to_frame("text").select(read(pl.col("text")).cast(kind.dtype)).to_series()

    return lambda text: _once_each(text, read_distinct, kind.dtype)


def _once_each(
    text: pl.Expr, read: Callable[[pl.Series], pl.Series], dtype: pl.DataType
) -> pl.Expr:
    def look_up(texts: pl.Series) -> pl.Series:
        distinct = texts.drop_nulls().unique()
        return texts.replace_strict(distinct, read(distinct), default=None, return_dtype=dtype)

    return text.map_batches(look_up, return_dtype=dtype, is_elementwise=True)


def _place(groups: pl.Expr, place: int) -> pl.Expr:
    return groups.struct.field(str(place)).cast(pl.Float64, strict=False)
