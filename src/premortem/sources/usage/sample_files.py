"""Files that keep samples: JSON lines, which grow, and Parquet, which is replaced as a whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import polars as pl
from polars.exceptions import PolarsError

from premortem.errors import InvalidInput, Unavailable
from premortem.jobs.samples import SAMPLE_KEY, SAMPLE_SCHEMA, conform_samples
from premortem.sources.usage.port import SampleSink

_BETWEEN_WRITES_S = 60.0


class SampleFile(SampleSink, Protocol):
    """A file to add samples to; what was added before stays."""

    def close(self) -> None:
        """Write what is left, and let go of the file."""


def open_sample_file(path: Path) -> SampleFile:
    """The file of that name, made if there is none; the name's end tells the format."""
    match path.suffix:
        case ".jsonl":
            return JsonLinesFile(path)
        case ".parquet":
            return ParquetFile(path)
        case _:
            raise InvalidInput(
                f"'{path}' does not tell its format: let its name end in .jsonl or .parquet"
            )


def json_lines(samples: pl.DataFrame) -> str:
    """A line of JSON for each sample; times are ISO 8601 in UTC."""
    rows = samples.with_columns(
        pl.col(pl.Float64).round(3), pl.col("at").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows.iter_rows(named=True))


class JsonLinesFile:
    """A line for each sample, written at once; a line is written whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _explained(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            size = os.fstat(self._file).st_size
            # What was killed while it wrote has left half a line.
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                self._write(b"\n")

    def add(self, samples: pl.DataFrame) -> None:
        """Append these samples."""
        with _explained(self._path):
            self._write(json_lines(samples).encode())

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _write(self, text: bytes) -> None:
        size = os.fstat(self._file).st_size
        try:
            rest = memoryview(text)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except BaseException:
            os.ftruncate(self._file, size)
            raise


class ParquetFile:
    """A table of all samples, written anew once a minute and at the end; never seen half written.

    All of it is in memory meanwhile: for weeks of a large node JSON lines are the better choice.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._samples = _before(path)
        self._is_written = path.exists()
        self._written_at_s = time.monotonic()

    def add(self, samples: pl.DataFrame) -> None:
        """Take in these samples; none of them if they are to be written and that fails."""
        before = self._samples, self._is_written
        self._samples = pl.concat([self._samples, samples])
        self._is_written = False
        if time.monotonic() - self._written_at_s > _BETWEEN_WRITES_S:
            try:
                self.close()
            except BaseException:
                # They will be handed over again.
                self._samples, self._is_written = before
                raise

    def close(self) -> None:
        """Write what is left."""
        if self._is_written:
            return
        new = self._path.with_name(f".{self._path.name}.new")
        self._written_at_s = time.monotonic()
        try:
            with _explained(self._path):
                self._samples.rechunk().write_parquet(new)
                new.replace(self._path)
        finally:
            new.unlink(missing_ok=True)
        self._is_written = True


def _before(path: Path) -> pl.DataFrame:
    """What a file holds already."""
    if not path.exists():
        return pl.DataFrame(schema=SAMPLE_SCHEMA)
    try:
        found = pl.read_parquet(path)
    except (OSError, PolarsError) as error:
        raise InvalidInput(f"{path} cannot be read as Parquet: {error}") from error
    if not {*SAMPLE_KEY} <= {*found.columns}:
        raise InvalidInput(f"{path} is a table of something else than samples: name another file")
    return conform_samples(found)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}") from error
    except PolarsError as error:
        raise Unavailable(f"{path} cannot be written: {error}") from error
