"""Brings the daemons of a lab up in their order, and waits until the cluster answers."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

from premortem.errors import Unavailable
from premortem.lab import daemons as d
from premortem.lab.configuration import REST_USER
from premortem.lab.logs import last_lines
from premortem.lab.plans import LOOPBACK
from premortem.lab.processes import Process
from premortem.lab.records import Record
from premortem.lab.worlds import World

_PATIENCE_S = 120
_PREPARE = """\
install -d -m 755 -o munge -g munge /run/munge
install -d -m 755 -o mysql -g mysql /run/mysqld
install -d -m 755 -o slurm -g slurm /run/slurm
"""
# Whole only when the file is there: an interrupted start leaves a part.
_MADE = "premortem.made"


def start_all(
    world: World, record: Record, logs: Path, tell: Callable[[str], None]
) -> dict[str, Process]:
    """Every daemon, by name, once the cluster is ready for jobs; those that run are left alone."""
    return _Start(world, record, logs, tell).all()


class _Start:
    def __init__(
        self, world: World, record: Record, logs: Path, tell: Callable[[str], None]
    ) -> None:
        self._world = world
        self._record = record
        self._logs = logs
        self._tell = tell
        self._started = dict(record.running.daemons) if record.running else {}

    def all(self) -> dict[str, Process]:
        world, plan = self._world, self._record.plan
        world.run("sh", "-c", _PREPARE)
        self._start(d.MUNGED)
        self._make_database()
        self._start(d.MARIADBD)
        for daemon, path in ((d.MUNGED, d.MUNGE_SOCKET), (d.MARIADBD, d.DATABASE_SOCKET)):
            self._until(daemon, partial(self._does, "test", "-S", path))
        self._until(d.MARIADBD, lambda: self._does("mariadb-admin", "--no-defaults", "ping"))
        self._start(d.SLURMDBD)
        self._until(d.SLURMDBD, partial(_listens, self._record.ports.slurmdbd))
        self._until(d.SLURMDBD, lambda: self._does("sacctmgr", "--noheader", "show", "cluster"))
        self._enrol()
        rest = d.slurmrestd(plan, self._record.ports)
        nodes = d.slurmds(plan)
        for daemon in (d.SLURMCTLD, *nodes, rest):
            self._start(daemon)
        self._until(d.SLURMCTLD, partial(_listens, self._record.ports.slurmctld))
        self._until(d.SLURMCTLD, self._controller_answers)
        self._until(d.SLURMDBD, self._cluster_is_registered)
        for node, daemon in zip(plan.node_names, nodes, strict=True):
            self._until(daemon, partial(self._node_is_idle, node))
        self._until(rest, self._rest_answers)
        return self._started

    def _start(self, daemon: d.Daemon) -> None:
        old = self._started.get(daemon.name)
        if old and old.is_running(self._world.proc):
            return
        self._tell(f"starting {daemon.name}")
        (self._logs / daemon.log).write_text("")
        process = self._world.start(
            *daemon.command, log=f"/var/log/slurm/{daemon.log}", **daemon.variables
        )
        self._started[daemon.name] = process

    def _make_database(self) -> None:
        """An empty database, as its package made it in the root."""
        database = self._logs.parent / "database"
        if (database / _MADE).exists():
            return
        self._tell("making the database")
        ours = f"{self._record.root}/var/lib/mysql/."
        copy = ["cp", "--archive", "--sparse=always", ours, str(database)]
        done = subprocess.run(copy, capture_output=True, text=True, errors="replace")
        if done.returncode:
            raise Unavailable(f"the database cannot be made: {done.stderr.strip()}")
        (database / _MADE).touch()

    def _enrol(self) -> None:
        """Tell accounting of the cluster, its accounts and its users, so far as they are new."""
        plan = self._record.plan
        known = self._says(
            *("sacctmgr", "--noheader", "--parsable2", "show", "associations"),
            *("format=cluster,account,user", f"cluster={plan.cluster}"),
        ).split()
        lines = [] if known else [f"add cluster {plan.cluster}"]
        for account, users in plan.memberships:
            new = [user for user in users if f"{plan.cluster}|{account}|{user}" not in known]
            if f"{plan.cluster}|{account}|" not in known:
                lines.append(f"add account {account} description={account} organization=lab")
            if new:
                lines.append(f"add user {','.join(new)} account={account}")
        if lines:
            self._world.run(
                "sacctmgr", "--immediate", "--quiet", input="\n".join([*lines, "quit"]) + "\n"
            )

    def _until(self, daemon: d.Daemon, is_so: Callable[[], bool]) -> None:
        """Wait for a daemon to do its work; raise if it ends first, or takes for ever."""
        deadline = time.monotonic() + _PATIENCE_S
        while not is_so():
            ended = not self._started[daemon.name].is_running(self._world.proc)
            if ended or time.monotonic() > deadline:
                log = self._logs / daemon.log
                what = "ended while it started" if ended else f"was not ready in {_PATIENCE_S} s"
                raise Unavailable(f"{daemon.name} {what}. The end of {log}:\n{last_lines(log)}")
            time.sleep(0.05)

    def _does(self, *command: str) -> bool:
        return self._world.run(*command).returncode == 0

    def _says(self, *command: str) -> str:
        return self._world.run(*command).stdout

    # Slurm's own commands wait for seconds where nobody listens yet, so that is seen to first.

    def _controller_answers(self) -> bool:
        return "is UP" in self._says("scontrol", "ping")

    def _cluster_is_registered(self) -> bool:
        told = self._says("sacctmgr", "--noheader", "--parsable2", "show", "cluster",
                          "format=cluster,controlport")  # fmt: skip
        return f"{self._record.plan.cluster}|{self._record.ports.slurmctld}" in told.split()

    def _node_is_idle(self, node: str) -> bool:
        told = self._says("sinfo", "--noheader", f"--nodes={node}", "--format=%T")
        return set(told.split()) <= {"idle", "mixed", "allocated"} and bool(told.strip())

    def _rest_answers(self) -> bool:
        token = self._says("scontrol", "token", f"username={REST_USER}", "lifespan=60").strip()
        request = urllib.request.Request(
            f"http://{LOOPBACK}:{self._record.ports.slurmrestd}"
            f"/slurm/{self._record.plan.release.rest_version}/ping",
            headers={
                "X-SLURM-USER-NAME": REST_USER,
                "X-SLURM-USER-TOKEN": token.removeprefix("SLURM_JWT="),
            },
        )
        # Loopback is not for proxies.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=10) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
