"""Samples taken at a steady pace, thinned, and handed on, until it is told to stop."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from types import TracebackType

import polars as pl

from premortem.errors import InvalidInput, Unavailable
from premortem.jobs.samples import SAMPLE_SCHEMA
from premortem.sources.usage.port import Sampler, SampleSink
from premortem.sources.usage.thinning import Thinning

# More than that are not held back for a sink that takes none.
_MOST_WAITING = 200_000


class Recorder:
    """Hands samples to a sink, every so many seconds from the moment that it starts.

    `run` works in the calling thread until `stop` is called, by another thread or by the handler of
    a signal. In a `with` statement it works in a thread of its own, whose error, if any, is raised
    at the end. What is `Unavailable` is tried again at the next beat, with the samples that were to
    be kept; `tell` hears of it. A look that takes longer than a beat leaves beats out. Without
    `thin` all samples are kept. The sink is never handed an empty frame.
    """

    def __init__(
        self,
        sampler: Sampler,
        sink: SampleSink,
        every_s: float = 10.0,
        *,
        thin: bool = True,
        tell: Callable[[Unavailable], object] = lambda error: None,
    ) -> None:
        if not every_s > 0:
            raise InvalidInput(f"the time between two samples must be above 0 s, not {every_s:g} s")
        self._sampler = sampler
        self._sink = sink
        self._every_s = every_s
        self._thinning = Thinning() if thin else None
        self._tell = tell
        # Unlike an event, it may be used by a handler that interrupts whoever waits for it.
        self._orders: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._waiting: list[pl.DataFrame] = []
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def run(self, for_s: float | None = None) -> None:
        """Record until told to stop, or for so long; the first sample is taken at once."""
        end_s = math.inf if for_s is None else for_s
        began = time.monotonic()
        try:
            while True:
                self._record()
                elapsed_s = time.monotonic() - began
                # The next beat of the same clock, however long this one took.
                due_s = (elapsed_s // self._every_s + 1) * self._every_s
                pause_s = min(due_s, end_s) - elapsed_s
                if self._is_stopped_within(pause_s) or due_s > end_s:
                    break
        except KeyboardInterrupt:
            self._finish()
            raise
        self._finish()

    def stop(self) -> None:
        """End `run` soon, from wherever this is called."""
        self._orders.put(None)

    def __enter__(self) -> Recorder:
        self._thread = threading.Thread(target=self._run_aside, name="recorder", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._thread:
            self._thread.join()
        if self._error and error is None:
            raise self._error

    def _run_aside(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self._error = error

    def _is_stopped_within(self, pause_s: float) -> bool:
        try:
            self._orders.get(timeout=max(0.0, pause_s))
        except queue.Empty:
            return False
        return True

    def _record(self) -> None:
        try:
            samples = self._sampler.sample()
        except Unavailable as error:
            self._tell(error)
            return
        self._hand_on(self._thinning.thinned(samples) if self._thinning else samples)

    def _finish(self) -> None:
        self._hand_on(
            self._thinning.rest() if self._thinning else pl.DataFrame(schema=SAMPLE_SCHEMA)
        )

    def _hand_on(self, samples: pl.DataFrame) -> None:
        together = pl.concat([*self._waiting, samples])
        if together.is_empty():
            return
        self._waiting = [together]
        try:
            self._sink.add(together)
        except Unavailable as error:
            if together.height > _MOST_WAITING:
                raise
            self._tell(error)
        else:
            self._waiting = []
