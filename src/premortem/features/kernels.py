"""The compiled heart of the replay: one pass over events and rows in order of time.

Batch and live run this same code; live passes arrays of length one. Nothing here allocates or
knows names: places come from `memory` and `layout`. The compiled code is cached and made anew when
this file changes, but not when only those two do: touch this one after a change there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from premortem.features import layout as L
from premortem.features import memory as M

Array = Any

SUBMIT, START, END, ROW = 0, 1, 2, 3


@njit(cache=True)
def run(
    kinds: Array,
    jobs: Array,
    times: Array,
    out: Array,
    elapsed: float,
    groups: Array,
    facts: Array,
    kept: Array,
    memory: Array,
    rows: Array,
) -> None:
    """Carry out actions in the order given; a row asked for is written where `out` says.

    An action is an event of a job, or a request for its row at a moment; `elapsed` is how long the
    jobs have run by their rows' moments, NaN before their start. `groups` are each job's places in
    `memory`, -1 for none. `kept` holds what was seen at each job's own submission.
    """
    for i in range(len(kinds)):
        job = jobs[i]
        kind = kinds[i]
        if kind == ROW:
            _write_row(times[i], elapsed, groups[job], facts[job], kept[job], memory, rows[out[i]])
        elif kind == SUBMIT:
            _look_back(times[i], groups[job], facts[job], memory, kept[job])
            _submit(times[i], groups[job], facts[job], memory)
        elif kind == START:
            _start(groups[job], memory)
        else:
            _end(times[i], groups[job], facts[job], memory)


@njit(cache=True)
def _submit(now: float, groups: Array, facts: Array, memory: Array) -> None:
    for g in range(L.NODE):
        if groups[g] >= 0:
            m = memory[groups[g]]
            m[M.SUBMITTED] += 1
            m[M.PENDING] += 1
            m[M.LAST_SUBMIT] = now
            m[M.LAST_CPUS] = facts[L.CPUS]
            m[M.LAST_LIMIT] = facts[L.LIMIT]
            m[M.LAST_MEMORY] = facts[L.MEMORY]
            _average(m, M.USUAL_CPUS, M.CPUS_SEEN, np.log1p(facts[L.CPUS]))
            _average(m, M.USUAL_LIMIT, M.LIMIT_SEEN, np.log1p(facts[L.LIMIT]))


@njit(cache=True)
def _start(groups: Array, memory: Array) -> None:
    for g in range(L.GROUPS):
        if groups[g] >= 0:
            m = memory[groups[g]]
            m[M.PENDING] = max(0.0, m[M.PENDING] - 1) if g < L.NODE else 0.0
            m[M.RUNNING] += 1


@njit(cache=True)
def _end(now: float, groups: Array, facts: Array, memory: Array) -> None:
    started = facts[L.STARTED] > 0
    outcome = facts[L.OUTCOME]
    for g in range(L.GROUPS if started else L.NODE):
        if groups[g] < 0:
            continue
        m = memory[groups[g]]
        where = M.RUNNING if started else M.PENDING
        m[where] = max(0.0, m[where] - 1)
        if np.isnan(outcome):
            continue
        _fade(m, now)
        for place in (M.ENDED, M.HOUR_ALL, M.DAY_ALL, M.LONG_ALL):
            m[place] += 1
        m[M.LAST_END] = now
        m[M.LAST_OUTCOME] = outcome
        m[M.LAST_CAUSE] = facts[L.CAUSE]
        streak = 0.0 if np.isnan(m[M.STREAK]) else m[M.STREAK]
        if outcome > 0:
            for place in (M.FAILED, M.HOUR_FAILED, M.DAY_FAILED, M.LONG_FAILED):
                m[place] += 1
            m[M.LAST_FAILURE] = now
            m[M.STREAK] = max(streak, 0.0) + 1
        else:
            m[M.STREAK] = min(streak, 0.0) - 1
        if started:
            _learn_run(m, facts, outcome)


@njit(cache=True)
def _learn_run(m: Array, facts: Array, outcome: float) -> None:
    ran = facts[L.RAN]
    if np.isnan(ran):
        return
    share = ran / facts[L.LIMIT] if facts[L.LIMIT] > 0 else np.nan
    m[M.LAST_ELAPSED] = ran
    m[M.LAST_LIMIT_SHARE] = share
    _average(m, M.USUAL_ELAPSED, M.ELAPSED_SEEN, np.log1p(ran))
    _average(m, M.USUAL_LIMIT_SHARE, M.LIMIT_SHARE_SEEN, share)
    _average(m, M.USUAL_MEMORY_SHARE, M.MEMORY_SHARE_SEEN, facts[L.MEMORY_SHARE])
    if outcome > 0 and ran < M.EARLY_S:
        m[M.EARLY_FAILED] += 1
    if outcome > 0 and share >= M.AT_LIMIT_SHARE:
        m[M.FAILED_AT_LIMIT] += 1
    for s in range(len(M.SURVIVAL_STEPS)):
        if ran >= M.SURVIVAL_STEPS[s]:
            m[M.SURVIVED + s] += 1
            m[M.SURVIVED_FAILED + s] += outcome


@njit(cache=True)
def _average(m: Array, place: int, seen: int, value: float) -> None:
    if np.isnan(value):
        return
    m[seen] += 1
    if m[seen] == 1:
        m[place] = value
    else:
        m[place] += (value - m[place]) * max(1.0 / m[seen], M.LEAST_WEIGHT)


@njit(cache=True)
def _fade(m: Array, now: float) -> None:
    if not np.isnan(m[M.FADED_AT]):
        gone = now - m[M.FADED_AT]
        hour, day, long = _faded(gone)
        m[M.HOUR_ALL] *= hour
        m[M.HOUR_FAILED] *= hour
        m[M.DAY_ALL] *= day
        m[M.DAY_FAILED] *= day
        m[M.LONG_ALL] *= long
        m[M.LONG_FAILED] *= long
        now = max(now, m[M.FADED_AT])
    m[M.FADED_AT] = now


@njit(cache=True)
def _faded(gone: float) -> tuple[float, float, float]:
    if np.isnan(gone):
        return 0.0, 0.0, 0.0
    # An event heard of late lies before what has faded already; nothing grows back.
    gone = max(gone, 0.0)
    return (
        2.0 ** (-gone / M.HOUR_HALF_LIFE_S),
        2.0 ** (-gone / M.DAY_HALF_LIFE_S),
        2.0 ** (-gone / M.LONG_HALF_LIFE_S),
    )


@njit(cache=True)
def _look_back(now: float, groups: Array, facts: Array, memory: Array, kept: Array) -> None:
    """What the job's request looks like beside the one before it, as seen at submission."""
    for n in range(len(L.LOOKED_BACK)):
        at = n * L.LOOK_WIDTH
        for k in range(L.LOOK_WIDTH):
            kept[at + k] = np.nan
        place = groups[L.LOOKED_BACK[n]]
        if place < 0:
            continue
        m = memory[place]
        if np.isnan(m[M.LAST_SUBMIT]):
            continue
        kept[at + L.SINCE_SUBMIT] = now - m[M.LAST_SUBMIT]
        kept[at + L.CPUS_CHANGE] = np.log1p(facts[L.CPUS]) - np.log1p(m[M.LAST_CPUS])
        kept[at + L.LIMIT_CHANGE] = np.log1p(facts[L.LIMIT]) - np.log1p(m[M.LAST_LIMIT])
        kept[at + L.MEMORY_CHANGE] = np.log1p(facts[L.MEMORY]) - np.log1p(m[M.LAST_MEMORY])
        kept[at + L.CPUS_UNUSUAL] = np.log1p(facts[L.CPUS]) - m[M.USUAL_CPUS]
        kept[at + L.LIMIT_UNUSUAL] = np.log1p(facts[L.LIMIT]) - m[M.USUAL_LIMIT]


