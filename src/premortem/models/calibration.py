"""From a model's risk to one that means what it says: of jobs at 0.3, three in ten fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from premortem.errors import InvalidInput
from premortem.models.port import Array

# How much of the uncalibrated risk shows through, so that no two jobs become equal.
_SHOWS_THROUGH = 1e-4
_EDGE = 1e-6


@dataclass(frozen=True, slots=True)
class Calibration:
    """A rising curve through `risks` and `shares`, or a logistic curve (`slope`, `offset`).

    Jobs keep their order: where the curve is level, their uncalibrated risk decides.
    """

    kind: str = "none"
    risks: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    slope: float = 1.0
    offset: float = 0.0

    def apply(self, risk: Array) -> Array:
        """The calibrated risk of each job."""
        if self.kind == "none":
            return risk
        if self.kind == "platt":
            found = 1 / (1 + np.exp(-(self.slope * log_odds(risk) + self.offset)))
        else:
            found = np.interp(risk, self.risks, self.shares)
        mixed: Array = (1 - _SHOWS_THROUGH) * found + _SHOWS_THROUGH * risk
        return mixed

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return {
            "kind": self.kind, "risks": list(self.risks), "shares": list(self.shares),
            "slope": self.slope, "offset": self.offset,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Calibration:
        """The calibration that was written so; what cannot be one is refused."""
        try:
            found = cls(
                str(told["kind"]), tuple(map(float, told["risks"])),
                tuple(map(float, told["shares"])), float(told["slope"]), float(told["offset"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"this is not a calibration: {error!r}") from error
        if found.kind not in ("none", "platt", "isotonic"):
            raise InvalidInput(f"this is not a calibration: kind {found.kind!r}")
        return found


def log_odds(risk: Array) -> Array:
    """The logarithm of the odds, also of certainty."""
    safe = np.clip(risk, _EDGE, 1 - _EDGE)
    odds: Array = np.log(safe / (1 - safe))
    return odds
