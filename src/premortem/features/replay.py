"""History played back in order of time, in one pass for many jobs or event by event, live.

A row at a moment sees what happened before that second, and nothing of the second itself: not the
job's own submission, nor another's end at the same tick. Events of one second are therefore applied
together, submissions before starts before ends, jobs by their key; no order of arrival can matter.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile, ZipFile

import numpy as np
import polars as pl

from premortem.errors import InvalidInput, NotFound
from premortem.features import kernels, layout, memory
from premortem.features.facts import Array, Facts, facts_of, facts_of_one, traits_of_one
from premortem.features.points import Point
from premortem.features.usage import usage_of, usage_of_one

EventKind = Literal["submit", "start", "end"]
_KINDS: dict[str, int] = {
    "submit": kernels.SUBMIT,
    "start": kernels.START,
    "end": kernels.END,
}
_JobKey = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of features at one point, for the jobs that are in its population.

    `values` has a column for each feature of the catalogue, or for each that was asked for.
    `jobs` are the places of those jobs in the frame they came from, in its order; `moments` are
    when each row was made, in seconds since 1970.
    """

    values: Array
    jobs: Array
    moments: Array


@dataclass(frozen=True, slots=True)
class _Event:
    """Something that happened to a job, waiting for its second to be over."""

    at: float
    kind: int
    key: _JobKey
    groups: Array
    facts: Array

    def order(self) -> tuple[float, int, _JobKey]:
        return self.at, self.kind, self.key


