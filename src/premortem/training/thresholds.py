"""From which risk on to warn: what each threshold would have caught, and at what cost."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from premortem.errors import InvalidInput
from premortem.models.port import Array

# As many thresholds as anyone can tell apart.
_STEPS = 200
# Core-hours of someone's time that a false alarm is worth, unless a site says otherwise.
FALSE_ALARM_COST = 1.0
# The threshold that warns of none: above the highest risk there can be, and a number that JSON has.
NEVER = 1.01


class OutOfReach(InvalidInput):
    """No threshold has what a rule asks for; `nearest` is the rule for the best that one has."""

    def __init__(self, measure: str, wanted: float, best: float) -> None:
        super().__init__(f"no threshold has a {measure} of {wanted:g}; the best is {best:.3f}")
        self.nearest = f"{measure}={math.floor(best * 1000) / 1000:g}"


@dataclass(frozen=True, slots=True)
class Trade:
    """For rising thresholds: failures caught, false alarms, and core-hours lost to those missed.

    The first warns of all jobs, the last of none. `failed` and `jobs` are of all jobs looked at.
    """

    thresholds: tuple[float, ...]
    caught: tuple[int, ...]
    false_alarms: tuple[int, ...]
    missed_core_hours: tuple[float, ...]
    failed: int
    jobs: int

    def place(self, threshold: float) -> int:
        """Where a threshold stands: at the first that is as high."""
        return min(bisect_left(self.thresholds, threshold), len(self.thresholds) - 1)

    def precision(self, at: int) -> float | None:
        """Of the jobs warned of, the share that failed."""
        alarms = self.caught[at] + self.false_alarms[at]
        return self.caught[at] / alarms if alarms else None

    def recall(self, at: int) -> float | None:
        """Of the jobs that failed, the share warned of."""
        return self.caught[at] / self.failed if self.failed else None

    def f1(self, at: int) -> float:
        """The harmonic mean of both."""
        alarms = self.caught[at] + self.false_alarms[at]
        return 2 * self.caught[at] / (self.failed + alarms) if self.failed + alarms else 0.0

    def cost(self, at: int, false_alarm: float) -> float:
        """Core-hours: those lost to failures missed, and what the false alarms cost."""
        return self.missed_core_hours[at] + false_alarm * self.false_alarms[at]

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return {
            "thresholds": list(self.thresholds), "caught": list(self.caught),
            "false_alarms": list(self.false_alarms),
            "missed_core_hours": list(self.missed_core_hours),
            "failed": self.failed, "jobs": self.jobs,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Trade:
        """The trade that was written so."""
        try:
            return cls(
                tuple(told["thresholds"]), tuple(told["caught"]), tuple(told["false_alarms"]),
                tuple(told["missed_core_hours"]), int(told["failed"]), int(told["jobs"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"what the model tells of thresholds cannot be read ({error!r}): train it anew"
            ) from error


def trade_of(outcomes: Array, risk: Array, core_hours: Array) -> Trade:
    """The trade on jobs that the model had not seen; `core_hours` are what each job spent."""
    steps = np.quantile(risk, np.linspace(0, 1, _STEPS), method="lower")
    steps = np.unique(np.append(steps, (0.0, 0.5, NEVER)))
    order = np.argsort(risk)
    failed = outcomes[order] == 1
    spent = np.where(failed, np.nan_to_num(core_hours[order]), 0.0)
    below = np.searchsorted(risk[order], steps, side="left")
    failed_below = np.append(0, np.cumsum(failed))[below]
    lost_below = np.append(0.0, np.cumsum(spent))[below]
    alarms = len(outcomes) - below
    caught = int(failed.sum()) - failed_below
    return Trade(
        tuple(map(float, steps)),
        tuple(map(int, caught)),
        tuple(map(int, alarms - caught)),
        tuple(map(float, lost_below)),
        int(failed.sum()),
        len(outcomes),
    )


def chosen(trade: Trade, rule: str) -> float:
    """The threshold by a rule: a number, `f1`, `precision=0.8`, `recall=0.6`, `cost` or `cost=5`.

    `precision` takes the lowest threshold that has it, `recall` the highest; `OutOfReach` where
    none has.
    """
    kind, value = parsed_rule(rule)
    if kind == "risk":
        return value
    places = range(len(trade.thresholds))
    if kind == "f1":
        return trade.thresholds[max(places, key=lambda at: (trade.f1(at), at))]
    if kind == "cost":
        return trade.thresholds[min(places, key=lambda at: (trade.cost(at, value), -at))]
    measure = trade.precision if kind == "precision" else trade.recall
    good = [at for at in places if (measure(at) or 0.0) >= value]
    if not good:
        raise OutOfReach(kind, value, max((measure(at) or 0.0) for at in places))
    return trade.thresholds[min(good) if kind == "precision" else max(good)]


def parsed_rule(rule: str) -> tuple[str, float]:
    """What a rule goes by, and the value it asks for, if any; of `cost`, that of a false alarm.

    >>> parsed_rule("precision=0.8"), parsed_rule("0.5"), parsed_rule("f1"), parsed_rule("cost=5")
    (('precision', 0.8), ('risk', 0.5), ('f1', 0.0), ('cost', 5.0))
    """
    if rule == "f1":
        return rule, 0.0
    if rule == "cost":
        return rule, FALSE_ALARM_COST
    found = re.fullmatch(r"(?:(precision|recall|cost)=)?(\d{1,9}\.?\d*|\.\d+)", rule)
    if found is None or (found[1] != "cost" and float(found[2]) > 1):
        raise InvalidInput(
            f"'{rule}' is not a rule for a threshold; expected a risk such as 0.5, f1, "
            "precision=0.8, recall=0.6, cost, or cost=5 where a false alarm is worth 5 core-hours"
        )
    return found[1] or "risk", float(found[2])


def false_alarm_cost(rule: str) -> float:
    """The core-hours a false alarm is worth by a rule, or usually if it does not go by cost."""
    kind, value = parsed_rule(rule)
    return value if kind == "cost" else FALSE_ALARM_COST
