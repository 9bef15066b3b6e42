"""What a sampler is, and where samples may go."""

from __future__ import annotations

from typing import Protocol

import polars as pl


class Sampler(Protocol):
    """Something that can see what running jobs use."""

    def sample(self) -> pl.DataFrame:
        """One row of `SAMPLE_SCHEMA` for each running job that is seen now."""


class SampleSink(Protocol):
    """Something that keeps samples."""

    def add(self, samples: pl.DataFrame) -> object:
        """Keep these samples, of `SAMPLE_SCHEMA`; what it returns is not looked at."""
