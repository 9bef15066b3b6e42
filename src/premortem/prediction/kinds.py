"""The profile of a job as further columns of its row: how likely it is of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from premortem.errors import InvalidInput
from premortem.features.catalogue import CATALOGUE
from premortem.models.mixture import Mixture
from premortem.models.port import Array
from premortem.prediction.phrases import percent

TOPIC = "profile"
_NAMES = [feature.name for feature in CATALOGUE]
_PLACES = {name: place for place, name in enumerate(_NAMES)}


@dataclass(frozen=True, slots=True)
class Kind:
    """What there is to say of a profile: what its jobs are like, and how many of them fail."""

    title: str
    failure_share: float | None


@dataclass(frozen=True)
class Kinds:
    """Profiles that were fitted on what a model learned from, and what they are called."""

    mixture: Mixture
    described: tuple[Kind, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, which begin where those of the catalogue end."""
        return tuple(f"{TOPIC}_{number}" for number in range(1, len(self.described) + 1))

    def beside(self, rows: Array) -> Array:
        """The rows with the probabilities of their profiles behind them."""
        return np.hstack([rows, self.mixture.memberships(rows).astype(np.float32)])

    def sentence(self, row: Array) -> str:
        """What is said of a row made by `beside`."""
        kind = self.described[int(np.argmax(row[-len(self.described) :]))]
        failing = ""
        if kind.failure_share is not None:
            failing = f", of which {percent(kind.failure_share)} failed"
        return f"it is like these jobs: {kind.title}{failing}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return {
            "mixture": self.mixture.as_dict(),
            "described": [
                {"title": kind.title, "failure_share": kind.failure_share}
                for kind in self.described
            ],
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Kinds:
        """The kinds that were written so, for rows as the catalogue has them today."""
        described = tuple(
            Kind(str(kind["title"]), kind["failure_share"]) for kind in told["described"]
        )
        mixture = Mixture.from_dict(told["mixture"], _NAMES)
        if mixture.profiles != len(described):
            raise InvalidInput(f"{mixture.profiles} profiles cannot have {len(described)} titles")
        return cls(mixture, described)


def place_of(name: str) -> int | None:
    """Where a column stands in a row made by `beside`; None if there can be none of this name.

    >>> place_of(CATALOGUE[3].name), place_of("profile_2") - len(CATALOGUE), place_of("weather")
    (3, 1, None)
    """
    topic, _, number = name.partition("_")
    if topic == TOPIC and number.isdecimal() and int(number) > 0:
        return len(_NAMES) + int(number) - 1
    return _PLACES.get(name)
