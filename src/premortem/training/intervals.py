"""How far a measure may be off by chance: the judged jobs drawn anew, many times, user by user.

Jobs of one user are alike: drawn one by one, they would seem to prove more than they do.
"""

from __future__ import annotations

import numpy as np

from premortem.models.port import Array
from premortem.training.metrics import equal_bins

DRAWS = 300
# Of fewer users nothing can be drawn; then stretches of time are, so many of them.
FEWEST_USERS = 10
STRETCHES = 50
# As many different risks as an interval needs to tell apart.
_STEPS = 200
_LOW, _MIDDLE, _HIGH = 0.025, 0.5, 0.975

BY_USER, BY_TIME = "user", "stretch of time"


class Draws:
    """The judged jobs drawn with replacement, in the same way for every measure and every model.

    `users` has the number of each job's user, -1 where it is not known: then the job stands for
    itself. `submitted` matters only where there are few users.
    """

    def __init__(
        self, users: Array, submitted: Array, *, seed: int = 0, draws: int = DRAWS
    ) -> None:
        known = users >= 0
        own = users.max(initial=-1) + 1 + np.arange(len(users))
        found, self._owner = np.unique(np.where(known, users, own), return_inverse=True)
        self.by = BY_USER
        if len(found) < FEWEST_USERS or not known.any():
            self.by = BY_TIME
            order = np.argsort(np.argsort(submitted, kind="stable"), kind="stable")
            self._owner = order * min(STRETCHES, len(users)) // max(len(users), 1)
        self._owners = int(self._owner.max(initial=-1)) + 1
        self._times = _times_drawn(self._owners, draws, seed)

    def measures(self, outcomes: Array, risk: Array) -> dict[str, Array]:
        """Every measure of risks in every draw, NaN where it is not defined."""
        return {**self._ranking(outcomes, risk), "ece": self._calibration_error(outcomes, risk)}

    def decided(self, outcomes: Array, foretold: Array) -> dict[str, Array]:
        """Every measure of decisions in every draw, NaN where it is not defined."""
        failed = outcomes == 1
        jobs, failures, alarms, hits = (
            self._sums(told) for told in (np.ones(len(failed)), failed, foretold, failed & foretold)
        )
        agreed = jobs - failures - alarms + 2 * hits
        with np.errstate(invalid="ignore"):
            return {
                "precision": hits / alarms,
                "recall": hits / failures,
                "f1": np.where(failures > 0, 2 * hits / (failures + alarms), np.nan),
                "accuracy": agreed / jobs,
            }

    def _sums(self, told: Array) -> Array:
        """The sum over the jobs of each draw."""
        by_owner = np.bincount(self._owner, told, minlength=self._owners)
        sums: Array = self._times @ by_owner
        return sums

    def _calibration_error(self, outcomes: Array, risk: Array) -> Array:
        """With the bins of the jobs as they are."""
        places = equal_bins(risk)
        apart = sum(
            np.abs(self._sums(np.where(places == place, risk - outcomes, 0.0)))
            for place in range(int(places.max(initial=-1)) + 1)
        )
        with np.errstate(invalid="ignore"):
            share: Array = apart / self._sums(np.ones(len(risk)))
        return share

    def _ranking(self, outcomes: Array, risk: Array) -> dict[str, Array]:
        """Average precision and AUC, of risks in steps: by step and draw, jobs and failures."""
        steps = _steps(-risk)
        width = int(steps.max(initial=-1)) + 1
        # What one owner has in one step is drawn together.
        pairs, places = np.unique(self._owner * width + steps, return_inverse=True)
        jobs_of = np.bincount(places)
        failed_of = np.bincount(places, outcomes == 1)
        owners, steps = pairs // max(width, 1), pairs % max(width, 1)
        jobs, failed = np.empty((2, len(self._times), width))
        for draw, times in enumerate(self._times):
            drawn = times[owners]
            jobs[draw] = np.bincount(steps, drawn * jobs_of, minlength=width)
            failed[draw] = np.bincount(steps, drawn * failed_of, minlength=width)
        hits, passed = failed.cumsum(axis=1), (jobs - failed).cumsum(axis=1)
        failures, completions = failed.sum(axis=1), (jobs - failed).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            precision = np.nan_to_num(hits / (hits + passed))
            both = np.where((failures > 0) & (completions > 0), 1.0, np.nan)
            better = completions[:, None] - passed + (jobs - failed) / 2
            return {
                "average_precision": both * (precision * failed).sum(axis=1) / failures,
                "auc": both * (better * failed).sum(axis=1) / (failures * completions),
            }


def around(
    estimate: float | None, drawn: Array, *, least: float = 0.0, most: float = 1.0
) -> tuple[float, float] | None:
    """The interval of 95 % about an estimate; None where there is nothing to tell.

    It is as wide as the draws are about their middle. Where that is not the estimate itself, as
    with the calibration error, which chance can only make larger, this is the draws' doing.
    """
    known = drawn[np.isfinite(drawn)]
    if estimate is None or len(known) * 2 <= len(drawn):
        return None
    low, middle, high = np.quantile(known, (_LOW, _MIDDLE, _HIGH))
    return max(least, estimate - float(middle - low)), min(most, estimate + float(high - middle))


def _times_drawn(owners: int, draws: int, seed: int) -> Array:
    """How often each owner is drawn: a row a draw."""
    rng = np.random.default_rng(seed)
    times = np.zeros((draws, owners))
    for draw in range(draws if owners else 0):
        times[draw] = np.bincount(rng.integers(owners, size=owners), minlength=owners)
    return times


def _steps(values: Array) -> Array:
    """The place of each value among the different ones, or among so many quantiles of them."""
    different = np.unique(values)
    if len(different) > _STEPS:
        different = np.unique(np.quantile(values, np.linspace(0, 1, _STEPS), method="lower"))
    return np.searchsorted(different, values, side="right") - 1
