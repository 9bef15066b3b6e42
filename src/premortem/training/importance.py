"""Which features a model's trees rely on, one by one and in groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from premortem.features.catalogue import CATALOGUE, Feature
from premortem.prediction.kinds import TOPIC as PROFILE
from premortem.prediction.kinds import Kind, Kinds
from premortem.prediction.model import Trees

MOST_FEATURES = 20
_FEATURES = {feature.name: feature for feature in CATALOGUE}


def importance_of(trees: Trees, kinds: Kinds | None = None) -> dict[str, Any]:
    """The features that matter most and all groups, as shares of the whole; most first.

    `kinds` are the profiles among the features, if there are any.
    """
    titles = dict(zip(kinds.columns, kinds.described, strict=True)) if kinds else {}
    weights = np.asarray(trees.flat.importance(), dtype=np.float64)
    shares = weights / max(weights.sum(), 1e-300)
    pairs = sorted(zip(trees.columns, shares.tolist(), strict=True), key=lambda pair: -pair[1])
    groups: dict[str, float] = {}
    for name, share in pairs:
        group = _group(name)
        groups[group] = groups.get(group, 0.0) + share
    return {
        "features": [
            {
                "feature": name,
                "meaning": _meaning(name, titles),
                "group": _group(name),
                "share": share,
            }
            for name, share in pairs[:MOST_FEATURES]
            if share > 0
        ],
        "groups": [
            {"group": group, "share": share}
            for group, share in sorted(groups.items(), key=lambda pair: -pair[1])
        ],
        "columns": len(trees.columns),
    }


def _group(name: str) -> str:
    return group_of(_FEATURES[name]) if name in _FEATURES else PROFILE


def _meaning(name: str, titles: Mapping[str, Kind]) -> str:
    """On its own; the catalogue tells rates that fade right after those that do not."""
    if name in titles:
        return f"How likely it is like these jobs: {titles[name].title}"
    return _FEATURES[name].meaning.replace("The same, fading", "Share that failed, fading")


def group_of(feature: Feature) -> str:
    """What a feature is about, in a word or two.

    >>> group_of(_FEATURES["req_cpus"]), group_of(_FEATURES["user_last_outcome"])
    ('request', 'history: user')
    """
    if feature.chapter not in ("history", "comparison"):
        return feature.chapter
    return f"{feature.chapter}: {feature.name.split('_')[0]}"
