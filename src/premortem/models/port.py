"""What a model of failure is to the rest of premortem."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Classifier(Protocol):
    """Learns from rows whose outcome is known (1 failed, 0 completed), and gives others a risk."""

    def fit(self, values: Array, outcomes: Array) -> None:
        """Learn from these rows; forgets whatever was learned before."""

    def risk(self, values: Array) -> Array:
        """The probability of failure of each row, whose columns are those of `fit`."""
