"""Fewer samples of a job the longer it runs: close together at first, then in step with its age."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from premortem.jobs.samples import SAMPLE_SCHEMA


@dataclass(slots=True)
class _Seen:
    first: datetime
    last: datetime
    kept: datetime
    held: dict[str, Any] | None = None


class Thinning:
    """Which samples to keep: all of a job's first minutes, then one each time it is so much older.

    `share` is that part of its age, and `widest_s` the longest that is ever waited. The last sample
    of a job that is seen no more is kept as well: it comes late, with the samples of others. Age
    counts from a job's first sample, and anew where it was not seen for longer than `widest_s`.
    Of a sample every ten seconds this keeps some 220 in a job's first day, and 144 in each later
    one.
    """

    def __init__(
        self, *, all_s: float = 120.0, share: float = 1 / 20, widest_s: float = 600.0
    ) -> None:
        self._all = timedelta(seconds=all_s)
        self._share = share
        self._widest = timedelta(seconds=widest_s)
        self._seen: dict[tuple[str, int], _Seen] = {}

    def thinned(self, samples: pl.DataFrame) -> pl.DataFrame:
        """What to keep of all samples of one moment, and the last ones of jobs that have ended."""
        present = set()
        kept: list[dict[str, Any]] = []
        for row in samples.iter_rows(named=True):
            key = (row["cluster"], row["job_id"])
            present.add(key)
            if self._is_due(key, row["at"]):
                kept.append(row)
                self._seen[key].held = None
            else:
                self._seen[key].held = row
        last = [self._released(key) for key in self._seen if key not in present]
        self._forget(samples["at"].max())
        rows = [*(row for row in last if row), *kept]
        return pl.DataFrame(rows, schema=SAMPLE_SCHEMA)

    def rest(self) -> pl.DataFrame:
        """The last samples of all jobs, where they were not kept; for the end of a recording."""
        rows = [row for row in map(self._released, self._seen) if row]
        return pl.DataFrame(rows, schema=SAMPLE_SCHEMA)

    def _is_due(self, key: tuple[str, int], at: datetime) -> bool:
        seen = self._seen.get(key)
        if seen is None or at - seen.last > self._widest:
            self._seen[key] = _Seen(at, at, at)
            return True
        seen.last = at
        age = at - seen.first
        if age > self._all and at - seen.kept < min(age * self._share, self._widest):
            return False
        seen.kept = at
        return True

    def _released(self, key: tuple[str, int]) -> dict[str, Any] | None:
        seen = self._seen[key]
        row, seen.held = seen.held, None
        return row

    def _forget(self, now: Any) -> None:
        if isinstance(now, datetime):
            self._seen = {
                key: seen for key, seen in self._seen.items() if now - seen.last <= self._widest
            }
