"""Writing that outlives a killed process and a power cut, and one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from premortem.errors import Unavailable

_PAUSE_S = 0.05
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def locked(path: Path, *, patience_s: float) -> Iterator[None]:
    """Hold the lock file at `path`, which ends with the process however that ends."""
    deadline = time.monotonic() + patience_s
    with path.open("ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise Unavailable(
                        f"another process is changing {path.parent} and was not done after "
                        f"{patience_s:g} s: try again"
                    ) from error
            time.sleep(_PAUSE_S)
        yield


@contextmanager
def disk_errors_told(path: Path) -> Iterator[None]:
    """Turn what the file system raises into `Unavailable`, with what to do about it."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise Unavailable(
                f"no space left in {path}: free some and try again, what was there is as it was"
            ) from error
        if error.errno in _FORBIDDEN:
            raise Unavailable(
                f"{error.filename or path}: {error.strerror}: check the permissions of {path}"
            ) from error
        raise Unavailable(
            f"{path} cannot be used: {error.strerror or error}"
            + (f" ({error.filename})" if error.filename else "")
        ) from error


def copy_files(source: Path, target: Path, paths: Iterable[str]) -> None:
    """Copy these files of one folder into another, which is made."""
    target.mkdir()
    for path in paths:
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        with (source / path).open("rb") as original, copy.open("xb") as file:
            shutil.copyfileobj(original, file, 1 << 20)
            file.flush()
            os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    """Write a file that was not there before."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def settle(folder: Path) -> None:
    """Make the names in a folder, and in those below it, outlive a power cut."""
    for place, _, _ in os.walk(folder, topdown=False):
        settle_names(Path(place))


def settle_names(folder: Path) -> None:
    """Make the names in this folder alone outlive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