@njit(cache=True)
def _write_row(
    now: float,
    elapsed: float,
    groups: Array,
    facts: Array,
    kept: Array,
    memory: Array,
    out: Array,
) -> None:
    _request(facts, out)
    _calendar(facts[L.SUBMITTED_AT] + facts[L.UTC_OFFSET], out)
    # Until the second of its submission is over, nothing is kept of it yet.
    if np.isnan(elapsed) or now <= facts[L.SUBMITTED_AT]:
        _look_back(now, groups, facts, memory, kept)
    for k in range(len(kept)):
        out[L.LOOK_AT + k] = kept[k]
    _started(facts, elapsed, out)
    _groups(now, elapsed, groups, facts, memory, out)


@njit(cache=True)
def _request(facts: Array, out: Array) -> None:
    cpus, nodes, limit, memory = facts[L.CPUS], facts[L.NODES], facts[L.LIMIT], facts[L.MEMORY]
    values = (
        cpus,
        nodes,
        facts[L.TASKS],
        limit,
        memory,
        facts[L.GPUS],
        cpus / nodes if nodes > 0 else np.nan,
        facts[L.MEMORY_PER_CPU],
        cpus * limit / 3600.0,
        limit % 3600.0,
        limit % 86400.0,
        _roundness(cpus),
        facts[L.UNLIMITED],
        facts[L.IN_ARRAY],
        facts[L.DEPENDS],
        facts[L.PRIORITY],
    )
    for k in range(len(values)):
        out[L.REQUEST_AT + k] = values[k]


@njit(cache=True)
def _roundness(value: float) -> float:
    """How often a number can be halved: people like powers of two."""
    if np.isnan(value) or value < 1:
        return np.nan
    halvings = 0.0
    while value % 2 == 0 and halvings < 20:
        value /= 2
        halvings += 1
    return halvings


