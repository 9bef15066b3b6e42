"""A budget of calls holds in every minute, whenever and however often one asks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staged_cluster import most_in_a_minute

from premortem.errors import InvalidInput
from premortem.operations.budgets import Budget

PAUSES = st.lists(st.floats(0, 100), max_size=60)


class Clock:
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@given(per_minute=st.integers(1, 8), pauses=PAUSES, begin=st.floats(0, 1e9))
def test_no_minute_has_more_calls_when_asked_first(
    per_minute: int, pauses: list[float], begin: float
) -> None:
    clock = Clock(begin)
    budget, made = Budget(per_minute, clock), []
    for pause in pauses:
        clock.now += pause
        if budget.left:
            budget.spend()
            made.append(clock.now)
    assert most_in_a_minute(made) <= per_minute


@given(per_minute=st.integers(1, 8), pauses=PAUSES, begin=st.floats(0, 1e9))
def test_nor_when_one_waits_as_long_as_told_and_then_may_ask(
    per_minute: int, pauses: list[float], begin: float
) -> None:
    clock = Clock(begin)
    budget, made = Budget(per_minute, clock), []
    for pause in pauses:
        clock.now += pause
        clock.now += budget.wait_s
        assert budget.left, "the wait was long enough"
        assert budget.wait_s == 0
        budget.spend()
        made.append(clock.now)
    assert most_in_a_minute(made) <= per_minute


@given(spent=st.integers(0, 30))
def test_what_was_spent_beyond_it_is_owed(spent: int) -> None:
    clock = Clock()
    budget = Budget(6, clock)
    budget.spend(spent)
    assert budget.left == max(0, 6 - spent)
    assert 0 <= budget.wait_s <= 60.1
    clock.now = 60.5
    assert budget.left == 6


@pytest.mark.parametrize("per_minute", [0, -1])
def test_none_at_all_is_no_budget(per_minute: int) -> None:
    with pytest.raises(InvalidInput, match="calls a minute"):
        Budget(per_minute)
