"""The desk: where the driver hands jobs in, looks at the queue, and cancels for users."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from premortem.errors import Unavailable
from premortem.lab import Lab
from premortem.lab.workload import clerk
from premortem.lab.workload.scripts import File
from premortem.lab.workload.submissions import Submission

_FORMAT = "ArrayJobID:|,ArrayTaskID:|,State:|,exit_code:|,NodeList:|,Reason:|"
_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as the queue shows it; a task of an array has the array's number and its own."""

    job: int
    task: int | None
    state: str
    exit_code: str
    node: str
    reason: str

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state in _ENDED


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command inside the lab said."""

    code: int
    out: str
    err: str


class Desk:
    """A clerk in the lab's world, for as long as it is needed."""

    def __init__(self, lab: Lab) -> None:
        source = Path(clerk.__file__).read_text(encoding="utf-8")
        self._clerk = subprocess.Popen(
            lab.command("python3", "-I", "-S", "-c", source),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # An interruption of the terminal is for the driver, which ends the clerk itself.
            start_new_session=True,
        )

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._clerk.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._clerk.stdin.close()
        try:
            self._clerk.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._clerk.kill()
            self._clerk.wait()
        if self._clerk.stdout:
            self._clerk.stdout.close()

    def submit(self, submission: Submission, *, after: int | None = None) -> int | str:
        """The number of the job, or of the array; if Slurm refuses it, what it said."""
        written = submission.written()
        options = [] if after is None else [f"--dependency=afterok:{after}"]
        if after is not None:
            options.append("--kill-on-invalid-dep=yes")
        answer = self.run(
            ("sbatch", "--parsable", *options),
            user=submission.user.name,
            folder=submission.folder,
            files=written.files,
            input=written.script,
        )
        if answer.code:
            return answer.err.strip() or f"sbatch ended with {answer.code}"
        return int(answer.out.split(";")[0])

    def cancel(self, user: str, *jobs: int) -> None:
        """Cancel jobs as their user does."""
        self.run(("scancel", "--quiet", *map(str, jobs)), user=user)

    def look(self) -> list[Seen]:
        """Every job that the controller remembers, ended ones of the last ten minutes included."""
        asked = ("squeue", "--noheader", "--array", "--states=all", f"--Format={_FORMAT}")
        answer = self.run(asked)
        if answer.code:
            raise Unavailable(f"the lab's queue cannot be looked at: {answer.err.strip()}")
        return [seen(line) for line in answer.out.splitlines() if line.count("|") >= 6]

    def run(
        self,
        command: Sequence[str],
        *,
        user: str = "root",
        folder: str = "/",
        files: Mapping[str, File] | None = None,
        input: str = "",
    ) -> Answer:
        """Have the clerk run a command as a user, after writing files for them."""
        asked = {
            "user": user,
            "folder": folder,
            "files": {path: [file.text, file.mode] for path, file in (files or {}).items()},
            "command": list(command),
            "input": input,
        }
        if self._clerk.stdin is None or self._clerk.stdout is None:
            raise Unavailable("the clerk in the lab's world has no ears")
        try:
            self._clerk.stdin.write(json.dumps(asked) + "\n")
            self._clerk.stdin.flush()
            line = self._clerk.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Unavailable("the lab has ended, or the clerk in its world: look at its status")
        told = json.loads(line)
        return Answer(told["code"], told["out"], told["err"])


def seen(line: str) -> Seen:
    """A job from a line of squeue.

    >>> seen("17|3|FAILED|1:0|n1|NonZeroExitCode|").exit_code
    '1:0'
    """
    job, task, state, code, node, reason = line.split("|")[:6]
    return Seen(
        int(job),
        int(task) if task.strip().isdigit() else None,
        state.strip(),
        code.strip(),
        node.strip(),
        reason.strip(),
    )
