"""What is remembered of events, group by group; compiled code that only `kernels` calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from premortem.features import layout as L
from premortem.features import memory as M

Array = Any


@njit()
def submit(now: float, groups: Array, facts: Array, memory: Array) -> None:
    """A job entered the queue. Its node is not known yet."""
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
            if g == L.USER:
                for k in range(L.PATH_DEPTH):
                    m[M.LAST_PATH + k] = facts[L.PATH + k]


@njit()
def start(groups: Array, facts: Array, memory: Array) -> None:
    """A job began to run."""
    for g in range(L.GROUPS):
        if groups[g] >= 0:
            m = memory[groups[g]]
            m[M.PENDING] = max(0.0, m[M.PENDING] - 1) if g < L.NODE else 0.0
            m[M.RUNNING] += 1
            if g in (L.CLUSTER, L.PARTITION):
                asked = sizes(facts)
                for k in range(L.OF_LARGEST):
                    m[M.LARGEST + k] = np.fmax(m[M.LARGEST + k], asked[k])


@njit()
def end(now: float, groups: Array, facts: Array, memory: Array) -> None:
    """A job ended, whether it had started or not; only now its outcome is known."""
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
        if started or facts[L.RAN] > 0:
            _learn_run(m, facts, outcome)


@njit()
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


@njit()
def _average(m: Array, place: int, seen: int, value: float) -> None:
    """Take a value into a slow average: weighed by 1/n, but never by less than a tenth."""
    if np.isnan(value):
        return
    m[seen] += 1
    if m[seen] == 1:
        m[place] = value
    else:
        m[place] += (value - m[place]) * max(1.0 / m[seen], M.LEAST_WEIGHT)


@njit()
def _fade(m: Array, now: float) -> None:
    if not np.isnan(m[M.FADED_AT]):
        gone = now - m[M.FADED_AT]
        hour, day, long = faded(gone)
        m[M.HOUR_ALL] *= hour
        m[M.HOUR_FAILED] *= hour
        m[M.DAY_ALL] *= day
        m[M.DAY_FAILED] *= day
        m[M.LONG_ALL] *= long
        m[M.LONG_FAILED] *= long
        now = max(now, m[M.FADED_AT])
    m[M.FADED_AT] = now


@njit()
def faded(gone: float) -> tuple[float, float, float]:
    """What is left of sums of each speed after so many seconds."""
    if np.isnan(gone):
        return 0.0, 0.0, 0.0
    # An event heard of late lies before what has faded already; nothing grows back.
    gone = max(gone, 0.0)
    return (
        2.0 ** (-gone / M.HOUR_HALF_LIFE_S),
        2.0 ** (-gone / M.DAY_HALF_LIFE_S),
        2.0 ** (-gone / M.LONG_HALF_LIFE_S),
    )


@njit()
def sizes(facts: Array) -> tuple[float, float, float, float, float]:
    """What of a request is held against the largest seen."""
    nodes = facts[L.NODES] if facts[L.NODES] > 0 else np.nan
    return (
        facts[L.CPUS],
        facts[L.LIMIT],
        facts[L.MEMORY],
        facts[L.CPUS] / nodes,
        facts[L.MEMORY] / nodes,
    )
