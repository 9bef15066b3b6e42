"""What is told about a version: the caller's own words, and the registry's three."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from premortem.errors import InvalidInput
from premortem.registry.contents import portable
from premortem.registry.history import moment, written
from premortem.registry.naming import pointing_to
from premortem.registry.port import Version

OWN = ("number", "created", "files")


def plain(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's manifest as plain JSON values, without what the registry tells itself."""
    try:
        value: dict[str, Any] = json.loads(json.dumps(dict(manifest), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the manifest must be plain JSON with finite numbers: {error}"
        ) from error
    return {name: told for name, told in value.items() if name not in OWN}


def completed(
    told: Mapping[str, Any], *, created: datetime, files: Mapping[str, str]
) -> dict[str, Any]:
    """The manifest to keep; its number is added where that is known."""
    return {**told, "created": written(created), "files": dict(files)}


def text_of(manifest: Mapping[str, Any]) -> str:
    """The manifest as JSON for people to read too."""
    return json.dumps(manifest, indent=2, allow_nan=False) + "\n"


def version_from(
    text: str | bytes, *, number: int, aliases: Mapping[str, int], place: str
) -> Version:
    """The version that a kept manifest describes; raises, naming `place`, where it is garbage."""
    try:
        manifest = json.loads(text)
        if not isinstance(manifest, dict):
            raise TypeError("not an object")  # noqa: TRY301
        created = moment(manifest["created"])
        _require_files(manifest["files"])
        if manifest.get("number", number) != number:
            raise ValueError(f"it is the manifest of v{manifest['number']}")  # noqa: TRY301
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidInput(
            f"{place} is not a manifest that premortem wrote ({_reason(error)}): {repair(number)}"
        ) from error
    return Version(number, created, {**manifest, "number": number}, pointing_to(number, aliases))


def damaged_version(number: int, aliases: Mapping[str, int], error: Exception) -> Version:
    """The version whose manifest cannot be read for that error."""
    return Version(number, None, {}, pointing_to(number, aliases), str(error))


def repair(number: int) -> str:
    """What to do about a manifest that is of no use."""
    return f"restore it from a backup, or remove the version: 'premortem models delete v{number}'"


def _require_files(files: Any) -> None:
    if not isinstance(files, dict) or not all(isinstance(s, str) for s in files.values()):
        raise TypeError("'files' is no table of checksums")
    odd = [path for path in files if not portable(path)]
    if odd:
        raise ValueError(f"it lists a file named {odd[0]!r}")


def _reason(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)
