"""Pages that a command writes where its user asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from premortem.errors import Unavailable


def write_page(path: str, page: str) -> None:
    """Write a page; a clear error where that cannot be."""
    with _errors_told(path):
        Path(path).write_text(page, encoding="utf-8", errors="replace")


def require_place(path: str) -> None:
    """Raise now rather than after long work where a page could not be written."""
    file = Path(path)
    with _errors_told(path):
        is_new = not file.exists()
        file.open("ab").close()
        if is_new:
            file.unlink()


@contextmanager
def _errors_told(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}") from error
