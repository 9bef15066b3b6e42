"""What speaks against relying on a model, by the report of its training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from premortem.training.report_scores import HALF

_RULES = {
    "majority": "the same risk for every job",
    "user_last_outcome": "a user's job ends as the last one did",
    "user_name_rate": "a job fails as often as others of its user and name did",
}
_HELP = "a longer history, records with more fields, or more trials may help"


def doubts(report: Mapping[str, Any]) -> list[str]:
    """A sentence for each point at which the model is no better than chance, or than a rule."""
    found = []
    for point, told in report["points"].items():
        why = _doubt(told["scores"])
        if why:
            found.append(f"at {point} {why}; do not rely on it yet: {_HELP}")
    return found


def _doubt(scores: Mapping[str, Any]) -> str | None:
    own, auc = (scores["model"][measure]["value"] for measure in ("average_precision", "auc"))
    if own is None:
        return "nobody knows how good the model is, since the latest jobs all ended alike"
    rivals = {name: one["average_precision"]["value"] for name, one in scores["baselines"].items()}
    best = max(rivals, key=lambda name: rivals[name])
    by_chance = auc <= HALF or own <= rivals["majority"]
    beaten = own <= rivals[best]
    rule = f"{best} ({_RULES[best]}), with an average precision of {rivals[best]:.3f}"
    if by_chance:
        told = f"the model is no better than chance (AUC {auc:.3f}, average precision {own:.3f})"
        return f"{told}, and a simple rule is no worse: {rule}" if beaten else told
    if beaten:
        return f"a simple rule is no worse than the model's average precision of {own:.3f}: {rule}"
    return None
