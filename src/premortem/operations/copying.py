"""A model from one registry to another."""

from __future__ import annotations

from premortem.prediction.model import Model
from premortem.registry.manifest import OWN
from premortem.registry.port import Registry, Version

# What is told of a version that holds in its own registry alone.
_OF_THE_REGISTRY = (*OWN, "derived_from")


def copy_version(version: Version, source: Registry, target: Registry) -> Version:
    """Register a version that can be loaded in another registry, too; no alias points to it yet."""
    files = source.fetch(version)
    Model.load(files).prepare()
    told = {n: value for n, value in version.manifest.items() if n not in _OF_THE_REGISTRY}
    return target.add(files, told)
