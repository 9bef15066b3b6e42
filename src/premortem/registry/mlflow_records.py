"""A manifest as MLflow shows it: parameters, metrics and tags of a run. Pure; no MLflow in it.

These are for people who browse the server. The manifest itself travels as tags of the model
version, in pieces, because a tag's length is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from premortem.registry.manifest import OWN

_MANIFEST = "premortem.manifest."
_PIECE = 4000  # MLflow 3 allows 100,000 characters a tag, servers before it 5,000.
_LONGEST_NAME = 250
_LONGEST_VALUE = 500


def params(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Every single value of the manifest but the metrics, such as ``data.jobs``.

    >>> params({"engine": "xgboost", "data": {"jobs": 1000}, "points": ["submit"]})
    {'engine': 'xgboost', 'data.jobs': '1000'}
    """
    return {
        _name(path, "."): _shown(value)
        for path, value in _leaves(_told(manifest))
        if not isinstance(value, list)
    }


def tags(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The lists of the manifest, such as ``premortem.points``."""
    return {
        _name(("premortem", *path), "."): _shown(value)
        for path, value in _leaves(_told(manifest))
        if isinstance(value, list)
    }


def metrics(manifest: Mapping[str, Any]) -> dict[str, float]:
    """The numbers under `metrics`, such as ``submit/auc``: MLflow groups names by the slash."""
    found = {}
    for path, value in _leaves({"metrics": manifest.get("metrics")}):
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
            found[_name(path[1:] or path, "/")] = float(value)
    return found


def manifest_tags(text: str) -> dict[str, str]:
    """A manifest's JSON as tags of a model version."""
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    return {f"{_MANIFEST}{number:03}": piece for number, piece in enumerate(pieces)}


def manifest_in(tags: Mapping[str, str]) -> str | None:
    """The manifest's JSON in the tags of a model version; None where premortem did not make it."""
    pieces = sorted(name for name in tags if name.startswith(_MANIFEST))
    return "".join(tags[name] for name in pieces) if pieces else None


def _told(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in manifest.items() if name not in (*OWN, "metrics")}


def _leaves(
    value: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, below in value.items():
        if isinstance(below, Mapping):
            yield from _leaves(below, (*above, name))
        elif below is not None:
            yield (*above, name), below


def _name(path: tuple[str, ...], joint: str) -> str:
    """A name that MLflow takes: it is strict about characters, and reads names as paths."""
    parts = [re.sub(r"[^A-Za-z0-9_.-]", "_", part) for part in path]
    return joint.join(part if part.strip(".") else "_" for part in parts)[:_LONGEST_NAME]


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[
        :_LONGEST_VALUE
    ]
