"""One SQLite file as an open connection: statements, transactions, and errors in our words.

Records travel as Arrow columns both ways (ADBC), so that no Python object is made for any value.
A thread of its own talks to the driver: on the main one that would take Ctrl-C for itself, and may
crash on it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import adbc_driver_manager as adbc
import polars as pl
from adbc_driver_sqlite import dbapi

from premortem.errors import InvalidInput, NotFound, PremortemError, Unavailable

_READ_ROWS = 65_536

_T = TypeVar("_T")


class SqliteFile:
    """The file at `path`; made if it is not there, unless `read_only`."""

    def __init__(self, path: Path, *, read_only: bool, patience_s: float) -> None:
        self.path = path
        _check_place(path, read_only=read_only)
        self._worker = ThreadPoolExecutor(1)
        self._connection, self._cursor = self._done(lambda: _connected(path, read_only=read_only))
        try:
            self.execute(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")
        except PremortemError:
            self.close()
            raise

    def write_ahead(self) -> None:
        """Let others read while this one writes; what is committed survives a killed process."""
        # The mode is a property of the file.
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = NORMAL")

    @property
    def version(self) -> int:
        """The version of its schema, 0 for a file that has none."""
        return int(self.query("PRAGMA user_version").item())

    @property
    def total_changes(self) -> int:
        """How many rows this connection has changed."""
        return int(self.query("SELECT total_changes() AS n").item())

    def close(self) -> None:
        """Release the file."""
        self._done(lambda: (self._cursor.close(), self._connection.close()))
        self._worker.shutdown()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is done inside of it, or on an error nothing."""
        try:
            # Inside: interrupted while it waits, this may have begun all the same.
            self.execute("BEGIN IMMEDIATE")
            yield
            self.execute("COMMIT")
        except BaseException:
            # SQLite may have rolled back by itself, as it does when the disk is full.
            with suppress(PremortemError):
                self.execute("ROLLBACK")
            raise

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Carry out a statement that answers nothing."""
        self._done(lambda: self._cursor.execute(sql, tuple(values) or None))

    def execute_many(self, sql: str, rows: pl.DataFrame) -> None:
        """Carry out a statement once for each row."""
        self._done(lambda: self._cursor.executemany(sql, rows))

    def query(self, sql: str, values: Sequence[Any] = ()) -> pl.DataFrame:
        """The answer to a question."""

        def answered() -> pl.DataFrame:
            self._cursor.adbc_statement.set_options(
                **{"adbc.sqlite.query.batch_rows": str(_READ_ROWS)}
            )
            self._cursor.execute(sql, tuple(values) or None)
            found: pl.DataFrame = self._cursor.fetch_polars()
            return found

        return self._done(answered)

    def _done(self, work: Callable[[], _T]) -> _T:
        """What the work gives; interrupted, this does not wait for it, but what comes next does."""
        with self._translated():
            return self._worker.submit(work).result()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the driver's errors into ours; SQLite tells them apart by their text alone."""
        try:
            yield
        except adbc.Error as error:
            text = str(error)
            if "locked" in text or "busy" in text:
                raise Unavailable(
                    f"{self.path} is being written by another process: try again"
                ) from error
            if "disk is full" in text:
                raise Unavailable(
                    f"no space left for {self.path}: free some and run this again, what was "
                    "stored before is safe"
                ) from error
            if "readonly" in text:
                raise Unavailable(
                    f"{self.path} cannot be written to: check its permissions"
                ) from error
            if "not a database" in text or "malformed" in text:
                raise InvalidInput(f"{self.path} is not a premortem store: {text}") from error
            raise Unavailable(f"{self.path}: {text}") from error
        finally:
            _take_interrupts_back()


def _take_interrupts_back() -> None:
    """Make Ctrl-C Python's again: libraries swap their own handlers in, and not always out."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def _connected(path: Path, *, read_only: bool) -> tuple[Any, Any]:
    connection = dbapi.connect(_uri(path, read_only=read_only), autocommit=True)
    return connection, connection.cursor()


def _check_place(path: Path, *, read_only: bool) -> None:
    """Raise early, where SQLite would only say that it is out of memory."""
    # Unlike those of `Path`, these say no where one may not look.
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a directory: name a file in it, such as {path / 'jobs.db'}")
    if read_only and not os.path.exists(path):
        raise NotFound(f"there is no store at {path} yet: 'premortem load' makes one")
    if read_only:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot make the folder {path.parent}: {error.strerror}") from error
    target = path if os.path.exists(path) else path.parent
    if not os.access(target, os.W_OK):
        raise Unavailable(f"{target} cannot be written to: check its permissions")


def _uri(path: Path, *, read_only: bool) -> str:
    """The file as SQLite's address of it."""
    name = str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    if not read_only:
        return f"file:{name}?mode=rwc"
    # Readers too keep notes beside the file, unless nobody can be writing it.
    log = path.with_name(f"{path.name}-wal")
    still = not os.access(path.parent, os.W_OK) and not log.exists()
    return f"file:{name}?mode=ro{'&immutable=1' if still else ''}"
