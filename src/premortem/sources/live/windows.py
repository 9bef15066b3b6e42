"""A span of time cut into windows, short where answers are heavy and long where they are light."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from premortem.errors import InvalidInput

# Slurm takes no times of the first weeks of 1970, and there was no Slurm before 2002.
_EARLIEST = 10**9


@dataclass(slots=True)
class Windows:
    """Windows of whole seconds from `since` to `until`; `current` is the one to ask for next.

    Say `answered` after each answer, with what it took of what is bearable; `too_large` if it was
    not taken for its size, and `halve` if it could not be had for another reason. Jobs that wait or
    run are in every window, however short. Where they are most of an answer, windows are settled:
    a shorter one would cost as much, and more of them would be needed.
    """

    since: datetime
    until: datetime
    width: timedelta = timedelta(hours=1)
    shortest: timedelta = timedelta(minutes=1)
    longest: timedelta = timedelta(days=1)
    is_settled: bool = False
    _begin: int = field(init=False)
    _end: int = field(init=False)
    # The effort at twice this width, if that was too much.
    _wider: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        for moment in (self.since, self.until):
            if moment.tzinfo is None:
                raise InvalidInput(f"{moment.isoformat()} has no time zone: such as +00:00 for UTC")
        if self.width < timedelta(seconds=1):
            raise InvalidInput(f"a window of {self.width} is too short: expected a second or more")
        self._begin = max(_EARLIEST, math.floor(self.since.timestamp()))
        self._end = math.ceil(self.until.timestamp())

    @property
    def current(self) -> tuple[int, int] | None:
        """First and last second of the window to ask for; None when all have been answered."""
        if self._begin >= self._end:
            return None
        return self._begin, min(self._begin + int(self.width.total_seconds()), self._end)

    @property
    def is_shortest(self) -> bool:
        """Whether a window cannot be made any shorter."""
        return self.width <= self.shortest

    def answered(self, effort: float) -> None:
        """Go on; `effort` is the part of the bearable time or size that the answer took."""
        if self.current:
            self._begin = self.current[1]
        self._weigh(effort)

    def too_large(self) -> None:
        """Ask for half of it; if that has not helped before, for the same, whatever its size."""
        self._weigh(1.0)

    def halve(self) -> None:
        """Ask for half of it."""
        self.is_settled, self._wider = False, None
        if not self.is_shortest:
            self.width = max(self.shortest, timedelta(seconds=self.width.total_seconds() // 2))

    def _weigh(self, effort: float) -> None:
        if effort <= 1 / 2:
            self.is_settled, self._wider = False, None
            if effort < 1 / 8:
                self.width = max(self.width, min(self.width * 2, self.longest))
        elif self._wider is not None and effort > 3 / 4 * self._wider:
            self.is_settled = True
        elif not self.is_settled:
            self.halve()
            self._wider = effort
