"""How good risks are, as numbers; None where a number is not defined, never a made-up zero.

Outcomes are 1 for failed and 0 for completed; failure is what is to be found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn import metrics

from premortem.models.port import Array

_BINS = 10
_CURVE_POINTS = 200


@dataclass(frozen=True, slots=True)
class Decided:
    """How well a decision, job by job, met the outcome.

    Precision is not defined where no failure was foretold, recall and F1 where none happened.
    """

    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    accuracy: float | None = None


def auc(outcomes: Array, risk: Array) -> float | None:
    """How likely a failed job has a higher risk than a completed one, ties counting half."""
    return float(metrics.roc_auc_score(outcomes, risk)) if _has_both(outcomes) else None


def average_precision(outcomes: Array, risk: Array) -> float | None:
    """Precision averaged over the recalls it is bought at."""
    return float(metrics.average_precision_score(outcomes, risk)) if _has_both(outcomes) else None


def decided(outcomes: Array, foretold: Array) -> Decided:
    """How well foretelling failure for these jobs met the outcomes."""
    failed = outcomes == 1
    hits = int((failed & foretold).sum())
    failures, alarms = int(failed.sum()), int(foretold.sum())
    return Decided(
        precision=hits / alarms if alarms else None,
        recall=hits / failures if failures else None,
        f1=2 * hits / (failures + alarms) if failures else None,
        accuracy=float((failed == foretold).mean()) if len(outcomes) else None,
    )


def calibration_error(outcomes: Array, risk: Array, bins: int = _BINS) -> float | None:
    """How far risk and failure share are apart on average, over bins of equally many jobs.

    Jobs of equal risk are in one bin, however many they are.
    """
    if not len(outcomes):
        return None
    places = equal_bins(risk, bins)
    counts = np.bincount(places)
    apart = np.abs(np.bincount(places, risk) - np.bincount(places, outcomes))
    return float(apart.sum() / counts.sum())


def equal_bins(risk: Array, bins: int = _BINS) -> Array:
    """The bin of each job, in order of risk: about equally many in each, equal risks together."""
    if not len(risk):
        return np.empty(0, dtype=np.intp)
    edges = np.unique(np.quantile(risk, np.arange(1, bins) / bins, method="lower"))
    return np.searchsorted(edges, risk, side="left")


def best_f1_threshold(outcomes: Array, risk: Array) -> float | None:
    """The risk from which on foretelling failure gives the best F1; the highest if several do."""
    if not _has_both(outcomes):
        return None
    order = np.argsort(-risk, kind="stable")
    sorted_risk, hits = risk[order], np.cumsum(outcomes[order] == 1)
    f1 = 2 * hits / (hits[-1] + np.arange(1, len(hits) + 1))
    # Jobs of equal risk are foretold together: only the last of them is a possible place.
    is_place = np.append(sorted_risk[1:] != sorted_risk[:-1], True)
    return float(sorted_risk[np.argmax(np.where(is_place, f1, -1.0))])


def precision_recall_curve(outcomes: Array, risk: Array) -> tuple[tuple[float, float], ...]:
    """Points (recall, precision) to draw, by rising recall; none where it is not defined."""
    if not _has_both(outcomes):
        return ()
    precision, recall, _ = metrics.precision_recall_curve(outcomes, risk)
    kept = np.unique(np.linspace(0, len(recall) - 1, _CURVE_POINTS).astype(int))[::-1]
    return tuple((float(recall[k]), float(precision[k])) for k in kept)


def _has_both(outcomes: Array) -> bool:
    return bool((outcomes == 1).any() and (outcomes == 0).any())
