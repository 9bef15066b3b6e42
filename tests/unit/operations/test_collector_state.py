"""What a collector remembers survives in the store, whatever version wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from premortem.operations.collector_state import NOTE, CollectorState, Counters, moment
from premortem.stores import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield opened
    opened.close()


def test_it_is_as_it_was(store: Store) -> None:
    assert CollectorState.load(store) is None
    state = CollectorState(
        clusters=["lab"],
        watermark="2026-01-05T12:00:00+00:00",
        problems={"slurmdbd": "no answer"},
        answered={"slurmctld": "2026-01-05T12:00:00+00:00"},
        ahead_s=7.5,
        open=3,
        counters=Counters(rounds=2, new=5),
    )
    state.save(store)
    assert CollectorState.load(store) == state
    state.open = 0
    state.save(store)
    assert CollectorState.load(store) == state


def test_what_another_version_knew_or_did_not_know(store: Store) -> None:
    told = {
        "watermark": "2026-01-05T12:00:00+00:00",
        "mood": "fine",
        "counters": {"new": 3, "x": 1},
    }
    store.set_note(NOTE, json.dumps(told))
    state = CollectorState.load(store)
    assert state == CollectorState(watermark=told["watermark"], counters=Counters(new=3))  # type: ignore[arg-type]
    del told["counters"]
    store.set_note(NOTE, json.dumps(told))
    assert CollectorState.load(store) == CollectorState(watermark=told["watermark"])  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '{"counters": 5}'])
def test_what_makes_no_sense_is_as_nothing(store: Store, text: str) -> None:
    store.set_note(NOTE, text)
    assert CollectorState.load(store) is None


def test_counters_add_up_and_times_are_read() -> None:
    both = Counters(rounds=1, new=2) + Counters(rounds=1, scripts=4)
    assert both == Counters(rounds=2, new=2, scripts=4)
    assert both.as_dict()["scripts"] == 4
    assert moment(None) is None
    assert moment("2026-01-05T12:00:00+00:00") == datetime(2026, 1, 5, 12, tzinfo=UTC)
