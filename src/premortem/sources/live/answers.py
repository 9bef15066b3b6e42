"""What an answer of Slurm's means: that it is one, or in which of its many ways it says no.

Measured on 22.05 and 24.11. A token that is bad or has expired is told by 401, by 511, by 502 with
an error 7000, by 500 with an error -1, and by 200 with an error 1007. A job that does not exist is
told by 404, by 500 or by 200. A query it cannot read is told by 400 in plain text, 422 or 500. That
slurmdbd is down is told by 502 or by 200, and `squeue --json` of 22.05 ends well without slurmctld.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from premortem.sources.content import HEAD_BYTES, Received
from premortem.sources.slurm_json import worded

_UNAUTHORISED = {401, 403, 407, 511}
_NOT_NOW = {408, 425, 429}
_BAD_TOKEN, _NO_SUCH_JOB, _NOTHING_FOUND = 1007, 2017, 9003
_BAD_QUERY = range(9000, 9003)
_EXCERPT = 300


class Meaning(Enum):
    """What to make of an answer."""

    FINE = auto()
    NOTHING = auto()  # there is no such job
    UNAUTHORISED = auto()
    ABSENT = auto()  # there is no such path
    REFUSED = auto()  # the question is at fault: asking again is no use
    FAILING = auto()  # it may work later


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of an answer, the words for it, and whether a new token may help."""

    meaning: Meaning
    words: str = ""
    may_be_token: bool = False


FINE = Verdict(Meaning.FINE)


def verdict_on(answer: Received, status: int = 200) -> Verdict:
    """What an answer means; 200 for what a command printed."""
    document = _document(answer)
    if document is None:
        return _of_no_document(answer, status)
    errors = document.get("errors")
    errors = errors if isinstance(errors, list) else []
    numbers = {number for error in errors if (number := _number(error)) is not None}
    words = "; ".join(map(worded, errors)) or f"status {status}"
    if status in _UNAUTHORISED or _BAD_TOKEN in numbers or "authentication error" in words:
        return Verdict(Meaning.UNAUTHORISED, words)
    if status == 200 and (not errors or _tells_something(document)):
        return FINE
    if numbers and numbers <= {_NO_SUCH_JOB, _NOTHING_FOUND}:
        return Verdict(Meaning.NOTHING, words)
    is_bad_query = not numbers.isdisjoint(_BAD_QUERY) or (400 <= status < 500)
    if is_bad_query and status not in _NOT_NOW:
        return Verdict(Meaning.REFUSED, words)
    return Verdict(Meaning.FAILING, words, may_be_token=status == 500 and -1 in numbers)


def _of_no_document(answer: Received, status: int) -> Verdict:
    """What an answer means that is too large to look through, or not JSON."""
    head, tail = answer.head(), answer.tail()
    if status == 200 and head.lstrip()[:1] == b"{":
        if answer.size > HEAD_BYTES and tail.rstrip()[-1:] == b"}":
            return FINE
        return Verdict(Meaning.FAILING, "the JSON is cut short or malformed")
    said = " ".join(head.decode(errors="replace").split())[:_EXCERPT]
    words = f"status {status}, {said!r}" if said else f"status {status} and nothing else"
    if status in _UNAUTHORISED:
        return Verdict(Meaning.UNAUTHORISED, words)
    if status == 404:
        return Verdict(Meaning.ABSENT, words)
    if status >= 500 or status in _NOT_NOW:
        return Verdict(Meaning.FAILING, words)
    expected = "" if 400 <= status < 500 else "; expected JSON: is this slurmrestd?"
    return Verdict(Meaning.REFUSED, words + expected)


def _document(answer: Received) -> dict[str, Any] | None:
    """The whole of a small answer, whatever its bytes; an answer with errors alone is small."""
    if answer.size > HEAD_BYTES:
        return None
    try:
        document = json.loads(answer.head().decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _number(error: Any) -> int | None:
    number = error.get("error_number", error.get("errno")) if isinstance(error, dict) else None
    return number if isinstance(number, int) else None


def _tells_something(document: dict[str, Any]) -> bool:
    return any(bool(document.get(name)) for name in ("jobs", "nodes", "partitions", "paths"))
