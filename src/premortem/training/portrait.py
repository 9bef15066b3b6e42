"""A site's jobs by kinds, and what goes with failure: the descriptive part of a report."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from premortem.errors import InvalidInput
from premortem.features.catalogue import CATALOGUE, feature_set
from premortem.features.facts import facts_of
from premortem.features.points import SUBMIT
from premortem.features.replay import Replay
from premortem.training.correlation import correlation_map
from premortem.training.kinds import MOST_PROFILES
from premortem.training.profiles import describe, fit_profiles
from premortem.training.train import Training

_NAMES = [feature.name for feature in CATALOGUE]


def portrait(
    training: Training, *, seed: int = 0
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Profiles and correlations at submission; None for what the jobs do not allow.

    Profiles are fitted on all jobs but those that judged, and describe them all.
    """
    labelled = training.labelled
    facts = facts_of(labelled, zone=training.model.zone)
    rows = Replay(training.model.zone).rows(labelled, SUBMIT, facts=facts)
    judged = next(iter(training.points.values())).judged.jobs
    learned = ~np.isin(rows.jobs, judged)
    family = training.model.family
    profiles, correlation = None, None
    with suppress(InvalidInput):
        fit = fit_profiles(
            rows.values[learned], _NAMES, point=SUBMIT, seed=seed, most=MOST_PROFILES, family=family
        )
        kinds, _ = fit.mixture.assign(rows.values)
        ended = rows.values[:, _NAMES.index("user_ended")]
        described = describe(labelled[rows.jobs], kinds, ended)
        profiles = {**fit.as_dict(), "described": [profile.as_dict() for profile in described]}
    features = feature_set(SUBMIT, family)
    with suppress(InvalidInput):
        correlation = correlation_map(
            rows.values[:, list(features.places)], features.names, facts.outcomes[rows.jobs]
        ).as_dict()
    return profiles, correlation
