"""Usage of running jobs as Slurm tells it, by the command sstat."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from premortem.errors import NotFound, Unavailable
from premortem.jobs.fields import Kind
from premortem.jobs.samples import SAMPLE_SCHEMA, conform_samples
from premortem.sources.usage.sstat_texts import COLUMNS, NOT_RUNNING, complaints, steps

REFUSED_SCHEMA: dict[str, pl.DataType] = {
    "job_id": Kind.INTEGER.dtype,
    "reason": Kind.TEXT.dtype,
}
# A command line has room for many more.
_JOBS_A_CALL = 500
# A job that did not run at some look, and not for so long, was requeued when it is seen again, and
# begins from nothing: Slurm starts it no sooner than two minutes after its end. Time alone tells
# nothing, since looks may be far apart.
_FORGET_AFTER_S = 100.0
_SUMS = ("cpu_s", "read_mb", "written_mb")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was told of the jobs that were asked about, and why nothing was told of the others."""

    samples: pl.DataFrame
    refused: pl.DataFrame


class SstatSampler:
    """Asks Slurm about running jobs, wherever their nodes are; each answer is a few calls at most.

    `jobs` names those that run now, by Slurm's own numbers. `command` is how sstat is called, such
    as ``("ssh", "login", "sstat")``. Sums hold steps that ended since the first look at a job, and
    what sstat told of them last; a job that is not asked about is taken for one that does not run.
    Slurm looks at a job as often as `JobAcctGatherFrequency` says, and may leave out the CPU time
    of a step's ended children; processes are not counted.
    """

    def __init__(
        self,
        cluster: str,
        jobs: Callable[[], Iterable[int]],
        *,
        command: Sequence[str] = ("sstat",),
        timeout_s: float = 30.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._jobs = jobs
        self._command = tuple(command)
        self._timeout_s = timeout_s
        self._clock = clock
        self._kept: dict[int, _Steps] = {}
        self.refused = pl.DataFrame(schema=REFUSED_SCHEMA)

    def sample(self) -> pl.DataFrame:
        """One row for each job that runs and is told of; `refused` has the others, and why."""
        answer = self.ask(self._jobs())
        self.refused = answer.refused
        return answer.samples

    def ask(self, job_ids: Iterable[int]) -> Answer:
        """The same for these jobs; a job of which a part was refused is refused as a whole."""
        wanted = sorted(set(job_ids))
        at = self._clock()
        told, why_not = self._told(wanted)
        useful = told.filter(~pl.all_horizontal(pl.col("cpu_s", "rss_mb").is_null()))
        complete = useful.filter(pl.col("job_id").is_in([*(set(wanted) - set(why_not))]))
        hidden = {job for job, why in why_not.items() if why != NOT_RUNNING}
        self._forget_ended({*told["job_id"], *hidden})
        rows = self._rows(complete, at)
        seen = {row["job_id"] for row in rows}
        refused = [
            (job, why_not.get(job, "sstat told nothing of it")) for job in wanted if job not in seen
        ]
        return Answer(
            conform_samples(pl.DataFrame(rows, schema=_ROW_SCHEMA)),
            pl.DataFrame(refused, schema=REFUSED_SCHEMA, orient="row"),
        )

    def _told(self, job_ids: list[int]) -> tuple[pl.DataFrame, dict[int, str]]:
        """What sstat says of each step, and its complaints."""
        tables, why_not = [steps("")], dict[int, str]()
        for first in range(0, len(job_ids), _JOBS_A_CALL):
            done = self._run(job_ids[first : first + _JOBS_A_CALL])
            tables.append(steps(done.stdout))
            why_not |= complaints(done.stderr)
        return pl.concat(tables), why_not

    def _run(self, job_ids: list[int]) -> subprocess.CompletedProcess[str]:
        command = (
            *(*self._command, "--allsteps", "--parsable2", "--noheader", "--noconvert"),
            *(f"--format={','.join(COLUMNS)}", f"--jobs={','.join(map(str, job_ids))}"),
        )
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._timeout_s,
                check=False,
            )
        except FileNotFoundError as error:
            raise NotFound(
                f"there is no command '{self._command[0]}' here: install Slurm's commands, or say "
                "how to call sstat where they are"
            ) from error
        except OSError as error:
            raise Unavailable(
                f"'{self._command[0]}' cannot be run: {error.strerror or error}"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise Unavailable(
                f"sstat did not answer in {self._timeout_s:g} s; slurmctld may be down: "
                "try again later"
            ) from error
        if done.returncode:
            raise Unavailable(
                f"sstat ended with {done.returncode}: {(done.stderr or done.stdout).strip()[:500]}"
            )
        return done

    def _forget_ended(self, running: set[int]) -> None:
        now_s = time.monotonic()
        for job, kept in [*self._kept.items()]:
            kept.was_gone |= job not in running
            if kept.was_gone and now_s - kept.seen_at_s > _FORGET_AFTER_S:
                del self._kept[job]
            elif job in running:
                kept.seen_at_s, kept.was_gone = now_s, False

    def _rows(self, told: pl.DataFrame, at: datetime) -> list[dict[str, Any]]:
        resident: dict[int, float | None] = {}
        for one in told.iter_rows(named=True):
            kept = self._kept.setdefault(one["job_id"], _Steps(time.monotonic()))
            kept.note(one["step"], tuple(one[name] for name in _SUMS))
            resident[one["job_id"]] = _plus(resident.get(one["job_id"]), one["rss_mb"])
        return [
            {"cluster": self._cluster, "job_id": job, "at": at, "rss_mb": memory}
            | dict(zip(_SUMS, self._kept[job].sums(), strict=True))
            for job, memory in resident.items()
        ]


class _Steps:
    """The most that each step of a job has ever told."""

    def __init__(self, seen_at_s: float) -> None:
        self.seen_at_s = seen_at_s
        # Whether it did not run at a look since then.
        self.was_gone = False
        self._most: dict[str, tuple[float | None, ...]] = {}

    def note(self, step: str, amounts: tuple[float | None, ...]) -> None:
        before = self._most.get(step, (None,) * len(amounts))
        self._most[step] = tuple(
            old if new is None else max(new, old or 0.0)
            for old, new in zip(before, amounts, strict=True)
        )

    def sums(self) -> list[float | None]:
        total: list[float | None] = [None] * len(_SUMS)
        for amounts in self._most.values():
            total = [_plus(one, other) for one, other in zip(total, amounts, strict=True)]
        return total


def _plus(one: float | None, other: float | None) -> float | None:
    """The sum of what is known."""
    return other if one is None else one + (other or 0.0)


_ROW_SCHEMA = {name: kind for name, kind in SAMPLE_SCHEMA.items() if name != "processes"}
