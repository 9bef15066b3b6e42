"""A trained model as files: trees in their library's own format, everything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from premortem.errors import Conflict, InvalidInput, NotFound
from premortem.features.catalogue import CATALOGUE, Family, feature_set
from premortem.features.points import Point, parse_point
from premortem.models.boosted import finite
from premortem.models.calibration import Calibration
from premortem.models.engines import engine
from premortem.models.flat import FlatTrees
from premortem.models.port import Array

FORMAT = 1
_DESCRIPTION = "model.json"
_PLACES = {feature.name: place for place, feature in enumerate(CATALOGUE)}


@dataclass(frozen=True)
class Trees:
    """A booster as it was dumped by its engine, and the features that are its columns."""

    engine: str
    columns: tuple[str, ...]
    dumped: bytes = field(repr=False)
    calibration: Calibration = Calibration()

    @cached_property
    def flat(self) -> FlatTrees:
        """The trees as arrays."""
        library = engine(self.engine)
        found = library.flat(library.load(self.dumped))
        if found.width != len(self.columns):
            raise InvalidInput(
                f"the trees have {found.width} columns, their description {len(self.columns)}"
            )
        return found

    @cached_property
    def places(self) -> Array:
        """Where the columns stand in the replay's rows."""
        return np.array([_PLACES[name] for name in self.columns], dtype=np.intp)

    def shown(self, rows: Array) -> Array:
        """What the trees see of the replay's rows."""
        return finite(rows, self.places)

    def risk(self, rows: Array) -> Array:
        """The calibrated probability for each of the replay's rows."""
        return self.calibration.apply(self.flat.risk(self.shown(rows)))


@dataclass(frozen=True)
class PointModel:
    """What predicts at one point.

    A risk of at least `threshold` foretells failure. `causes` tell, of a job that fails, how likely
    each way is; there are none where the log does not tell them apart. `trade` is what each
    threshold would have cost and caught on jobs the trees had not seen.
    """

    point: Point
    fingerprint: str
    trees: Trees
    threshold: float
    rule: str = "f1"
    causes: Mapping[str, Trees] = field(default_factory=dict)
    trade: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def risk(self, rows: Array) -> Array:
        """The calibrated risk of failure for each of the replay's rows."""
        return self.trees.risk(rows)

    def cause_shares(self, rows: Array) -> Array:
        """How likely each cause is for each row, if the job fails; a column a cause."""
        if not self.causes:
            return np.empty((len(rows), 0))
        found = np.column_stack([trees.risk(rows) for trees in self.causes.values()])
        shares: Array = found / np.maximum(found.sum(axis=1, keepdims=True), 1e-12)
        return shares


@dataclass(frozen=True)
class Model:
    """Everything that was trained together; `zone` is that of the site's clock.

    `labels` is the policy its outcomes were read by, as plain values.
    """

    points: Mapping[str, PointModel]
    family: Family
    zone: str
    labels: Mapping[str, Any] = field(default_factory=dict)

    def at(self, point: Point) -> PointModel:
        """The model of a point; raises `NotFound` with those there are."""
        try:
            return self.points[point.name]
        except KeyError:
            there = ", ".join(self.points)
            raise NotFound(f"this model does not predict at {point}; it does at {there}") from None

    def prepare(self) -> None:
        """Read all trees now rather than with the first prediction."""
        for one in self.points.values():
            for trees in (one.trees, *one.causes.values()):
                _ = trees.flat

    def save(self, folder: Path) -> None:
        """Write the model's files into an empty folder."""
        described: dict[str, Any] = {
            "format": FORMAT, "family": str(self.family), "zone": self.zone,
            "labels": dict(self.labels), "points": {},
        }  # fmt: skip
        for name, one in self.points.items():
            place = name.replace("@", "-")
            described["points"][name] = {
                "fingerprint": one.fingerprint,
                "trees": _write(one.trees, folder, place),
                "threshold": one.threshold,
                "rule": one.rule,
                "causes": {
                    cause: _write(trees, folder, f"{place}/{cause}")
                    for cause, trees in one.causes.items()
                },
                "trade": dict(one.trade),
                "parameters": dict(one.parameters),
            }
        text = json.dumps(described, indent=1, allow_nan=False)
        (folder / _DESCRIPTION).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Model:
        """The model that was saved there.

        One made for other features than today's is refused: its numbers would mean other things.
        """
        try:
            told = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
            if told["format"] != FORMAT:
                raise Conflict(
                    f"the model is of format {told['format']}, this is {FORMAT}: train it anew"
                )
            family = Family(told["family"])
            points = {
                name: _point(name, one, folder, family) for name, one in told["points"].items()
            }
            return cls(points, family, str(told["zone"]), told["labels"])
        except FileNotFoundError as error:
            raise NotFound(f"there is no model in {folder}: {error.filename} is missing") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"{folder} does not hold a usable model: {error!r}") from error


def columns_of(names: Sequence[str], used: Array) -> tuple[str, ...]:
    """The names of the columns a booster used, of those it was shown."""
    return tuple(names[place] for place in used)


def _write(trees: Trees, folder: Path, place: str) -> dict[str, Any]:
    file = f"{place}/{engine(trees.engine).file}"
    (folder / place).mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(trees.dumped)
    return {
        "engine": trees.engine, "file": file, "columns": list(trees.columns),
        "calibration": trees.calibration.as_dict(),
    }  # fmt: skip


def _read(told: Mapping[str, Any], folder: Path) -> Trees:
    unknown = [name for name in told["columns"] if name not in _PLACES]
    if unknown:
        raise Conflict(f"the model uses features that are no more: {', '.join(unknown[:3])}")
    return Trees(
        str(told["engine"]),
        tuple(told["columns"]),
        (folder / str(told["file"])).read_bytes(),
        Calibration.from_dict(told["calibration"]),
    )


def _point(name: str, told: Mapping[str, Any], folder: Path, family: Family) -> PointModel:
    point = parse_point(name)
    if told["fingerprint"] != feature_set(point, family).fingerprint:
        raise Conflict(
            f"the model was trained on other features at {point} than this version of premortem "
            "has: train it anew"
        )
    return PointModel(
        point,
        str(told["fingerprint"]),
        _read(told["trees"], folder),
        float(told["threshold"]),
        str(told["rule"]),
        {cause: _read(trees, folder) for cause, trees in told["causes"].items()},
        told["trade"],
        told["parameters"],
    )
