"""The figures of a report as numbers: curves, histogram, calibration, confusion, trade, search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from premortem.models.port import Array
from premortem.training.metrics import equal_bins
from premortem.training.thresholds import Trade
from premortem.training.tuning import Trial

HISTOGRAM_BINS = 20
_CURVE_POINTS = 200
# Thresholds in the table of what each would have caught, besides the one in use.
_TRADE_ROWS = 11
# Standard deviations for an interval of 95 %.
_DEVIATIONS = 1.96


def roc_curve(outcomes: Array, risk: Array) -> list[tuple[float, float]]:
    """Points (share of completed jobs warned of, share of failed jobs warned of), rising.

    None where it is not defined.
    """
    failed = outcomes == 1
    if not failed.any() or failed.all():
        return []
    order = np.argsort(-risk, kind="stable")
    # Jobs of equal risk are warned of together.
    ends = np.append(np.flatnonzero(np.diff(risk[order])), len(risk) - 1)
    hits = np.append(0, np.cumsum(failed[order])[ends])
    alarms = np.append(0, np.cumsum(~failed[order])[ends])
    kept = np.unique(np.linspace(0, len(hits) - 1, _CURVE_POINTS).astype(int))
    return [(float(alarms[k] / alarms[-1]), float(hits[k] / hits[-1])) for k in kept]


def histogram(outcomes: Array, risk: Array) -> dict[str, Any]:
    """How many jobs of either outcome have which risk, in bins of equal width."""
    edges = np.linspace(0, 1, HISTOGRAM_BINS + 1)
    counts = {
        name: np.histogram(risk[outcomes == code], edges)[0].tolist()
        for name, code in (("completed", 0), ("failed", 1))
    }
    return {"edges": edges.tolist(), **counts}


def calibration_curve(outcomes: Array, risk: Array) -> list[dict[str, Any]]:
    """Bins of equally many jobs: their mean risk and the share that failed, with its interval."""
    places = equal_bins(risk)
    found = []
    for place in np.unique(places):
        member = places == place
        jobs, failed = int(member.sum()), int(outcomes[member].sum())
        low, high = share_interval(failed, jobs)
        found.append(
            {
                "jobs": jobs,
                "risk": float(risk[member].mean()),
                "failed": failed / jobs,
                "low": low,
                "high": high,
            }
        )
    return found


def share_interval(count: int, of: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share.

    >>> [round(end, 2) for end in share_interval(0, 10)]
    [0.0, 0.28]
    """
    square = _DEVIATIONS**2
    share = count / of
    middle = (share + square / (2 * of)) / (1 + square / of)
    apart = _DEVIATIONS * np.sqrt(share * (1 - share) / of + square / (4 * of**2))
    apart /= 1 + square / of
    # Where all or none failed, rounding must not push an end past the share itself.
    return min(share, max(0.0, float(middle - apart))), max(share, min(1.0, float(middle + apart)))


def confusion(outcomes: Array, risk: Array, threshold: float) -> dict[str, int]:
    """How many jobs there are of each outcome and decision."""
    failed, foretold = outcomes == 1, risk >= threshold
    return {
        "caught": int((failed & foretold).sum()),
        "missed": int((failed & ~foretold).sum()),
        "false_alarms": int((~failed & foretold).sum()),
        "left_alone": int((~failed & ~foretold).sum()),
    }


def trade_table(told: Mapping[str, Any], threshold: float) -> dict[str, Any]:
    """What some thresholds would have caught and cost, the one in use marked.

    The others are chosen so that the share of failures caught falls in even steps.
    """
    trade = Trade.from_dict(told)
    in_use = trade.place(threshold)
    caught = np.array(trade.caught)
    wanted = np.linspace(caught[0], caught[-1], _TRADE_ROWS)
    places = {int(np.argmin(np.abs(caught - count))) for count in wanted} | {in_use}
    rows = [
        {
            "threshold": trade.thresholds[at],
            "warnings": trade.caught[at] + trade.false_alarms[at],
            "caught": trade.caught[at],
            "false_alarms": trade.false_alarms[at],
            "precision": trade.precision(at),
            "recall": trade.recall(at),
            "f1": trade.f1(at),
            "missed_core_hours": trade.missed_core_hours[at],
            "in_use": at == in_use,
        }
        for at in sorted(places)
    ]
    return {"jobs": trade.jobs, "failed": trade.failed, "rows": rows}


def search_history(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """The trials in their order, each with the best score up to it."""
    found, best = [], None
    for trial in trials:
        if trial.score is not None:
            best = trial.score if best is None else max(best, trial.score)
        found.append({**trial.as_dict(), "best": best})
    return found
