"""What the kernel writes in /proc about a process, read from its bytes. Pure: no I/O."""

from __future__ import annotations

import re
from typing import NamedTuple

# The daemon that starts a job's tasks and waits for them; it is Slurm's, not the job's.
STEP_DAEMON = b"slurmstepd"

# /slurm/uid_1000/job_7/step_0 or /slurm_n1/uid_1000/job_7 (version 1 of control groups),
# /system.slice/slurmstepd.scope/job_7/step_0/user or /system.slice/n1_slurmstepd.scope/job_7 (2).
_GROUP = re.compile(
    rb"^\d+:([^:\n]*):(/(?:[^\n]*/)?"
    rb"(?:slurm(?:_[^/\n]+)?/uid_\d+|(?:[^/\n]+_)?slurmstepd\.scope)/job_(\d+))(?=/|$)",
    re.MULTILINE,
)
_TITLE = re.compile(rb"^(?:[^\0]*/)?slurmstepd: \[(\d+)\.")
_VARIABLE = re.compile(rb"(?:^|\0)SLURM_JOB_?ID=(\d{1,18})(?=\0|$)")


class Stat(NamedTuple):
    """A process by its `stat` file: times are in clock ticks, `waited` is of ended children.

    `start` is counted from the machine's own.
    """

    name: bytes
    state: bytes
    parent: int
    used: int
    waited: int
    start: int

    @property
    def is_dead(self) -> bool:
        """Whether it has ended, and only its parent has not taken notice."""
        return self.state in b"ZXx"


class Groups(NamedTuple):
    """The control groups of a job that a process is in: where its CPU time is told, if anywhere.

    Paths are those below the mounted hierarchy.
    """

    job_id: int
    cpuacct: str | None
    unified: str | None


def stat(text: bytes) -> Stat:
    """What the `stat` file tells; a process may have any name, with brackets and line ends."""
    head, _, rest = text.rpartition(b")")
    name = head.partition(b"(")[2]
    # state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt
    # utime stime cutime cstime priority nice threads itrealvalue starttime
    part = rest.split(None, 20)
    return Stat(
        name,
        part[0],
        int(part[1]),
        int(part[11]) + int(part[12]),
        int(part[13]) + int(part[14]),
        int(part[19]),
    )


def resident(text: bytes) -> tuple[int, int]:
    """Pages of the `statm` file: those of the process alone, and those that others may share."""
    _, whole, shared, _ = text.split(None, 3)
    return int(whole) - int(shared), int(shared)


def transferred(text: bytes) -> tuple[int, int]:
    """Bytes read and written by system calls, from the `io` file; waited-for children included."""
    part = text.split(None, 4)
    return int(part[1]), int(part[3])


def job_groups(text: bytes) -> Groups | None:
    """The job whose control groups the `cgroup` file names; None if there is none."""
    job, cpuacct, unified = None, None, None
    for controllers, path, number in _GROUP.findall(text):
        job = int(number)
        if not controllers:
            unified = path.decode(errors="surrogateescape")
        elif b"cpuacct" in controllers.split(b","):
            cpuacct = path.decode(errors="surrogateescape")
    return None if job is None else Groups(job, cpuacct, unified)


def job_in_title(text: bytes) -> int | None:
    """The job that a step daemon's `cmdline` names, as in ``slurmstepd: [7.batch]``."""
    found = _TITLE.match(text)
    return int(found[1]) if found else None


def job_in_environment(text: bytes) -> int | None:
    """The job that a process was started for by its `environ`; nothing else is looked at."""
    found = _VARIABLE.search(text)
    return int(found[1]) if found else None
