"""A manifest as MLflow shows it, and back."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from model_folders import manifests, trained

from premortem.registry.mlflow_records import manifest_in, manifest_tags, metrics, params, tags


def test_what_training_writes() -> None:
    told = trained() | {"number": 3, "created": "now", "files": {"a": "b"}}
    assert params(told) == {
        "premortem": "0.1.0",
        "features.submit": "abc123",
        "features.start": "def456",
        "data.jobs": "1000",
        "data.since": "2026-01-01T00:00:00Z",
        "data.until": "2026-02-01T00:00:00Z",
        "engine": "xgboost",
    }
    assert metrics(told)["submit/average_precision"] == 0.5
    assert metrics(told)["start/auc"] == 0.8
    assert tags(told) == {"premortem.points": '["submit", "start"]'}


def test_metrics_that_are_no_numbers_are_left_out() -> None:
    assert metrics({"metrics": {"a": True, "b": "x", "c": None, "d": 10**400, "e": 2}}) == {"e": 2}
    assert metrics({"metrics": "none"}) == {}
    assert metrics({"metrics": 3}) == {"metrics": 3}
    assert metrics({}) == {}


@given(manifest=manifests, numbers=manifests)
def test_names_are_what_mlflow_takes(manifest: dict[str, Any], numbers: dict[str, Any]) -> None:
    told = manifest | {"metrics": numbers}
    for name in (*params(told), *tags(told), *metrics(told)):
        assert re.fullmatch(r"[A-Za-z0-9_./-]{1,250}", name)
        assert not {"", ".", ".."} & set(name.split("/"))


@given(text=st.text(st.characters(codec="ascii"), max_size=20), times=st.integers(1, 2000))
def test_a_manifest_of_any_length_survives_in_pieces(text: str, times: int) -> None:
    written = json.dumps({"text": text * times})
    pieces = manifest_tags(written)
    assert max(map(len, pieces.values())) <= 5000
    assert manifest_in({"other": "tag", **dict(reversed(pieces.items()))}) == written


def test_tags_of_others_hold_no_manifest() -> None:
    assert manifest_in({"mlflow.user": "ada"}) is None
