"""Programs of Slurm's run to their end, here or elsewhere, and what they printed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from premortem.errors import InvalidInput, Unavailable
from premortem.sources.content import Received
from premortem.sources.live.port import Overlong

_PIECE = 1 << 20
_EXCERPT = 300
_NOT_FOUND, _NOT_ALLOWED = 127, 126
# How times are to be told, whatever the clock's zone is where the command runs. 22.05's JSON goes
# through text inside of sacct, and fails with any but the usual format.
USUAL_TIMES = ("env", "TZ=UTC", "SLURM_TIME_FORMAT=standard")
TIMES_IN_SECONDS = ("env", "TZ=UTC", "SLURM_TIME_FORMAT=%s")


class Failed(Unavailable):
    """A program ended with an error; `said` is what it wrote about it."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said


@dataclass(frozen=True, slots=True)
class Programs:
    """Runs programs behind a prefix, such as ``ssh login1``, which may pass words to a shell."""

    prefix: tuple[str, ...] = ()
    timeout_s: float = 60.0

    def run(self, *command: str, times: tuple[str, ...] = USUAL_TIMES) -> Received:
        """What the program printed, to be closed by the caller.

        Raises `Failed` if it ends with an error, `Overlong` if it does not end in time.
        """
        try:
            return self._run(command, times)
        except OSError as error:
            raise Unavailable(
                f"the answer of `{shlex.join(command)}` cannot be kept: {error.strerror or error}"
            ) from error

    def _run(self, command: tuple[str, ...], times: tuple[str, ...]) -> Received:
        shown = shlex.join(command)
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    [*self.prefix, *times, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise InvalidInput(
                    f"`{shlex.join([*self.prefix, *command])}` cannot be run: {error.strerror}"
                ) from error
            code = _ended(process, self.timeout_s)
            said = _content(errors, _EXCERPT).decode(errors="replace").strip()
            if code is None:
                raise Overlong(f"`{shown}` did not end in {self.timeout_s:g} s")
            if code in (_NOT_FOUND, _NOT_ALLOWED):
                raise InvalidInput(
                    f"`{command[0]}` cannot be run: {said}. Install Slurm's commands here, or say "
                    "where they are with a prefix such as `ssh login1`"
                )
            if code:
                raise Failed(f"`{shown}` ended with {code}: {said}", said)
            return _received(shown, output)


def _ended(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """How it ended; None if it was ended by us, with all it had started here."""
    try:
        return process.wait(timeout_s)
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return None
        raise


def _content(file: BinaryIO, size: int) -> bytes:
    file.seek(0)
    return file.read(size)


def _received(shown: str, output: BinaryIO) -> Received:
    answer = Received(f"`{shown}`")
    output.seek(0)
    try:
        while piece := output.read(_PIECE):
            answer.write(piece)
    except OSError:
        answer.close()
        raise
    return answer