@njit(cache=True)
def _calendar(local: float, out: Array) -> None:
    """Hour, weekday, month, quarter and week of a local time."""
    if np.isnan(local):
        for k in range(5):
            out[L.CALENDAR_AT + k] = np.nan
        return
    day = int(np.floor(local / 86400.0))
    # The calendar counts from a first of March, so that leap days come last.
    shifted = day + 719468
    era = shifted // 146097
    of_era = shifted - era * 146097
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    leap = 1 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 0
    from_january = of_year - 306 if of_year >= 306 else of_year + 59 + leap
    out[L.CALENDAR_AT] = np.floor((local - day * 86400.0) / 3600.0)
    out[L.CALENDAR_AT + 1] = (day + 3) % 7
    out[L.CALENDAR_AT + 2] = month
    out[L.CALENDAR_AT + 3] = (month - 1) // 3 + 1
    out[L.CALENDAR_AT + 4] = from_january // 7 + 1


@njit(cache=True)
def _started(facts: Array, elapsed: float, out: Array) -> None:
    values = (
        facts[L.WAITED],
        facts[L.ALLOC_CPUS],
        facts[L.ALLOC_NODES],
        facts[L.ALLOC_CPUS] / facts[L.CPUS] if facts[L.CPUS] > 0 else np.nan,
        elapsed,
        elapsed / facts[L.LIMIT] if facts[L.LIMIT] > 0 else np.nan,
        facts[L.LIMIT] - elapsed,
    )
    before_start = np.isnan(elapsed)
    for k in range(len(values)):
        out[L.STARTED_AT + k] = np.nan if before_start else values[k]


@njit(cache=True)
def _groups(
    now: float, elapsed: float, groups: Array, facts: Array, memory: Array, out: Array
) -> None:
    rates = np.empty(L.GROUPS)
    for g in range(L.GROUPS):
        at = L.GROUPS_AT + g * L.GROUP_WIDTH
        parent = L.PARENTS[g]
        while parent >= 0 and groups[parent] < 0:
            parent = L.PARENTS[parent]
        prior = rates[parent] if parent >= 0 else 0.2
        rates[g] = prior
        unknown = groups[g] < 0 or (g == L.NODE and np.isnan(elapsed))
        if unknown:
            for k in range(L.GROUP_WIDTH):
                out[at + k] = np.nan
        else:
            rates[g] = _group(now, elapsed, prior, facts, memory[groups[g]], out[at:])


@njit(cache=True)
def _group(now: float, elapsed: float, prior: float, facts: Array, m: Array, out: Array) -> float:
    """One group's features; returns its failure rate, shrunk toward its parent's."""
    rate = _shrunk(m[M.FAILED], m[M.ENDED], prior)
    hour, day, long = _faded(now - m[M.FADED_AT])
    usual = m[M.USUAL_ELAPSED]
    values = (
        m[M.ENDED],
        rate,
        _shrunk(m[M.DAY_FAILED] * day, m[M.DAY_ALL] * day, rate),
        _shrunk(m[M.LONG_FAILED] * long, m[M.LONG_ALL] * long, rate),
        m[M.HOUR_FAILED] * hour,
        m[M.HOUR_ALL] * hour,
        m[M.LAST_OUTCOME],
        m[M.LAST_CAUSE],
        m[M.STREAK],
        now - m[M.LAST_END],
        now - m[M.LAST_FAILURE],
        m[M.PENDING],
        m[M.RUNNING],
        usual,
        m[M.USUAL_LIMIT_SHARE],
        m[M.USUAL_MEMORY_SHARE],
        m[M.LAST_ELAPSED],
        m[M.LAST_LIMIT_SHARE],
        _shrunk(m[M.EARLY_FAILED], m[M.ENDED], prior * 0.5),
        _shrunk(m[M.FAILED_AT_LIMIT], m[M.ENDED], prior * 0.2),
        _survivors(elapsed, prior, m),
        np.log1p(elapsed) - usual,
        np.log1p(facts[L.LIMIT]) - usual,
    )
    for k in range(len(values)):
        out[k] = values[k]
    return rate


@njit(cache=True)
def _shrunk(failed: float, ended: float, prior: float) -> float:
    return (failed + M.PRIOR_WEIGHT * prior) / (ended + M.PRIOR_WEIGHT)


@njit(cache=True)
def _survivors(elapsed: float, prior: float, m: Array) -> float:
    """The failure rate of those that ran at least as long as this job has by now."""
    if np.isnan(elapsed):
        return np.nan
    rate = prior
    for s in range(len(M.SURVIVAL_STEPS)):
        if elapsed >= M.SURVIVAL_STEPS[s]:
            rate = _shrunk(m[M.SURVIVED_FAILED + s], m[M.SURVIVED + s], prior)
    return rate
