"""A submission: all that the driver needs to know to hand a job to Slurm."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from premortem.lab.workload.cases import Case
from premortem.lab.workload.scripts import Written, written
from premortem.lab.workload.users import User


class While(StrEnum):
    """In which state a job is when its user cancels it."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True)
class Cancellation:
    """That a job is cancelled by its user once it was in a state for so long, in real seconds."""

    state: While
    after_s: float


@dataclass(frozen=True, slots=True)
class Submission:
    """A job to be submitted at a moment of the simulated calendar.

    `number` tells it from all others. It waits for the job of `after`, another submission's
    number. `attempt` counts how often this case has been tried.
    """

    number: int
    moment: float
    user: User
    case: Case
    attempt: int = 1
    after: int | None = None
    cancellation: Cancellation | None = None

    @property
    def jobs(self) -> int:
        """How many jobs it is: a task of an array is one."""
        return self.case.tasks or 1

    @property
    def folder(self) -> str:
        """Where it is submitted from, in the world of the lab."""
        return f"/home/{self.user.name}/{self.case.kind.project}"

    def written(self) -> Written:
        """Its script and files."""
        return written(self.case, email=self.user.mail)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended, in Slurm's own words."""

    state: str
    exit_code: str = ""
    reason: str = ""

    @property
    def is_good(self) -> bool:
        """Whether Slurm calls it completed."""
        return self.state == "COMPLETED"
