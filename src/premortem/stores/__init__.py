"""The memory of a cluster: job records and rejects, kept once, read by time and by filter.

A store knows nothing of where records come from; `open_store` is the one place that chooses one.
"""

from __future__ import annotations

from premortem.errors import InvalidInput
from premortem.stores.port import Appended, JobQuery, Store

__all__ = ["Appended", "JobQuery", "Store", "open_store"]


def open_store(url: str, *, read_only: bool = False, patience_s: float = 30.0) -> Store:
    """The store at `url`, such as ``sqlite:///jobs.db``; created unless `read_only`.

    Three slashes and a path are relative to the working directory, four begin an absolute path.
    `patience_s` is how long to wait for another process that is writing.
    """
    scheme, separator, path = url.partition("://")
    if scheme == "sqlite" and separator and path.startswith("/") and len(path) > 1:
        from premortem.stores.sqlite import SqliteStore

        return SqliteStore(path[1:], read_only=read_only, patience_s=patience_s)
    # The address itself may hold a password, and is not repeated.
    raise InvalidInput(
        f"a store's address begins sqlite:///, such as sqlite:///path/to/jobs.db; this one begins "
        f"'{scheme if separator else url[:20]}'"
    )
