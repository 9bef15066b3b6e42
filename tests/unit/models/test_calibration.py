"""Calibrated risk: it means what it says, keeps the order of jobs, and can be written down."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from premortem.errors import InvalidInput
from premortem.models.calibration import Calibration
from premortem.training import metrics
from premortem.training.calibrating import calibrated

shares = st.floats(0, 1, allow_nan=False)


def jobs(count: int, bend: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Jobs whose true risk is a power of what the model says."""
    rng = np.random.default_rng(seed)
    risk = rng.random(count)
    return (rng.random(count) < risk**bend).astype(float), risk


@pytest.mark.parametrize("count", [800, 20_000])
def test_it_brings_risk_and_failures_together(count: int) -> None:
    curve = calibrated(*jobs(count))
    assert curve.kind != "none"
    outcomes, risk = jobs(20_000, seed=1)
    before = metrics.calibration_error(outcomes, risk)
    after = metrics.calibration_error(outcomes, curve.apply(risk))
    assert before is not None
    assert after is not None
    assert after < before / 3


def test_what_is_right_already_stays_about_as_it_is() -> None:
    outcomes, risk = jobs(20_000, bend=1.0)
    curve = calibrated(outcomes, risk)
    assert curve.apply(risk) == pytest.approx(risk, abs=0.06)


def test_few_jobs_or_one_outcome_calibrate_nothing() -> None:
    outcomes, risk = jobs(50)
    assert calibrated(outcomes, risk) == Calibration()
    assert calibrated(np.zeros(5000), np.linspace(0, 1, 5000)) == Calibration()


def test_a_model_that_is_the_wrong_way_round_is_not_turned() -> None:
    outcomes, risk = jobs(900)
    assert calibrated(outcomes, 1 - risk).kind == "none"


def test_what_does_not_carry_over_in_time_is_left_alone() -> None:
    rng = np.random.default_rng(3)
    risk = rng.random(6000)
    as_told, too_high = (rng.random(6000) < share for share in (risk, risk**3))
    earlier = too_high.astype(float), risk
    assert calibrated(too_high.astype(float), risk, earlier).kind != "none"
    assert calibrated(as_told.astype(float), risk, earlier).kind == "none"


CURVES = {count: calibrated(*jobs(count)) for count in (800, 20_000)}


@settings(deadline=None)
@given(st.lists(shares, min_size=2, max_size=20), st.sampled_from(list(CURVES)))
def test_the_order_of_jobs_is_kept(risks: list[float], count: int) -> None:
    curve = CURVES[count]
    found = curve.apply(np.array(risks))
    assert ((found >= 0) & (found <= 1)).all()
    for one, other in zip(range(len(risks)), range(1, len(risks)), strict=False):
        if risks[one] < risks[other] - 1e-9:
            assert found[one] < found[other]


@pytest.mark.parametrize("count", [10, 800, 20_000])
def test_it_can_be_written_down(count: int) -> None:
    curve = calibrated(*jobs(count))
    again = Calibration.from_dict(json.loads(json.dumps(curve.as_dict())))
    assert again == curve


@pytest.mark.parametrize(
    "told", [{}, {"kind": "magic"}, {**Calibration().as_dict(), "kind": "magic"}, {"kind": None}]
)
def test_what_is_no_calibration_is_refused(told: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="not a calibration"):
        Calibration.from_dict(told)
