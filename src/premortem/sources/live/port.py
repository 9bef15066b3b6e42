"""What a cluster can be asked, however it is reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from premortem.errors import InvalidInput, Unavailable
from premortem.jobs.numbers import LARGEST
from premortem.sources.live.machines import Node, Partition
from premortem.sources.port import Batch

Daemon = Literal["slurmctld", "slurmdbd"]


def _at_once(daemon: Daemon) -> None:
    """Let every call be made."""


@dataclass(slots=True)
class Calls:
    """How often each daemon has been asked, repetitions included; for keeping to a budget.

    `before` hears of each call ahead of it. It may wait, or raise: then the call is not made.
    `waited_s` is how long it did.
    """

    slurmctld: int = 0
    slurmdbd: int = 0
    waited_s: float = field(default=0.0, repr=False, compare=False)
    before: Callable[[Daemon], None] = field(default=_at_once, repr=False, compare=False)

    def count(self, daemon: Daemon) -> None:
        """A daemon is about to be asked."""
        begun = time.monotonic()
        self.before(daemon)
        self.waited_s += time.monotonic() - begun
        setattr(self, daemon, getattr(self, daemon) + 1)


class Accounting(Protocol):
    """What slurmdbd remembers."""

    @property
    def calls(self) -> Calls:
        """How often each daemon has been asked."""

    def accounted(self, since: datetime, until: datetime) -> Iterator[Batch]:
        """The jobs of a span of time, without their steps.

        The span is cut into windows, and a job that lives through several comes once for each.
        Behind a window comes an empty batch: no batch takes more than one question.
        Jobs that never became eligible (held, waiting) are not among them: ask `by_id`.
        """

    def by_id(self, job_ids: Sequence[int]) -> Batch:
        """Jobs by their numbers, with what their steps tell; all tasks for the number of an array.

        A job that was requeued comes once for each of its runs. Unknown numbers are left out.
        Scripts come along where that takes no further question.
        """

    def scripts(self, job_ids: Sequence[int]) -> dict[int, str]:
        """The scripts that accounting has stored of these jobs, secrets redacted.

        It follows some seconds after the job, and only where AccountingStoreFlags has job_script.
        """

    @property
    def scripts_at_once(self) -> int:
        """Of how many jobs one call tells the scripts."""


class Controller(Protocol):
    """What slurmctld knows at the moment."""

    @property
    def calls(self) -> Calls:
        """How often each daemon has been asked."""

    def live(self) -> Batch:
        """All jobs in its memory: those waiting, those running, and those that ended lately."""

    def controlled(self, job_id: int) -> Batch:
        """One job, or all tasks of an array; nothing if slurmctld has forgotten it."""

    def partitions(self) -> list[Partition]:
        """The partitions and their limits."""

    def nodes(self) -> list[Node]:
        """The nodes and their states."""


class Overlong(Unavailable):
    """An answer took too long or grew too large: ask for less."""


def checked_ids(job_ids: Sequence[int]) -> list[int]:
    """Each number once, in order; raises if one is none of Slurm's."""
    for job_id in job_ids:
        if not 0 < job_id <= LARGEST:
            raise InvalidInput(
                f"{job_id} is not a number Slurm gives to a job: expected 1 to {LARGEST}"
            )
    return list(dict.fromkeys(job_ids))
