"""How often jobs were asked for in vain, so that nothing is asked for without end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from premortem.jobs.numbers import LARGEST

JobKey = tuple[str, int, datetime]
What = Literal["end", "steps", "script"]

# How often each is tried at most, and how long after the first time again; then twice as long.
_MOST: dict[What, int] = {"end": 6, "steps": 3, "script": 6}
_PAUSE_S: dict[What, float] = {"end": 10.0, "steps": 5.0, "script": 0.0}
_DAY_S = 86_400.0


@dataclass(slots=True)
class _Tried:
    times: int
    last_s: float


class Tries:
    """Counts questions about a job that brought nothing; after a day all begins anew."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tried: dict[tuple[What, JobKey], _Tried] = {}

    def due(self, what: What, jobs: Iterable[JobKey]) -> list[JobKey]:
        """Those of the jobs to ask for now."""
        now = self._clock()
        return [job for job in self.hopeful(what, jobs) if now >= self._next_s(what, job)]

    def hopeful(self, what: What, jobs: Iterable[JobKey]) -> list[JobKey]:
        """Those of the jobs to ask for now or later; by a number of our own none can be."""
        return [job for job in jobs if self._times(what, job) < _MOST[what] and job[1] <= LARGEST]

    def in_vain(self, what: What, jobs: Iterable[JobKey], *, for_good: bool = False) -> None:
        """These were asked for, and nothing was told; or there is no more to be told."""
        now = self._clock()
        for job in jobs:
            times = _MOST[what] if for_good else self._times(what, job) + 1
            self._tried[what, job] = _Tried(times, now)

    def forget_old(self) -> None:
        """Forget what was a day ago."""
        before = self._clock() - _DAY_S
        old = [which for which, tried in self._tried.items() if tried.last_s < before]
        for which in old:
            del self._tried[which]

    def _times(self, what: What, job: JobKey) -> int:
        tried = self._tried.get((what, job))
        return tried.times if tried else 0

    def _next_s(self, what: What, job: JobKey) -> float:
        tried = self._tried.get((what, job))
        return tried.last_s + _PAUSE_S[what] * 2 ** (tried.times - 1) if tried else 0.0
