"""Slurm's job states in every spelling, brought to one.

A state reaches us as `COMPLETED`, as `CANCELLED by 1234`, as a short code (`CD`), as a list of a
base state and flags (`["FAILED", "REQUEUED"]`), or joined by `+` or `,`. All become one of
`STATES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Progress(IntEnum):
    """How far a job in a given state has come; a record never moves to a lower one."""

    PENDING = 0
    RUNNING = 1
    ENDED = 2


STATES: dict[str, Progress] = {
    "PENDING": Progress.PENDING,
    "RUNNING": Progress.RUNNING,
    "SUSPENDED": Progress.RUNNING,
    "COMPLETED": Progress.ENDED,
    "FAILED": Progress.ENDED,
    "CANCELLED": Progress.ENDED,
    "TIMEOUT": Progress.ENDED,
    "OUT_OF_MEMORY": Progress.ENDED,
    "NODE_FAIL": Progress.ENDED,
    "BOOT_FAIL": Progress.ENDED,
    "DEADLINE": Progress.ENDED,
    "PREEMPTED": Progress.ENDED,
    # A run that ended only to be run again, and the ends that are none of the job's own doing.
    "REQUEUED": Progress.ENDED,
    "RESIZING": Progress.ENDED,
    "REVOKED": Progress.ENDED,
}

# Those of jobs whose end is not known yet.
UNFINISHED = tuple(s for s, progress in STATES.items() if progress is not Progress.ENDED)

# What a step's end tells about its job, the most telling last.
STEP_WEIGHT: dict[str, int] = {
    state: weight
    for weight, state in enumerate(
        ("COMPLETED", "CANCELLED", "FAILED", "PREEMPTED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
    )
}

_SHORT = {
    "PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED", "ST": "STOPPED", "CD": "COMPLETED",
    "CA": "CANCELLED", "F": "FAILED", "TO": "TIMEOUT", "OOM": "OUT_OF_MEMORY",
    "OM": "OUT_OF_MEMORY", "NF": "NODE_FAIL", "BF": "BOOT_FAIL", "DL": "DEADLINE",
    "PR": "PREEMPTED", "CG": "COMPLETING", "CF": "CONFIGURING", "RD": "RESV_DEL_HOLD",
    "RQ": "REQUEUED",
    "RF": "REQUEUE_FED", "RH": "REQUEUE_HOLD", "RS": "RESIZING", "RV": "REVOKED",
    "SE": "SPECIAL_EXIT", "SI": "SIGNALING", "SO": "STAGE_OUT", "LF": "LAUNCH_FAILED",
}  # fmt: skip

# Flags that say what becomes of the run, beside or instead of a base state.
_REQUEUE_FLAGS = {"REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"}
_ALONE = {
    "COMPLETING": "RUNNING",
    "CONFIGURING": "RUNNING",
    "SIGNALING": "RUNNING",
    "STAGE_OUT": "RUNNING",
    "POWER_UP_NODE": "RUNNING",
    "STOPPED": "SUSPENDED",
    "RESV_DEL_HOLD": "PENDING",
    "REQUEUE_FED": "REQUEUED",
    "REQUEUE_HOLD": "REQUEUED",
    "SPECIAL_EXIT": "REQUEUED",
    "LAUNCH_FAILED": "BOOT_FAIL",
    "RECONFIG_FAIL": "BOOT_FAIL",
}


def normal_state(spelling: str | Iterable[str]) -> str | None:
    """The state meant by a spelling Slurm uses, or None where it is not one.

    A run that ended and was queued again is `REQUEUED`, whatever ended it; a job that waits again
    is `PENDING`.

    >>> normal_state("CANCELLED by 1234"), normal_state("oom"), normal_state(["FAILED", "REQUEUED"])
    ('CANCELLED', 'OUT_OF_MEMORY', 'REQUEUED')
    """
    if isinstance(spelling, str):
        spelling = spelling.replace("+", ",").split(",")
    names = [_long_name(part) for part in spelling]
    names = [name for name in names if name]
    bases = [name for name in names if name in STATES and name not in _REQUEUE_FLAGS]
    if not bases:
        # Flags alone must all be known; beside a base state a new release's flag changes nothing.
        known = names and all(name in STATES or name in _ALONE for name in names)
        return _ALONE.get(names[0], names[0]) if known else None
    base = bases[0]
    if STATES[base] is Progress.ENDED and _REQUEUE_FLAGS.intersection(names):
        return "REQUEUED"
    return base


def _long_name(part: str) -> str:
    words = part.split()
    name = words[0].upper() if words else ""
    return _SHORT.get(name, name)
