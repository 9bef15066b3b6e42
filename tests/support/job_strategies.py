"""Random job records for property tests, made from the table of fields."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
from hypothesis import strategies as st

from premortem.jobs.fields import FIELDS, KEY, Field, Kind
from premortem.jobs.frame import SCHEMA
from premortem.jobs.states import STATES, Progress

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)

# Whatever a user can put into a name, quotes, pipes and other scripts included.
texts = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=12
)
times = st.integers(0, 10**8).map(lambda seconds: EPOCH + timedelta(seconds=seconds))


def values(field: Field) -> st.SearchStrategy[Any]:
    """Values a field may hold."""
    if field.name == "state":
        return st.sampled_from(sorted(STATES))
    match field.kind:
        case Kind.INTEGER:
            least, most = int(field.least or 0), int(min(field.most or 0, 2**62))
            return st.integers(max(least, -(2**31)), most)
        case Kind.NUMBER:
            return st.floats(0, 1e9, allow_nan=False)
        case Kind.TEXT:
            return texts
        case Kind.FLAG:
            return st.booleans()
        case Kind.TIME:
            return times


@st.composite
def jobs(draw: st.DrawFn, *, ids: st.SearchStrategy[int] = st.integers(1, 10**6)) -> dict[str, Any]:
    """One record: its key, and some of the other fields."""
    record: dict[str, Any] = {
        "cluster": draw(st.sampled_from(["alpha", "beta"])),
        "job_id": draw(ids),
        "submit_time": draw(times),
    }
    others = [field for field in FIELDS if field.name not in KEY]
    for field in draw(st.lists(st.sampled_from(others), unique=True, max_size=12)):
        record[field.name] = draw(values(field))
    return record


def key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in KEY)


distinct_jobs = st.lists(jobs(), min_size=1, max_size=12, unique_by=key_of)


@st.composite
def lives(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Honest sightings of one job: what it asked for never changes, what it did only grows.

    Each sighting leaves out some of what it could tell.
    """
    truth = {field.name: draw(values(field)) for field in FIELDS}
    truth["state"] = draw(st.sampled_from(sorted(s for s in STATES if STATES[s] is Progress.ENDED)))
    sightings = []
    for progress in draw(st.lists(st.sampled_from(Progress), min_size=1, max_size=5)):
        state = truth["state"] if progress is Progress.ENDED else progress.name
        sighting = {"state": state}
        if draw(st.booleans()):
            sighting["reason"] = f"reason to be {state}"
        for field in FIELDS:
            told = field.name in KEY or draw(st.booleans())
            if field.name in ("state", "reason") or not told:
                continue
            known = field.known <= (0, 2, 3)[progress]
            value = truth[field.name]
            if known and field.known == 2 and progress is Progress.RUNNING:
                value = value * draw(st.sampled_from([0, 0.25, 0.5]))
                value = int(value) if field.kind is Kind.INTEGER else value
            if known:
                sighting[field.name] = value
        sightings.append(sighting)
    return sightings


def frame(records: list[dict[str, Any]]) -> pl.DataFrame:
    """Records as a job frame with every column."""
    return pl.DataFrame(
        {name: [record.get(name) for record in records] for name in SCHEMA}, schema=SCHEMA
    )
