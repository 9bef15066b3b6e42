"""Jobs as premortem itself writes them: Parquet with the table's own fields, and their samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import polars as pl
from polars.exceptions import PolarsError

from premortem.errors import InvalidInput
from premortem.jobs.fields import KEY
from premortem.jobs.frame import SCHEMA
from premortem.jobs.normal import without_the_future
from premortem.jobs.samples import SAMPLES, SAMPLES_DTYPE, samples_of
from premortem.jobs.spellings import state
from premortem.sources.files import InputFile
from premortem.sources.port import Batch, Context, checked

_BATCH = 20_000


def is_exported(columns: Collection[str]) -> bool:
    """Whether a table of these columns is one of premortem's own."""
    return set(KEY) <= set(columns) <= {*SCHEMA, SAMPLES}


@dataclass(slots=True)
class ExportedSource:
    """Reads one such file; `line` in rejects is the number of the row."""

    file: InputFile
    context: Context
    notes: list[str] = field(default_factory=list)

    def batches(self) -> Iterator[Batch]:
        """The jobs in batches, in the order of the rows, with the samples that they carry."""
        number = 1
        try:
            table = pl.scan_parquet(self.file.path, glob=False)
            names = table.collect_schema().names()
            typed = table.select(
                pl.col(name).cast(SCHEMA.get(name, SAMPLES_DTYPE)) for name in names
            )
            for jobs in typed.collect_batches(chunk_size=_BATCH, maintain_order=True):
                yield self._batch(jobs, number)
                number += jobs.height
        except PolarsError as error:
            raise InvalidInput(f"{self.file.path}: not a readable Parquet file: {error}") from error

    def _batch(self, jobs: pl.DataFrame, number: int) -> Batch:
        if self.context.cluster:
            jobs = jobs.with_columns(cluster=pl.lit(self.context.cluster))
        if "seen_at" not in jobs.columns:
            jobs = self.context.stamped(jobs)
        # Anybody can write such a file.
        jobs, reasons = _with_states_read(jobs)
        records = without_the_future(jobs.drop(SAMPLES, strict=False))
        texts = records.select(pl.concat_str("cluster", "job_id", separator=" ", ignore_nulls=True))
        lines = pl.int_range(number, number + jobs.height, dtype=pl.Int64, eager=True)
        batch = checked(
            records, texts.to_series(), lines, reasons, context=self.context, position=0
        )  # fmt: skip
        return Batch(batch.jobs, batch.rejects, self.file.position, samples_of(jobs))


def _with_states_read(jobs: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series | None]:
    """The jobs with their states as premortem writes them, and what is wrong where one is none."""
    if "state" not in jobs.columns:
        return jobs, None
    read = jobs.select(state(pl.col("state"))).to_series()
    unknown = jobs["state"].is_not_null() & read.is_null()
    told = pl.format("state: '{}' is not one of Slurm's job states", "state")
    reasons = jobs.select(pl.when(unknown).then(told)).to_series()
    return jobs.with_columns(state=read), reasons
