"""What the processes of one job tell at one moment, added up, and what they told before."""

from __future__ import annotations

from pathlib import Path

from premortem.sources.usage.accounts import Account, Reading
from premortem.sources.usage.group_times import seconds


class Tally:
    """One job on this machine, from the first to the last look at it."""

    def __init__(self) -> None:
        self.seen_at_s = 0.0
        self.processes = 0
        # Whether some of its data could not be seen, so that no sum of it would be true.
        self.is_blind = False
        self._account = Account()
        self._readings: dict[int, Reading] = {}
        self._own_pages = self._shared_pages = 0
        self._times: dict[Path, float] = {}
        self._ended_s = 0.0

    def begin(self) -> None:
        """A new look: nothing is seen yet."""
        self._readings = {}
        self.processes = self._own_pages = self._shared_pages = 0

    def add(self, reading: Reading) -> None:
        """What a process, or Slurm's daemon above it, has used so far."""
        self._readings[reading.pid] = reading

    def add_living(self, own_pages: int, shared_pages: int) -> None:
        """A process that is alive, and the memory that it holds."""
        self.processes += 1
        self._own_pages += own_pages
        self._shared_pages = max(self._shared_pages, shared_pages)

    def follow(self, times: Path) -> None:
        """Look at this control group from now on."""
        self._times.setdefault(times, 0.0)

    def end(self) -> None:
        """All has been seen."""
        self._account.update(self._readings)
        for file, before in list(self._times.items()):
            now = seconds(file)
            if now is None or now < before:
                self._ended_s += before
            if now is None:
                del self._times[file]
            else:
                self._times[file] = now

    @property
    def pages(self) -> int:
        """Memory held: what belongs to one process alone, and the largest part that is shared."""
        return self._own_pages + self._shared_pages

    @property
    def transferred(self) -> tuple[int, int]:
        """Bytes read and written so far."""
        return self._account.total[1:]

    def cpu_s(self, ticks_per_s: int) -> float:
        """CPU time so far; control groups know of processes that came and went unseen."""
        grouped = self._ended_s + sum(self._times.values())
        return max(grouped, self._account.total[0] / ticks_per_s)
