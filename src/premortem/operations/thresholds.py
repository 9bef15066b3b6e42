"""Another threshold for a registered model: a new version with the same trees."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from premortem.operations.training import CHALLENGER, CHAMPION
from premortem.prediction.model import Model
from premortem.registry.port import Registry, Version
from premortem.training.thresholds import FALSE_ALARM_COST, Trade, chosen

_OWN = ("number", "created", "files")


def set_thresholds(
    registry: Registry,
    version: Version,
    points: Sequence[str],
    rule: str,
    *,
    false_alarm: float = FALSE_ALARM_COST,
) -> Version:
    """Register the model with thresholds by the rule at these points; it takes over its alias."""
    folder = registry.fetch(version)
    model = Model.load(folder)
    changed = dict(model.points)
    for name in points:
        one = model.points[name]
        value = chosen(Trade.from_dict(one.trade), rule, false_alarm=false_alarm)
        changed[name] = replace(one, threshold=value, rule=rule)
    manifest = {key: value for key, value in version.manifest.items() if key not in _OWN}
    manifest["derived_from"] = version.number
    manifest["thresholds"] = {name: one.threshold for name, one in changed.items()}
    aliases = registry.aliases()
    alias = next((a for a in (CHAMPION, CHALLENGER) if aliases.get(a) == version.number), None)
    with tempfile.TemporaryDirectory() as place:
        files = Path(place) / "model"
        shutil.copytree(folder, files)
        (files / "manifest.json").unlink(missing_ok=True)
        replace(model, points=changed).save(files)
        return registry.add(files, manifest, alias=alias)
