"""Samples taken at a steady pace, thinned, and handed on, until it is told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

import polars as pl

from premortem.errors import InvalidInput, Unavailable
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
    `thin` all samples are kept.
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
        self._stopped = threading.Event()
        self._waiting: list[pl.DataFrame] = []
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def run(self, for_s: float | None = None) -> None:
        """Record until told to stop, or for so long; the first sample is taken at once."""
        began, beat = time.monotonic(), 0
        try:
            while True:
                self._record()
                elapsed = time.monotonic() - began
                # The next beat of the same clock, however long this one took.
                beat = max(beat + 1, int(elapsed // self._every_s) + 1)
                due = beat * self._every_s
                last = for_s is not None and due > for_s
                pause_s = (for_s if last and for_s is not None else due) - elapsed
                if self._stopped.wait(max(0.0, pause_s)) or last:
                    break
        finally:
            self._finish()

    def stop(self) -> None:
        """End `run` soon, from wherever this is called."""
        self._stopped.set()

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

    def _record(self) -> None:
        try:
            samples = self._sampler.sample()
        except Unavailable as error:
            self._tell(error)
            return
        self._hand_on(self._thinning.thinned(samples) if self._thinning else samples)

    def _finish(self) -> None:
        if self._thinning:
            self._hand_on(self._thinning.rest())
        elif self._waiting:
            self._hand_on(self._waiting.pop())

    def _hand_on(self, samples: pl.DataFrame) -> None:
        self._waiting.append(samples)
        together = pl.concat(self._waiting)
        self._waiting = [together]
        try:
            self._sink.add(together)
        except Unavailable as error:
            if together.height > _MOST_WAITING:
                raise
            self._tell(error)
        else:
            self._waiting = []
