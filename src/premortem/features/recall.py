"""A job's row of features, from its facts and what is remembered; only `kernels` calls this."""

from __future__ import annotations

import numpy as np
from numba import njit

from premortem.features import layout as L
from premortem.features import memory as M
from premortem.features.remember import Array, faded, sizes


@njit()
def look_back(now: float, groups: Array, facts: Array, memory: Array, kept: Array) -> None:
    """What the job's request looks like beside those before it, as seen at submission."""
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
        if m[M.LAST_OUTCOME] > 0:
            kept[at + L.RETRIED_UNCHANGED] = (
                _same(facts[L.CPUS], m[M.LAST_CPUS])
                and _same(facts[L.LIMIT], m[M.LAST_LIMIT])
                and _same(facts[L.MEMORY], m[M.LAST_MEMORY])
            )
    place = groups[L.PARTITION] if groups[L.PARTITION] >= 0 else groups[L.CLUSTER]
    asked = sizes(facts)
    for k in range(L.OF_LARGEST):
        largest = memory[place, M.LARGEST + k]
        kept[L.OF_LARGEST_AT + k] = asked[k] / largest if largest > 0 else np.nan
    kept[L.LIKENESS_AT] = np.nan
    if groups[L.USER] >= 0:
        last = memory[groups[L.USER], M.LAST_PATH : M.LAST_PATH + L.PATH_DEPTH]
        kept[L.LIKENESS_AT] = _likeness(facts[L.PATH : L.PATH + L.PATH_DEPTH], last)


@njit()
def _same(one: float, other: float) -> bool:
    return one == other or (np.isnan(one) and np.isnan(other))


@njit()
def _likeness(path: Array, other: Array) -> float:
    """The share of the longer path's parts that the two begin with in common."""
    if np.isnan(path[0]) or np.isnan(other[0]):
        return np.nan
    alike, depth = 0, 0
    for k in range(len(path)):
        if not (np.isnan(path[k]) and np.isnan(other[k])):
            depth += 1
        if path[k] == other[k]:
            alike += 1
    return alike / depth


@njit()
def write_row(
    now: float,
    elapsed: float,
    groups: Array,
    facts: Array,
    kept: Array,
    memory: Array,
    out: Array,
) -> None:
    """Write all features of a job as of now."""
    _request(facts, out)
    _calendar(facts[L.SUBMITTED_AT] + facts[L.UTC_OFFSET], out)
    # Until the second of its submission is over, nothing is kept of it yet.
    if np.isnan(elapsed) or now <= facts[L.SUBMITTED_AT]:
        look_back(now, groups, facts, memory, kept)
    for k in range(len(kept)):
        out[L.LOOK_AT + k] = kept[k]
    _started(facts, elapsed, out)
    _groups(now, elapsed, groups, facts, memory, out)


@njit()
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


@njit()
def _roundness(value: float) -> float:
    """How often a number can be halved: people like powers of two."""
    if np.isnan(value) or value < 1:
        return np.nan
    halvings = 0.0
    while value % 2 == 0 and halvings < 20:
        value /= 2
        halvings += 1
    return halvings


@njit()
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


@njit()
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


@njit()
def _groups(
    now: float, elapsed: float, groups: Array, facts: Array, memory: Array, out: Array
) -> None:
    # Failure rates of each group: of all its jobs, of those that started, of those that ran as
    # long as this one has. A group that is not there hands on those of its parent.
    rates = np.empty((L.GROUPS, 3))
    for g in range(L.GROUPS):
        at = L.GROUPS_AT + g * L.GROUP_WIDTH
        parent = L.PARENTS[g]
        for k in range(3):
            rates[g, k] = rates[parent, k] if parent >= 0 else M.FIRST_GUESS
        unknown = groups[g] < 0 or (g == L.NODE and np.isnan(elapsed))
        if unknown:
            for k in range(L.GROUP_WIDTH):
                out[at + k] = np.nan
        else:
            _group(now, elapsed, rates[g], facts, memory[groups[g]], out[at:])


@njit()
def _group(now: float, elapsed: float, rates: Array, facts: Array, m: Array, out: Array) -> None:
    """One group's features; `rates` are its parent's, and then its own, shrunk toward those."""
    prior = rates[0]
    rate = _shrunk(m[M.FAILED], m[M.ENDED], prior)
    rates[0] = rate
    rates[1] = _survivors(0.0, rates[1], m)
    rates[2] = _survivors(elapsed, rates[2], m)
    hour, day, long = faded(now - m[M.FADED_AT])
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
        _shrunk(m[M.EARLY_FAILED], m[M.ENDED], prior * M.EARLY_PART),
        _shrunk(m[M.FAILED_AT_LIMIT], m[M.ENDED], prior * M.AT_LIMIT_PART),
        rates[1],
        rates[2],
        np.log1p(elapsed) - usual,
        np.log1p(facts[L.LIMIT]) - usual,
    )
    for k in range(len(values)):
        out[k] = values[k]


@njit()
def _shrunk(failed: float, ended: float, prior: float) -> float:
    return (failed + M.PRIOR_WEIGHT * prior) / (ended + M.PRIOR_WEIGHT)


@njit()
def _survivors(elapsed: float, prior: float, m: Array) -> float:
    """The failure rate of those that passed the last step this job has passed by now."""
    if np.isnan(elapsed):
        return np.nan
    step = 0
    for s in range(len(M.SURVIVAL_STEPS)):
        if elapsed >= M.SURVIVAL_STEPS[s]:
            step = s
    return _shrunk(m[M.SURVIVED_FAILED + step], m[M.SURVIVED + step], prior)
