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
from premortem.models.blended import BlendedScorer, Scorer
from premortem.models.boosted import finite
from premortem.models.calibration import Calibration
from premortem.models.engines import engine
from premortem.models.port import Array
from premortem.prediction.kinds import Kinds, place_of

FORMAT = 3
_DESCRIPTION = "model.json"


@dataclass(frozen=True)
class Booster:
    """Trees as their engine dumped them."""

    engine: str
    dumped: bytes = field(repr=False)


@dataclass(frozen=True)
class Trees:
    """Boosters, and the features that are their columns; of several, the log odds are averaged."""

    boosters: tuple[Booster, ...]
    columns: tuple[str, ...]
    calibration: Calibration = Calibration()

    @property
    def engines(self) -> tuple[str, ...]:
        """What grew the trees."""
        return tuple(booster.engine for booster in self.boosters)

    @cached_property
    def flat(self) -> Scorer:
        """The trees as arrays."""
        parts = []
        for booster in self.boosters:
            library = engine(booster.engine)
            found = library.flat(library.load(booster.dumped))
            if found.width != len(self.columns):
                raise InvalidInput(
                    f"the trees have {found.width} columns, their description {len(self.columns)}"
                )
            parts.append(found)
        return parts[0] if len(parts) == 1 else BlendedScorer(parts)

    @cached_property
    def places(self) -> Array:
        """Where the columns stand in the replay's rows, and in those of `Kinds` behind them."""
        return np.array([place_of(name) for name in self.columns], dtype=np.intp)

    def shown(self, rows: Array) -> Array:
        """What the trees see of rows."""
        return finite(rows, self.places)

    def risk(self, rows: Array) -> Array:
        """The calibrated probability for each row."""
        return self.calibration.apply(self.flat.risk(self.shown(rows)))


@dataclass(frozen=True)
class PointModel:
    """What predicts at one point.

    A risk of at least `threshold` foretells failure. `causes` tell, of a job that fails, how likely
    each way is; there are none where the log does not tell them apart. `trade` is what each
    threshold would have cost and caught on jobs the trees had not seen. `kinds` are profiles that
    the trees look at, too; then they are shown what `seen` makes of the replay's rows.
    """

    point: Point
    fingerprint: str
    trees: Trees
    threshold: float
    rule: str = "f1"
    causes: Mapping[str, Trees] = field(default_factory=dict)
    trade: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kinds: Kinds | None = None

    def seen(self, rows: Array) -> Array:
        """The replay's rows as the trees want them."""
        return rows if self.kinds is None else self.kinds.beside(rows)

    def risk(self, rows: Array) -> Array:
        """The calibrated risk of failure for each of the replay's rows."""
        return self.trees.risk(self.seen(rows))

    def cause_shares(self, seen: Array) -> Array:
        """How likely each cause is for each row seen, if the job fails; a column a cause."""
        if not self.causes:
            return np.empty((len(seen), 0))
        found = np.column_stack([trees.risk(seen) for trees in self.causes.values()])
        shares: Array = found / np.maximum(found.sum(axis=1, keepdims=True), 1e-12)
        return shares


@dataclass(frozen=True)
class Model:
    """Everything that was trained together; `zone` is that of the site's clock.

    `labels` is the policy its outcomes were read by, as plain values. No job submitted after
    `learned_until`, in seconds since 1970, was learned from.
    """

    points: Mapping[str, PointModel]
    family: Family
    zone: str
    labels: Mapping[str, Any] = field(default_factory=dict)
    learned_until: float = 0.0

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
            "labels": dict(self.labels), "learned_until": self.learned_until, "points": {},
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
                "kinds": one.kinds.as_dict() if one.kinds else None,
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
            return cls(
                points, family, str(told["zone"]), told["labels"], float(told["learned_until"])
            )
        except FileNotFoundError as error:
            raise NotFound(f"there is no model in {folder}: {error.filename} is missing") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"{folder} does not hold a usable model: {error!r}") from error


def columns_of(names: Sequence[str], used: Array) -> tuple[str, ...]:
    """The names of the columns a booster used, of those it was shown."""
    return tuple(names[place] for place in used)


def _write(trees: Trees, folder: Path, place: str) -> dict[str, Any]:
    (folder / place).mkdir(parents=True, exist_ok=True)
    boosters = []
    for booster in trees.boosters:
        file = f"{place}/{engine(booster.engine).file}"
        (folder / file).write_bytes(booster.dumped)
        boosters.append({"engine": booster.engine, "file": file})
    return {
        "boosters": boosters,
        "columns": list(trees.columns),
        "calibration": trees.calibration.as_dict(),
    }


def _read(told: Mapping[str, Any], folder: Path, kinds: Kinds | None) -> Trees:
    width = len(CATALOGUE) + (len(kinds.described) if kinds else 0)
    places = {name: place_of(name) for name in told["columns"]}
    unknown = [name for name, place in places.items() if place is None or place >= width]
    if unknown:
        raise Conflict(f"the model uses features that are no more: {', '.join(unknown[:3])}")
    boosters = tuple(
        Booster(str(one["engine"]), (folder / str(one["file"])).read_bytes())
        for one in told["boosters"]
    )
    if not boosters:
        raise ValueError("no trees")
    return Trees(boosters, tuple(told["columns"]), Calibration.from_dict(told["calibration"]))


def _point(name: str, told: Mapping[str, Any], folder: Path, family: Family) -> PointModel:
    point = parse_point(name)
    if told["fingerprint"] != feature_set(point, family).fingerprint:
        raise Conflict(
            f"the model was trained on other features at {point} than this version of premortem "
            "has: train it anew"
        )
    kinds = Kinds.from_dict(told["kinds"]) if told["kinds"] else None
    return PointModel(
        point,
        str(told["fingerprint"]),
        _read(told["trees"], folder, kinds),
        float(told["threshold"]),
        str(told["rule"]),
        {cause: _read(trees, folder, kinds) for cause, trees in told["causes"].items()},
        told["trade"],
        told["parameters"],
        kinds,
    )
