"""From files into the store, batch by batch, counting everything."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread

import polars as pl

from premortem.errors import PremortemError
from premortem.sources.detection import ReadOptions, source_for
from premortem.sources.files import InputFile
from premortem.sources.port import Batch, Context, Source, no_rejects
from premortem.stores.port import Appended, Store

# Told after each batch: bytes of the file consumed, and its size where that is known.
Progress = Callable[[int, int | None], None]


@dataclass(slots=True)
class LoadReport:
    """What became of one file's records.

    `read` is the sum of the other four counts. `problem` is why reading ended early or never
    began; what came before it is stored.
    """

    path: str
    read: int = 0
    new: int = 0
    updated: int = 0
    unchanged: int = 0
    rejected: int = 0
    notes: list[str] = field(default_factory=list)
    problem: PremortemError | None = None

    @property
    def useful(self) -> bool:
        """Whether it told of any job, or could be read and held none."""
        told = self.new + self.updated + self.unchanged
        return told > 0 or (self.problem is None and self.read == 0)


def load_file(
    path: str, store: Store, *, options: ReadOptions, context: Context, progress: Progress
) -> LoadReport:
    """Load one file. Bad records are set aside; a bad file is reported, never raised.

    A store that fails is raised, since no other file will fare better. Interrupting leaves whole
    batches behind, and loading again completes them.
    """
    report = LoadReport(path)
    try:
        with InputFile(path) as file:
            source = source_for(file, options, context)
            report.notes = source.notes
            _store_batches(report, source, store, lambda at: progress(at, file.size))
    except _FromStore as error:
        raise error.cause from error.cause.__cause__
    except PremortemError as error:
        report.problem = error
    return report


def source_name(path: str) -> str:
    """The name under which a file's bad records are kept."""
    if path == "-":
        return "standard input"
    # A name that is not UTF-8 is shown with escapes, like everything else that is not.
    return os.fsencode(Path(path).resolve()).decode(errors="backslashreplace")


class _FromStore(Exception):
    """Carries a store's error past the handling of a source's."""

    def __init__(self, cause: PremortemError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _store_batches(
    report: LoadReport, source: Source, store: Store, progress: Callable[[int], None]
) -> None:
    name = source_name(report.path)
    before = 0
    with _from_store():
        # What standard input brings is other data every time; a file replaces its own.
        if report.path != "-":
            store.set_aside(name, no_rejects(), afresh=True)
        elif (kept := store.rejects(name)).height:
            before = kept["line"][-1]
    with closing(_ahead(source.batches())) as batches:
        for batch in batches:
            with _from_store():
                appended = store.append(batch.jobs) if batch.jobs.height else Appended()
                store.add_samples(batch.samples)
                store.set_aside(name, batch.rejects.with_columns(pl.col("line") + before))
            report.read += batch.read
            report.rejected += batch.rejects.height
            report.new += appended.new
            report.updated += appended.updated
            report.unchanged += appended.unchanged
            progress(batch.position)


@contextmanager
def _from_store() -> Iterator[None]:
    try:
        yield
    except PremortemError as error:
        raise _FromStore(error) from error


def _ahead(batches: Iterator[Batch]) -> Generator[Batch]:
    """The same batches, each parsed while the one before it is being stored.

    The reading thread is a daemon: an interruption must not wait for a pipe that is silent.
    """
    parsed: Queue[Batch | BaseException | None] = Queue(maxsize=1)
    abandoned = Event()

    def read() -> None:
        try:
            for batch in batches:
                parsed.put(batch)
                if abandoned.is_set():
                    return
            parsed.put(None)
        except BaseException as error:
            parsed.put(error)

    Thread(target=read, daemon=True).start()
    try:
        while (batch := parsed.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        abandoned.set()
        with suppress(Empty):
            parsed.get_nowait()
