"""Thresholds: what they catch and cost, and how one is chosen."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from premortem.errors import InvalidInput
from premortem.training import metrics
from premortem.training.thresholds import (
    NEVER,
    OutOfReach,
    Trade,
    chosen,
    false_alarm_cost,
    trade_of,
)

# Ten jobs by rising risk; the failed ones spent 1, 10 and 100 core-hours.
RISK = np.arange(10) / 10
FAILED = np.array([0, 0, 0, 1, 0, 0, 1, 0, 0, 1.0])
SPENT = np.array([5, 5, 5, 1, 5, 5, 10, 5, 5, 100.0])
TRADE = trade_of(FAILED, RISK, SPENT)


def at(value: float) -> int:
    return TRADE.thresholds.index(value)


def test_what_a_threshold_catches_and_costs() -> None:
    place = at(0.6)
    assert (TRADE.caught[place], TRADE.false_alarms[place]) == (2, 2)
    assert TRADE.precision(place) == 0.5
    assert TRADE.recall(place) == pytest.approx(2 / 3)
    assert TRADE.missed_core_hours[place] == 1
    assert TRADE.cost(place, 3.0) == 1 + 2 * 3
    assert TRADE.missed_core_hours[at(0.9)] == 11


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 300))
def test_the_numbers_are_those_of_the_metrics(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    risk = np.round(rng.random(count), 2)
    outcomes = (rng.random(count) < 0.4).astype(float)
    trade = trade_of(outcomes, risk, np.ones(count))
    for place, threshold in enumerate(trade.thresholds):
        told = metrics.decided(outcomes, risk >= threshold)
        assert trade.precision(place) == pytest.approx(told.precision)
        assert trade.recall(place) == pytest.approx(told.recall)
        if told.f1 is not None:
            assert trade.f1(place) == pytest.approx(told.f1)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("f1", 0.3),
        ("0.25", 0.25),
        ("precision=1", 0.9),
        ("precision=0.5", 0.6),
        ("recall=1", 0.3),
        ("recall=0.6", 0.6),
        # A false alarm costs nothing: warn as rarely as catches all. It costs much: hardly warn.
        ("cost=0", 0.3),
        ("cost=6.0", 0.9),
    ],
)
def test_a_rule_gives_its_threshold(rule: str, value: float) -> None:
    assert chosen(TRADE, rule) == value


def test_a_rule_tells_what_a_false_alarm_is_worth() -> None:
    assert [false_alarm_cost(rule) for rule in ("cost=2.5", "cost", "f1", "0.3")] == [2.5, 1, 1, 1]
    assert chosen(TRADE, "cost") == chosen(TRADE, "cost=1")


@pytest.mark.parametrize(
    "rule", ["", "best", "precision", "precision=2", "recall=x", "1.5", "-1", "cost=-1", "cost="]
)
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(InvalidInput, match="not a rule"):
        chosen(TRADE, rule)


def test_what_no_threshold_reaches_is_told() -> None:
    poor = trade_of(1 - FAILED, RISK, SPENT)
    with pytest.raises(OutOfReach, match=r"no threshold has a precision of 0.95; the best is") as e:
        chosen(poor, "precision=0.95")
    best = max(poor.precision(at) or 0 for at in range(len(poor.thresholds)))
    nearest = poor.thresholds.index(chosen(poor, e.value.nearest))
    assert poor.precision(nearest) == pytest.approx(best, abs=0.001)


def test_it_can_be_written_down() -> None:
    assert Trade.from_dict(json.loads(json.dumps(TRADE.as_dict(), allow_nan=False))) == TRADE
    with pytest.raises(InvalidInput, match=r"cannot be read .*: train it anew"):
        Trade.from_dict({"thresholds": [0.5]})


def test_the_first_step_warns_of_all_and_the_last_of_none() -> None:
    certain = trade_of(FAILED, np.append(RISK[1:], 1.0), SPENT)
    for trade in (TRADE, certain):
        assert (trade.thresholds[0], trade.thresholds[-1]) == (0.0, NEVER)
        assert trade.caught[0] + trade.false_alarms[0] == trade.jobs
        assert (trade.caught[-1], trade.false_alarms[-1]) == (0, 0)
        assert trade.missed_core_hours[-1] == 111
        assert trade.precision(len(trade.thresholds) - 1) is None


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 150), st.decimals(0, 50, places=2))
def test_no_threshold_is_cheaper_than_the_one_chosen_by_cost(
    seed: int, count: int, false_alarm: Decimal
) -> None:
    rng = np.random.default_rng(seed)
    risk, failed = rng.random(count), rng.random(count) < 0.4
    spent = rng.exponential(2.0, count)

    def cost(threshold: float) -> float:
        missed, alarms = failed & (risk < threshold), ~failed & (risk >= threshold)
        return float(spent[missed].sum() + float(false_alarm) * alarms.sum())

    found = chosen(trade_of(failed * 1.0, risk, spent), f"cost={false_alarm}")
    cheapest = min(cost(value) for value in (*risk, 0.0, NEVER))
    assert cost(found) == pytest.approx(cheapest)


def test_where_failures_cost_little_it_is_cheapest_never_to_warn() -> None:
    trade = trade_of(np.array([0.0, 1, 0, 1, 0]), np.arange(5) / 5, np.full(5, 0.1))
    assert chosen(trade, "cost=5") == NEVER


@pytest.mark.parametrize(
    ("threshold", "place"), [(0.0, 0), (0.25, at(0.3)), (0.3, at(0.3)), (0.95, -1), (NEVER, -1)]
)
def test_a_threshold_between_two_steps_warns_as_the_higher_one(
    threshold: float, place: int
) -> None:
    assert TRADE.place(threshold) == place % len(TRADE.thresholds)
