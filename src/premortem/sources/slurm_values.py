"""The values of Slurm's JSON in all their spellings, one function for each kind.

Numbers come plain or as `{set, infinite, number}`, states as a text or a list, exit codes as an
object or as a raw wait status. What is not set is None.
"""

from __future__ import annotations

import math
import re
from typing import Any

from premortem.jobs.secrets import redacted
from premortem.jobs.spellings import ABSENT_WORDS, FARTHEST_S
from premortem.jobs.states import normal_state

Json = Any

_NOT_SET = {2**32 - 2, 2**64 - 2}
_INFINITE = {2**32 - 1, 2**64 - 1}
_MEMORY_PER_CPU = 1 << 63


class BadRecord(Exception):
    """This record cannot be read; the message is the reason to keep with it."""


def number(value: Json, *, infinite: float | None = None) -> float | None:
    """A number in either spelling; `infinite` where it has no bound."""
    if isinstance(value, dict):
        if value.get("infinite") is True:
            return infinite
        if value.get("set") is False:
            return None
        value = value.get("number")
    if value is None or value == "":
        return None
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,20}(\.\d+)?", value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**64:
        raise BadRecord(f"{str(value)[:60]!r} where a number was expected")
    if value in _INFINITE:
        return infinite
    return None if value in _NOT_SET else value


def count(value: Json) -> int | None:
    """A whole number in either spelling."""
    return whole(number(value))


def whole(value: float | None) -> int | None:
    """A number as an integer."""
    if value is None:
        return None
    if abs(value) >= 2**63:
        raise BadRecord(f"{value:g} is beyond any count")
    return int(value)


def identifier(value: Json) -> int | None:
    """A number that is 0 where there is none."""
    return count(value) or None


def instant(value: Json) -> int | None:
    """Seconds since 1970; Slurm writes 0 for what has not happened."""
    seconds = count(value)
    if seconds is not None and abs(seconds) > FARTHEST_S:
        raise BadRecord(f"{seconds} is no time in seconds since 1970")
    return seconds or None


def text(value: Json) -> str | None:
    """A text, or None where it is empty."""
    if value is None or isinstance(value, dict | list):
        return None
    return _encodable(str(value).strip()) or None


def said(value: Json) -> str | None:
    """A text of Slurm's own, or None for one of the words by which it says nothing."""
    words = text(value)
    return None if words in ABSENT_WORDS else words


def script(value: Json) -> str | None:
    """A batch script without secrets, ending in one line's end however it was stored or printed."""
    if not isinstance(value, str) or not value.strip():
        return None
    return redacted(_encodable(value)).rstrip("\n") + "\n"


def part(holder: Json, name: str) -> dict[str, Json]:
    """An object inside another, empty where there is none."""
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def parts(holder: dict[str, Json], name: str) -> list[dict[str, Json]]:
    """A list of objects inside an object, empty where there is none."""
    value = holder.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def state(value: Json) -> str:
    """A job's state; a job without one is a bad record."""
    meant = state_or_none(value)
    if meant is None:
        raise BadRecord(f"state is {str(value)[:60]!r}, expected one of Slurm's job states")
    return meant


def state_or_none(value: Json) -> str | None:
    """The state meant by a text or a list, None where it is none of Slurm's."""
    if isinstance(value, list):
        return normal_state([str(word) for word in value])
    return normal_state(value) if isinstance(value, str) else None


def exit_status(value: Json) -> tuple[int | None, int | None]:
    """Return value and signal, from an object or from the raw status of wait(2)."""
    if isinstance(value, dict) and ("return_code" in value or "signal" in value):
        signal = value.get("signal")
        if isinstance(signal, dict):
            signal = signal.get("id", signal.get("signal_id"))
        code, by_signal = count(value.get("return_code")), count(signal)
        return code, by_signal if by_signal is not None or code is None else 0
    status = count(value)
    return (None, None) if status is None else (status >> 8, status & 0x7F)


def cpu_seconds(value: Json) -> float | None:
    """CPU time, from seconds and microseconds."""
    if not isinstance(value, dict) or "seconds" not in value:
        return number(value)
    seconds, micros = number(value.get("seconds")), number(value.get("microseconds"))
    return None if seconds is None else seconds + (micros or 0) / 1e6


def time_limit(minutes: Json) -> dict[str, int | bool]:
    """The fields of a time limit: seconds, or that there is none."""
    value = number(minutes, infinite=math.inf)
    if value is None:
        return {}
    if value == math.inf:
        return {"time_unlimited": True}
    return {"time_limit_s": whole(value * 60) or 0, "time_unlimited": False}


def memory(holder: dict[str, Json]) -> dict[str, float | None]:
    """The fields of a memory request; one number with a flag bit until v0.0.39, two after."""
    per_node, per_cpu = (number(holder.get(f"memory_per_{share}")) for share in ("node", "cpu"))
    flagged = number(holder.get("memory"))
    if flagged is not None and flagged >= _MEMORY_PER_CPU:
        per_cpu = flagged - _MEMORY_PER_CPU
    elif flagged is not None:
        per_node = flagged
    return {
        "req_memory_per_node_mb": per_node or None,
        "req_memory_per_cpu_mb": per_cpu or None,
    }


def resources(entries: Json) -> dict[str, float]:
    """Resources and their amounts, from a list of objects; memory as it stands there.

    That is MiB for what a job asked for and got, and bytes for what its steps used.
    """
    amounts: dict[str, float] = {}
    for entry in entries if isinstance(entries, list) else ():
        amount = number(entry.get("count")) if isinstance(entry, dict) else None
        # Slurm marks what it did not measure with negative counts.
        if amount is not None and amount >= 0:
            kind, name = entry.get("type"), entry.get("name")
            amounts[f"{kind}/{name}" if name else f"{kind}"] = amount
    return amounts


def resources_text(amounts: dict[str, float]) -> str | None:
    """Resources as Slurm writes them in text."""
    entries = (f"{name}={n:.0f}{'M' if name == 'mem' else ''}" for name, n in amounts.items())
    return _encodable(",".join(entries)) or None


def _encodable(words: str) -> str:
    """The words with halves of characters, which JSON can escape and UTF-8 cannot, as escapes."""
    return words.encode(errors="backslashreplace").decode()
