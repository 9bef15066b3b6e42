"""CPU time of whole jobs as control groups tell it, for those who have ended as well."""

from __future__ import annotations

import re
from pathlib import Path

from premortem.sources.usage.proc_texts import Groups

CGROUPS = Path("/sys/fs/cgroup")
_USAGE = re.compile(rb"^usage_usec (\d+)", re.MULTILINE)


class GroupTimes:
    """Where this machine keeps its control groups, of version 1, of version 2, or of both."""

    def __init__(self, cgroups: Path = CGROUPS) -> None:
        self._accounting = cgroups / "cpuacct"
        whole = (cgroups / "cgroup.controllers").exists()
        self._unified = cgroups if whole else cgroups / "unified"

    def file_of(self, groups: Groups) -> Path | None:
        """The file that tells the CPU time of a job; None where no group counts it."""
        if groups.cpuacct:
            return self._accounting / groups.cpuacct.lstrip("/") / "cpuacct.usage"
        if groups.unified:
            return self._unified / groups.unified.lstrip("/") / "cpu.stat"
        return None


def seconds(file: Path) -> float | None:
    """The CPU seconds that a group's file tells; None if it is gone."""
    try:
        text = file.read_bytes()
    except OSError:
        return None
    if file.name == "cpuacct.usage":
        return int(text) / 1e9 if text.strip().isdigit() else None
    found = _USAGE.search(text)
    return int(found[1]) / 1e6 if found else None