class Replay:
    """The state of history up to a moment; `zone` is that of the site's clock.

    Batch: `rows` plays whole logs. Live: `observe` events as they become known and ask for a `row`
    at any time; both run the same kernels and give the same numbers, bit for bit. A moment asked
    for must not lie before one asked for earlier.
    """

    def __init__(self, zone: str = "UTC") -> None:
        self.zone = zone
        self._forget()

    def _forget(self) -> None:
        self._places: list[dict[str, int]] = [{} for _ in range(layout.GROUPS)]
        # Place 0 is that of a group never heard of.
        self._memory = _blank(1)
        self._waiting: list[_Event] = []
        self._kept: dict[_JobKey, Array] = {}

    def rows(
        self,
        jobs: pl.DataFrame,
        point: Point,
        *,
        only: Array | None = None,
        columns: Sequence[int] | None = None,
        as_of: Array | None = None,
        facts: Facts | None = None,
    ) -> Rows:
        """Play all these labelled jobs from the beginning, and give their rows at the point.

        With `only`, a truth value for each job, the others are played without a row of their own.
        With `columns`, places in the catalogue, the rows have no others: less memory to fill.
        With `as_of`, seconds since 1970 for each job or NaN, those still running that are past the
        point then have a row as of then.
        `facts` are those of these jobs by this zone, where they have been made already.
        What was played or observed before is forgotten: a log must not become its own past. The
        state is then that after the last of their events, for live use to go on from.
        """
        self._forget()
        if facts is None:
            facts = facts_of(jobs, zone=self.zone)
        groups = self._groups(facts.names)
        moments = _moments(facts, point)
        if as_of is not None and _is_running(point):
            runs = np.isnan(facts.ended) & (moments < np.floor(as_of))
            moments = np.where(runs, np.floor(as_of), moments)
        asked = np.flatnonzero(~np.isnan(moments) & (True if only is None else only))
        kinds, who, when, out = _actions(facts, asked, moments)
        wanted = _ALL if columns is None else np.array(columns, dtype=np.int64)
        rows = np.empty((len(asked), len(wanted)), dtype=np.float32)
        kept = np.full((len(facts.values), layout.KEPT), np.nan, dtype=np.float32)
        elapsed = _elapsed(point, moments[asked] - facts.started[asked])
        kernels.run(
            kinds, who, when, out, elapsed, groups, facts.values, kept, self._memory,
            _blank_row(), wanted, rows,
        )  # fmt: skip
        _add_own(rows, wanted, jobs, facts, asked, moments[asked], elapsed)
        for job in np.flatnonzero(np.isnan(facts.ended)):
            self._kept[_key(jobs.row(int(job), named=True))] = kept[job].copy()
        return Rows(rows, asked, moments[asked])

    def observe(self, kind: EventKind, job: Mapping[str, Any], at: datetime) -> None:
        """Tell of an event of a labelled job. Events may come in any order within a second."""
        facts, names = facts_of_one(job, zone=self.zone)
        groups = np.array([self._place(g, name) for g, name in enumerate(names)], dtype=np.int64)
        # A clock that jumped back does not let a job start or end before it began.
        earliest = [facts[layout.SUBMITTED_AT], _second(at)]
        if kind == "end" and job.get("start_time") is not None:
            earliest.append(_second(job["start_time"]))
        self._waiting.append(_Event(max(earliest), _KINDS[kind], _key(job), groups, facts))

    def row(self, job: Mapping[str, Any], point: Point, at: datetime) -> Array:
        """The job's row at a point, `at` being the moment of it, or a later one of its run."""
        now = _second(at)
        self._catch_up(now)
        facts, names = facts_of_one(job, zone=self.zone)
        groups = np.array(
            [-1 if name is None else self._places[g].get(name, 0) for g, name in enumerate(names)],
            dtype=np.int64,
        )
        kept = self._kept.get(_key(job), _NOTHING_KEPT).copy()
        row = _blank_row()
        elapsed = _elapsed(point, np.array([now - _began(job)]))
        self._run(kernels.ROW, now, elapsed, groups, facts, kept, row)
        row[_SCRIPT] = traits_of_one(job)
        if _is_running(point):
            row[_USAGE] = usage_of_one(job, facts, now, elapsed[0])
        return row

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to a file, events still waiting included."""
        words = {
            "zone": self.zone,
            "places": self._places,
            "kept": [list(key) for key in self._kept],
            "waiting": [[event.at, event.kind, list(event.key)] for event in self._waiting],
        }
        arrays = {
            "memory": self._memory,
            "kept": _stacked(list(self._kept.values()), layout.KEPT).astype(np.float32),
            "groups": _stacked([e.groups for e in self._waiting], layout.GROUPS).astype(np.int64),
            "facts": _stacked([event.facts for event in self._waiting], layout.FACTS),
            "words": np.frombuffer(json.dumps(words).encode(), dtype=np.uint8),
        }
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        whole = Path(f"{os.fspath(path)}.part")
        whole.write_bytes(buffer.getvalue())
        whole.replace(path)

    @classmethod
    def restore(cls, path: str | os.PathLike[str]) -> Replay:
        """The state that was saved there, exactly."""
        try:
            with Path(path).open("rb") as file, ZipFile(file) as members:
                names = [name.removesuffix(".npy") for name in members.namelist()]
                arrays = {name: _array(members, f"{name}.npy") for name in names}
            words = json.loads(arrays["words"].tobytes())
        except FileNotFoundError as error:
            raise NotFound(f"there is no saved state at {path}") from error
        except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
            raise InvalidInput(f"{path} is not a saved state of the replay: {error}") from error
        if arrays["memory"].shape[1:] != (memory.WIDTH,):
            raise InvalidInput(f"{path} was saved by another version: replay the history anew")
        replay = cls(words["zone"])
        replay._places = words["places"]
        replay._memory = arrays["memory"]
        keys = [(cluster, number, at) for cluster, number, at in words["kept"]]
        replay._kept = dict(zip(keys, arrays["kept"], strict=True))
        replay._waiting = [
            _Event(at, kind, (key[0], key[1], key[2]), groups, facts)
            for (at, kind, key), groups, facts in zip(
                words["waiting"], arrays["groups"], arrays["facts"], strict=True
            )
        ]
        return replay

    def _catch_up(self, now: float) -> None:
        """Apply what happened before this second, in its proper order."""
        due = sorted((e for e in self._waiting if e.at < now), key=_Event.order)
        if not due:
            return
        self._waiting = [event for event in self._waiting if event.at >= now]
        row = _blank_row()
        for event in due:
            kept = self._kept.setdefault(event.key, _NOTHING_KEPT.copy())
            self._run(event.kind, event.at, _NOT_RUNNING, event.groups, event.facts, kept, row)
            if event.kind == kernels.END:
                del self._kept[event.key]

    def _run(
        self,
        kind: int,
        at: float,
        elapsed: Array,
        groups: Array,
        facts: Array,
        kept: Array,
        row: Array,
    ) -> None:
        kernels.run(
            np.array([kind]), _FIRST, np.array([at]), _FIRST, elapsed,
            groups[None, :], facts[None, :], kept[None, :], self._memory,
            row, _NONE, row[None, :],
        )  # fmt: skip

    def _place(self, group: int, name: str | None) -> int:
        """A group's place in memory, made if it was not heard of before; -1 for no group."""
        if name is None:
            return -1
        known = self._places[group]
        if name not in known:
            known[name] = 1 + sum(map(len, self._places))
            self._grow(known[name] + 1)
        return known[name]

    def _groups(self, names: pl.DataFrame) -> Array:
        """Each job's places in memory, by whole columns."""
        places = np.full((names.height, layout.GROUPS), -1, dtype=np.int64)
        total = 1 + sum(map(len, self._places))
        for group, known in enumerate(self._places):
            column = names[str(group)]
            for name in column.drop_nulls().unique(maintain_order=True):
                if name not in known:
                    known[name] = total
                    total += 1
            if known:
                found = column.replace_strict(
                    list(known), list(known.values()), default=-1, return_dtype=pl.Int64
                )
                places[:, group] = found.fill_null(-1).to_numpy()
        self._grow(total)
        return places

    def _grow(self, needed: int) -> None:
        if needed > len(self._memory):
            grown = _blank(max(needed, 2 * len(self._memory)))
            grown[: len(self._memory)] = self._memory
            self._memory = grown


