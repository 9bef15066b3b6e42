"""Which jobs a model may learn from, and which it is judged by: cuts in time, never at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from premortem.errors import InvalidInput
from premortem.models.port import Array

# Where the one cut is, and where the first of several is, among the times of submission.
SINGLE_CUT = 0.8
FIRST_OF_MANY = 0.5
VALIDATION_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Split:
    """A cut in time, and the time up to which submissions are judged; seconds since 1970.

    `fold` counts from 1 where there are several.
    """

    cut: float
    until: float = float("inf")
    fold: int | None = None

    def training(self, submitted: Array, ended: Array) -> Array:
        """Whether each job had ended before the cut. Jobs that never ended had not.

        A clock that jumps back can make a job end before its submission: one that counts as
        submitted after the cut is no training job either.
        """
        return (ended < self.cut) & (submitted < self.cut)

    def test(self, submitted: Array) -> Array:
        """Whether each job was submitted at or after the cut, and before the next."""
        return (submitted >= self.cut) & (submitted < self.until)


def splits(submitted: Array, *, folds: int = 1, quantile: float | None = None) -> list[Split]:
    """One cut at the quantile of submission times, or as many as folds, evenly from it to the end.

    The quantile is 0.8 for one cut and 0.5 for the first of several, unless given. Each fold is
    judged up to the next cut, so that no job is judged twice.
    """
    if folds < 1:
        raise InvalidInput(f"the number of folds must be at least 1, not {folds}")
    first = quantile if quantile is not None else SINGLE_CUT if folds == 1 else FIRST_OF_MANY
    if not 0 < first < 1:
        raise InvalidInput(f"the quantile of the cut must be between 0 and 1, not {first}")
    known = submitted[~np.isnan(submitted)]
    if not len(known):
        return []
    cuts = np.quantile(known, first + (1 - first) * np.arange(folds) / folds)
    if folds == 1:
        return [Split(float(cuts[0]))]
    ends = [*map(float, cuts[1:]), float("inf")]
    return [
        Split(float(cut), end, fold)
        for fold, (cut, end) in enumerate(zip(cuts, ends, strict=True), start=1)
    ]


def validation(ended: Array, share: float = VALIDATION_SHARE) -> Array:
    """Which of the training jobs were the last to end: those a threshold is chosen by.

    Jobs that ended in the same second are on the same side.
    """
    if not len(ended):
        return np.zeros(0, dtype=bool)
    boundary = float(np.quantile(ended, 1 - share, method="higher"))
    return ended >= boundary
