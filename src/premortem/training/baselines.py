"""What a model has to beat: rules that need no learning, and learning from the request alone.

All of them see the same rows as the model, so they know no more of the past than it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from premortem.features.catalogue import CATALOGUE, FeatureSet
from premortem.models.port import Array, Classifier, Moments

# The features each rule looks at, the first known deciding; none: the same risk for all jobs.
RULES: Mapping[str, tuple[str, ...]] = {
    "majority": (),
    "user_last_outcome": ("user_last_outcome",),
    "user_name_rate": (
        "name_failure_rate", "executable_failure_rate", "user_failure_rate", "cluster_failure_rate",
    ),
}  # fmt: skip
BASELINES = (*RULES, "xgboost_request")
_PLACES = {feature.name: place for place, feature in enumerate(CATALOGUE)}


class FirstKnown:
    """The first of some features that is known; where none is, the share of failures."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places = places

    def fit(self, values: Array, outcomes: Array, moments: Moments | None = None) -> None:
        """Learn the share of failures."""
        self._share = float(np.mean(outcomes))

    def risk(self, values: Array) -> Array:
        """The feature's value for each row, as it is."""
        found = np.full(len(values), self._share)
        for place in reversed(self._places):
            column = values[:, place]
            found = np.where(np.isnan(column), found, column)
        return found


class OnColumns:
    """A model that is shown only some of the columns."""

    def __init__(self, model: Classifier, places: Sequence[int]) -> None:
        self.model = model
        self._places = list(places)

    @property
    def judged(self) -> tuple[Array, Array] | None:
        """Outcomes and risks of later jobs that the model judged itself by, if it did."""
        found: tuple[Array, Array] | None = getattr(self.model, "judged", None)
        return found

    def fit(self, values: Array, outcomes: Array, moments: Moments | None = None) -> None:
        """Learn from these columns."""
        self.model.fit(values[:, self._places], outcomes, moments)

    def risk(self, values: Array) -> Array:
        """The model's risk by these columns."""
        return self.model.risk(values[:, self._places])


def baselines(features: FeatureSet, make_model: Callable[[], Classifier]) -> dict[str, Classifier]:
    """The baselines for rows as the replay writes them, by name.

    The rate of the user's jobs of the same name is that of the same executable where jobs have no
    names, and the user's own where they have neither. The rules look at the user also where the
    model may not: what that costs is what they are there to tell.
    """
    pairs = zip(features.places, features.features, strict=True)
    request = [place for place, feature in pairs if feature.chapter == "request"]
    rules = (FirstKnown([_PLACES[name] for name in looked_at]) for looked_at in RULES.values())
    return dict(zip(BASELINES, (*rules, OnColumns(make_model(), request)), strict=True))
