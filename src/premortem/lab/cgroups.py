"""What this machine's control groups let a lab do: kill a job that takes too much memory.

Slurm names its groups by the node alone, so each lab gets groups of its own to make them in.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
_NEEDED = ("memory", "freezer")
_WELCOME = ("cpuset", "devices", "cpuacct", "cpu")


def why_not(cgroups: Path = CGROUPS) -> str | None:
    """Why jobs cannot be held to their memory here; None if they can be."""
    missing = [name for name in _NEEDED if not (cgroups / name / "cgroup.procs").exists()]
    if missing:
        return (
            f"the machine mounts no {' and no '.join(missing)} controller of control groups v1 "
            f"in {cgroups}"
        )
    probe = cgroups / _NEEDED[0] / "premortem-probe"
    try:
        probe.mkdir(exist_ok=True)
        probe.rmdir()
    except OSError as error:
        return f"no control group can be made in {probe.parent}: {error.strerror}"
    return None


def make(folder: Path, cgroups: Path = CGROUPS) -> dict[str, str]:
    """The groups of the lab in that folder: for each controller, where its group is."""
    made = {}
    for controller in (*_NEEDED, *_WELCOME):
        if (cgroups / controller / "cgroup.procs").exists():
            group = cgroups / controller / _name(folder)
            group.mkdir(exist_ok=True)
            made[controller] = str(group)
    if "cpuset" in made:
        # A group starts with no processors, and then takes no process.
        for name in ("cpuset.cpus", "cpuset.mems"):
            above = (cgroups / "cpuset" / name).read_text()
            (Path(made["cpuset"]) / name).write_text(above)
    return made


def remove(folder: Path, cgroups: Path = CGROUPS) -> None:
    """Take the lab's groups away; those that still hold a process stay."""
    for controller in (*_NEEDED, *_WELCOME):
        group = cgroups / controller / _name(folder)
        inner = sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
        for path in (*inner, group):
            try:
                path.rmdir()
            except OSError:
                continue


def _name(folder: Path) -> str:
    return f"premortem-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]}"
