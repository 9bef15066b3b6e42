"""How often a cluster is asked, and how much at most."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to ask, and how much at most: calls are those of any minute.

    A first round looks back as far as `history`, and so does a later one if none has looked as far
    yet; others look back behind the last by `overlap`.
    """

    every_s: float = 60.0
    slurmctld_calls: int = 6
    slurmdbd_calls: int = 6
    overlap: timedelta = timedelta(minutes=10)
    history: timedelta = timedelta(days=1)
    longest_pause_s: float = 600.0
