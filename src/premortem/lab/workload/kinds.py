"""A kind of job: what it is for, what it needs, and the script that its users keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Language(StrEnum):
    """What a kind's main program is written in."""

    C = "C"
    PYTHON = "Python"
    PERL = "Perl"
    AWK = "awk"
    SHELL = "bash"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job.

    `body` is the script below its header, with slots such as ``<<program>>``. `seconds` and
    `memory_mb` are those of its smallest and its largest run; `cpu` is the share of a processor
    that its program is busy, `sizes` what `<<size>>` means for the two. An array has `tasks`.
    `fragility` multiplies how often something is wrong with it.
    """

    name: str
    purpose: str
    project: str
    job_names: tuple[str, ...]
    program: str
    body: str
    language: Language = Language.C
    seconds: tuple[float, float] = (4, 20)
    memory_mb: tuple[int, int] = (12, 60)
    sizes: tuple[int, int] = (1_000, 50_000)
    cpu: float = 0.02
    io_mb_s: float = 0.1
    cpus: tuple[int, ...] = (1, 1, 2)
    partition: str = "normal"
    options: tuple[str, ...] = ()
    tasks: tuple[int, int] | None = None
    fragility: float = 1.0

    @property
    def needs_gpu(self) -> bool:
        """Whether its program looks for a GPU."""
        return self.partition == "gpu"
