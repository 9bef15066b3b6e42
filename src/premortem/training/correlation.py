"""Which features rise and fall with failure, and with each other: rank correlations.

A correlation finds what goes steadily up or down together. It sees no bend, and it is no cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from premortem.errors import InvalidInput
from premortem.models.port import Array

# With fewer jobs a correlation is chance.
FEWEST_JOBS = 20
# Features that correlate more strongly than this say the same; one of them is enough to look at.
NEAR_COPY = 0.95
# Codes of names, which have no order.
_CODES = "_last_cause"


@dataclass(frozen=True, slots=True)
class WithFailure:
    """A feature's rank correlation with failure: above zero, the higher the more jobs fail.

    `known` is the share of the jobs that have the feature; the correlation is over those alone.
    """

    feature: str
    correlation: float
    known: float


@dataclass(frozen=True, slots=True)
class Correlations:
    """Features by the strength of their correlation with failure, and a map of the strongest.

    `map` has a row and a column for each of `strongest`, in that order; None where two features
    are hardly ever known together, or one is then always the same. `near_copies` would have been
    among the strongest, but say nearly the same as one of them, which is told. `left_out` are
    features that are the same in all jobs looked at, known in hardly any or for one outcome alone,
    or codes.
    """

    jobs: int
    sampled: int
    with_failure: tuple[WithFailure, ...]
    strongest: tuple[str, ...]
    map: tuple[tuple[float | None, ...], ...]
    near_copies: dict[str, str]
    left_out: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return asdict(self)


def correlation_map(
    values: Array,
    names: Sequence[str],
    outcomes: Array,
    *,
    strongest: int = 20,
    sample: int = 50_000,
    seed: int = 0,
) -> Correlations:
    """Spearman's correlation of each column with failure (1, completed 0), and among the strongest.

    Jobs whose outcome is NaN do not count. Missing values are left out pair by pair, and the ranks
    made among what remains: two features that are missing together correlate no more for that. Of
    more than `sample` jobs so many are drawn at random; at 50,000 that moves a correlation by 0.004
    or so. Columns are looked at one by one, so memory does not grow with their number.
    """
    if values.ndim != 2 or values.shape != (len(outcomes), len(names)):
        raise InvalidInput(
            f"{len(outcomes)} outcomes and {len(names)} names do not fit rows of {values.shape}"
        )
    if strongest < 0 or sample < FEWEST_JOBS:
        raise InvalidInput(
            f"expected strongest >= 0 and sample >= {FEWEST_JOBS}, not {strongest} and {sample}"
        )
    told = np.asarray(outcomes, dtype=np.float64)
    counted = np.flatnonzero(~np.isnan(told))
    jobs = len(counted)
    if jobs < FEWEST_JOBS:
        raise InvalidInput(f"correlations need at least {FEWEST_JOBS} ended jobs, not {jobs}")
    if jobs > sample:
        counted = np.sort(np.random.default_rng(seed).choice(counted, sample, replace=False))
    failed = told[counted]
    if np.ptp(failed) == 0:
        raise InvalidInput("correlations need jobs that failed (1) and jobs that completed (0)")
    found: list[WithFailure] = []
    left_out: list[str] = []
    for place, name in enumerate(names):
        column = values[counted, place]
        correlation = None if name.endswith(_CODES) else _spearman(column, failed)
        if correlation is None:
            left_out.append(name)
        else:
            found.append(WithFailure(name, correlation, float(np.isfinite(column).mean())))
    found.sort(key=lambda one: (-abs(one.correlation), one.feature))
    columns = ((one.feature, values[counted, names.index(one.feature)]) for one in found)
    first, table, copies = _map(columns, strongest)
    return Correlations(
        jobs, len(counted), tuple(found), first, table, copies, tuple(left_out)
    )  # fmt: skip


def _map(
    columns: Iterable[tuple[str, Array]], most: int
) -> tuple[tuple[str, ...], tuple[tuple[float | None, ...], ...], dict[str, str]]:
    """The first columns that are no near copies of one before, their map, and the copies."""
    kept: dict[str, Array] = {}
    table: list[list[float | None]] = []
    copies: dict[str, str] = {}
    for name, column in columns:
        if len(kept) == most:
            break
        row = [_spearman(column, other) for other in kept.values()]
        alike = (one for one, r in zip(kept, row, strict=True) if r and abs(r) > NEAR_COPY)
        original = next(alike, None)
        if original:
            copies[name] = original
            continue
        for above, correlation in zip(table, row, strict=True):
            above.append(correlation)
        table.append([*row, 1.0])
        kept[name] = column
    return tuple(kept), tuple(map(tuple, table)), copies


def _spearman(one: Array, other: Array) -> float | None:
    """The correlation of the ranks where both are known; None where it is not defined."""
    both = np.isfinite(one) & np.isfinite(other)
    if both.sum() < FEWEST_JOBS:
        return None
    ranks, other_ranks = _ranks(one[both]), _ranks(other[both])
    spread = np.sqrt((ranks @ ranks) * (other_ranks @ other_ranks))
    return float(np.clip((ranks @ other_ranks) / spread, -1, 1)) if spread > 0 else None


def _ranks(values: Array) -> Array:
    """Ranks about zero; equal values share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Array = (last - (counts - 1) / 2)[places]
    ranks -= (len(values) + 1) / 2
    return ranks
