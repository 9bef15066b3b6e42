"""Which version is in use: only one that can be loaded here is put to use."""

from __future__ import annotations

from functools import partial

from premortem.errors import Conflict, InvalidInput, NotFound
from premortem.prediction.model import Model
from premortem.registry.port import Registry, Version


def promote(registry: Registry, version: Version, alias: str) -> None:
    """Point an alias to a version; raises `Conflict` where that cannot be loaded."""
    _require_loadable(registry, version)
    registry.set_alias(alias, version)


def roll_back(registry: Registry) -> Version:
    """Make the champion the one it was before; raises `Conflict` where that cannot be loaded."""
    return registry.rollback(partial(_require_loadable, registry))


def _require_loadable(registry: Registry, version: Version) -> None:
    try:
        Model.load(registry.fetch(version)).prepare()
    except (Conflict, InvalidInput, NotFound) as error:
        raise Conflict(
            f"nothing was changed, as {version} cannot be loaded; promote another version, or "
            f"see to this one: {error}"
        ) from error
