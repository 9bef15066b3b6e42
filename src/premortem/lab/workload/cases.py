"""A case: one job as a user means it, with what it asks for and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random

from premortem.lab.workload.flaws import Flaw
from premortem.lab.workload.kinds import Kind, Language

# What a job takes beside its program's own memory: the shell, and the interpreter.
_OVERHEAD_MB = {Language.PYTHON: 16, Language.PERL: 12}
_SHELL_MB = 6


@dataclass(frozen=True)
class Case:
    """One job. `size` is between 0 and 1; `memory_mb` and `minutes` are what it asks for.

    A `strict` script ends at its first error. `version` is that of the program. What else is by
    chance in it, such as when its program crashes, comes from `seed`, so a case repeated without
    change does the same again. Of an array, all tasks are flawed or, with `scattered`, some.
    """

    kind: Kind
    number: int
    size: float
    memory_mb: int | None
    minutes: int | None
    cpus: int
    seed: int
    strict: bool = True
    version: str = "2.1"
    flaw: Flaw | None = None
    scattered: bool = False
    tasks: int | None = None
    node: str | None = None

    @property
    def name(self) -> str:
        """The job's name."""
        pattern = self.kind.job_names[self.seed % len(self.kind.job_names)]
        return pattern.format(n=self.number)

    @property
    def amount(self) -> int:
        """The size as its users count it: atoms, cells, reads."""
        low, high = self.kind.sizes
        return round(low + (high - low) * self.size)

    @cached_property
    def seconds(self) -> float:
        """How long its program runs if nothing is wrong."""
        low, high = self.kind.seconds
        return round((low + (high - low) * self.size) * Random(self.seed).uniform(0.85, 1.15), 1)

    @property
    def program_mb(self) -> float:
        """The memory that its program takes."""
        low, high = self.kind.memory_mb
        return round(low + (high - low) * self.size, 1)

    @property
    def needed_mb(self) -> float:
        """The memory that the job takes in all."""
        return needed_mb(self.kind, self.size)

    @property
    def asked_mb(self) -> int:
        """The memory that it gets: what it asked for, or what the cluster gives for each CPU."""
        return self.memory_mb or 200 * self.cpus


def needed_mb(kind: Kind, size: float) -> float:
    """The memory that a job of a kind takes in all, at a size."""
    low, high = kind.memory_mb
    return low + (high - low) * size + _OVERHEAD_MB.get(kind.language, 0) + _SHELL_MB
