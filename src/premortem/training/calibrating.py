"""Which calibration a model needs, chosen and fitted on jobs it has not learned from."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from premortem.models.calibration import Calibration, log_odds
from premortem.models.port import Array

# With fewer jobs, or fewer of either outcome, a curve would only repeat chance.
FEWEST_JOBS = 100
FEWEST_OF_EITHER = 10
# A curve of many steps needs many jobs.
FEWEST_FOR_STEPS = 1000


def calibrated(
    outcomes: Array, risk: Array, earlier: tuple[Array, Array] | None = None
) -> Calibration:
    """The calibration for these jobs, which are in order of time.

    Each kind is fitted on `earlier` jobs, their outcomes and risks, and judged by these: what does
    not carry over from one stretch of time to the next is worse than nothing. The best is then
    fitted on all. Without earlier jobs, the first half of these are.
    """
    if earlier is None:
        half = len(outcomes) // 2
        earlier = outcomes[:half], risk[:half]
        outcomes, risk = outcomes[half:], risk[half:]
    if not _enough(np.concatenate([earlier[0], outcomes])):
        return Calibration()
    kinds = [Calibration()]
    if _enough(earlier[0]):
        kinds.append(_platt(*earlier))
        if len(earlier[0]) >= FEWEST_FOR_STEPS:
            kinds.append(_isotonic(*earlier))
    best = min(kinds, key=lambda kind: _loss(outcomes, kind.apply(risk)))
    fit = {"platt": _platt, "isotonic": _isotonic}.get(best.kind)
    if not fit:
        return Calibration()
    return fit(np.concatenate([earlier[0], outcomes]), np.concatenate([earlier[1], risk]))


def _enough(outcomes: Array) -> bool:
    failed = int(outcomes.sum())
    either = min(failed, len(outcomes) - failed)
    return len(outcomes) >= FEWEST_JOBS and either >= FEWEST_OF_EITHER


def _platt(outcomes: Array, risk: Array) -> Calibration:
    model = LogisticRegression(C=np.inf).fit(log_odds(risk)[:, None], outcomes)
    slope, offset = float(model.coef_[0, 0]), float(model.intercept_[0])
    # A model that orders jobs the wrong way round is not to be turned round here.
    return Calibration("platt", slope=slope, offset=offset) if slope > 0 else Calibration()


def _isotonic(outcomes: Array, risk: Array) -> Calibration:
    curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(risk, outcomes)
    return Calibration(
        "isotonic",
        tuple(map(float, curve.X_thresholds_)),
        tuple(map(float, curve.y_thresholds_)),
    )


def _loss(outcomes: Array, risk: Array) -> float:
    """How surprising the outcomes are, in nats a job."""
    safe = np.clip(risk, 1e-6, 1 - 1e-6)
    return float(-np.mean(np.where(outcomes == 1, np.log(safe), np.log(1 - safe))))
