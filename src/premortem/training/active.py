"""Active learning: from a small beginning, only the jobs that teach most are learned from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from premortem.models.port import Array, Classifier
from premortem.training import metrics

# How many rows are begun with, how many each round adds, and how many rounds there are at most.
BEGINNING = 1000
ADDED_SHARE = 0.08
MOST_ROUNDS = 8
# The share of the rows, the last ones, that judge the rounds.
JUDGED_SHARE = 0.2
# A round that gains less than this is the last but one.
WORTHWHILE = 0.001
_REFERENCES = 500


def informative(
    values: Array,
    outcomes: Array,
    make_model: Callable[[], Classifier],
    *,
    seed: int = 0,
) -> Array:
    """The places of the rows worth learning from; rows are in order of time.

    Each round a model tells which of the rows not yet taken it is least certain of; those that lie
    where many others do come first. The last rows judge the rounds: the best one's rows are given.
    """
    rng = np.random.default_rng(seed)
    until = _candidates(len(values))
    judged = slice(until, len(values))
    both = _both(outcomes[:until]) and _both(outcomes[judged])
    if not chooses_among(len(values)) or not both:
        return np.arange(len(values))
    taken = _begin(outcomes[:until], rng)
    crowded = density(values[:until], rng)
    best, best_score, poor_rounds = taken, -1.0, 0
    for _ in range(MOST_ROUNDS):
        model = make_model()
        places = np.flatnonzero(taken)
        model.fit(values[places], outcomes[places])
        score = metrics.average_precision(outcomes[judged], model.risk(values[judged])) or 0.0
        if score > best_score + WORTHWHILE:
            best, best_score, poor_rounds = taken.copy(), score, 0
        else:
            poor_rounds += 1
        left = np.flatnonzero(~taken)
        if poor_rounds == 2 or not len(left):
            break
        risk = model.risk(values[left])
        teaches = (1 - np.abs(2 * risk - 1)) * crowded[left]
        more = left[np.argsort(-teaches, kind="stable")[: max(1, int(ADDED_SHARE * until))]]
        taken[more] = True
    return np.concatenate([np.flatnonzero(best), np.arange(until, len(values))])


def chooses_among(rows: int) -> bool:
    """Whether of so many rows some are chosen; else all are worth learning from."""
    return _candidates(rows) > BEGINNING


def density(values: Array, rng: np.random.Generator) -> Array:
    """How close each row is to some others drawn at random, from 0 to 1."""
    references = rng.choice(len(values), min(_REFERENCES, len(values)), replace=False)
    drawn = values[references].astype(np.float64)
    drawn[~np.isfinite(drawn)] = np.nan
    known = (~np.isnan(drawn)).sum(axis=0) > 1
    if not known.any():
        return np.ones(len(values))
    middle, spread = np.nanmedian(drawn[:, known], axis=0), np.nanstd(drawn[:, known], axis=0)
    scaled = (values[:, known] - middle) / np.where(spread > 0, spread, np.inf)
    scaled = np.clip(np.nan_to_num(scaled, nan=0.0), -3, 3).astype(np.float32)
    others = scaled[references]
    squares = (scaled**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None, :]
    apart = np.maximum(squares - 2 * scaled @ others.T, 0)
    closeness: Array = np.exp(-apart / max(float(np.median(apart)), 1e-9)).mean(axis=1)
    closeness /= closeness.max()
    return closeness


def _candidates(rows: int) -> int:
    """How many rows there are to choose from; the others judge."""
    return int(rows * (1 - JUDGED_SHARE))


def _begin(outcomes: Array, rng: np.random.Generator) -> Array:
    """Rows to begin with: half of them failed, as far as there are so many."""
    taken = np.zeros(len(outcomes), dtype=bool)
    for outcome in (0, 1):
        there = np.flatnonzero(outcomes == outcome)
        taken[rng.permutation(there)[: BEGINNING // 2]] = True
    return taken


def _both(outcomes: Array) -> bool:
    return len(np.unique(outcomes)) == 2
