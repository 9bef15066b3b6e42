"""Processes told apart for certain: by number, by when they started, and by the machine's start."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process that has this number and that start, in clock ticks since the machine's own."""

    pid: int
    ticks: int

    def is_running(self, proc: Path = PROC) -> bool:
        """Whether it still runs; another process with its number is not it, nor is its corpse."""
        return started(self.pid, proc) == self.ticks

    @property
    def since(self) -> datetime:
        """When it started."""
        boot = next(
            int(line.split()[1])
            for line in (PROC / "stat").read_text().splitlines()
            if line.startswith("btime ")
        )
        return datetime.fromtimestamp(boot + self.ticks / os.sysconf("SC_CLK_TCK"), UTC)

    def as_dict(self) -> dict[str, int]:
        """For a file."""
        return {"pid": self.pid, "ticks": self.ticks}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Process:
        """From a file."""
        return cls(int(told["pid"]), int(told["ticks"]))


def started(pid: int, proc: Path = PROC) -> int | None:
    """When a process started, in ticks; None if it does not run."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name before it, in brackets, may hold anything.
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(rest[18])


def boot() -> str:
    """What tells this start of the machine from every other."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()
