"""What a lab is like at a moment: its daemons, its nodes and its jobs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from premortem.lab import cgroups
from premortem.lab.plans import LOOPBACK, Plan, Ports
from premortem.lab.records import Record
from premortem.lab.worlds import World


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """One daemon: its number in the lab's world, since when it runs, and the port it listens on."""

    name: str
    runs: bool
    pid: int | None = None
    since: datetime | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """A lab at a moment; `nodes` and `jobs` are empty where there is nobody to ask.

    `no_oom` tells why jobs are not killed for their memory, if they are not.
    """

    folder: Path
    plan: Plan
    ports: Ports
    runs: bool
    daemons: list[DaemonStatus]
    oom: bool = False
    no_oom: str | None = None
    nodes: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def ended(self) -> list[str]:
        """The daemons that should run and do not."""
        return [daemon.name for daemon in self.daemons if not daemon.runs]

    @property
    def rest_url(self) -> str:
        """Where slurmrestd answers."""
        return f"http://{LOOPBACK}:{self.ports.slurmrestd}"


def not_running(folder: Path, record: Record) -> Status:
    """Of a lab that is not running."""
    return Status(folder, record.plan, record.ports, runs=False, daemons=[])


def look(folder: Path, record: Record, world: World) -> Status:
    """Of a lab that is."""
    running = record.running
    ports = _ports(record)
    daemons = []
    for name, process in (running.daemons if running else {}).items():
        if process.is_running(world.proc):
            told = (process.pid, process.since, ports.get(name))
            daemons.append(DaemonStatus(name, True, *told))
        else:
            daemons.append(DaemonStatus(name, False, port=ports.get(name)))
    alive = {daemon.name for daemon in daemons if daemon.runs}
    oom = running is not None and running.oom
    return Status(
        folder,
        record.plan,
        record.ports,
        True,
        daemons,
        oom,
        None if oom else _why_no_oom(record.plan),
        _nodes(world) if "slurmctld" in alive else {},
        _jobs(world) if {"slurmdbd", "mariadbd"} <= alive else {},
        _versions(world),
    )


def _why_no_oom(plan: Plan) -> str:
    if plan.oom is False:
        return "the lab was started with --no-oom"
    return cgroups.why_not() or "the lab was started before the machine allowed it"


def _ports(record: Record) -> dict[str, int]:
    ports = record.ports
    nodes = {
        f"slurmd-{n}": port for n, port in zip(record.plan.node_names, ports.nodes, strict=True)
    }
    return {
        "slurmdbd": ports.slurmdbd,
        "slurmctld": ports.slurmctld,
        "slurmrestd": ports.slurmrestd,
        **nodes,
    }


def _nodes(world: World) -> dict[str, str]:
    told = world.run("sinfo", "--noheader", "--Node", "--partition=normal", "--format=%N %T")
    return dict(line.split() for line in told.stdout.splitlines() if len(line.split()) == 2)


def _jobs(world: World) -> dict[str, int]:
    """How many jobs there are of each state, since the lab was made."""
    told = world.run(
        *("sacct", "--allusers", "--allocations", "--noheader", "--parsable2"),
        *("--starttime=2000-01-01", "--format=State"),
    )
    # CANCELLED by 20001
    states = Counter(line.split()[0] for line in told.stdout.splitlines() if line.strip())
    return dict(states.most_common())


def _versions(world: World) -> dict[str, str]:
    packages = {"slurmctld": "Slurm", "mariadb-server": "MariaDB", "munge": "munge"}
    told = world.run("dpkg-query", "-W", "--showformat=${Package} ${Version}\n", *packages)
    found = dict(line.split() for line in told.stdout.splitlines())
    # 1:11.8.3-0+deb13u1 is MariaDB 11.8.3.
    return {
        name: found[package].rpartition(":")[2].partition("-")[0].partition("+")[0]
        for package, name in packages.items()
        if package in found
    }
