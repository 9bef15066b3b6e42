"""Several boosted models as one: what they say, in log odds, is averaged.

Trees of different libraries err differently, and so the average errs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from premortem.models.boosted import BoostedTrees
from premortem.models.flat import as_risk
from premortem.models.port import Array, Moments

# A risk nearer to 0 or 1 is as sure as any.
_SUREST = 1e-9


class Scorer(Protocol):
    """Trees that score and explain rows: those of one model, or of several."""

    width: int

    def margins(self, values: Array) -> Array:
        """The log odds of failure of each row."""

    def risk(self, values: Array) -> Array:
        """The probability of failure of each row."""

    def contributions(self, values: Array) -> Array:
        """What each column adds to each row's margin, and last what is expected of any row."""

    def importance(self) -> Array:
        """What each column is worth to the trees."""


class BlendedScorer:
    """The average of several scorers; contributions are exact, as the average is of log odds."""

    def __init__(self, parts: Sequence[Scorer]) -> None:
        self._parts = tuple(parts)
        self.width = parts[0].width

    def margins(self, values: Array) -> Array:
        """The mean log odds of each row."""
        found: Array = np.mean([part.margins(values) for part in self._parts], axis=0)
        return found

    def risk(self, values: Array) -> Array:
        """The probability of failure of each row."""
        return as_risk(self.margins(values))

    def contributions(self, values: Array) -> Array:
        """What each column adds to each row's mean log odds."""
        found: Array = np.mean([part.contributions(values) for part in self._parts], axis=0)
        return found

    def importance(self) -> Array:
        """The mean share of each column: libraries count gain in units of their own."""
        told = [part.importance() for part in self._parts]
        found: Array = np.mean([one / max(one.sum(), 1e-12) for one in told], axis=0)
        return found


class BlendedTrees:
    """Boosted trees of several kinds that learn from the same rows, and whose log odds count."""

    def __init__(self, parts: Sequence[BoostedTrees]) -> None:
        self.parts = tuple(parts)

    @property
    def used(self) -> Array:
        """The places of the columns that the trees use: those that have a value at all."""
        return self.parts[0].used

    def fit(
        self,
        values: Array,
        outcomes: Array,
        moments: Moments | None = None,
        weights: Array | None = None,
        rows: Array | None = None,
    ) -> None:
        """Let each part learn."""
        for part in self.parts:
            part.fit(values, outcomes, moments, weights, rows)

    def risk(self, values: Array) -> Array:
        """The probability of failure of each row."""
        return blended_risk([part.risk(values) for part in self.parts])


def blended_risk(risks: Sequence[Array]) -> Array:
    """The risk whose log odds are the mean of those of several risks."""
    if len(risks) == 1:
        return risks[0]
    clipped = [np.clip(risk, _SUREST, 1 - _SUREST) for risk in risks]
    return as_risk(np.mean([np.log(risk / (1 - risk)) for risk in clipped], axis=0))
