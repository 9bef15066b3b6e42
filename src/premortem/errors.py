"""Everything premortem raises on purpose, arranged by what the caller can do about it.

    PremortemError
    ├── InvalidInput    what was given cannot be used: correct it
    ├── NotFound        nothing answers to that name: look for another
    ├── Conflict        it clashes with what is already there: resolve that first
    ├── Unavailable     it may work later: try again
    └── MissingExtra    an optional library is not installed: install it

Each message says what was expected, what came, and what to do next. Nothing here knows of HTTP
or of exit codes; the apps map these classes to theirs.
"""

from __future__ import annotations


class PremortemError(Exception):
    """The root: catch this to catch everything premortem raises on purpose."""


class InvalidInput(PremortemError):
    """A file, an option, a setting or a record cannot be used as it is."""


class NotFound(PremortemError):
    """A job, a file or another named thing does not exist."""


class Conflict(PremortemError):
    """The request clashes with the present state, such as a store of a newer version."""


class Unavailable(PremortemError):
    """A resource is busy, full or out of reach for now; the same call may work later."""


class MissingExtra(PremortemError):
    """An optional library is needed and not installed."""

    def __init__(self, library: str, *, extra: str) -> None:
        super().__init__(
            f"this needs {library}, which is not installed: pip install 'premortem[{extra}]'"
        )
