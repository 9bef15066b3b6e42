"""How much fields known too late would have gained at submission, had they been used.

Published results often use them. The numbers here tell how much of such a result may be owed to
that, on the log at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from premortem.features.catalogue import Family, feature_set
from premortem.features.facts import facts_of
from premortem.features.points import POSTHOC, SUBMIT
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.jobs.outcomes import Outcome
from premortem.models.boosted import BoostedTrees
from premortem.models.parameters import TreeParameters
from premortem.models.port import Array
from premortem.training import metrics
from premortem.training.benchmark import benchmark_log
from premortem.training.hindsight import HINDSIGHT, hindsight
from premortem.training.splits import splits

HONEST, ALL = "none", "all"


@dataclass(frozen=True, slots=True)
class Gained:
    """How well the model does when it is shown some of the fields that are known too late.

    `fields` is the name of one, `none` for what is honest, or `all`, as at the point `posthoc`.
    """

    fields: str
    auc: float | None
    average_precision: float | None


@dataclass(frozen=True, slots=True)
class Gain:
    """The same model without fields that are known too late, with each, and with all of them.

    In `message`, why there is nothing to tell; then there are no rows.
    """

    rows: tuple[Gained, ...] = ()
    message: str | None = None

    def as_dicts(self) -> list[dict[str, Any]]:
        """The rows as plain values."""
        return [asdict(row) for row in self.rows]


def gain_of_hindsight(
    jobs: pl.DataFrame,
    *,
    policy: LabelPolicy = LabelPolicy(),
    family: Family = Family.GENERIC,
    seed: int = 0,
    zone: str = "UTC",
    trees: int = 400,
    progress: Callable[[str], None] = lambda _: None,
) -> Gain:
    """The gain on one log's jobs, learned and judged as the benchmark does with its one cut.

    Fields that no job has are left out.
    """
    progress("gain: all fields known too late")
    (posthoc,) = benchmark_log(
        jobs, points=[POSTHOC], policy=policy, seed=seed, family=family, zone=zone, trees=trees
    )
    if posthoc.message:
        return Gain(message=posthoc.message)
    labelled = policy.label(jobs)
    facts = facts_of(labelled, zone=zone)
    (split,) = splits(facts.submitted)
    judged = labelled["outcome"].is_in([str(Outcome.COMPLETED), str(Outcome.FAILED)]).to_numpy()
    training = judged & split.training(facts.submitted, facts.ended)
    test = judged & split.test(facts.submitted) & ~np.isnan(facts.ended)
    failed = (labelled["outcome"] == str(Outcome.FAILED)).to_numpy().astype(np.float64)
    rows = Replay(zone).rows(labelled, SUBMIT, facts=facts)
    told = hindsight(labelled)

    def with_fields(name: str, shown: Array) -> Gained:
        progress(f"gain: {name}")
        values = np.hstack([honest, shown])
        model = BoostedTrees(TreeParameters(rounds=trees), seed=seed)
        model.fit(values[training], failed[training])
        risk = model.risk(values[test])
        return Gained(
            name, metrics.auc(failed[test], risk), metrics.average_precision(failed[test], risk)
        )

    honest = rows.values[:, list(feature_set(SUBMIT, family).places)]
    found = [with_fields(HONEST, told[:, :0])]
    for place, name in enumerate(HINDSIGHT):
        column = told[:, place : place + 1]
        if np.isfinite(column).any():
            found.append(with_fields(name, column))
    found.append(Gained(ALL, posthoc.auc, posthoc.average_precision))
    return Gain(tuple(found))
