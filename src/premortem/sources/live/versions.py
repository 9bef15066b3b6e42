"""Which version of its API to speak with a slurmrestd."""

from __future__ import annotations

import re
from collections.abc import Iterable

from premortem.errors import InvalidInput

# Records are read by their shape; these are the versions whose shapes are known. The one before,
# v0.0.37, gives the time a job became eligible as that of its start: it can be named, but is never
# chosen.
OLDEST, NEWEST = 38, 46
_CAN_BE_NAMED = range(37, NEWEST + 1)

# The document may write a slash as `\/`.
_JOBS = re.compile(rb'"\\?/(slurm|slurmdb)\\?/v0\.0\.(\d{1,4})\\?/jobs\\?/?"')


def served_in(document: bytes) -> list[int]:
    """The versions in which both daemons' jobs are served, from an OpenAPI document."""
    found: dict[bytes, set[int]] = {b"slurm": set(), b"slurmdb": set()}
    for daemon, number in _JOBS.findall(document):
        found[daemon].add(int(number))
    return sorted(found[b"slurm"] & found[b"slurmdb"])


def newest_known(served: Iterable[int], *, at: str) -> int:
    """The newest served version that is known here; raises if there is none."""
    served = list(served)
    known = [number for number in served if OLDEST <= number <= NEWEST]
    if known:
        return max(known)
    if not served:
        raise InvalidInput(
            f"{at} serves no jobs of slurmctld and slurmdbd: start slurmrestd with both, as it is "
            "without -s"
        )
    raise InvalidInput(
        f"{at} serves {', '.join(map(named, served))}; known are {named(OLDEST)} to "
        f"{named(NEWEST)}: install a newer premortem or a newer Slurm"
    )


def named(number: int) -> str:
    """The version as paths spell it."""
    return f"v0.0.{number}"


def number_of(name: str) -> int:
    """The last part of a version such as ``v0.0.42``; raises if it is none or not known."""
    found = re.fullmatch(r"v0\.0\.(\d{1,4})", name)
    if not found or int(found[1]) not in _CAN_BE_NAMED:
        raise InvalidInput(
            f"'{name}' is no version known here: expected {named(OLDEST)} to {named(NEWEST)}"
        )
    return int(found[1])
