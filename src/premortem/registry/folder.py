"""Model versions as folders on one file system; nothing else is needed.

    v0001/manifest.json    what is told about the version
    v0001/files/…          its files
    aliases.json           which version each alias points to, and what happened when
    lock                   held by whoever is writing
    .new-…                 what a writer has not finished; left behind, the next one removes it

A version is written beside and renamed into place, `aliases.json` is replaced as a whole, so that
readers need no lock and see every change at once.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from premortem.errors import Conflict, InvalidInput, NotFound
from premortem.registry import disk
from premortem.registry.contents import checksums, files_below, require_unchanged
from premortem.registry.history import Action, Event, champion_before, event_from, utc_now
from premortem.registry.manifest import (
    completed,
    damaged_version,
    plain,
    repair,
    text_of,
    version_from,
)
from premortem.registry.naming import CHAMPION, number_named, pointing_to, require_alias
from premortem.registry.port import Overtaken, Version

_UNFINISHED = ".new-"
_STATE = "aliases.json"
# With less room than this, no version is worth waiting for.
_LEAST_ROOM = 1 << 18


@dataclass(frozen=True, slots=True)
class _State:
    """What `aliases.json` holds."""

    aliases: Mapping[str, int] = field(default_factory=dict)
    history: tuple[Event, ...] = ()

    def after(self, event: Event) -> _State:
        moved = {event.alias: event.version} if event.alias else {}
        return _State({**self.aliases, **moved}, (*self.history, event))

    @property
    def deleted(self) -> set[int]:
        return {event.version for event in self.history if event.action is Action.DELETED}


class FolderRegistry:
    """A registry in the folder at `path`, made when first written to; see the port."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        patience_s: float = 30.0,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.path = Path(path).expanduser()
        self._patience_s = patience_s
        self._clock = clock

    def add(
        self,
        files: Path,
        manifest: Mapping[str, Any],
        *,
        alias: str | None = None,
        instead_of: int | None = None,
    ) -> Version:
        """Register a copy of the folder; see the port."""
        told = plain(manifest)
        if alias:
            require_alias(alias)
        with disk.disk_errors_told(files):
            paths = files_below(files)
        with self._writing() as state:
            if alias and instead_of is not None and state.aliases.get(alias, 0) != instead_of:
                raise Overtaken(alias)
            known = [*self._folders(), *(event.version for event in state.history)]
            number = max(known, default=0) + 1
            created = self._clock()
            unfinished = self._unfinished()
            unfinished.mkdir()
            disk.copy_files(files, unfinished / "files", paths)
            sums = checksums(unfinished / "files")
            kept = {"number": number, **completed(told, created=created, files=sums)}
            disk.write_text(unfinished / "manifest.json", text_of(kept))
            disk.settle(unfinished)
            event = Event(created, Action.PROMOTED, number, alias) if alias else None
            # What may fail for want of space is done before anything can be seen.
            new_state = self._written(state.after(event)) if event else None
            unfinished.rename(self._folder(number))
            if new_state:
                new_state.replace(self.path / _STATE)
            disk.settle_names(self.path)
            return self._version(number, self._state())

    def require_writable(self) -> None:
        """Write as `add` would, and take it away again; see the port."""
        with self._writing():
            unfinished = self._unfinished()
            unfinished.mkdir()
            disk.write_text(unfinished / "room", " " * _LEAST_ROOM)

    def versions(self) -> list[Version]:
        """Every version, newest first."""
        with disk.disk_errors_told(self.path):
            state = self._state()
            found = []
            for number in self._numbers(state):
                with suppress(NotFound):  # Deleted while we looked.
                    found.append(self._version(number, state, damaged=True))
            return found

    def resolve(self, name: str, *, damaged: bool = False) -> Version:
        """The version meant; see the port."""
        with disk.disk_errors_told(self.path):
            state = self._state()
            number = number_named(
                name,
                numbers=self._numbers(state),
                aliases=state.aliases,
                place=str(self.path),
            )
            return self._version(number, state, damaged=damaged)

    def fetch(self, version: Version) -> Path:
        """The registry's own copy of the files, checked; see the port."""
        with disk.disk_errors_told(self.path):
            self._require(version, self._state())
            folder = self._folder(version.number) / "files"
            require_unchanged(folder, version.files, what=f"{version} in {self.path}")
            return folder

    def set_alias(self, alias: str, version: Version) -> None:
        """Point an alias to a version; see the port."""
        require_alias(alias)
        with self._writing() as state:
            self._require(version, state)
            self._happened(state, Action.PROMOTED, version.number, alias)

    def aliases(self) -> dict[str, int]:
        """The number that each alias points to."""
        with disk.disk_errors_told(self.path):
            return dict(self._state().aliases)

    def history(self) -> list[Event]:
        """What happened, oldest first."""
        with disk.disk_errors_told(self.path):
            return list(self._state().history)

    def rollback(self, check: Callable[[Version], None] = lambda _: None) -> Version:
        """Make the champion the one it was before; see the port."""
        with self._writing() as state:
            number = champion_before(
                state.history,
                current=state.aliases.get(CHAMPION),
                numbers=self._numbers(state),
            )
            check(self._version(number, state))
            self._happened(state, Action.ROLLED_BACK, number, CHAMPION)
            return self._version(number, self._state())

    def delete(self, version: Version) -> None:
        """Remove a version for good; see the port."""
        with self._writing() as state:
            self._require(version, state)
            pointing = pointing_to(version.number, state.aliases)
            if pointing:
                raise Conflict(
                    f"{version} is the {' and the '.join(pointing)}: promote another version first"
                )
            # From here on it is gone for all who look; should this be killed, the next writer
            # removes the folder.
            self._happened(state, Action.DELETED, version.number)
            self._folder(version.number).rename(self._unfinished())

    def close(self) -> None:
        """Nothing is held between calls."""

    @contextmanager
    def _writing(self) -> Iterator[_State]:
        """Alone among writers, with the present state; what is unfinished at the end is removed."""
        with disk.disk_errors_told(self.path):
            self._require_folder()
            self.path.mkdir(parents=True, exist_ok=True)
            with disk.locked(self.path / "lock", patience_s=self._patience_s):
                state = self._state()
                self._tidy(state)
                try:
                    yield state
                finally:
                    self._tidy(state)

    def _tidy(self, state: _State) -> None:
        for left in self.path.glob(f"{_UNFINISHED}*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
        for number in state.deleted & self._folders():
            shutil.rmtree(self._folder(number), ignore_errors=True)

    def _happened(
        self, state: _State, action: Action, number: int, alias: str | None = None
    ) -> None:
        written = self._written(state.after(Event(self._clock(), action, number, alias)))
        written.replace(self.path / _STATE)
        disk.settle_names(self.path)

    def _written(self, state: _State) -> Path:
        """The state in a file beside, ready to replace the one in force."""
        history = [event.as_dict() for event in state.history]
        path = self._unfinished()
        text = json.dumps({"aliases": dict(state.aliases), "history": history}, indent=2)
        disk.write_text(path, text + "\n")
        return path

    def _state(self) -> _State:
        self._require_folder()
        path = self.path / _STATE
        try:
            value = json.loads(path.read_bytes())
            aliases = {str(alias): number for alias, number in value["aliases"].items()}
            if not all(type(number) is int for number in aliases.values()):
                raise TypeError("an alias points to no number")  # noqa: TRY301
            return _State(aliases, tuple(map(event_from, value["history"])))
        except FileNotFoundError:
            return _State()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInput(
                f"{path} is not what premortem wrote: restore it from a backup, or remove it and "
                "promote a version anew; the versions are not in it and are safe"
            ) from error

    def _numbers(self, state: _State) -> list[int]:
        return sorted(self._folders() - state.deleted, reverse=True)

    def _folders(self) -> set[int]:
        """The numbers of all version folders, also of one that is about to be removed."""
        if not self._require_folder():
            return set()
        names = (re.fullmatch(r"v([0-9]{4,9})", path.name) for path in self.path.iterdir())
        return {int(name[1]) for name in names if name}

    def _require_folder(self) -> bool:
        """Whether the folder is there yet; raises where something else is."""
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInput(f"{self.path} is not a folder: a registry is one")
        return self.path.exists()

    def _version(self, number: int, state: _State, *, damaged: bool = False) -> Version:
        path = self._folder(number) / "manifest.json"
        try:
            text = self._manifest(number, path)
            return version_from(text, number=number, aliases=state.aliases, place=str(path))
        except (InvalidInput, OSError) as error:
            if not damaged:
                raise
            return damaged_version(number, state.aliases, error)

    def _manifest(self, number: int, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except FileNotFoundError as error:
            if not self._folder(number).exists():
                raise NotFound(f"v{number} is not in {self.path} any more") from error
            raise InvalidInput(f"v{number} has no {path}: {repair(number)}") from error

    def _require(self, version: Version, state: _State) -> None:
        if version.number not in self._numbers(state):
            raise NotFound(f"{version} is not in {self.path} any more")

    def _folder(self, number: int) -> Path:
        return self.path / f"v{number:04}"

    def _unfinished(self) -> Path:
        return self.path / f"{_UNFINISHED}{secrets.token_hex(8)}"
