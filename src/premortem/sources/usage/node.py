"""Usage of the jobs on this machine, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from premortem.jobs.samples import SAMPLE_SCHEMA
from premortem.sources.usage import proc_texts
from premortem.sources.usage.accounts import Reading
from premortem.sources.usage.files import content
from premortem.sources.usage.group_times import CGROUPS, GroupTimes
from premortem.sources.usage.members import Member, Members
from premortem.sources.usage.tallies import Tally

PROC = Path("/proc")
# Between two steps a node may see nothing of a job. Slurm starts a requeued one no sooner than two
# minutes after its end, and that begins from nothing.
_FORGET_AFTER_S = 100.0
_MIB = 2**20


class NodeSampler:
    """Sees every job on this machine in one pass over /proc, and remembers what has ended.

    Keep one and ask it again and again: its sums hold processes that ended since it was made, and
    what earlier ones had left with their parents or their control group. Of a job on several
    machines it sees the part on this one. Memory is what each process holds alone, and of what can
    be shared (files, libraries, shared memory) the largest part in any one process. Data are what
    system calls read and wrote, from caches and pipes too; they are absent where this user may not
    see them. `belongs` tells by its number whether to look at a process at all.
    """

    def __init__(
        self,
        cluster: str,
        *,
        proc: Path = PROC,
        cgroups: Path = CGROUPS,
        belongs: Callable[[int], bool] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._proc = str(proc)
        self._members = Members(proc, GroupTimes(cgroups), belongs)
        self._clock = clock
        self._tallies: dict[int, Tally] = {}
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")

    def sample(self) -> pl.DataFrame:
        """One row for each job that has a process here now."""
        at = self._clock()
        self._look()
        rows = [
            self._row(job, at, tally) for job, tally in self._tallies.items() if tally.processes
        ]
        return pl.DataFrame(rows, schema=SAMPLE_SCHEMA, orient="row")

    def _look(self) -> None:
        now_s = time.monotonic()
        tallies = self._tallies
        for tally in tallies.values():
            tally.begin()
        for member in self._members.look():
            if member.job_id is None:
                continue
            if member.job_id not in tallies:
                tallies[member.job_id] = Tally()
            tally = tallies[member.job_id]
            if self._read(member, tally):
                tally.seen_at_s = now_s
        for tally in tallies.values():
            tally.end()
        self._tallies = {
            job: tally
            for job, tally in tallies.items()
            if now_s - tally.seen_at_s <= _FORGET_AFTER_S
        }

    def _read(self, member: Member, tally: Tally) -> bool:
        """Take in what a process tells; False if it is gone."""
        folder = f"{self._proc}/{member.pid}/"
        text = content(f"{folder}stat")
        stat = proc_texts.stat(text) if text else None
        if stat is None or stat.start != member.start:
            return False
        if member.times:
            tally.follow(member.times)
        if stat.name == proc_texts.STEP_DAEMON:
            # Not the job's own, but what it has waited for is.
            waited = (stat.waited, 0, 0)
            tally.add(Reading(member.pid, stat.start, stat.parent, waited, waited))
            return True
        moved = content(f"{folder}io")
        if moved is None and not os.path.exists(f"{folder}stat"):
            return False
        tally.is_blind |= moved is None
        data = proc_texts.transferred(moved) if moved else (0, 0)
        used = (stat.used + stat.waited, *data)
        tally.add(Reading(member.pid, stat.start, stat.parent, used, (stat.waited, *data)))
        if not stat.is_dead:
            held = content(f"{folder}statm")
            if held:
                tally.add_living(*proc_texts.resident(held))
        return True

    def _row(self, job: int, at: datetime, tally: Tally) -> tuple[Any, ...]:
        read, written = tally.transferred
        return (
            self._cluster,
            job,
            at,
            tally.cpu_s(self._ticks_per_s),
            tally.pages * self._page / _MIB,
            None if tally.is_blind else read / _MIB,
            None if tally.is_blind else written / _MIB,
            tally.processes,
        )
