"""Folders of files to register, as tests need them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from premortem.features.catalogue import Family, feature_set
from premortem.features.points import SUBMIT
from premortem.models.boosted import BoostedTrees
from premortem.models.parameters import TreeParameters
from premortem.prediction.model import Booster, Model, PointModel, Trees

_CODE = (".pkl", ".pickle", ".joblib")
_PART = st.text("abcXYZ019._-", min_size=1, max_size=12).filter(lambda part: part.strip("."))
_PATHS = st.lists(_PART, min_size=1, max_size=3).map("/".join)
_BYTES = st.binary(max_size=200).filter(lambda data: not data.startswith(b"\x80"))


def _is_tree(files: Mapping[str, bytes]) -> bool:
    """Whether no file is also a folder, on any file system."""
    lower = {path.lower() for path in files}
    return len(lower) == len(files) and not any(
        other.startswith(f"{path}/") for path in lower for other in lower
    )


trees = (
    st.dictionaries(_PATHS, _BYTES, min_size=1, max_size=5)
    .filter(_is_tree)
    .filter(lambda files: not any(word in path.lower() for path in files for word in _CODE))
)
manifests = st.dictionaries(
    st.text(max_size=10),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=10), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=5,
)  # fmt: skip


def folder_of(place: Path, files: Mapping[str, str | bytes]) -> Path:
    """A folder at `place` with just these files."""
    shutil.rmtree(place, ignore_errors=True)
    for path, content in files.items():
        file = place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return place


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def loadable_model(place: Path, engine: str = "xgboost") -> Path:
    """A folder with a model that can be loaded; its few trees have learned from noise."""
    features = feature_set(SUBMIT)
    random = np.random.default_rng(0)
    values = random.normal(size=(60, len(features.names)))
    trees = BoostedTrees(TreeParameters(rounds=2), engine=engine, threads=1)
    trees.fit(values, np.arange(60) % 2)
    kept = Trees((Booster(engine, trees.dump()),), tuple(features.names))
    model = PointModel(SUBMIT, features.fingerprint, kept, 0.5)
    place.mkdir()
    Model({"submit": model}, Family.GENERIC, "UTC").save(place)
    return place


def trained(**metrics: float) -> dict[str, Any]:
    """A manifest such as training writes."""
    told = {"average_precision": 0.5, "auc": 0.7, "ece": 0.01} | metrics
    return {
        "premortem": "0.1.0",
        "points": ["submit", "start"],
        "features": {"submit": "abc123", "start": "def456"},
        "data": {"jobs": 1000, "since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z"},
        "engine": "xgboost",
        "metrics": {"submit": told, "start": {**told, "auc": 0.8}},
    }
