"""Records that make no sense, set aside once each: Slurm tells them again in every answer."""

from __future__ import annotations

from typing import get_args

import polars as pl

from premortem.sources.live.port import Daemon
from premortem.sources.port import REJECT_SCHEMA
from premortem.stores.port import Store

# What was set aside longer ago may be set aside again.
_MOST_REMEMBERED = 10_000


class BadRecords:
    """Those that collectors set aside in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[tuple[str, str, str]] = {
            (daemon, reason, text)
            for daemon in get_args(Daemon)
            for reason, text in store.rejects(_source(daemon)).select("reason", "text").iter_rows()
        }

    def keep(self, daemon: Daemon, rejects: pl.DataFrame, *, before: int) -> int:
        """Set aside those that are new, and tell how many that were.

        As `line`, they are numbered in the order they came in, after those `before`.
        """
        told = dict.fromkeys(rejects.select("reason", "text").iter_rows())
        new = [(daemon, *one) for one in told if (daemon, *one) not in self._known]
        rows = [(before + n, reason, text) for n, (_, reason, text) in enumerate(new, 1)]
        numbered = pl.DataFrame(rows, schema=REJECT_SCHEMA, orient="row")
        self._store.set_aside(_source(daemon), numbered)
        if len(self._known) + len(new) > _MOST_REMEMBERED:
            self._known.clear()
        self._known.update(new)
        return len(new)


def _source(daemon: Daemon) -> str:
    return f"{daemon}, collected"
