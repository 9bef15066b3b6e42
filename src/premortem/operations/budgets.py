"""How often a daemon may be asked: so many calls in any minute."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from premortem.errors import InvalidInput

_MINUTE_S = 60.0
# A call is let through so much later than it could be, for clocks that round.
_MARGIN_S = 0.01


class Budget:
    """Calls left in the last minute; what was spent beyond it is owed."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        if per_minute < 1:
            raise InvalidInput(f"{per_minute} calls a minute are too few: expected 1 or more")
        self.per_minute = per_minute
        self._clock = clock
        self._spent: deque[float] = deque()

    @property
    def left(self) -> int:
        """Calls that may still be made now."""
        before = self._clock() - _MINUTE_S - _MARGIN_S / 2
        while self._spent and self._spent[0] < before:
            self._spent.popleft()
        return max(0, self.per_minute - len(self._spent))

    @property
    def wait_s(self) -> float:
        """How long until a call may be made; 0 if one may be made now."""
        if self.left:
            return 0.0
        # The call that must be a minute old for there to be one less than may be.
        freeing = self._spent[len(self._spent) - self.per_minute]
        return max(0.0, freeing + _MINUTE_S - self._clock()) + _MARGIN_S

    def spend(self, calls: int = 1) -> None:
        """Calls that are made now."""
        now = self._clock()
        self._spent.extend([now] * calls)

    @property
    def ages_s(self) -> list[float]:
        """How long ago each call of the last minute was made."""
        return [] if self.left == self.per_minute else [self._clock() - at for at in self._spent]

    def recall(self, ages_s: Iterable[float]) -> None:
        """Calls that were made so long ago, by another who kept to this budget."""
        now = self._clock()
        self._spent = deque(sorted([*self._spent, *(now - age for age in ages_s if age >= 0)]))
