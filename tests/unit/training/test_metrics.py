"""The measures against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from premortem.training.metrics import (
    Decided,
    auc,
    average_precision,
    best_f1_threshold,
    calibration_error,
    decided,
    precision_recall_curve,
)

OUTCOMES = np.array([1.0, 0, 1, 0, 0])
RISK = np.array([0.9, 0.8, 0.6, 0.4, 0.1])
NONE, ALL, EMPTY = np.zeros(4), np.ones(4), np.empty(0)


def test_ranking() -> None:
    # Of six pairs of a failed and a completed job, five are in order.
    assert auc(OUTCOMES, RISK) == pytest.approx(5 / 6)
    # Precision 1 at the first failure, 2/3 at the second.
    assert average_precision(OUTCOMES, RISK) == pytest.approx((1 + 2 / 3) / 2)
    assert auc(OUTCOMES, np.full(5, 0.3)) == 0.5
    assert average_precision(OUTCOMES, np.full(5, 0.3)) == pytest.approx(2 / 5)


def test_decisions() -> None:
    assert decided(OUTCOMES, RISK >= 0.5) == Decided(2 / 3, 1.0, 0.8, 0.8)
    assert decided(OUTCOMES, RISK >= 1) == Decided(None, 0.0, 0.0, 0.6)
    assert decided(NONE, np.array([True, False, False, False])) == Decided(0.0, None, None, 0.75)
    assert decided(EMPTY, EMPTY > 0) == Decided()


def test_calibration() -> None:
    # Two bins: mean risks 0.25 and 0.75 against shares 0.5 and 1.
    outcomes, risk = np.array([1.0, 0, 1, 1]), np.array([0.2, 0.3, 0.7, 0.8])
    assert calibration_error(outcomes, risk, bins=2) == pytest.approx(0.25)
    assert calibration_error(np.array([1.0, 0, 0, 0]), np.full(4, 0.25)) == 0
    # The order of jobs of equal risk cannot matter.
    outcomes = np.repeat([1.0, 0], 50)
    assert calibration_error(outcomes, np.full(100, 0.5)) == 0
    assert calibration_error(EMPTY, EMPTY) is None


def test_each_bin_holds_equally_many_jobs() -> None:
    # Ten bins of ten: risks 0.00 to 0.99, each bin with 5 failures, |mean risk - 0.5| averaged.
    risk, outcomes = np.arange(100) / 100, np.tile([0.0, 1], 50)
    means = (np.arange(10) * 10 + 4.5) / 100
    assert calibration_error(outcomes, risk) == pytest.approx(np.abs(means - 0.5).mean())


def test_threshold() -> None:
    assert best_f1_threshold(OUTCOMES, RISK) == 0.6
    # Jobs of equal risk are foretold together.
    assert best_f1_threshold(np.array([1.0, 0, 0, 1]), np.array([0.5, 0.5, 0.5, 0.2])) == 0.2
    assert best_f1_threshold(np.array([1.0, 0]), np.array([0.2, 0.7])) == 0.2


@pytest.mark.parametrize("outcomes", [NONE, ALL, EMPTY])
def test_one_outcome_alone_defines_nothing(outcomes: np.ndarray) -> None:
    risk = np.linspace(0, 1, len(outcomes))
    assert auc(outcomes, risk) is None
    assert average_precision(outcomes, risk) is None
    assert best_f1_threshold(outcomes, risk) is None
    assert precision_recall_curve(outcomes, risk) == ()


def test_the_curve_rises_in_recall_and_is_short() -> None:
    rng = np.random.default_rng(0)
    risk = rng.random(5000)
    curve = precision_recall_curve((rng.random(5000) < risk).astype(float), risk)
    recalls = [recall for recall, _ in curve]
    assert recalls == sorted(recalls)
    assert (recalls[0], recalls[-1]) == (0.0, 1.0)
    assert len(curve) <= 200
