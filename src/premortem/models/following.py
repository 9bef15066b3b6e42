"""Risk that follows the cluster: corrected by how the jobs that ended lately turned out.

A cluster fails more in some weeks than in others, and a model that learned from last month's jobs
does not know which kind of week this is. How its risks compared with what became of the jobs that
ended lately tells; the risk of all is then raised or lowered by the same odds. Nothing counts
before it is known: a job corrects others from its end on. And a thousand failing jobs of one user
are news of that user more than of the cluster: of anyone's jobs, only so many count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from premortem.models.calibration import log_odds
from premortem.models.port import Array

# After so many further jobs, what one job told counts half.
HALF_LIFE = 300.0
# About so many jobs of a user count, however many ended lately.
MOST_OF_A_USER = 20.0
# How firmly the model is believed before any job has ended, in information: a job at even odds
# adds a quarter, one at a risk of 0.02 a fiftieth.
TRUST = 7.0
# How many of a cluster's last jobs to end matter at all: one before them counts a ten-thousandth.
LAST = 4000


@dataclass(frozen=True, slots=True)
class Ends:
    """How jobs ended: `outcomes` are 1 for failed, 0 for completed, NaN for what does not count.

    `ended` is when, NaN for not yet; `users` and `clusters` are whole numbers, negative for
    unknown.
    """

    outcomes: Array
    ended: Array
    users: Array
    clusters: Array


def followed(risk: Array, ends: Ends, moments: Array) -> Array:
    """The risk of each job as it would have been told at its moment, given the ends of the same."""
    found = risk.astype(np.float64)
    for cluster in np.unique(ends.clusters):
        its = np.flatnonzero(ends.clusters == cluster)
        found[its] = _followed_one(
            found[its], ends.outcomes[its], ends.ended[its], ends.users[its], moments[its]
        )
    return found


def _followed_one(
    risk: Array, outcomes: Array, ended: Array, users: Array, moments: Array
) -> Array:
    """The same for the jobs of one cluster."""
    over = np.flatnonzero(~np.isnan(ended) & ~np.isnan(outcomes))
    over = over[np.argsort(ended[over], kind="stable")]
    odds = log_odds(risk)
    offsets = np.zeros(len(over) + 1)
    _learn_offsets(
        odds[over], outcomes[over].astype(np.float64), users[over].astype(np.int64),
        0.5 ** (1 / HALF_LIFE), offsets,
    )  # fmt: skip
    offset = offsets[np.searchsorted(ended[over], moments, side="left")]
    found: Array = 1 / (1 + np.exp(-(odds + offset)))
    return np.where(offset == 0, risk, found)


@njit(cache=True)
def _learn_offsets(odds: Array, outcomes: Array, users: Array, kept: float, offsets: Array) -> None:
    """The offset after each end: a Newton step of a logistic regression that forgets."""
    lately = np.zeros(users.max() + 1 if len(users) else 0)
    seen = np.zeros(len(lately))
    offset, information = 0.0, 0.0
    for k in range(len(odds)):
        counts, user = 1.0, users[k]
        if user >= 0:
            lately[user] *= kept ** (k - seen[user])
            seen[user] = k
            counts = (MOST_OF_A_USER / (MOST_OF_A_USER + lately[user])) ** 2
            lately[user] += 1.0
        told = 1 / (1 + np.exp(-(odds[k] + offset)))
        information = information * kept + counts * told * (1 - told)
        # What is forgotten gives way to the model's own risk.
        surplus = counts * (told - outcomes[k]) + (1 - kept) * TRUST * offset
        offset -= surplus / (information + TRUST)
        offsets[k + 1] = offset
