"""Numbers in Slurm's spelling, by whole columns: what the readers of `sources` have to undo."""

from __future__ import annotations

import polars as pl

_UNITS = "KMGTP"


def size_text(amount: pl.Expr, unit: str) -> pl.Expr:
    """A whole amount in the largest unit that leaves it whole, as Slurm does: no rounding.

    >>> pl.Series([4096, 48_000]).to_frame("mb").select(size_text(pl.col("mb"), "M")).rows()
    [('4G',), ('48000M',)]
    """
    larger = _UNITS[_UNITS.index(unit) :]
    shortened, suffix = amount, pl.lit(unit)
    for power in (1, 2):
        whole = (amount % 1024**power == 0) & (amount != 0)
        shortened = pl.when(whole).then(amount // 1024**power).otherwise(shortened)
        suffix = pl.when(whole).then(pl.lit(larger[power])).otherwise(suffix)
    suffix = pl.when(amount == 0).then(pl.lit("")).otherwise(suffix)
    return pl.concat_str(shortened.cast(pl.String), suffix)


def clock_text(milliseconds: pl.Expr) -> pl.Expr:
    """A duration as sacct prints it: fractions only below one hour, and only where there are any.

    >>> pl.Series([93_784_500, 65_500]).to_frame("ms").select(clock_text(pl.col("ms"))).rows()
    [('1-02:03:04',), ('01:05.500',)]
    """
    seconds = milliseconds // 1000
    days, hours = seconds // 86_400, seconds // 3600 % 24
    fraction = milliseconds % 1000
    minutes_seconds = pl.concat_str(_two(seconds // 60 % 60), pl.lit(":"), _two(seconds % 60))
    whole = pl.concat_str(_two(hours), pl.lit(":"), minutes_seconds)
    return (
        pl.when(days > 0)
        .then(pl.concat_str(days.cast(pl.String), pl.lit("-"), whole))
        .when((hours > 0) | (fraction == 0))
        .then(whole)
        .otherwise(pl.concat_str(minutes_seconds, pl.lit("."), _padded(fraction, 3)))
    )


def decimal_text(number: pl.Expr) -> pl.Expr:
    """A number with two decimals, as sacct prints averages."""
    hundredths = (number * 100).round().cast(pl.Int64)
    whole = (hundredths // 100).cast(pl.String)
    return pl.concat_str(whole, pl.lit("."), _padded(hundredths % 100, 2))


def time_text(time: pl.Expr) -> pl.Expr:
    """A time of day in UTC, without its zone, as sacct prints it; null stays null."""
    return time.dt.strftime("%Y-%m-%dT%H:%M:%S")


def _two(number: pl.Expr) -> pl.Expr:
    return _padded(number, 2)


def _padded(number: pl.Expr, width: int) -> pl.Expr:
    return number.cast(pl.String).str.zfill(width)
