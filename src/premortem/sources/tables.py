"""Published job tables, CSV or Parquet, read by a mapping of their columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl
from polars.exceptions import PolarsError

from premortem.errors import InvalidInput
from premortem.jobs.fields import KEY
from premortem.jobs.frame import SCHEMA
from premortem.jobs.normal import normalise
from premortem.jobs.numbers import task_number, with_job_number
from premortem.sources.columns import read_fields
from premortem.sources.files import InputFile, line_blocks
from premortem.sources.mapping import Mapping
from premortem.sources.port import Batch, Context, checked, no_rejects, reject

_BATCH = 50_000
# How many recent jobs are remembered to number the tasks of an array whose rows lie apart.
_REMEMBERED = 2_000_000
PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some rows as columns of text, with their line or row numbers, and rows of another shape."""

    cells: pl.DataFrame
    numbers: pl.Series
    rejects: pl.DataFrame


@dataclass(slots=True)
class TableSource:
    """Reads one table; `line` in rejects is the line of a CSV file or the row of a Parquet file."""

    file: InputFile
    context: Context
    mapping: Mapping
    notes: list[str] = field(default_factory=list)
    _tasks: _TaskNumbers | None = None

    def batches(self) -> Iterator[Batch]:
        """The table's jobs in batches, in the order of the rows."""
        if self.mapping.repeated_ids == "array-tasks":
            self._tasks = _TaskNumbers()
        is_parquet = self.file.head().startswith(PARQUET_MAGIC)
        for rows in self._parquet_rows() if is_parquet else self._csv_rows():
            yield self._batch(rows)

    def _batch(self, rows: _Rows) -> Batch:
        readings = self.mapping.readings(self.context.zone)
        records, reasons = read_fields(rows.cells, readings)
        numbers = rows.cells[self.mapping.columns["job_id"].column]
        records = with_job_number(records.drop("job_id"), numbers)
        records = self.context.stamped(records, source="table", cluster=self.mapping.cluster)
        if self._tasks is not None:
            records = self._tasks.numbered(records)
        texts = rows.cells.select(pl.concat_str(pl.all(), separator=",", ignore_nulls=True))
        batch = checked(
            normalise(records),
            texts.to_series(),
            rows.numbers,
            reasons,
            context=self.context,
            position=self.file.position,
        )
        return Batch(batch.jobs, pl.concat([batch.rejects, rows.rejects]), batch.position)

    def _csv_rows(self) -> Iterator[_Rows]:
        unreadable: list[pl.DataFrame] = []

        def lines() -> Iterator[str]:
            for block in line_blocks(self.file):
                if block.rejects.height:
                    unreadable.append(block.rejects)
                for number, line in zip(block.numbers, block.lines, strict=True):
                    # A blank line in place of one set aside keeps the count of lines right.
                    yield from ["\n"] * (number - 1 - reader.line_num)
                    yield line + "\n"

        reader = csv.reader(lines(), delimiter=self.mapping.delimiter)
        header = self._header(next(_records(reader), (0, [], None))[1])
        rows: list[list[str]] = []
        numbers: list[int] = []
        for first, row, problem in _records(reader):
            if problem is None and len(row) == len(header):
                rows.append(row)
                numbers.append(first)
            elif row or problem:
                problem = problem or f"{len(header)} columns expected, {len(row)} found"
                if reader.line_num > first:
                    problem += f" (lines {first} to {reader.line_num} read as one row)"
                unreadable.append(reject(first, problem, self.mapping.delimiter.join(row)))
            if len(rows) == _BATCH:
                yield _rows(header, rows, numbers, unreadable)
                rows, numbers = [], []
                unreadable.clear()
        if rows or unreadable:
            yield _rows(header, rows, numbers, unreadable)

    def _parquet_rows(self) -> Iterator[_Rows]:
        try:
            table = _parquet(self.file)
            schema = table.collect_schema()
            wanted = self._columns(schema.names())
            zone = self.mapping.zone or self.context.zone
            texts = table.select(_as_text(name, schema[name], zone) for name in wanted)
            number = 1
            for cells in texts.collect_batches(chunk_size=_BATCH, maintain_order=True):
                numbers = pl.int_range(number, number + cells.height, dtype=pl.Int64, eager=True)
                yield _Rows(cells, numbers, no_rejects())
                number += cells.height
        except PolarsError as error:
            raise InvalidInput(f"{self.file.path}: not a readable Parquet file: {error}") from error

    def _header(self, names: list[str]) -> list[str]:
        header = [name.strip().lstrip("\ufeff") for name in names]
        self._columns(header)
        return header

    def _columns(self, header: list[str]) -> list[str]:
        """The columns the mapping reads; an error tells all that are missing."""
        wanted = list(dict.fromkeys(column.column for column in self.mapping.columns.values()))
        repeated = [name for name in wanted if header.count(name) > 1]
        if repeated:
            raise InvalidInput(f"{self.file.path}: columns named twice: {', '.join(repeated)}")
        missing = [name for name in wanted if name not in header]
        if missing:
            raise InvalidInput(
                f"{self.file.path} has no column {', '.join(missing)}, which the mapping names; "
                f"it has {', '.join(header) or 'none'}"
            )
        return wanted


