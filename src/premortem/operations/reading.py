"""A whole log as one frame, without a store in between."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from premortem.errors import PremortemError, Unavailable
from premortem.jobs.frame import SCHEMA
from premortem.jobs.samples import no_samples, with_samples
from premortem.jobs.sightings import fold
from premortem.sources.detection import ReadOptions, source_for
from premortem.sources.files import InputFile
from premortem.sources.port import Context


@dataclass(frozen=True, slots=True)
class Log:
    """A log's jobs by time of submission, each once, with every field and their samples.

    `rejected` counts the records that were set aside, `sha256` is that of the file as it is, None
    for standard input. `problem` is why reading ended early.
    """

    name: str
    jobs: pl.DataFrame
    rejected: int
    sha256: str | None
    notes: list[str]
    problem: PremortemError | None = None


def read_log(
    path: str,
    *,
    options: ReadOptions,
    context: Context,
    progress: Callable[[int, int | None], None] = lambda _at, _size: None,
) -> Log:
    """Read a log. Bad records are set aside and counted; what cannot be read at all is raised.

    Where reading fails midway, what came before is kept, and the problem told.
    """
    frames = [pl.DataFrame(schema=SCHEMA)]
    samples = [no_samples()]
    rejected = 0
    problem: PremortemError | None = None
    with InputFile(path) as file:
        source = source_for(file, options, context)
        try:
            for batch in source.batches():
                frames.append(batch.jobs)
                samples.append(batch.samples)
                rejected += batch.rejects.height
                progress(batch.position, file.size)
        except PremortemError as error:
            if len(frames) == 1:
                raise
            problem = error
    jobs = fold(pl.concat(frames, how="diagonal")).sort("submit_time", "job_id", "cluster")
    jobs = with_samples(jobs, pl.concat(samples))
    name = "standard input" if path == "-" else Path(path).name
    return Log(name, jobs, rejected, _digest(path), source.notes, problem)


def _digest(path: str) -> str | None:
    if path == "-":
        return None
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Unavailable(f"{path}: reading failed: {error}") from error
