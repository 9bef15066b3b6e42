"""In which way a job is likely to fail, learned from the jobs that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from premortem.models.boosted import BoostedTrees, finite
from premortem.models.parameters import TreeParameters
from premortem.models.port import Array
from premortem.prediction.model import Booster, Trees, columns_of
from premortem.training.calibrating import calibrated

# A way to fail that was seen less often cannot be told from chance.
FEWEST_FAILURES = 50
# Few failures need few and small trees.
_PARAMETERS = TreeParameters(rounds=150, learning_rate=0.05, depth=4, leaf_weight=5.0)


def cause_models(
    values: Array,
    causes: Sequence[str | None],
    later: Array,
    names: Sequence[str],
    *,
    engine: str = "xgboost",
    seed: int = 0,
) -> dict[str, Trees]:
    """A model for each way to fail, of rows of failed jobs; none if there is but one way.

    `later` marks those that were the last to end: by them the shares are calibrated.
    """
    told = np.array([cause or "" for cause in causes])
    seen, counts = np.unique(told[~later], return_counts=True)
    ways = [
        str(way)
        for way, count in zip(seen, counts, strict=True)
        if way and count >= FEWEST_FAILURES
    ]
    if len(ways) < 2:
        return {}
    found = {}
    for way in ways:
        outcomes = (told == way).astype(np.float64)
        model = BoostedTrees(_PARAMETERS, engine=engine, seed=seed)
        model.fit(values[~later], outcomes[~later])
        calibration = calibrated(outcomes[later], model.risk(values[later]))
        model.fit(values, outcomes)
        booster = Booster(engine, model.dump())
        found[way] = Trees((booster,), columns_of(names, model.used), calibration)
    return found


def likely_causes(models: Mapping[str, Trees], values: Array, names: Sequence[str]) -> list[str]:
    """The most likely way to fail of each row, whose columns have these names; "" without models.

    >>> likely_causes({}, np.zeros((2, 1)), ["req_cpus"])
    ['', '']
    """
    if not models:
        return [""] * len(values)
    places = {name: place for place, name in enumerate(names)}
    shares = [
        trees.calibration.apply(
            trees.flat.risk(finite(values, np.array([places[name] for name in trees.columns])))
        )
        for trees in models.values()
    ]
    ways = list(models)
    return [ways[place] for place in np.argmax(shares, axis=0)]
