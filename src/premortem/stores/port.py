"""What every store can do. `tests/contracts` holds each adapter to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import polars as pl


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of appended records: every one of them is counted once."""

    new: int = 0
    updated: int = 0
    unchanged: int = 0

    def __add__(self, other: Appended) -> Appended:
        return Appended(
            self.new + other.new, self.updated + other.updated, self.unchanged + other.unchanged
        )


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Which jobs are wanted. Several values of one filter are alternatives; filters add up.

    `partitions` are those the jobs ran in, or asked for if they have not run. `since` is included
    and `until` is not; both are about submission. `lacking` names a field that has no value.
    With `limit`, the newest jobs are given; the answer is in order of submission all the same.
    """

    clusters: Sequence[str] = ()
    job_ids: Sequence[int] = ()
    array_job_ids: Sequence[int] = ()
    users: Sequence[str] = ()
    accounts: Sequence[str] = ()
    partitions: Sequence[str] = ()
    job_names: Sequence[str] = ()
    states: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    lacking: str | None = None
    limit: int | None = None


class Store(Protocol):
    """The memory of a cluster: every job once, whatever the order and number of its sightings."""

    def append(self, jobs: pl.DataFrame) -> Appended:
        """Keep each job; a later sighting completes an earlier one, see `jobs.sightings`.

        All of the frame is kept, or, on an error, nothing of it.
        """

    def jobs(
        self, query: JobQuery = JobQuery(), columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """The jobs wanted, ordered by submission; only the named columns are read."""

    def add_samples(self, samples: pl.DataFrame) -> int:
        """Keep samples of running jobs, see `jobs.samples`; returns how many were new."""

    def samples(self, job_ids: Sequence[int] = ()) -> pl.DataFrame:
        """The samples of the jobs of these numbers, or of all, by cluster, job and time."""

    def set_aside(self, source: str, rejects: pl.DataFrame, *, afresh: bool = False) -> None:
        """Keep bad records of a source; `afresh` first forgets those it gave before."""

    def rejects(self, source: str | None = None) -> pl.DataFrame:
        """Bad records set aside: source, line, reason, text, seen_at; by source and line."""

    def note(self, name: str) -> str | None:
        """What was noted under a name, if anything."""

    def set_note(self, name: str, text: str) -> None:
        """Note something under a name, in place of what was there."""

    def close(self) -> None:
        """Release the store; using it afterwards is an error."""