_FIRST = np.array([0])
_ALL, _NONE = np.arange(layout.ROW_WIDTH), np.arange(0)
_NOT_RUNNING = np.array([np.nan])
_NOTHING_KEPT = np.full(layout.KEPT, np.nan, dtype=np.float32)


_SCRIPT = slice(layout.SCRIPT_AT, layout.SCRIPT_AT + layout.SCRIPT_WIDTH)
_USAGE = slice(layout.USAGE_AT, layout.USAGE_AT + layout.USAGE_WIDTH)


def _is_running(point: Point) -> bool:
    return point.after_start_s is not None and point.after_start_s > 0


def _add_own(
    rows: Array,
    wanted: Array,
    jobs: pl.DataFrame,
    facts: Facts,
    asked: Array,
    moments: Array,
    elapsed: Array,
) -> None:
    """Add what needs no history: traits of scripts, and samples taken by then."""
    usage = None
    if any(elapsed > 0) and any(wanted >= layout.USAGE_AT):
        usage = usage_of(jobs[asked], facts.values[asked], moments, elapsed)
    traits = facts.traits[facts.scripts[asked]]
    for column, place in enumerate(wanted):
        if place >= layout.USAGE_AT:
            rows[:, column] = np.nan if usage is None else usage[:, place - layout.USAGE_AT]
        elif place >= layout.SCRIPT_AT:
            rows[:, column] = traits[:, place - layout.SCRIPT_AT]


def _blank_row() -> Array:
    return np.full(layout.ROW_WIDTH, np.nan, dtype=np.float32)


def _blank(places: int) -> Array:
    fresh = np.zeros((places, memory.WIDTH))
    fresh[:, list(memory.UNKNOWN_AT_FIRST)] = np.nan
    return fresh


def _array(members: ZipFile, name: str) -> Array:
    with members.open(name) as member:
        found: Array = np.lib.format.read_array(member, allow_pickle=False)
    return found


def _stacked(rows: list[Array], width: int) -> Array:
    return np.stack(rows) if rows else np.empty((0, width))


def _elapsed(point: Point, ran: Array) -> Array:
    """How long jobs have run at their moments of a point; NaN before their start."""
    return ran if point.after_start_s is not None else np.full(len(ran), np.nan)


def _began(job: Mapping[str, Any]) -> float:
    """When the replay takes a job to have started: not before its submission."""
    submitted, started = job["submit_time"], job.get("start_time")
    return max(_second(started), _second(submitted)) if started else _second(submitted)


def _second(at: datetime) -> float:
    return float(int(at.timestamp()))


def _key(job: Mapping[str, Any]) -> _JobKey:
    return str(job["cluster"]), int(job["job_id"]), int(job["submit_time"].timestamp())


def _moments(facts: Facts, point: Point) -> Array:
    """When each job's row at a point is made; NaN for jobs that are not in its population."""
    if point.after_start_s is None:
        return facts.submitted
    moments = facts.started + point.after_start_s
    if point.after_start_s > 0:
        still_running = np.isnan(facts.ended) | (facts.ended > moments)
        moments = np.where(still_running, moments, np.nan)
    return moments


def _actions(facts: Facts, asked: Array, moments: Array) -> tuple[Array, Array, Array, Array]:
    """Events and rows, in the order in which they are to be carried out.

    The last array tells which row an action writes, -1 for an event. Within a second rows come
    first, then submissions, starts and ends, each by the jobs' keys: in that order they are put one
    after the other here, and sorting by time alone leaves them so.
    """
    row_of = np.full(len(facts.order), -1)
    row_of[asked] = np.arange(len(asked))
    by_key = np.empty(len(facts.order), dtype=np.int64)
    by_key[facts.order - 1] = np.arange(len(facts.order))
    kinds, who, when = [], [], []
    for kind, times in (
        (kernels.ROW, np.where(row_of >= 0, moments, np.nan)),
        (kernels.SUBMIT, facts.submitted),
        (kernels.START, facts.started),
        (kernels.END, facts.ended),
    ):
        jobs = by_key[~np.isnan(times[by_key])]
        kinds.append(np.full(len(jobs), kind))
        who.append(jobs)
        when.append(times[jobs])
    all_kinds, all_who, all_when = map(np.concatenate, (kinds, who, when))
    out = np.where(all_kinds == kernels.ROW, row_of[all_who], -1)
    order = np.argsort(all_when, kind="stable")
    return all_kinds[order], all_who[order], all_when[order], out[order]
