"""Files as bounded streams: compressed or not, by blocks of whole lines, whatever their content."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import sys
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol

import polars as pl

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.sources.content import HEAD_BYTES, Content
from premortem.sources.port import no_rejects, reject

# What is held at a time: so many bytes of text, and so many lines of them as records.
BLOCK_BYTES = 16 << 20
BLOCK_LINES = 1 << 16
LONGEST_LINE = 1 << 20

_MAGIC: dict[bytes, str] = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


_PIECE_BYTES = 1 << 20


class _Decompressor(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class InputFile:
    """An open file, decompressed on the way, that knows how far it has been read.

    `-` is standard input. Reading damaged compressed data ends the stream and sets `damage`
    instead of raising, so that what came before it is not lost.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.damage: str | None = None
        self._raw = self._open()
        self.is_regular = self.path != "-" and Path(self.path).is_file()
        self.size = _size_of(self._raw)
        self.modified = _modified(self._raw, is_regular=self.is_regular)
        try:
            magic = _peek(self._raw)
        except OSError as error:
            raise Unavailable(f"{self.path}: reading failed: {error}") from error
        self.compression = next((n for m, n in _MAGIC.items() if magic.startswith(m)), None)
        self._decompressor = self._find_decompressor()
        if magic.startswith(codecs.BOM_UTF8):
            self._raw.read(len(codecs.BOM_UTF8))
        self._head: bytes | None = None

    def _open(self) -> BinaryIO:
        if self.path == "-":
            if sys.stdin is None:
                raise InvalidInput("standard input is closed: there is nothing to read from it")
            return sys.stdin.buffer
        try:
            return open(self.path, "rb", buffering=1 << 20)
        except FileNotFoundError as error:
            raise NotFound(f"{self.path}: no such file") from error
        except IsADirectoryError as error:
            raise InvalidInput(
                f"{self.path} is a directory: name the files in it, such as {self.path}/*"
            ) from error
        except PermissionError as error:
            raise InvalidInput(f"{self.path}: not allowed to read this file") from error
        except OSError as error:
            raise Unavailable(f"{self.path}: {error.strerror or error}") from error

    def _find_decompressor(self) -> _Decompressor | None:
        match self.compression:
            case "gzip":
                return gzip.GzipFile(fileobj=self._raw)
            case "bzip2":
                return bz2.BZ2File(self._raw)
            case "xz":
                return lzma.LZMAFile(self._raw)
            case _:
                return None

    @property
    def position(self) -> int:
        """Bytes of the file itself consumed so far, comparable with `size`."""
        try:
            return self._raw.tell()
        except OSError:
            return 0

    def head(self) -> bytes:
        """The first bytes of the content, which the next `read` still returns."""
        if self._head is None:
            self._head = self._read(HEAD_BYTES)
        return self._head

    def tail(self) -> bytes:
        """The last bytes of the content where they can be had without reading it all."""
        if self.compression or not self.size or not self.is_regular:
            return b""
        return os.pread(self._raw.fileno(), HEAD_BYTES, max(0, self.size - HEAD_BYTES))

    def read(self, size: int) -> bytes:
        """Up to `size` bytes of content; empty only at the end."""
        if self._head:
            data, self._head = self._head, b""
            return data
        return self._read(size)

    def _read(self, size: int) -> bytes:
        try:
            return self._decompressed(size) if self._decompressor else self._raw.read(size)
        except OSError as error:
            raise Unavailable(f"{self.path}: reading failed: {error}") from error

    def _decompressed(self, size: int) -> bytes:
        """Read piece by piece: one large read that meets damage loses all it had so far."""
        pieces: list[bytes] = []
        while self._decompressor and self.damage is None and size > 0:
            try:
                piece = self._decompressor.read1(min(size, _PIECE_BYTES))
            except (*_DAMAGE, OSError) as error:
                # bz2 raises a plain OSError for bad data; one of the system's has a number.
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                self.damage = f"the {self.compression} data is cut short or damaged ({error})"
                break
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def __enter__(self) -> InputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.path != "-":
            self._raw.close()


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive whole lines with their numbers, and what could not be read among them."""

    numbers: pl.Series
    lines: pl.Series
    rejects: pl.DataFrame


def line_blocks(file: Content, *, collapse_blanks: bool = False) -> Iterator[Block]:
    """The lines of a text in blocks of bounded size; a line longer than a MiB is set aside.

    Bytes that are not UTF-8 are shown as escapes (`\\xff`) rather than cost a record its place.
    With `collapse_blanks`, runs of blanks and tabs become one blank.
    """
    number = 1
    for text, problem in _whole_lines(file):
        if problem is not None:
            yield Block(_numbers(number, 0), _texts([]), reject(number, problem, text))
            number += 1
            continue
        lines = _split(_blanks_collapsed(text) if collapse_blanks else text)
        for piece in lines.to_frame().iter_slices(BLOCK_LINES):
            piece_lines = piece.to_series()
            numbers = _numbers(number, len(piece_lines))
            yield _without_overlong(Block(numbers, piece_lines, no_rejects()))
            number += len(piece_lines)


def _whole_lines(file: Content) -> Iterator[tuple[str, str | None]]:
    """Text ending at a line's end; or the beginning of a line and why the rest is not there."""
    carry = b""
    while data := file.read(BLOCK_BYTES):
        data = carry + data
        end = data.rfind(b"\n")
        if end >= 0:
            yield _decoded(data[:end]), None
            carry = data[end + 1 :]
        elif len(data) > LONGEST_LINE:
            carry = yield from _skip_line(file, data)
        else:
            carry = data
    if carry or file.damage is not None:
        yield _decoded(carry), file.damage


def _skip_line(file: Content, beginning: bytes) -> Generator[tuple[str, str], None, bytes]:
    yield _decoded(beginning[:2000]), _overlong()
    while data := file.read(BLOCK_BYTES):
        end = data.find(b"\n")
        if end >= 0:
            return data[end + 1 :]
    return b""


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="backslashreplace")


def _split(text: str) -> pl.Series:
    lines = _texts([text]).str.split("\n").explode()
    return lines.str.strip_suffix("\r") if "\r" in text else lines


def _blanks_collapsed(text: str) -> str:
    text = text.replace("\t", " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def _without_overlong(block: Block) -> Block:
    overlong = block.lines.str.len_bytes() > LONGEST_LINE
    if not overlong.any():
        return block
    rejects = pl.concat(
        reject(number, _overlong(), text)
        for number, text in zip(
            block.numbers.filter(overlong), block.lines.filter(overlong), strict=True
        )
    )
    return Block(block.numbers.filter(~overlong), block.lines.filter(~overlong), rejects)


def _overlong() -> str:
    return f"the line is longer than {LONGEST_LINE >> 20} MiB"


def _numbers(first: int, count: int) -> pl.Series:
    return pl.int_range(first, first + count, dtype=pl.Int64, eager=True)


def _texts(values: list[str]) -> pl.Series:
    return pl.Series(values, dtype=pl.String)


def _peek(raw: BinaryIO) -> bytes:
    peek = getattr(raw, "peek", None)
    return peek(6)[:6] if peek else b""


def _size_of(raw: BinaryIO) -> int | None:
    try:
        return os.fstat(raw.fileno()).st_size or None
    except OSError:
        return None


def _modified(raw: BinaryIO, *, is_regular: bool) -> datetime:
    """When the content was made: the modification time of a real file, else now."""
    if not is_regular:
        return datetime.now(UTC)
    return datetime.fromtimestamp(os.fstat(raw.fileno()).st_mtime, UTC)
