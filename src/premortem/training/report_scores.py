"""The measures of a model on the judged jobs, with intervals, beside what it has to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from premortem.features.catalogue import CATALOGUE
from premortem.models.port import Array
from premortem.training import metrics
from premortem.training.baselines import RULES, FirstKnown
from premortem.training.intervals import Draws, around

HALF = 0.5
_PERSONAL = {feature.name for feature in CATALOGUE if feature.personal}


def scores_of(
    draws: Draws, outcomes: Array, risk: Array, rivals: Mapping[str, Array]
) -> dict[str, Any]:
    """The scores of the model and of each rival; what is decided is so at a risk of 0.5.

    A rival's `ahead` is how much more average precision the model has, on the same jobs drawn.
    """
    own, own_drawn = _scores(draws, outcomes, risk)
    beside = {}
    for name, rival in rivals.items():
        scores, drawn = _scores(draws, outcomes, rival)
        apart = own_drawn["average_precision"] - drawn["average_precision"]
        ahead = None
        if own["average_precision"]["value"] is not None:
            ahead = own["average_precision"]["value"] - scores["average_precision"]["value"]
        beside[name] = {**scores, "ahead": _told(ahead, apart, least=-1.0)}
    return {"model": own, "baselines": beside}


def decided_scores(draws: Draws, outcomes: Array, foretold: Array) -> dict[str, Any]:
    """How well decisions met the outcomes, every measure with its interval."""
    drawn = draws.decided(outcomes, foretold)
    decided = asdict(metrics.decided(outcomes, foretold))
    return {measure: _told(value, drawn[measure]) for measure, value in decided.items()}


def baseline_risks(values: Array, names: Sequence[str], failure_share: float) -> dict[str, Array]:
    """The risk of each job by each baseline whose features there are, of rows with these columns.

    `failure_share` is that of the jobs learned from: what is said where nothing else is known.
    """
    found = {}
    for baseline, features in RULES.items():
        there = [name for name in features if name in names]
        # The cluster's rate alone would go by the name of the user's.
        if features and not _PERSONAL & set(there):
            continue
        rule = FirstKnown([names.index(name) for name in there])
        rule.fit(values[:0], np.array([failure_share]))
        found[baseline] = rule.risk(values)
    return found


def _scores(draws: Draws, outcomes: Array, risk: Array) -> tuple[dict[str, Any], dict[str, Array]]:
    """Every measure with its interval, and what those of the risk are in every draw."""
    drawn = draws.measures(outcomes, risk)
    whole = {
        "average_precision": metrics.average_precision(outcomes, risk),
        "auc": metrics.auc(outcomes, risk),
        "ece": metrics.calibration_error(outcomes, risk),
    }
    scores: dict[str, Any] = {name: _told(value, drawn[name]) for name, value in whole.items()}
    scores["at_half"] = decided_scores(draws, outcomes, risk >= HALF)
    return scores, drawn


def _told(value: float | None, drawn: Array, *, least: float = 0.0) -> dict[str, float | None]:
    low, high = around(value, drawn, least=least) or (None, None)
    return {"value": value, "low": low, "high": high}
