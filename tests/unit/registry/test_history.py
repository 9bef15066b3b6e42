"""Which champion came before, whatever happened in between."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from premortem.errors import Conflict
from premortem.registry.history import Action, Event, champion_before, event_from

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def promoted(*versions: int, alias: str = "champion") -> list[Event]:
    return [Event(NOON, Action.PROMOTED, version, alias) for version in versions]


def rolled_back(version: int) -> Event:
    return Event(NOON, Action.ROLLED_BACK, version, "champion")


def before(history: list[Event], current: int | None, numbers: set[int] | None = None) -> int:
    return champion_before(history, current=current, numbers=numbers or set(range(1, 10)))


def test_an_event_is_kept_as_json() -> None:
    for event in (*promoted(7), Event(NOON, Action.DELETED, 7)):
        assert event_from(event.as_dict()) == event


@pytest.mark.parametrize(
    "garbage",
    [
        None, [], {}, {"version": 1}, {"version": "1", "at": "2026-01-05T12:00:00Z"},
        {"version": True, "at": "2026-01-05T12:00:00Z", "action": "promoted"},
        {"version": 1, "at": "2026-01-05T12:00:00", "action": "promoted"},
        {"version": 1, "at": 5, "action": "promoted"},
        {"version": 1, "at": "2026-01-05T12:00:00Z", "action": "sung"},
        {"version": 1, "at": "2026-01-05T12:00:00Z", "action": "promoted", "alias": 3},
    ],
)  # fmt: skip
def test_garbage_is_no_event(garbage: object) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        event_from(garbage)


def test_an_alias_moved_behind_our_back_counts() -> None:
    assert before(promoted(1, 2), current=5) == 2


def test_an_alias_removed_behind_our_back_comes_back() -> None:
    assert before(promoted(1, 2), current=None) == 2


def test_the_challengers_promotions_do_not_count() -> None:
    with pytest.raises(Conflict):
        before([*promoted(1), *promoted(2, alias="challenger")], current=1)


def test_going_back_and_forth() -> None:
    history = [*promoted(1, 2, 3), rolled_back(2)]
    assert before(history, current=2) == 1
    assert before([*history, *promoted(3)], current=3) == 2


@given(promotions=st.lists(st.integers(1, 6), min_size=1, max_size=10), steps=st.integers(1, 12))
def test_each_roll_back_undoes_one_change_of_champion(promotions: list[int], steps: int) -> None:
    changes = [v for i, v in enumerate(promotions) if i == 0 or promotions[i - 1] != v]
    history, current = promoted(*promotions), promotions[-1]
    for expected in reversed(changes[:-1][-steps:]):
        current = before(history, current)
        assert current == expected
        history.append(rolled_back(current))
    if steps >= len(changes):
        with pytest.raises(Conflict, match="no earlier champion"):
            before(history, current)
