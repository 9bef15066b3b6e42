"""Accidents: nodes that die while jobs run on them, and come back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from premortem.errors import PremortemError
from premortem.lab import Lab
from premortem.lab.workload import crash
from premortem.lab.workload.desk import Desk, Seen

# Slurm misses a node after ten seconds, and looks for lost ones every few.
_PATIENCE_S = 45.0


class Accidents:
    """Ends a node with all that it runs after every so many jobs, and brings it back.

    One at a time. `lab.up` takes seconds, so it runs beside the driver.
    """

    def __init__(self, lab: Lab, *, every: int, seed: int, tell: Callable[[str], None]) -> None:
        self._lab = lab
        self._every = every
        self._by_chance = Random(f"accidents {seed}")
        self._tell = tell
        self._next = max(40, every // 3)
        self._node: str | None = None
        self._since = 0.0
        self._revival: threading.Thread | None = None

    def look(self, desk: Desk, submitted: int, jobs: Iterable[Seen], now: float) -> None:
        """Do what is due, by the number of jobs so far and those that the queue shows."""
        running = [job.node for job in jobs if job.state == "RUNNING" and job.node]
        if self._node is None:
            if submitted >= self._next and running:
                # A name such as n[4-5] is that of two nodes; one of one node is as good.
                node = self._by_chance.choice(sorted(running))
                if "[" not in node and "," not in node:
                    self._kill(desk, node, now)
        elif self._revival is None:
            lost = self._node not in running
            if (lost and now - self._since > 12) or now - self._since > _PATIENCE_S:
                self._revival = threading.Thread(target=self._revive, daemon=True)
                self._revival.start()
        elif not self._revival.is_alive():
            self._node = self._revival = None

    def finish(self) -> None:
        """Bring back what is still dead."""
        if self._revival:
            self._revival.join()
        elif self._node:
            self._revive()
        self._node = self._revival = None

    def _kill(self, desk: Desk, node: str, now: float) -> None:
        self._next += self._every
        self._node, self._since = node, now
        source = Path(crash.__file__).read_text(encoding="utf-8")
        desk.run(("python3", "-I", "-S", "-c", source, node))

    def _revive(self) -> None:
        try:
            self._lab.up()
        except PremortemError as error:
            self._tell(f"node {self._node} did not come back: {error}")
