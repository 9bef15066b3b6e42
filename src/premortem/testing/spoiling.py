"""Damage to a written log, of the kinds that real ones have, to show what becomes of bad lines."""

from __future__ import annotations

import gzip
import os
import random
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Literal

from premortem.errors import InvalidInput
from premortem.testing.sacct_lines import SACCT_COLUMNS

WAYS: tuple[str, ...] = (
    "columns missing",
    "letter in a number",
    "end before start",
    "negative CPUs",
    "unknown state",
    "garbled time",
)

# The way, the column it strikes and what then stands there.
_SACCT_DAMAGE = {
    "letter in a number": ("ReqCPUS", "1O"),
    "end before start": ("End", "1999-12-31T23:59:59"),
    "negative CPUs": ("NCPUS", "-4"),
    "unknown state": ("State", "EXPLODED"),
    "garbled time": ("Submit", "2026-13-45T08:6"),
}
_SWF_DAMAGE = {
    "letter in a number": (7, "1O"),
    "end before start": (3, "-3600"),
    "negative CPUs": (7, "-4"),
    "unknown state": (10, "X"),
    "garbled time": (1, "08:6x"),
}


def spoil(path: str | Path, lines: int, *, seed: int = 0) -> list[tuple[int, str]]:
    """Damage so many job lines of a file that `writers` wrote, in place, each way in turn.

    Returns the line numbers, counted from 1, with what was done to each. Only lines of jobs that
    started are touched, never headers or steps, so that each is one bad job. The file must have
    that many of them.
    """
    path = Path(path)
    with _open(path, "rt") as file:
        places = [number for number, line in enumerate(file, 1) if _is_started_job(line)]
    if not 0 <= lines <= len(places):
        raise InvalidInput(
            f"cannot damage {lines} lines of {path}: it has {len(places)} jobs that started"
        )
    chosen = sorted(random.Random(seed).sample(places, lines))
    damage = {number: WAYS[turn % len(WAYS)] for turn, number in enumerate(chosen)}
    handle, spoiled = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
    os.close(handle)
    with _open(path, "rt") as file, _open(Path(spoiled), "wt") as copy:
        copy.writelines(_damaged(file, damage))
    os.replace(spoiled, path)
    return list(damage.items())


def _damaged(lines: Iterable[str], damage: dict[int, str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        yield _broken(line, damage[number]) if number in damage else line


def _broken(line: str, way: str) -> str:
    of_sacct = "|" in line
    cells = line.rstrip("\n").split("|" if of_sacct else " ")
    if way == WAYS[0]:
        cells = cells[: len(cells) // 2]
    elif of_sacct:
        column, text = _SACCT_DAMAGE[way]
        cells[SACCT_COLUMNS.index(column)] = text
    else:
        place, text = _SWF_DAMAGE[way]
        cells[place] = text
    return ("|" if of_sacct else " ").join(cells) + "\n"


def _is_started_job(line: str) -> bool:
    if "|" not in line:
        return not line.startswith(";") and line.split()[4] != "-1"
    cells = line.split("|")
    job, start = cells[1], cells[SACCT_COLUMNS.index("Start")]
    return job.isdigit() and start not in ("None", "Unknown")


def _open(path: Path, mode: Literal["rt", "wt"]) -> IO[str]:
    if path.suffix != ".gz":
        return path.open(mode, encoding="utf-8", newline="")
    return gzip.open(path, mode, encoding="utf-8", newline="")
