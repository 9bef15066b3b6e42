"""JSON documents too large to hold: one array's items one by one, everything else as it passes."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any

from premortem.errors import InvalidInput
from premortem.sources.content import Content

_READ_BYTES = 1 << 20
_LARGEST_VALUE = 64 << 20
_BLANKS = " \t\r\n"


class JsonStream:
    """The top level of a JSON document, read in bounded memory.

    `items(name)` yields the elements of the array of that name; the other top-level values are in
    `others` as soon as they have been passed. A document that is itself an array yields its own
    elements. `damage` tells what ended the reading early, if anything did.
    """

    def __init__(self, file: Content) -> None:
        self.others: dict[str, Any] = {}
        self.damage: str | None = None
        self.found = False
        self._file = file
        self._decode = json.JSONDecoder().raw_decode
        self._text = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._buffer = ""
        self._at = 0

    def items(self, name: str) -> Iterator[Any]:
        """The elements of the top-level array `name`, in order."""
        try:
            yield from self._walk(name)
            while self._goes_on():
                yield from self._walk(name)
        except json.JSONDecodeError as error:
            self.damage = self._file.damage or f"the JSON is cut short or malformed ({error.msg})"

    def _walk(self, name: str) -> Iterator[Any]:
        if self._peek() == "[":
            self.found = True
            yield from self._elements()
            return
        self._expect("{")
        while self._peek() != "}":
            if self._peek() != '"':
                self._expect('"')
            key = self._value()
            self._expect(":")
            if key == name and self._peek() == "[":
                self.found = True
                yield from self._elements()
            else:
                self.others[key] = self._value()
            if self._peek() != "}":
                self._expect(",")
        self._expect("}")

    def _goes_on(self) -> bool:
        """Whether another document follows, as when answers were put one behind another."""
        try:
            self._peek()
        except json.JSONDecodeError:
            return False
        return True

    def _elements(self) -> Iterator[Any]:
        self._expect("[")
        while self._peek() != "]":
            yield self._value()
            if self._peek() != "]":
                self._expect(",")
        self._expect("]")

    def _peek(self) -> str:
        """The next character that is not a blank; raises at the end of the document."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in _BLANKS:
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                raise json.JSONDecodeError("unexpected end", self._buffer, self._at)

    def _expect(self, character: str) -> None:
        found = self._peek()
        if found != character:
            raise json.JSONDecodeError(
                f"'{found}' where '{character}' was expected", self._buffer, self._at
            )
        self._at += 1

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
                # A number at the very end of the buffer may go on in the next block.
                if end < len(self._buffer) or not self._more():
                    self._at = end
                    return value
            except json.JSONDecodeError:
                if len(self._buffer) - self._at > _LARGEST_VALUE or not self._more():
                    raise
            except ValueError as error:
                raise json.JSONDecodeError(str(error), self._buffer, self._at) from error
            except RecursionError as error:
                raise InvalidInput(f"{self._file.path}: the JSON is nested too deeply") from error

    def _more(self) -> bool:
        """Read on; at least as much again as is held, so that retries stay few."""
        held = self._buffer[self._at :]
        data = self._file.read(max(_READ_BYTES, len(held)))
        self._buffer = held + self._text.decode(data, final=not data)
        self._at = 0
        return bool(data)
