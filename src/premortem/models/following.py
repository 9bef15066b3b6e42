"""Risk that follows the cluster: corrected by how the jobs that ended lately turned out.

A cluster fails more in some weeks than in others, and a model that learned from last month's jobs
does not know which kind of week this is. How its risk compared with what became of the jobs that
ended lately tells; the risk of all is then raised or lowered by the same odds. Nothing counts
before it is known: a job corrects others from its end on.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from premortem.models.calibration import log_odds
from premortem.models.port import Array

# After so many further jobs, what one job told counts half.
HALF_LIFE = 1000.0
# So many jobs' worth of trust the model has before any has ended.
TRUST = 50.0
# How many of the last jobs to end matter at all.
LAST = 5000


def followed(risk: Array, outcomes: Array, ended: Array, moments: Array) -> Array:
    """The risk of each job as it would have been told at its moment.

    `outcomes` (1 failed, 0 completed, NaN for neither) and `ended` are those of the same jobs, NaN
    for jobs that have not ended.
    """
    over = np.flatnonzero(~np.isnan(ended) & ~np.isnan(outcomes))
    over = over[np.argsort(ended[over], kind="stable")]
    offsets = _offsets(risk[over].astype(np.float64), outcomes[over].astype(np.float64))
    known = np.searchsorted(ended[over], moments, side="left")
    return corrected(risk, offsets[known])


def corrected(risk: Array, offset: Array) -> Array:
    """The risk with its log odds moved by an offset."""
    found: Array = 1 / (1 + np.exp(-(log_odds(risk) + offset)))
    return np.where(offset == 0, risk, found)


def _offsets(risk: Array, outcomes: Array) -> Array:
    """What each number of ended jobs says, from none on: the log odds by which to move risks."""
    failed, expected = np.empty(len(risk) + 1), np.empty(len(risk) + 1)
    _shares(risk, outcomes, 0.5 ** (1 / HALF_LIFE), TRUST, failed, expected)
    moved: Array = log_odds(failed) - log_odds(expected)
    return moved


@njit(cache=True)
def _shares(
    risk: Array, outcomes: Array, kept: float, trust: float, failed: Array, expected: Array
) -> None:
    """The share that failed lately, drawn to the share expected, and that share."""
    weight, became, told = 0.0, 0.0, 0.0
    failed[0] = expected[0] = 0.5
    for k in range(len(risk)):
        weight = weight * kept + 1.0
        became = became * kept + outcomes[k]
        told = told * kept + risk[k]
        mean = told / weight
        expected[k + 1] = mean
        failed[k + 1] = (became + trust * mean) / (weight + trust)
