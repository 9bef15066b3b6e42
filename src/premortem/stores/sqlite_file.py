"""One SQLite file as an open connection: statements, transactions, and errors in our words.

Records travel as Arrow columns both ways (ADBC), so that no Python object is made for any value.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import adbc_driver_manager as adbc
import polars as pl
from adbc_driver_sqlite import dbapi

from premortem.errors import InvalidInput, NotFound, PremortemError, Unavailable

_READ_ROWS = 65_536


class SqliteFile:
    """The file at `path`; made if it is not there, unless `read_only`."""

    def __init__(self, path: Path, *, read_only: bool, patience_s: float) -> None:
        self.path = path
        _check_place(path, read_only=read_only)
        with self._translated():
            self._connection = dbapi.connect(_uri(path, read_only=read_only), autocommit=True)
            self._cursor = self._connection.cursor()
        try:
            self.execute(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")
            if not read_only:
                # The mode is a property of the file; what is committed survives a killed process.
                self.execute("PRAGMA journal_mode = WAL")
                self.execute("PRAGMA synchronous = NORMAL")
        except PremortemError:
            self.close()
            raise

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
        self._cursor.close()
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is done inside of it, or on an error nothing."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            # SQLite may have rolled back by itself, as it does when the disk is full.
            with suppress(adbc.Error):
                self._cursor.execute("ROLLBACK")
            raise

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Carry out a statement that answers nothing."""
        with self._translated():
            self._cursor.execute(sql, tuple(values) or None)

    def execute_many(self, sql: str, rows: pl.DataFrame) -> None:
        """Carry out a statement once for each row."""
        with self._translated():
            self._cursor.executemany(sql, rows)

    def query(self, sql: str, values: Sequence[Any] = ()) -> pl.DataFrame:
        """The answer to a question."""
        with self._translated():
            self._cursor.adbc_statement.set_options(
                **{"adbc.sqlite.query.batch_rows": str(_READ_ROWS)}
            )
            self._cursor.execute(sql, tuple(values) or None)
            return self._cursor.fetch_polars()

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
    """Make Ctrl-C Python's again: the driver swaps its own handler in, and not always out."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def _check_place(path: Path, *, read_only: bool) -> None:
    """Raise early, where SQLite would only say that it is out of memory."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a directory: name a file in it, such as {path / 'jobs.db'}")
    if read_only and not path.exists():
        raise NotFound(f"there is no store at {path} yet: 'premortem load' makes one")
    if read_only:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot make the folder {path.parent}: {error.strerror}") from error
    target = path if path.exists() else path.parent
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
