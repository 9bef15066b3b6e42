"""The files of a version: which may be kept, their checksums, and whether they are still the same.

Checksums tell damage, and files changed by those who cannot change the manifest too. They are no
signature.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from premortem.errors import InvalidInput, NotFound

_CODE_SUFFIXES = {".pkl", ".pickle", ".joblib"}
_PORTABLE = re.compile(r"[A-Za-z0-9._-]{1,100}(/[A-Za-z0-9._-]{1,100})*", re.ASCII)


def files_below(folder: Path) -> list[str]:
    """The relative paths of all files below a folder; raises where one may not be kept."""
    if not folder.exists():
        raise NotFound(f"there is no folder {folder} to register")
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder: a model is registered as a folder of files")
    paths = _everything_below(folder)
    if not paths:
        raise InvalidInput(f"{folder} holds no files: there is nothing to register")
    for path in paths:
        _require_plain(folder, path)
    return paths


def checksums(folder: Path) -> dict[str, str]:
    """The sha256 of every file below a folder by its relative path; pickles are refused."""
    return {path: _checked_sum(folder, path) for path in files_below(folder)}


def require_unchanged(folder: Path, expected: Mapping[str, str], *, what: str) -> None:
    """Raise, naming the file, unless the folder holds just the files expected, byte for byte."""
    advice = "do not use it; register the model again, or restore its files from a backup"
    present = set(_everything_below(folder)) if folder.is_dir() else set()
    for path in sorted(expected.keys() - present):
        raise InvalidInput(f"{what} lacks its file {path}: {advice}")
    for path in sorted(present - expected.keys()):
        raise InvalidInput(f"{what} has a file {path!r} that was not registered: {advice}")
    for path in sorted(present):
        _require_plain(folder, path)
        if _checked_sum(folder, path) != expected[path]:
            raise InvalidInput(f"{what} has a file {path} that was changed since: {advice}")


def portable(path: str) -> bool:
    """Whether a relative path means the same file on every file system and server.

    >>> portable("submit/model.ubj"), portable("../model.ubj")
    (True, False)
    """
    parts = path.split("/")
    return bool(_PORTABLE.fullmatch(path)) and not any(set(part) == {"."} for part in parts)


def _everything_below(folder: Path) -> list[str]:
    """Files, links and whatever else; not the folders themselves."""
    found = []
    for place, folders, files in os.walk(folder, onerror=_raise):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        found += [
            os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")
            for name in [*files, *links]
        ]
    return sorted(found)


def _raise(error: OSError) -> None:
    raise error


def _require_plain(folder: Path, path: str) -> None:
    if not portable(path):
        raise InvalidInput(
            f"{folder}: a file may not be named {path!r}; use letters, digits and ._- only"
        )
    if not stat.S_ISREG((folder / path).lstat().st_mode):
        raise InvalidInput(f"{folder}: {path} is not a plain file; put the file itself there")
    suffixes = {suffix.lower() for suffix in Path(path).suffixes}
    if suffixes & _CODE_SUFFIXES:
        raise _pickle(folder, path)


def _checked_sum(folder: Path, path: str) -> str:
    with (folder / path).open("rb") as file:
        start = file.read(2)
        # Since protocol 2 a pickle begins with its own marker and the protocol's number.
        if len(start) == 2 and start[0] == 0x80 and 2 <= start[1] <= 5:
            raise _pickle(folder, path)
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pickle(folder: Path, path: str) -> InvalidInput:
    return InvalidInput(
        f"{folder}: {path} is a pickle, which is code and not data; save the model in its "
        "library's own format, such as JSON or UBJ"
    )
