"""What of accounting is to be read next: spans of time, each remembered when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import polars as pl

from premortem.operations.collector_state import CollectorState, moment
from premortem.operations.paces import Pace
from premortem.sources.live.port import Accounting
from premortem.sources.port import Batch

_SPAN = timedelta(days=1)
_NOTHING = Batch(pl.DataFrame(), pl.DataFrame())


class AccountingSpans:
    """Reads from the watermark, and a while before, up to now; then again after some time.

    Reading may be left off after any batch, for as long as need be, and goes on there.
    """

    def __init__(
        self,
        cluster: Accounting,
        state: CollectorState,
        pace: Pace,
        *,
        now: Callable[[], datetime],
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._state = state
        self._pace = pace
        self._now = now
        self._clock = clock
        self._batches: Iterator[Batch] | None = None
        # The end of the span that is read, of all that is to be read, and when that was now.
        self._until = self._last = self._begun = now()
        self._begun_s = float("-inf")
        # The last answer since reading was broken off; until when the watermark is held since, and
        # where.
        self._answered: datetime | None = None
        self._held_until_s = float("-inf")
        self._held_at: datetime | None = None

    @property
    def is_due(self) -> bool:
        """Whether there is something to read: half of the budget at most is for that."""
        waited_s = self._clock() - self._begun_s
        return self.is_reading or waited_s >= 120 / self._pace.slurmdbd_calls

    @property
    def is_reading(self) -> bool:
        """Whether reading has begun and has not come to its end."""
        return self._batches is not None

    def read(self) -> Batch:
        """The next batch; an empty one at the end of a span, with which the watermark moves."""
        if self._batches is None:
            self._begin()
        assert self._batches is not None
        batch = next(self._batches, _NOTHING)
        self._answered = self._now()
        if batch is _NOTHING:
            self._end_span()
        return batch

    def go_back(self) -> None:
        """What was read last could not be kept: read it again, from the watermark on."""
        self._batches = None
        self._begun_s = float("-inf")

    def begin_anew(self) -> None:
        """Reading was broken off: go back to the watermark, and read more often for a while.

        What slurmdbd was to note while it was down may come a while after itself: until then the
        watermark stays behind the last answer before.
        """
        self.go_back()
        now_s, overlap = self._clock(), self._pace.overlap
        if now_s >= self._held_until_s and self._answered is not None:
            self._held_at = self._answered - overlap
        self._answered = None
        self._held_until_s = now_s + overlap.total_seconds()

    def _begin(self) -> None:
        now, state = self._now(), self._state
        mark, since = moment(state.watermark), now - self._pace.history
        # By the overlap: "since a day" is a little earlier or later at each start.
        if mark is None or since < (moment(state.read_from) or mark) - self._pace.overlap:
            # From there on all is read, again if need be: it changes nothing.
            state.read_from = state.watermark = since.isoformat()
            state.details_from = min(state.details_from or state.read_from, state.read_from)
        else:
            since = min(mark, now) - self._pace.overlap
        self._begun, self._begun_s = now, self._clock()
        # A cluster whose clock is ahead has noted things that lie in the future here.
        self._last = now + timedelta(seconds=state.ahead_s + 1)
        self._begin_span(since)

    def _begin_span(self, since: datetime) -> None:
        self._until = min(since + _SPAN, self._last)
        self._batches = iter(self._cluster.accounted(since, self._until))

    def _end_span(self) -> None:
        read, mark = min(self._until, self._begun), moment(self._state.watermark)
        if self._begun_s < self._held_until_s:
            read = min(read, self._held_at or read - _SPAN)
        if mark is None or read > mark:
            self._state.watermark = read.isoformat()
        if self._until < self._last:
            self._begin_span(self._until)
        else:
            self._batches = None
