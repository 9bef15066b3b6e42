"""Another threshold for a registered model: its scores and its report go with it."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trainings import small_training

from premortem.operations.thresholds import set_thresholds
from premortem.operations.training import CHAMPION, REPORT, register
from premortem.registry import Registry, Version, open_registry
from premortem.registry.port import Overtaken
from premortem.training import metrics
from premortem.training.report import report_of
from premortem.training.thresholds import Trade, chosen
from premortem.training.train import Options, Training


@pytest.fixture
def registry(tmp_path: Path) -> Any:
    with closing(open_registry(str(tmp_path / "models"))) as opened:
        yield opened


@pytest.fixture
def first(registry: Registry) -> Version:
    return registered(registry, small_training())


def registered(registry: Registry, training: Training) -> Version:
    pages = {"report.html": "as trained"}
    return register(registry, training, Options(), report_of(training), pages).version


def report(registry: Registry, version: Version) -> Any:
    return json.loads((registry.fetch(version) / REPORT).read_text())


def trained_with(training: Training, rule: str) -> Training:
    """The same training, its thresholds chosen by another rule."""

    def value(trade: Any) -> float:
        return chosen(Trade.from_dict(trade), rule)

    points = {
        name: replace(
            one,
            model=replace(one.model, threshold=value(one.model.trade), rule=rule),
            judged=replace(one.judged, threshold=value(one.judged.trade)),
        )
        for name, one in training.points.items()
    }
    return replace(training, points=points)


@pytest.mark.parametrize("rule", ["0.2", "recall=0.7", "cost"])
def test_a_rule_set_later_is_as_if_it_had_been_trained_with(
    registry: Registry, first: Version, rule: str
) -> None:
    found = set_thresholds(registry, first, first.manifest["points"], rule)
    expected = registered(registry, trained_with(small_training(), rule))
    assert found.manifest["thresholds"] == expected.manifest["thresholds"]
    assert found.manifest["metrics"] == expected.manifest["metrics"]
    assert report(registry, found) == report(registry, expected)
    assert found.manifest["metrics"] != first.manifest["metrics"]
    assert found.manifest["derived_from"] == first.number


def test_the_scores_are_those_of_the_threshold_beside_them(
    registry: Registry, first: Version
) -> None:
    found = set_thresholds(registry, first, ["submit"], "0.2")
    judged = small_training().points["submit"].judged
    decided = metrics.decided(judged.outcomes, judged.risk >= 0.2)
    told = found.manifest["metrics"]["submit"]
    assert (told["judged_at"], told["precision"], told["recall"], told["f1"]) == (
        0.2, decided.precision, decided.recall, decided.f1,
    )  # fmt: skip
    assert told["average_precision"] == first.manifest["metrics"]["submit"]["average_precision"]
    other = "running@2min"
    assert found.manifest["metrics"][other] == first.manifest["metrics"][other]


def test_pages_are_made_of_the_new_report(registry: Registry, first: Version) -> None:
    def pages(told: Any) -> dict[str, str]:
        return {"report.html": f"warns from {told['points']['submit']['final_threshold']}"}

    found = set_thresholds(registry, first, ["submit"], "0.2", pages=pages)
    assert (registry.fetch(found) / "report.html").read_text() == "warns from 0.2"


def test_who_is_promoted_meanwhile_stays(registry: Registry, first: Version) -> None:
    other = set_thresholds(registry, first, ["submit"], "0.2")
    before = len(registry.versions())
    with pytest.raises(Overtaken):
        set_thresholds(registry, first, ["submit"], "0.3")
    assert registry.aliases()[CHAMPION] == other.number
    assert len(registry.versions()) == before


def test_a_note_on_the_threshold_before_goes_with_it(registry: Registry) -> None:
    notes = ("the store tells little", "submit: no threshold had it", "running@2min: nor here")
    first = registered(registry, replace(small_training(), notes=notes))
    found = set_thresholds(registry, first, ["submit"], "0.2")
    assert found.manifest["notes"] == ["the store tells little", "running@2min: nor here"]


def test_a_report_that_cannot_be_told_anew_is_left_out(registry: Registry, tmp_path: Path) -> None:
    told = {**report_of(small_training()), "format": 1}
    first = register(
        registry, small_training(), Options(), told, {"report.html": "as trained"}
    ).version
    found = set_thresholds(registry, first, ["submit"], "0.2")
    assert not {REPORT, "report.html"} & set(found.manifest["files"])
    assert found.manifest["metrics"]["submit"]["precision"] is None
    assert found.manifest["thresholds"]["submit"] == 0.2
