"""Reading the files of /proc, which may be gone or closed to us at any moment."""

from __future__ import annotations

import os

_PIECE = 8192


def content(path: str) -> bytes | None:
    """All that a file says; None if it is gone, or not for us to read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = piece = os.read(handle, _PIECE)
        # Of an environment the kernel may give a page at a time; all others are shorter.
        while len(piece) >= 4096:
            piece = os.read(handle, _PIECE)
            text += piece
    except OSError:
        return None
    finally:
        os.close(handle)
    return text
