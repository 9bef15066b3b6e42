"""Slurm's ways of writing times, durations, sizes, exit codes and resources, by whole columns.

Each function takes an expression over text and gives an expression over values. What cannot be
read becomes null, so a value that was there before and is null after was a bad one.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from premortem.jobs.fields import Kind
from premortem.jobs.states import normal_state

# Words Slurm writes where there is nothing to say.
ABSENT_WORDS: tuple[str, ...] = ("", "Unknown", "None", "N/A", "(null)", "None assigned")

_BINARY_PREFIXES = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def present(text: pl.Expr) -> pl.Expr:
    """The text without surrounding blanks, or null where it is a word that means nothing."""
    stripped = text.str.strip_chars()
    return pl.when(~stripped.is_in(ABSENT_WORDS)).then(stripped)


def timestamp(text: pl.Expr, zone: str, format: str = "%Y-%m-%dT%H:%M:%S") -> pl.Expr:
    """The instant a clock in `zone` showed as `text`; a plain number is seconds since 1970, UTC.

    An hour that the clock showed twice, at the end of summer time, is read as the first of them.

    >>> pl.select(timestamp(pl.lit("2026-07-01T12:00:00"), "Europe/Berlin")).item().hour
    10
    """
    local = text.str.to_datetime(format, time_unit="us", strict=False)
    utc = local.dt.replace_time_zone(
        zone, ambiguous="earliest", non_existent="null"
    ).dt.convert_time_zone("UTC")
    epoch = text.cast(pl.Int64, strict=False) * 1_000_000
    return pl.coalesce(utc, epoch.cast(Kind.TIME.dtype))


def duration_s(text: pl.Expr) -> pl.Expr:
    """Seconds in a Slurm duration such as ``1-12:00:00`` or ``00:00.250``.

    The leading parts are optional, so ``02:30`` is minutes and seconds, not hours and minutes.

    >>> pl.select(duration_s(pl.lit("1-12:00:00"))).item()
    129600.0
    """
    parts = text.str.extract_groups(
        r"^(?:(\d{1,6})-)?(?:(\d{1,5}):)?(\d{1,2}):(\d{1,2}(?:\.\d+)?)$"
    )
    days, hours, minutes, seconds = (
        parts.struct.field(str(place)).cast(pl.Float64, strict=False) for place in (1, 2, 3, 4)
    )
    return days.fill_null(0) * 86400 + hours.fill_null(0) * 3600 + minutes * 60 + seconds


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
    return pl.when(value == value.floor()).then(value).cast(pl.Int64, strict=False)


def exit_status(text: pl.Expr, part: int) -> pl.Expr:
    """One half of an exit code such as ``1:9``: part 0 is the return value, part 1 the signal."""
    halves = text.str.extract_groups(r"^(\d+):(\d+)$")
    return halves.struct.field(str(part + 1)).cast(pl.Int64, strict=False)


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
        total = typed.list.eval(pl.element().str.extract(r"=(\d+)$").cast(pl.Int64)).list.sum()
        return pl.coalesce(quantity(entry), pl.when(typed.list.len() > 0).then(total))
    return quantity(entry)


def state(text: pl.Expr) -> pl.Expr:
    """The state meant by each spelling, see `normal_state`; null where it is none."""
    return by_distinct(text, normal_state)


def by_distinct(text: pl.Expr, meaning: Callable[[str], str | None]) -> pl.Expr:
    """Apply a function to each distinct text once; worth it where few texts repeat often."""

    def look_up(column: pl.Series) -> pl.Series:
        distinct = column.drop_nulls().unique()
        meanings = pl.Series([meaning(value) for value in distinct], dtype=pl.String)
        return column.replace_strict(distinct, meanings, default=None, return_dtype=pl.String)

    return text.map_batches(look_up, return_dtype=pl.String, is_elementwise=True)
