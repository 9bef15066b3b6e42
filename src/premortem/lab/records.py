"""What a lab writes down about itself in its folder, so that another process finds it again."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.lab.plans import Plan, Ports
from premortem.lab.processes import Process, boot

FILE = "lab.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Running:
    """What was started: the keeper as the machine numbers it, the daemons as their world does."""

    keeper: Process
    boot: str
    oom: bool
    daemons: dict[str, Process] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """A lab as written down; `running` is what was started last, and may have ended since."""

    plan: Plan
    ports: Ports
    root: Path
    running: Running | None = None

    @property
    def is_running(self) -> bool:
        """Whether the world that was started still stands."""
        return (
            self.running is not None
            and self.running.boot == boot()
            and self.running.keeper.is_running()
        )


def read(folder: Path) -> Record | None:
    """The lab in a folder; None if there is none."""
    try:
        told = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if told["format"] != _FORMAT:
            raise InvalidInput(f"{folder / FILE} is of another version of premortem")
        return Record(
            Plan.from_dict(told["plan"]),
            Ports.from_dict(told["ports"]),
            Path(told["root"]),
            _running(told["running"]) if told["running"] else None,
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{folder / FILE} cannot be read as a lab's: {error}") from error


def require(folder: Path) -> Record:
    """The lab in a folder, which must be there."""
    record = read(folder)
    if record is None:
        raise NotFound(
            f"there is no lab in {folder}: `premortem lab up` makes one, --folder names another"
        )
    return record


def write(folder: Path, record: Record) -> None:
    """Write a lab down; whoever reads meanwhile sees the old text or the new."""
    running = record.running
    told: dict[str, Any] = {
        "format": _FORMAT,
        "plan": record.plan.as_dict(),
        "ports": record.ports.as_dict(),
        "root": str(record.root),
        "running": running
        and {
            "keeper": running.keeper.as_dict(),
            "boot": running.boot,
            "oom": running.oom,
            "daemons": {name: process.as_dict() for name, process in running.daemons.items()},
        },
    }
    new = folder / f"{FILE}.new"
    new.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    new.replace(folder / FILE)


@contextmanager
def changing(folder: Path) -> Iterator[None]:
    """Held by one process at a time: the one that starts or ends the lab in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Unavailable(
                f"another process is starting or ending the lab in {folder}: try again later"
            ) from error
        yield
    finally:
        os.close(handle)


def _running(told: dict[str, Any]) -> Running:
    return Running(
        Process.from_dict(told["keeper"]),
        told["boot"],
        told["oom"],
        {name: Process.from_dict(process) for name, process in told["daemons"].items()},
    )
