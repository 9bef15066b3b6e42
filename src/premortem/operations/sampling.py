"""Samples of running jobs, taken for those who know them by their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import polars as pl

from premortem.operations.tries import JobKey


class Sampler(Protocol):
    """What tells how much running jobs use, by their numbers."""

    def sample(self, job_ids: Sequence[int]) -> pl.DataFrame:
        """Samples of those that run; see `jobs.samples`."""


def sampled(sampler: Sampler, jobs: Iterable[JobKey]) -> pl.DataFrame:
    """Samples of these jobs, each filed under its cluster."""
    clusters = {number: cluster for cluster, number, _ in jobs}
    samples = sampler.sample(list(clusters))
    return samples.with_columns(
        cluster=pl.col("job_id").replace_strict(clusters, return_dtype=pl.String)
    )
