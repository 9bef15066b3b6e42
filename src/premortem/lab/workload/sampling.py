"""Calls somebody who looks at running jobs, every two seconds, beside the driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

PERIOD_S = 2.0


class Sampler(Protocol):
    """Looks at the jobs that run, such as by sstat, and keeps what it sees."""

    def sample(self) -> None:
        """Take one look; called from one thread, and never while an earlier call still runs."""


class Sampling:
    """A thread that samples until it is left; what a sampler raises ends it, and is told."""

    def __init__(
        self, sampler: Sampler | None, tell: Callable[[str], None], period_s: float = PERIOD_S
    ) -> None:
        self._sampler = sampler
        self._tell = tell
        self._period_s = period_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sampling", daemon=True)

    def __enter__(self) -> Sampling:
        if self._sampler:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        if self._sampler is None:
            return
        due = time.monotonic()
        while not self._end.wait(max(0, due - time.monotonic())):
            due = max(due + self._period_s, time.monotonic())
            try:
                self._sampler.sample()
            except Exception as error:
                # Jobs go on without samples; whoever reads the words can act.
                self._tell(f"sampling has ended: {error}")
                return
