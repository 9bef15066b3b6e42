"""Records that make no sense, set aside once each: Slurm tells them again in every answer."""

from __future__ import annotations

import polars as pl

from premortem.sources.live.port import Daemon
from premortem.sources.port import REJECT_SCHEMA
from premortem.stores.port import Store

# What was set aside longer ago may be set aside again.
_MOST_REMEMBERED = 10_000


class BadRecords:
    """Those of one collector, since it was started."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[tuple[str, str, str]] = set()

    def keep(self, daemon: Daemon, rejects: pl.DataFrame, *, before: int) -> int:
        """Set aside those that are new, and tell how many that were.

        As `line`, they are numbered in the order they came in, after those `before`.
        """
        told = dict.fromkeys(rejects.select("reason", "text").iter_rows())
        new = [(daemon, *one) for one in told if (daemon, *one) not in self._known]
        rows = [(before + n, reason, text) for n, (_, reason, text) in enumerate(new, 1)]
        numbered = pl.DataFrame(rows, schema=REJECT_SCHEMA, orient="row")
        self._store.set_aside(f"{daemon}, collected", numbered)
        if len(self._known) + len(new) > _MOST_REMEMBERED:
            self._known.clear()
        self._known.update(new)
        return len(new)
