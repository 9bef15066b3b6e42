"""What a job has used so far, although its processes come and go. Pure: no I/O.

A process's figures hold those of the children that it has waited for. So what the living tell
together is what all have used, but for processes that ended with nobody of the job to wait for
them: what they had told last is kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

Amounts = tuple[int, int, int]
_NOTHING: Amounts = (0, 0, 0)


class Reading(NamedTuple):
    """What one process told: all it has used with the children it waited for, and their part.

    Amounts are CPU time, data read and data written. Where the children's part is not told apart,
    as for data, `of_children` is the whole.
    """

    pid: int
    start: int
    parent: int
    used: Amounts
    of_children: Amounts


class Account:
    """The sums of one job; they never fall.

    Processes are to be read parents first: a child that ends meanwhile is then missed, and found
    again in its parent's figures the next time, rather than counted twice.
    """

    def __init__(self) -> None:
        self._living: Mapping[int, Reading] = {}
        self._ended = _NOTHING
        # What ended children had told, by the parent in whose figures it is still to appear.
        self._owed: dict[int, Amounts] = {}
        self._total = _NOTHING

    @property
    def total(self) -> Amounts:
        """All that was used so far, as far as it could be seen."""
        return self._total

    def update(self, now: Mapping[int, Reading]) -> None:
        """Take in what the processes of the job tell now, by their numbers."""
        before, self._living = self._living, now
        survivors = {
            pid for pid, one in before.items() if pid in now and now[pid].start == one.start
        }
        if len(survivors) < len(before) or self._owed:
            self._settle(before, now, survivors)
        seen = _sum((one.used for one in now.values()), _sum(self._owed.values(), self._ended))
        self._total = _each(max, self._total, seen)

    def _settle(
        self, before: Mapping[int, Reading], now: Mapping[int, Reading], survivors: set[int]
    ) -> None:
        """Ask of the survivors what those who ended had used; keep what nobody can tell."""
        owed = {pid: amounts for pid, amounts in self._owed.items() if pid in survivors}
        for pid, one in before.items():
            if pid in survivors:
                continue
            left = _sum([one.used, self._owed.get(pid, _NOTHING)])
            heir = _heir(one, before, survivors)
            if heir is None:
                self._ended = _sum([left], self._ended)
            else:
                owed[heir] = _sum([left], owed.get(heir, _NOTHING))
        self._owed = {}
        for pid, amounts in owed.items():
            told = _each(_difference, now[pid].of_children, before[pid].of_children)
            still = _each(_difference, amounts, told)
            if any(still):
                self._owed[pid] = still


def _heir(one: Reading, before: Mapping[int, Reading], survivors: set[int]) -> int | None:
    """The nearest process above that still lives; None if there is none in the job."""
    above = one.parent
    for _ in range(len(before)):
        if above in survivors:
            return above
        if above not in before:
            break
        above = before[above].parent
    return None


def _sum(amounts: Iterable[Amounts], first: Amounts = _NOTHING) -> Amounts:
    cpu, read, written = first
    for one in amounts:
        cpu += one[0]
        read += one[1]
        written += one[2]
    return cpu, read, written


def _each(combine: Callable[[int, int], int], one: Amounts, other: Amounts) -> Amounts:
    return (
        combine(one[0], other[0]),
        combine(one[1], other[1]),
        combine(one[2], other[2]),
    )


def _difference(larger: int, smaller: int) -> int:
    return max(0, larger - smaller)
