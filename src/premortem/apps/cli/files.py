"""Pages that a command writes where its user asked."""

from __future__ import annotations

from pathlib import Path

from premortem.errors import Unavailable


def write_page(path: str, page: str) -> None:
    """Write a page; a clear error where that cannot be."""
    try:
        Path(path).write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}") from error
