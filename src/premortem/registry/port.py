"""What every model registry can do. `tests/contracts` holds each adapter to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from premortem.errors import Conflict, InvalidInput
from premortem.registry.history import Event


@dataclass(frozen=True, slots=True)
class Version:
    """One registered model; its aliases are those it had when it was asked for.

    The manifest holds what the caller of `add` told, and three things of the registry's own:
    `number`, `created` (ISO 8601, UTC) and `files`, the sha256 of each file by its relative path.
    `damage` says why the manifest cannot be read; then nothing is known but number and aliases.
    """

    number: int
    created: datetime | None
    manifest: Mapping[str, Any]
    aliases: tuple[str, ...] = ()
    damage: str | None = None

    def __str__(self) -> str:
        return f"v{self.number}"

    @property
    def files(self) -> Mapping[str, str]:
        """The sha256 of each file by its relative path; raises where that cannot be read."""
        if self.damage:
            raise InvalidInput(self.damage)
        found: Mapping[str, str] = self.manifest["files"]
        return found


class Overtaken(Conflict):
    """An alias points to another version by now than the caller thinks."""

    def __init__(self, alias: str) -> None:
        super().__init__(f"another version has become the {alias} meanwhile: look again")


class Registry(Protocol):
    """Trained models, kept as immutable numbered versions; aliases say which of them is in use.

    A number is never given twice, not even after its version was deleted. What the files mean is
    none of the registry's business, but it keeps no pickles: a model is data, not code.
    """

    def add(
        self,
        files: Path,
        manifest: Mapping[str, Any],
        *,
        alias: str | None = None,
        instead_of: int | None = None,
    ) -> Version:
        """Register a copy of the folder `files`: all of it, or, on an error, nothing.

        The manifest must be plain JSON. Names of files are letters, digits and ``._-``; links and
        empty folders are not kept: the former are refused, the latter left out.

        With `instead_of`, the number that the alias points to (0 for none), a version that has
        taken its place meanwhile raises `Overtaken`.
        """

    def require_writable(self) -> None:
        """Raise if `add` would fail now, as far as that can be told without adding anything."""

    def versions(self) -> list[Version]:
        """Every version, newest first, also those with `damage`."""

    def resolve(self, name: str, *, damaged: bool = False) -> Version:
        """The version meant by a number (``7``, ``v7``) or an alias (``champion``).

        One with `damage` raises `InvalidInput`, unless it is wanted all the same, to delete it.
        """

    def fetch(self, version: Version) -> Path:
        """A local folder with the files of a version, each checked against the manifest.

        Read it, do not write into it, and not after `close`: it may be the registry's own copy or
        a temporary one.
        """

    def set_alias(self, alias: str, version: Version) -> None:
        """Point `champion` or `challenger` to a version, in one step for everyone who looks."""

    def aliases(self) -> dict[str, int]:
        """The number that each alias points to; an alias never set is not there."""

    def history(self) -> list[Event]:
        """Promotions, roll-backs and deletions, oldest first."""

    def rollback(self, check: Callable[[Version], None] = lambda _: None) -> Version:
        """Make the champion the one it was before, and return that; again goes further back.

        Versions deleted since are passed over. `check` is shown the version first; when it raises,
        all stays as it is.
        """

    def delete(self, version: Version) -> None:
        """Remove a version for good; refused while an alias points to it."""

    def close(self) -> None:
        """Release the registry; using it afterwards is an error."""
