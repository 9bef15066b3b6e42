"""Another threshold for a registered model: a new version with the same trees."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from premortem.errors import InvalidInput
from premortem.operations.training import REPORT
from premortem.prediction.model import Model
from premortem.registry import CHALLENGER, CHAMPION
from premortem.registry.disk import disk_errors_told
from premortem.registry.port import Registry, Version
from premortem.training.report import FORMAT, judged_again
from premortem.training.thresholds import OutOfReach, Trade, chosen, parsed_rule

_DECIDED = ("precision", "recall", "f1")

Report = Mapping[str, Any]


def set_thresholds(
    registry: Registry,
    version: Version,
    points: Sequence[str],
    rule: str,
    *,
    pages: Callable[[Report], Mapping[str, str]] = lambda _: {},
) -> Version:
    """Register the model with thresholds by the rule at these points; it takes over its alias.

    Its scores and its report are what they would have been, had it been trained with that rule;
    `pages` makes further files of the report, by name. `Overtaken` is raised, and nothing
    registered, if another version has the alias by now.
    """
    parsed_rule(rule)
    folder = registry.fetch(version)
    model, report = Model.load(folder), _report(folder)
    changed, told = dict(model.points), dict(report["points"]) if report else {}
    scores = dict(version.manifest.get("metrics", {}))
    for name in points:
        one = model.points[name]
        try:
            value = chosen(Trade.from_dict(one.trade), rule)
        except InvalidInput as error:
            raise InvalidInput(f"at {name}, {error}") from error
        changed[name] = replace(one, threshold=value, rule=rule)
        if report:
            judged_at = _judged_at(told[name], rule)
            told[name] = judged_again(told[name], changed[name], judged_at)
        scores[name] = {**scores.get(name, {}), **_decided(told.get(name))}
    manifest = {
        **version.manifest,
        "derived_from": version.number,
        "thresholds": {name: one.threshold for name, one in changed.items()},
        "metrics": scores,
        "notes": _other_notes(version, points),
    }
    with disk_errors_told(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory() as place:
        files = Path(place)
        replace(model, points=changed).save(files)
        if report:
            again = {**report, "points": told}
            texts = {REPORT: json.dumps(again, allow_nan=False), **pages(again)}
            for name, text in texts.items():
                (files / name).write_text(text, encoding="utf-8", errors="replace")
        alias = next((one for one in (CHAMPION, CHALLENGER) if one in version.aliases), None)
        return registry.add(
            files, manifest, alias=alias, instead_of=version.number if alias else None
        )


def _other_notes(version: Version, points: Sequence[str]) -> list[str]:
    """The notes of the training without those on the thresholds that these points had."""
    gone = tuple(f"{name}: " for name in points)
    return [note for note in version.manifest.get("notes", ()) if not note.startswith(gone)]


def _report(folder: Path) -> Report | None:
    """The report of a version; None where there is none that can be told anew."""
    try:
        report: Report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return report if report.get("format") == FORMAT else None


def _judged_at(told: Report, rule: str) -> float:
    """What the rule, or the nearest to it there was, gave before the judged jobs came."""
    trade = Trade.from_dict(told["chosen_from"])
    try:
        return chosen(trade, rule)
    except OutOfReach as error:
        return chosen(trade, error.nearest)


def _decided(told: Report | None) -> dict[str, float | None]:
    """The scores that go by the threshold, as a manifest has them; not known without a report."""
    if told is None:
        return dict.fromkeys(("judged_at", *_DECIDED))
    found = told["scores"]["model"]["at_threshold"]
    return {"judged_at": told["threshold"], **{name: found[name]["value"] for name in _DECIDED}}
