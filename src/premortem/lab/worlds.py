"""The world of a lab: its own mounts, processes and host name, on the machine's network.

It stands and falls with its keeper: when that ends, the kernel ends every process of the world and
takes its mounts away, jobs and half-started daemons included. Outside of it nothing is mounted.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from premortem.errors import Unavailable
from premortem.lab import keeper as keeper_script
from premortem.lab.processes import PROC, Process, started

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
# Tells its number, and becomes the daemon.
_BECOME = 'echo $$; log=$1; shift; exec "$@" </dev/null >>"$log" 2>&1'


@dataclass(slots=True)
class World:
    """A world that was made; `keeper` is its first process, as the machine numbers it."""

    keeper: Process
    _tie: IO[bytes] | None = field(default=None, repr=False)
    _parent: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def is_there(self) -> bool:
        """Whether it still stands."""
        return self.keeper.is_running()

    @property
    def proc(self) -> Path:
        """Its processes, by the numbers they have inside."""
        return PROC / str(self.keeper.pid) / "root" / "proc"

    def stay(self) -> None:
        """Let it outlive this process."""
        if self._tie:
            self._tie.write(b".")
            self._tie.close()
            self._tie = None

    def entered(
        self, command: Sequence[str], user: str = "root", **variables: str
    ) -> tuple[str, ...]:
        """The command line that runs a command inside, as a user, with nothing of our own."""
        home = f"/home/{user}"
        become = () if user == "root" else (f"--reuid={user}", f"--regid={user}", "--init-groups")
        usual = {"HOME": home, "USER": user, "LOGNAME": user, "PATH": _PATH, "LANG": "C.UTF-8"}
        return (
            *("nsenter", "--target", str(self.keeper.pid), "--mount", "--uts", "--pid", "--root"),
            *("--", "/usr/bin/env", "-i", f"PATH={_PATH}"),
            # Whoever waits for it outside takes it along when it is killed.
            *("setpriv", "--pdeathsig", "KILL", *become),
            *("env", "-i", f"--chdir={home}", *_assigned(usual | variables)),
            *command,
        )

    def run(
        self, *command: str, user: str = "root", input: str | None = None, timeout_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside to its end."""
        try:
            return subprocess.run(
                self.entered(command, user),
                input=input or "",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"`{' '.join(command)}` did not end in {timeout_s:g} s") from error

    def start(self, *command: str, log: str, **variables: str) -> Process:
        """Start a daemon that stays in the foreground; its number is the one it has inside."""
        inner = ("setsid", "--fork", "sh", "-c", _BECOME, "sh", log, *command)
        done = subprocess.run(
            self.entered(inner, **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        pid = int(done.stdout or 0)
        return Process(pid, started(pid, self.proc) or 0)

    def stop_all(self, processes: Sequence[Process], *, patience_s: float = 20) -> None:
        """Ask processes inside to end together, and see that they do."""
        for name in ("TERM", "KILL"):
            left = [process for process in processes if process.is_running(self.proc)]
            if not left:
                return
            self.run("kill", f"-{name}", *(str(process.pid) for process in left))
            deadline = time.monotonic() + patience_s
            for process in left:
                _wait_for_end(process, self.proc, deadline)

    def end(self) -> None:
        """End everything in it; returns once it is gone."""
        if self.keeper.is_running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.keeper.pid, signal.SIGKILL)
        if self._tie:
            self._tie.close()
            self._tie = None
        if self._parent:
            self._parent.wait()
        _wait_for_end(self.keeper, PROC, time.monotonic() + 30)


def make_world(
    root: Path, binds: Mapping[str, str], *, cgroups: Mapping[str, str], gpus: int
) -> World:
    """A new world from a root folder, which ends with this process until it is told to stay.

    `binds` are the folders and files that take the place of some of the root's, by their paths in
    it; `cgroups` the control groups to show, by controller; `gpus` how many fake devices to make.
    """
    plan = {
        "root": str(root.resolve()),
        "binds": dict(binds),
        "cgroups": dict(cgroups),
        "gpus": gpus,
    }
    command = [
        *("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child"),
        *("--propagation", "private"),
        *(sys.executable, "-I", "-S", keeper_script.__file__),
    ]
    parent = subprocess.Popen(
        command,
        cwd="/",
        env={"PATH": _PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # An interruption of the terminal is for us alone; we end the world in our own time.
        start_new_session=True,
    )
    try:
        said = _asked(parent, plan)
    except BaseException:
        parent.kill()
        parent.wait()
        raise
    pid = _child_of(parent.pid) if said == "ready" else None
    ticks = pid and started(pid)
    if not pid or not ticks:
        parent.kill()
        parent.wait()
        raise Unavailable(
            "this machine does not let a lab have mounts and processes of its own, for which root "
            f"needs CAP_SYS_ADMIN: {said or 'unshare failed'}"
        )
    return World(Process(pid, ticks), parent.stdin, parent)


def _asked(parent: subprocess.Popen[bytes], plan: Mapping[str, object]) -> str:
    """Hand the plan to the keeper, and hear what it says."""
    tie, output = parent.stdin, parent.stdout
    if tie is None or output is None:
        return ""
    with output, contextlib.suppress(BrokenPipeError):
        tie.write(json.dumps(plan).encode() + b"\n")
        tie.flush()
        return output.readline().decode(errors="replace").strip()
    return ""


def _child_of(pid: int) -> int | None:
    children = (PROC / str(pid) / "task" / str(pid) / "children").read_text().split()
    return int(children[0]) if children else None


def _wait_for_end(process: Process, proc: Path, deadline: float) -> None:
    while process.is_running(proc) and time.monotonic() < deadline:
        time.sleep(0.02)


def _assigned(variables: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in variables.items()]
