"""Which processes of this machine belong to which job."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from premortem.errors import Unavailable
from premortem.sources.usage import proc_texts
from premortem.sources.usage.files import content
from premortem.sources.usage.group_times import GroupTimes

# A process that is none of a job's may become one while it starts; later it stays what it is.
_GROWN_UP_S = 10.0


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a job, or of none; `start` is in clock ticks since the machine's own.

    `inode` is that of its folder, which another process with its number would not have.
    """

    pid: int
    start: int
    inode: int
    job_id: int | None
    times: Path | None = None
    is_settled: bool = True


class Members:
    """All processes of jobs; each is asked once whose it is, and only `belongs` are asked at all.

    First by its control groups, which it cannot leave. Where jobs have none, by the environment it
    was started with, of which nothing but the job's number is ever looked at.
    """

    def __init__(
        self, proc: Path, groups: GroupTimes, belongs: Callable[[int], bool] | None = None
    ) -> None:
        self._proc = str(proc)
        self._groups = groups
        self._belongs = belongs
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._known: dict[str, Member] = {}

    def look(self) -> list[Member]:
        """Those that are there now, the oldest first, so that parents come before children."""
        known, now = self._known, {}
        for name, inode in self._present():
            one = known.get(name)
            if one is None or not one.is_settled or one.inode != inode:
                one = self._asked(name, inode)
            if one is not None:
                now[name] = one
        self._known = now
        members = [one for one in now.values() if one.job_id is not None]
        members.sort(key=lambda one: (one.start, one.pid))
        return members

    def _present(self) -> list[tuple[str, int]]:
        """The processes that are there, each with the inode of its folder."""
        try:
            with os.scandir(self._proc) as entries:
                return [(entry.name, entry.inode()) for entry in entries if entry.name.isdecimal()]
        except OSError as error:
            raise Unavailable(
                f"{self._proc} cannot be read, where Linux tells of processes: {error.strerror}"
            ) from error

    def _asked(self, name: str, inode: int) -> Member | None:
        folder = f"{self._proc}/{name}/"
        text = content(f"{folder}stat")
        if not text:
            return None
        pid, stat = int(name), proc_texts.stat(text)
        if self._belongs is not None and not self._belongs(pid):
            return Member(pid, stat.start, inode, None)
        groups = proc_texts.job_groups(content(f"{folder}cgroup") or b"")
        if groups:
            return Member(pid, stat.start, inode, groups.job_id, self._groups.file_of(groups))
        if stat.name == proc_texts.STEP_DAEMON:
            job = proc_texts.job_in_title(content(f"{folder}cmdline") or b"")
        else:
            job = proc_texts.job_in_environment(content(f"{folder}environ") or b"")
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start / self._ticks_per_s
        settled = job is not None or age_s > _GROWN_UP_S
        return Member(pid, stat.start, inode, job, is_settled=settled)