def column_names(file: InputFile) -> list[str]:
    """The names of a table's columns; the file is still to be read."""
    if not file.head().startswith(PARQUET_MAGIC):
        first = file.head().decode(errors="replace").splitlines()[:1]
        return next(csv.reader(first), [])
    try:
        return _parquet(file).collect_schema().names()
    except PolarsError as error:
        raise InvalidInput(f"{file.path}: not a readable Parquet file: {error}") from error


def _parquet(file: InputFile) -> pl.LazyFrame:
    if file.path == "-":
        raise InvalidInput("Parquet cannot be read from a pipe: write it to a file first")
    return pl.scan_parquet(file.path, glob=False)


class _CsvReader(Protocol):
    """What `csv.reader` returns; the standard library gives the type no public name."""

    line_num: int

    def __next__(self) -> list[str]: ...


class _TaskNumbers:
    """Numbers rows that share a job's key as tasks of an array, in the order they come."""

    def __init__(self) -> None:
        self._seen = pl.DataFrame(
            schema={name: SCHEMA[name] for name in KEY} | {"seen": pl.UInt32()}
        )

    def numbered(self, records: pl.DataFrame) -> pl.DataFrame:
        key = list(KEY)
        counted = records.join(self._seen, on=key, how="left", maintain_order="left").with_columns(
            task=pl.col("seen").fill_null(0) + pl.int_range(pl.len()).over(key)
        )
        # The last row of a key in this batch carries its highest number.
        latest = counted.group_by(key, maintain_order=True).agg(seen=pl.col("task").max() + 1)
        self._seen = pl.concat(
            [
                self._seen.join(latest, on=key, how="anti", maintain_order="left"),
                latest.cast({"seen": pl.UInt32}),
            ]
        ).tail(_REMEMBERED)
        is_task = pl.col("task") > 0
        task = pl.col("task").cast(pl.Int64)
        return counted.with_columns(
            array_job_id=pl.when(is_task).then("job_id").otherwise("array_job_id"),
            array_task_id=pl.when(is_task).then(task).otherwise("array_task_id"),
            job_id=pl.when(is_task).then(task_number(pl.col("job_id"), task)).otherwise("job_id"),
        ).drop("seen", "task")


def _records(reader: _CsvReader) -> Iterator[tuple[int, list[str], str | None]]:
    """Each record with the line it begins on, and what is wrong with it, if anything."""
    while True:
        first = reader.line_num + 1
        try:
            yield first, next(reader), None
        except StopIteration:
            return
        except csv.Error as error:
            yield first, [], f"not CSV: {error}"


def _rows(
    header: list[str], rows: list[list[str]], numbers: list[int], unreadable: list[pl.DataFrame]
) -> _Rows:
    columns: list[Sequence[str]] = list(zip(*rows, strict=True)) if rows else [[]] * len(header)
    cells = pl.DataFrame(
        {
            name: pl.Series(column, dtype=pl.String)
            for name, column in zip(header, columns, strict=True)
        }
    )
    rejects = pl.concat(unreadable) if unreadable else no_rejects()
    return _Rows(cells, pl.Series(numbers, dtype=pl.Int64), rejects)


def _as_text(name: str, dtype: pl.DataType, zone: str) -> pl.Expr:
    """A column of any type as the text that the mapping's readings expect."""
    value = pl.col(name)
    if dtype == pl.Date:
        value, dtype = value.cast(pl.Datetime("us")), pl.Datetime("us")
    if isinstance(dtype, pl.Datetime):
        instant = (
            value
            if dtype.time_zone
            else value.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        )
        return instant.dt.epoch("s").cast(pl.String).alias(name)
    return value.cast(pl.String)
