"""Documents as bytes to be read once: opened from a file, or received from a program or server."""

from __future__ import annotations

import tempfile
from types import TracebackType
from typing import Protocol

# What is looked at to tell what a document is.
HEAD_BYTES = 64 << 10
# Beyond this a received document waits on disk.
_IN_MEMORY = 8 << 20


class Content(Protocol):
    """The bytes of one document; `path` names it in messages, `damage` is what cut it short."""

    path: str
    damage: str | None

    @property
    def position(self) -> int:
        """Bytes consumed so far."""

    def head(self) -> bytes:
        """The first bytes, which the next `read` still returns."""

    def tail(self) -> bytes:
        """The last bytes, where they can be had without reading it all."""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; empty only at the end."""


class Received:
    """A document that is written piece by piece as it comes, and then read from its beginning."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.damage: str | None = None
        self.position = 0
        self.size = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by us

    def write(self, data: bytes) -> None:
        """Add what came."""
        self._file.seek(self.size)
        self.size += self._file.write(data)

    def head(self) -> bytes:
        """The first bytes, which the next `read` still returns."""
        return self._at(0, HEAD_BYTES)

    def tail(self) -> bytes:
        """The last bytes."""
        return self._at(max(0, self.size - HEAD_BYTES), HEAD_BYTES)

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; empty only at the end."""
        data = self._at(self.position, size)
        self.position += len(data)
        return data

    def _at(self, place: int, size: int) -> bytes:
        self._file.seek(place)
        return self._file.read(size)

    def close(self) -> None:
        """Forget it."""
        self._file.close()

    def __enter__(self) -> Received:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
