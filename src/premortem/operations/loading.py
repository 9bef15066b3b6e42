"""From files into the store, batch by batch, counting everything."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from premortem.errors import PremortemError
from premortem.sources.detection import ReadOptions, source_for
from premortem.sources.files import InputFile
from premortem.sources.port import Batch, Context, Source
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
        """Whether the file could be read and held at least one good record, or none at all."""
        return self.problem is None and (self.read == 0 or self.read > self.rejected)


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
    return "standard input" if path == "-" else str(Path(path).resolve())


class _FromStore(Exception):
    """Carries a store's error past the handling of a source's."""

    def __init__(self, cause: PremortemError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _store_batches(
    report: LoadReport, source: Source, store: Store, progress: Callable[[int], None]
) -> None:
    name = source_name(report.path)
    first = True
    with closing(_ahead(source.batches())) as batches:
        for batch in batches:
            try:
                appended = store.append(batch.jobs) if batch.jobs.height else Appended()
                store.set_aside(name, batch.rejects, afresh=first)
            except PremortemError as error:
                raise _FromStore(error) from error
            first = False
            report.read += batch.read
            report.rejected += batch.rejects.height
            report.new += appended.new
            report.updated += appended.updated
            report.unchanged += appended.unchanged
            progress(batch.position)


def _ahead(batches: Iterator[Batch]) -> Generator[Batch]:
    """The same batches, each parsed while the one before it is being stored."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch
