"""What happened to versions and aliases, and which champion came before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from premortem.errors import Conflict
from premortem.registry.naming import CHAMPION


class Action(StrEnum):
    """What can happen to a version after it was registered."""

    PROMOTED = "promoted"
    ROLLED_BACK = "rolled_back"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a version; a deletion has no alias."""

    at: datetime
    action: Action
    version: int
    alias: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The event as JSON keeps it."""
        return {
            "at": written(self.at),
            "action": str(self.action),
            "version": self.version,
            "alias": self.alias,
        }


def event_from(value: Any) -> Event:
    """The event in a JSON value; raises `ValueError`, `KeyError` or `TypeError` on garbage."""
    if not isinstance(value, Mapping) or type(value["version"]) is not int:
        raise ValueError("not an event")
    alias = value.get("alias")
    if not (alias is None or isinstance(alias, str)):
        raise ValueError("not an alias")
    return Event(moment(value["at"]), Action(value["action"]), value["version"], alias)


def champion_before(
    history: Iterable[Event], *, current: int | None, numbers: Collection[int]
) -> int:
    """The version that was champion before the current one, among those still there.

    Roll-backs are undone steps, not new ones: rolling back twice goes two champions back. The alias
    may have been moved behind the history's back; `current` is what counts.
    """
    stack: list[int] = []
    for event in history:
        if event.alias != CHAMPION:
            continue
        if event.action is Action.ROLLED_BACK:
            while stack and stack[-1] != event.version:
                stack.pop()
        if event.action is Action.PROMOTED or not stack:
            stack.append(event.version)
    while stack and (stack[-1] == current or stack[-1] not in numbers):
        stack.pop()
    if not stack:
        raise Conflict(
            "there is no earlier champion to go back to; 'premortem models promote VERSION' makes "
            "any version the champion"
        )
    return stack[-1]


def utc_now() -> datetime:
    """The time by the machine's clock."""
    return datetime.now(UTC)


def written(at: datetime) -> str:
    """A moment as JSON keeps it."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moment(text: Any) -> datetime:
    """The moment in a JSON value; raises `ValueError` or `TypeError` on garbage."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("a time without its zone")
    return at.astimezone(UTC)
