"""What a model of failure is to the rest of premortem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Moments:
    """When the jobs of some rows were submitted and ended, in seconds since 1970."""

    submitted: Array
    ended: Array


class Classifier(Protocol):
    """Learns from rows whose outcome is known (1 failed, 0 completed), and gives others a risk."""

    def fit(self, values: Array, outcomes: Array, moments: Moments | None = None) -> None:
        """Learn from these rows; forgets whatever was learned before.

        `moments` let a model that judges itself do so by later jobs.
        """

    def risk(self, values: Array) -> Array:
        """The probability of failure of each row, whose columns are those of `fit`."""


class Weighed(Classifier, Protocol):
    """A classifier for which some rows may count more than others."""

    def fit(
        self,
        values: Array,
        outcomes: Array,
        moments: Moments | None = None,
        weights: Array | None = None,
        rows: Array | None = None,
    ) -> None:
        """Learn from these rows, each of which counts by its weight.

        With `rows`, their places, from those alone; `weights` are then theirs.
        """
