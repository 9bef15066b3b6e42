"""Pacing: when, in real time, a moment of the simulated calendar comes.

The calendar runs at an even speed, and stands still while the queue is full or the machine is
overloaded. So the queue never runs away, however slow the machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from premortem.lab.workload.calendar import DAY
from premortem.lab.workload.campaign import JOBS_PER_DAY

USUAL_RATE = 190.0


def _load() -> float:
    return os.getloadavg()[0]


@dataclass
class Pace:
    """The speed of the calendar, `rate` jobs a minute on average, and what makes it stand still."""

    rate: float
    most_waiting: int
    most_running: int
    most_load: float
    load: Callable[[], float] = _load
    _moment: float = 0.0
    _looked: float | None = None

    def moment(self, now: float) -> float:
        """The moment of the calendar at a real time, in seconds of any steady clock."""
        if self._looked is not None:
            self._moment += (now - self._looked) * self.rate / 60 * DAY / JOBS_PER_DAY
        self._looked = now
        return self._moment

    def stand_still(self, moment: float) -> None:
        """Let no time have passed since a moment that could not be kept."""
        self._moment = min(self._moment, moment)

    def has_room(self, waiting: int, running: int) -> bool:
        """Whether one more may be submitted."""
        return (
            waiting < self.most_waiting
            and running < self.most_running
            and self.load() < self.most_load
        )
