"""A lab: a whole Slurm in a folder, started, asked and ended."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from premortem.errors import Conflict, InvalidInput, NotFound, Unavailable
from premortem.lab import cgroups, records
from premortem.lab.ending import end_all
from premortem.lab.folders import LOGS, binds, furnish, users
from premortem.lab.plans import GPUS, LOOPBACK, Plan, choose_ports
from premortem.lab.processes import Process, boot
from premortem.lab.records import Record, Running
from premortem.lab.releases import release_named
from premortem.lab.roots import default_cache, ready_root
from premortem.lab.starting import start_all
from premortem.lab.status import Status, look, not_running
from premortem.lab.usage import sampler_of
from premortem.lab.worlds import World, make_world

if TYPE_CHECKING:
    from premortem.sources.usage import NodeSampler


def _silently(text: str) -> None:
    """Tell nobody."""


class Lab:
    """A real Slurm on loopback: munged, MariaDB, slurmdbd, slurmctld, nodes and slurmrestd.

    In a `with` statement it runs until the end of that, and no longer than this process; `up`
    leaves it running. What it is to be (`slurm`, `cluster`, `nodes`, `users`, `oom`) is what it was
    before where not said, and accounting survives from one start to the next. It needs root.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        slurm: str | None = None,
        cluster: str | None = None,
        nodes: int | None = None,
        users: int | None = None,
        oom: bool | None = None,
        rest_port: int | None = None,
        cache: Path | None = None,
        tell: Callable[[str], None] = _silently,
    ) -> None:
        self.folder = Path(folder).absolute()
        self._wanted = {
            "release": release_named(slurm) if slurm else None,
            "cluster": cluster,
            "nodes": nodes,
            "users": users,
            "oom": oom,
        }
        self._rest_port = rest_port
        self._cache = cache or default_cache()
        self._tell = tell
        self._world: World | None = None
        self._leave = False

    def __enter__(self) -> Lab:
        before = records.read(self.folder)
        # What ran before is not ours to end.
        self._leave = before is not None and before.is_running
        self._up(stay=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._leave:
            self.down()

    def up(self) -> list[str]:
        """Start it, and leave it running; names the daemons that were started.

        Of a lab that runs already, only those that have ended are started again.
        """
        return self._up(stay=True)

    def down(self, *, purge: bool = False) -> bool:
        """End what `up` started, and nothing else; False if nothing was running.

        With `purge` the folder goes too, and all that the lab has seen with it.
        """
        _require_root()
        if not self.folder.exists():
            return False
        records.require(self.folder)
        with records.changing(self.folder):
            record = records.require(self.folder)
            was_running = record.is_running
            if was_running:
                daemons = record.running.daemons if record.running else {}
                end_all(self._found(record), daemons, self._tell)
            cgroups.remove(self.folder)
            if purge:
                shutil.rmtree(self.folder)
            else:
                records.write(self.folder, replace(record, running=None))
        self._world = None
        return was_running

    def status(self) -> Status:
        """What runs, and what the cluster says of itself."""
        record = self.record
        if record.running is None or not record.is_running:
            return not_running(self.folder, record)
        return look(self.folder, record, self.world)

    def run(
        self,
        *command: str,
        user: str = "root",
        input: str | None = None,
        check: bool = True,
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the lab's world, such as ``lab.run("sinfo")``, to its end.

        It starts in the user's home, with a clean environment; `input` is what it reads.
        With `check`, an exit code other than 0 is an error that shows what the command said.
        """
        done = self.world.run(*command, user=self._known(user), input=input, timeout_s=timeout_s)
        if check and done.returncode:
            raise InvalidInput(
                f"`{' '.join(command)}` ended with {done.returncode} in the lab: "
                f"{(done.stderr or done.stdout).strip()}"
            )
        return done

    def command(self, *command: str, user: str = "root") -> tuple[str, ...]:
        """The command line that runs a command in the lab's world from outside."""
        return self.world.entered(command, self._known(user))

    def kill(self, daemon: str) -> None:
        """End a daemon such as ``slurmd-n1`` at once, as a crash would; `up` starts it again."""
        world, running = self.world, self.record.running
        daemons = running.daemons if running else {}
        if daemon not in daemons:
            raise NotFound(f"the lab has no daemon '{daemon}'; it has {', '.join(daemons)}")
        if daemons[daemon].is_running(world.proc):
            world.run("kill", "-KILL", str(daemons[daemon].pid))

    def token(self, user: str = "root", *, lifespan_s: int = 1800) -> str:
        """A token with which slurmrestd takes a caller for that user."""
        done = self.run("scontrol", "token", f"username={user}", f"lifespan={lifespan_s}")
        return done.stdout.strip().removeprefix("SLURM_JWT=")

    def sampler(self) -> NodeSampler:
        """Sees what its jobs use, of this start; keep one, and ask it again and again."""
        return sampler_of(self.world, self.record.plan.cluster)

    @property
    def rest_url(self) -> str:
        """Where slurmrestd answers."""
        return f"http://{LOOPBACK}:{self.record.ports.slurmrestd}"

    @property
    def record(self) -> Record:
        """What is written down about it."""
        return records.require(self.folder)

    @property
    def world(self) -> World:
        """Its world, which must be there."""
        if self._world is None or not self._world.is_there:
            self._world = self._found(self.record)
        return self._world

    def _found(self, record: Record) -> World:
        if self._world is not None and self._world.is_there:
            return self._world
        _require_root()
        if record.running is None or not record.is_running:
            raise Unavailable(
                f"the lab in {self.folder} is not running: `premortem lab up` starts it"
            )
        return World(record.running.keeper)

    def _known(self, user: str) -> str:
        known = self.record.plan.user_names
        if user not in users(self.folder):
            raise NotFound(
                f"the lab has no user '{user}'; its users are root and {known[0]} to {known[-1]}"
            )
        return user

    def _up(self, *, stay: bool) -> list[str]:
        _require_root()
        self._require_place()
        with _written(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        with records.changing(self.folder):
            before = records.read(self.folder)
            plan = self._plan(before)
            if before and before.running and before.is_running:
                return self._revive(before, before.running)
            oom = _can_kill(plan)
            root = ready_root(plan.release, self._cache, self._tell)
            ports = choose_ports(
                plan.nodes, before=before.ports if before else None, rest=self._rest_port
            )
            record = Record(plan, ports, root)
            with _written(self.folder):
                records.write(self.folder, record)
                furnish(self.folder, record, oom=oom)
            try:
                daemons = self._start(record, oom=oom, stay=stay)
            except BaseException:
                cgroups.remove(self.folder)
                raise
            return list(daemons)

    def _start(self, record: Record, *, oom: bool, stay: bool) -> dict[str, Process]:
        groups = cgroups.make(self.folder) if oom else {}
        world = make_world(record.root, binds(self.folder), cgroups=groups, gpus=GPUS)
        self._world = world
        try:
            daemons = start_all(world, record, self.folder / LOGS, self._tell)
            running = Running(world.keeper, boot(), oom, daemons)
            records.write(self.folder, replace(record, running=running))
            if stay:
                world.stay()
        except BaseException:
            world.end()
            records.write(self.folder, record)
            raise
        return daemons

    def _revive(self, record: Record, running: Running) -> list[str]:
        """Start what has ended of a lab that runs."""
        proc = self.world.proc
        ended = [name for name, one in running.daemons.items() if not one.is_running(proc)]
        if ended:
            daemons = start_all(self.world, record, self.folder / LOGS, self._tell)
            new = replace(record, running=replace(running, daemons=daemons))
            records.write(self.folder, new)
        return ended

    def _require_place(self) -> None:
        """A folder that is not a lab's is somebody else's."""
        if not self.folder.exists() or (self.folder / records.FILE).exists():
            return
        if not self.folder.is_dir() or any(self.folder.iterdir()):
            raise Conflict(
                f"{self.folder} is not a lab's, and not empty: name another with --folder"
            )

    def _plan(self, before: Record | None) -> Plan:
        wanted = {name: value for name, value in self._wanted.items() if value is not None}
        plan = replace(before.plan if before else Plan(), **wanted)  # type: ignore[arg-type]
        if before is None:
            return plan
        fixed = ("release", "cluster", *(("nodes", "users", "oom") if before.is_running else ()))
        for what in fixed:
            old, new = (getattr(one, what) for one in (before.plan, plan))
            if old != new:
                way = "end it" if what not in ("release", "cluster") else "remove it"
                purge = " --purge" if way == "remove it" else ""
                raise Conflict(
                    f"the lab in {self.folder} was made with {what} {old}, not {new}: name another "
                    f"folder, or {way} first by `premortem lab down{purge}`"
                )
        return plan


def _require_root() -> None:
    if os.geteuid() != 0:
        raise InvalidInput(
            "a lab needs root: its daemons change users, and its world has mounts of its own"
        )


@contextmanager
def _written(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        raise Unavailable(f"{where} cannot be written: {error.strerror or error}") from error


def _can_kill(plan: Plan) -> bool:
    """Whether jobs will be killed for their memory; raises if they are to be and cannot."""
    if plan.oom is False:
        return False
    why_not = cgroups.why_not()
    if plan.oom and why_not:
        raise Unavailable(f"jobs cannot be killed for their memory here: {why_not}")
    return why_not is None
