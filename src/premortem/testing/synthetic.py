"""An invented cluster: any number of jobs, streamed in order of submission, the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import polars as pl

from premortem.errors import InvalidInput
from premortem.testing.fates import Fates
from premortem.testing.habits import population
from premortem.testing.machine import Calendar, Outages
from premortem.testing.rendering import Renderer
from premortem.testing.work import Desk, Table, height, joined, pick

_FIRST_JOB_ID = 400_001
_WINDOW_JOBS = 65_536
_JOBS_A_DAY = 2_000
_SHORTEST_DAYS, _LONGEST_DAYS = 14.0, 365.0


@dataclass(frozen=True, slots=True)
class SyntheticCluster:
    """A cluster that never was, whose jobs have all ended.

    Users ask, err and retry by their habits, nodes go bad, needs drift, and some failures come
    out of the blue; about one job in six fails. The jobs depend on every argument here, so a
    cluster of more jobs is another cluster and not a longer log of the same one. Without `days`
    the period suits the number of jobs. Nodes are never full: waits are drawn and not the result
    of scheduling, so two jobs may hold the same CPU.

    >>> next(SyntheticCluster(jobs=1000, seed=1).frames())["job_id"].is_sorted()
    True
    """

    jobs: int
    seed: int = 0
    users: int = 120
    name: str = "synthetic"
    start: datetime = datetime(2024, 1, 1, tzinfo=UTC)
    days: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no cluster can be made of."""
        if self.jobs < 0 or self.users < 1 or self.seed < 0:
            raise InvalidInput(
                "a synthetic cluster needs jobs >= 0, users >= 1 and seed >= 0, "
                f"not jobs={self.jobs}, users={self.users}, seed={self.seed}"
            )
        if self.days is not None and not 0 < self.days < 36_525:
            raise InvalidInput(f"days must be above 0 and within a century, not {self.days}")
        if self.start.tzinfo is None:
            raise InvalidInput(f"start needs a time zone, such as UTC: {self.start.isoformat()}")

    def frames(self, batch: int = 50_000) -> Iterator[pl.DataFrame]:
        """All jobs by submission, `batch` to a frame; the last frame may be shorter.

        Job ids rise with the time of submission. The batch changes where frames end, never the
        jobs. Memory in use depends on the batch and not on the number of jobs.
        """
        if batch < 1:
            raise InvalidInput(f"batch must be at least 1, not {batch}")
        return _rebatched(self._windows(), batch)

    def _windows(self) -> Iterator[pl.DataFrame]:
        """All jobs in stretches of the period that hold about `_WINDOW_JOBS` each."""
        rng = np.random.default_rng(self.seed)
        usual_days = min(max(self.jobs / _JOBS_A_DAY, _SHORTEST_DAYS), _LONGEST_DAYS)
        calendar = Calendar(int(self.start.timestamp()), self.days or usual_days)
        users, programs = population(self.users, rng)
        largest_array = int(np.clip(self.jobs / 100, 4, 500))
        desk = Desk(users, programs, calendar, rng, largest_array=largest_array)
        fates = Fates(programs, calendar, Outages(calendar, rng), rng)
        renderer = Renderer(self.name, users, programs)

        hours = (calendar.end - calendar.begin) // 3600
        windows = max(1, min(-(-self.jobs // _WINDOW_JOBS), hours))
        edges = calendar.time(np.arange(windows + 1) / windows)
        later: list[Table] = []
        made, pieces = 0, 0
        for window in range(windows):
            begin, end = int(edges[window]), int(edges[window + 1])
            shares = (window / windows, (window + 1) / windows)
            quota = self.jobs * (window + 1) // windows - made
            # The last window makes up for what the others left out.
            enough = quota if window == windows - 1 else quota * 9 // 10
            due, later = _split(later, end)
            ended: list[Table] = []
            have = 0
            while due or have < enough:
                if not due:
                    pace = (pieces + 1) / (made + have + 4)
                    count = max(1, int(0.8 * (quota - have) * pace))
                    pieces += count
                    due, late = _split([desk.new_work(count, begin, end, shares)], end)
                    later += late
                ended.append(fates.decide(joined(due)))
                have += height(ended[-1])
                due, late = _split([desk.next_attempts(ended[-1])], end)
                later += late
            if ended:
                rows = joined(ended)
                order = np.argsort(rows["submit"], kind="stable")
                rows = pick(rows, order[: self.jobs - made])
                yield renderer.frame(rows, _FIRST_JOB_ID + made)
                made += height(rows)


def _split(tables: list[Table], end: int) -> tuple[list[Table], list[Table]]:
    """The jobs submitted before the end, and the others."""
    due: list[Table] = []
    later: list[Table] = []
    for table in tables:
        early = table["submit"] < end
        for part, which in ((due, early), (later, ~early)):
            if which.any():
                part.append(table if which.all() else pick(table, which))
    return due, later


def _rebatched(frames: Iterator[pl.DataFrame], batch: int) -> Iterator[pl.DataFrame]:
    """The same rows in frames of `batch` rows."""
    held: list[pl.DataFrame] = []
    for frame in frames:
        held.append(frame)
        whole = pl.concat(held)
        for begin in range(0, whole.height - batch + 1, batch):
            yield whole.slice(begin, batch)
        held = [whole.slice(whole.height // batch * batch)]
    if held and held[-1].height:
        yield held[-1]
