"""Sentences about other jobs like a job: how they ended, how long they ran, what they asked for.

Of a topic's features the most telling one is spoken of, in the words its table has for it. What has
nothing to say returns None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from premortem.features.memory import EARLY_S, FIRST_GUESS
from premortem.jobs.outcomes import Cause
from premortem.prediction.phrases import Tally, Told, duration, many, memory, percent

# Of this many jobs a share says more than a count.
_TOO_MANY_TO_COUNT = 1000
# Of seconds or CPUs; what is larger is garbage.
_LARGEST_LOGARITHM = 25.0
# How far a number may be off that went through 32 bits.
_ROUNDING = 2.0**-23
# The groups of which it is known whether there were any before.
_LOOKED_BACK = ("user", "name", "executable", "shape")
_EARLY = f"within {duration(EARLY_S)}"
_HOW = {
    Cause.APPLICATION: "failed with an error",
    Cause.OUT_OF_MEMORY: "ran out of memory",
    Cause.TIME_LIMIT: "hit the time limit",
    Cause.NODE_FAILURE: "lost its node",
    Cause.CANCELLED: "was cancelled",
    Cause.CANCELLED_BEFORE_START: "was cancelled before it started",
    Cause.PREEMPTED: "was preempted",
    Cause.DEADLINE: "missed its deadline",
}
_HOW_BY_CODE = {code: _HOW[cause] for code, cause in enumerate(Cause, start=1)}


def outcomes(told: Told, group: str) -> str | None:
    """How the jobs of a group ended: what of it agrees with the effect, or else bare numbers.

    >>> values = {"user_streak": -3.0, "cluster_failure_rate": 0.2}
    >>> told = Told(values, {"user": Tally(5, 0.4, 2)}, {}, ["user_streak"], raises=True)
    >>> outcomes(told, "user")
    '2 of your 5 jobs failed so far'
    >>> told = Told(values, {"user": Tally(5, 0.4, 2)}, {}, ["user_streak"], raises=False)
    >>> outcomes(told, "user")
    'the last 3 of your jobs all completed'
    """
    tally = told.tallies.get(group)
    if tally is None or tally.ended == 0:
        return None
    usual = told.values.get("cluster_failure_rate", FIRST_GUESS)
    agrees = group != "cluster" and tally.share != usual and (tally.share > usual) == told.raises
    if agrees and tally.ended == 1:
        return f"the only one of {told.jobs(group)} so far {_how(told, group)}"
    of = "" if agrees else f" of {told.jobs(group)}"
    details = (_DETAILS.get(name.removeprefix(f"{group}_")) for name in told.features)
    detail = next(filter(None, (tell(told, group, of) for tell in details if tell)), None)
    if agrees:
        return _share(told, group, tally) + (f"; {detail}" if detail else "")
    return detail or _bare(told, group, tally)


def _share(told: Told, group: str, tally: Tally) -> str:
    """Of a group's jobs those that failed, if that raises the risk; else those that completed."""
    verb = "failed" if told.raises else "completed"
    failed = tally.failed
    count = None if failed is None else failed if told.raises else tally.ended - failed
    if count == tally.ended:
        all_of = "both" if count == 2 else f"all {count:,}"
        text = f"{all_of} of {told.jobs(group)} {verb} so far"
    elif count is None or tally.ended >= _TOO_MANY_TO_COUNT:
        share = percent(tally.share if told.raises else 1 - tally.share, "about ")
        return f"{share} of {told.jobs(group, tally.ended)} {verb} so far"
    else:
        text = f"{count} of {told.jobs(group, tally.ended)} {verb} so far"
    some, when = max((tally.at_limit or 0, "at the time limit"), (tally.early or 0, _EARLY))
    if told.raises and 0 < count <= some * 4:
        which = "" if count == 1 else f"{'all' if some == count else f'{some:,}'} of them "
        text += f", {which}{when}"
    return text


def _bare(told: Told, group: str, tally: Tally) -> str:
    if tally.failed is None or tally.ended >= _TOO_MANY_TO_COUNT:
        failed = f"{percent(tally.share, 'about ')} of {tally.ended:,}"
    else:
        failed = f"{tally.failed} of {tally.ended}"
    return f"failures among {told.jobs(group)}: {failed} so far"


def _how(told: Told, group: str) -> str:
    """How the last of a group ended."""
    if told.values.get(f"{group}_last_outcome") == 0:
        return "completed"
    return _HOW_BY_CODE.get(round(told.values.get(f"{group}_last_cause", 0)), "failed")


# Details tell only what agrees with the effect; `of` is empty where the jobs were named already.


def _streak(told: Told, group: str, of: str) -> str | None:
    streak = round(told.values.get(f"{group}_streak", 0))
    if streak == 0 or (streak > 0) != told.raises:
        return None
    how = _how(told, group)
    special = how not in ("failed", "completed")
    if not of and abs(streak) >= told.tallies[group].ended:
        return f"the last one {how}" if special else None
    if abs(streak) == 1:
        return f"the last one{of} {how}"
    each = f"the last {abs(streak):,}{of} {'both' if abs(streak) == 2 else 'all'}"
    if streak < 0:
        return f"{each} completed"
    return f"{each} failed" + (f" (the latest {how})" if special else "")


def _since_failure(told: Told, group: str, of: str) -> str | None:
    since = told.values.get(f"{group}_since_failure_s", math.nan)
    if told.raises and since < 3600:
        return f"one{of} failed {duration(since)} ago"
    if not told.raises and since > 86_400:
        return f"none{of} has failed for {duration(since)}"
    return None


def _lately(told: Told, group: str, of: str) -> str | None:
    day = told.values.get(f"{group}_failure_rate_1d", math.nan)
    # The rate of the day is drawn to that of all days, and this to those of others: only what lies
    # beyond both is a change.
    both = told.tallies[group].share, told.values.get(f"{group}_failure_rate", math.nan)
    if told.raises and max(both) + 0.03 < day <= 1:
        return f"lately {percent(day, 'about ')}{of} failed, more than before"
    if not told.raises and 0 <= day < min(both) - 0.03:
        return f"lately {percent(day, 'about ')}{of} failed, less than before"
    return None


def _last_hours(told: Told, group: str, of: str) -> str | None:
    tally = told.tallies[group]
    ever = tally.ended if tally.failed is None else tally.failed
    failures, when = _since(told.values.get(f"{group}_failures_1h", 0), ever)
    if failures < 2 or not told.raises:
        return None
    return f"at least {failures:,}{of or ' of them'} failed in the last {when}"


def _since(faded: float, ever: float) -> tuple[int, str]:
    """At least how many of all there ever were happened lately, and within which time.

    Each counts for half after an hour, a quarter after two, and so on: all that are older together
    make up at most their number times that. The shortest time is told that loses none of them.

    >>> _since(6.9, ever=7), _since(6.4, ever=40), _since(6.4, ever=3000)
    ((7, 'hour'), (7, '8 hours'), (7, 'day'))
    """
    for hours in (1, 2, 4, 8, 24):
        old = 0.5**hours
        least = _whole((faded - ever * old) / (1 - old))
        if least >= _whole(faded):
            break
    return max(least, 0), {1: "hour", 24: "day"}.get(hours, f"{hours} hours")


def _whole(least: float) -> int:
    """The fewest that are no less, but for what rounding did."""
    return math.ceil(least * (1 - _ROUNDING) - 1e-3)


def _survivors(told: Told, group: str, of: str) -> str | None:
    usual = told.values.get("cluster_survivor_failure_rate", FIRST_GUESS)
    share = told.values.get(f"{group}_survivor_failure_rate", math.nan)
    both = told.tallies[group].share, usual
    if not (share > max(both) if told.raises else share < min(both)):
        return None
    return f"{percent(share, 'an estimated ')}{of or ' of those'} that run this long fail"


_DETAILS: Mapping[str, Callable[[Told, str, str], str | None]] = {
    "streak": _streak,
    "last_outcome": _streak,
    "last_cause": _streak,
    "since_failure_s": _since_failure,
    "failure_rate_1d": _lately,
    "failures_1h": _last_hours,
    "survivor_failure_rate": _survivors,
}


def history(told: Told, group: str) -> str | None:
    """What the most telling feature of a group says, of those that have words.

    >>> values = {"user_last_elapsed_s": 20.0}
    >>> history(Told(values, {}, {}, ["user_last_elapsed_s"], raises=True), "user")
    'the last of your jobs ran 20 s'
    """
    for name in told.features:
        tell = _BY_STATISTIC.get(name.removeprefix(f"{group}_"))
        text = tell(told, group, told.values[name]) if tell and name in told.values else None
        if text:
            return text
    return None


def seen(told: Told, group: str, _value: float = 0) -> str:
    """How many jobs of a group there were: this can be told of any."""
    ended = told.values.get(f"{group}_ended")
    if ended is None:
        return f"nothing is known of {told.jobs(group)}"
    if round(ended) > 0:
        return f"{round(ended):,} of {told.jobs(group)} ended so far"
    unended = sum(told.values.get(f"{group}_{state}", 0) for state in ("pending", "running"))
    preceded = f"{group}_since_submit_s" in told.values
    if group in _LOOKED_BACK and not preceded and unended < 2:
        return f"this is the first of {told.jobs(group)} seen here"
    return f"none of {told.jobs(group)} has ended yet"


def _usual_run(told: Told, group: str, _value: float) -> str | None:
    usual, limit = _usual_s(told, group), told.values.get("time_limit_s")
    if usual is None:
        return None
    text = f"{told.jobs(group)} usually run {duration(usual)}"
    if limit is None or group == "shape":
        return text
    return f"{text}; the limit of this one is {duration(limit)}"


def _run_so_far(told: Told, group: str, _value: float) -> str | None:
    usual, elapsed = _usual_s(told, group), told.values.get("elapsed_s")
    if usual is None or elapsed is None:
        return None
    return f"it has run {duration(elapsed)}; {told.jobs(group)} usually run {duration(usual)}"


def _usual_s(told: Told, group: str) -> float | None:
    logarithm = told.values.get(f"{group}_usual_elapsed", math.nan)
    return math.expm1(logarithm) if 0 <= logarithm < _LARGEST_LOGARITHM else None


def _queue(told: Told, group: str, _value: float) -> str:
    def are(state: str, words: str) -> str:
        count = round(told.values.get(f"{group}_{state}", 0))
        return f"{f'{count:,}' if count else 'none'} {'are' if count > 1 else 'is'} {words}"

    return f"of {told.jobs(group)}, {are('running', 'running')} and {are('pending', 'waiting')} now"


def _ends(told: Told, group: str, faded: float) -> str | None:
    ended = told.values.get(f"{group}_ended", 0)
    if ended < 1:
        return None
    # One that ended within the hour counts for more than a half.
    if faded < 0.5:
        return f"none of {told.jobs(group)} ended in the last hour"
    ends, when = _since(faded, ended)
    return f"at least {ends:,} of {told.jobs(group)} ended in the last {when}" if ends else None


_TellValue = Callable[[Told, str, float], str | None]


def _usual_limit_share(told: Told, group: str, share: float) -> str:
    return f"{told.jobs(group)} usually use {percent(share)} of their time limit"


def _usual_memory_share(told: Told, group: str, share: float) -> str:
    largest = f"the largest task of {told.jobs(group)}"
    return f"{largest} usually takes {percent(share)} of the memory asked for a CPU or node"


def _last(words: str, show: Callable[[float], str]) -> _TellValue:
    return lambda told, group, value: f"the last of {told.jobs(group)} {words.format(show(value))}"


def _asks(field: str, show: Callable[[float], str], *, last: bool = False) -> _TellValue:
    """The request beside the usual or the last one, by the logarithm of their ratio."""

    def tell(told: Told, group: str, logarithm: float) -> str | None:
        earlier = _earlier(told, field, logarithm)
        if earlier is None:
            return None
        if group == "shape" and field in ("req_cpus", "time_limit_s"):
            return None  # These are what makes it one.
        now, before = show(told.values[field]), show(earlier)
        others = f"the last of {told.jobs(group)}" if last else told.jobs(group)
        if now == before:
            return f"it asks for {now}, as {others} {'did' if last else 'usually do'}"
        return f"it asks for {now}; {others} {'asked' if last else 'usually ask'} for {before}"

    return tell


def _earlier(told: Told, field: str, logarithm: float) -> float | None:
    """What a request is compared with, by the logarithm of their ratio."""
    asked = told.values.get(field, -1)
    if asked < 0 or not abs(logarithm) <= _LARGEST_LOGARITHM:
        return None
    return math.expm1(math.log1p(asked) - logarithm)


def usual_request(told: Told, field: str, unusual: str, show: Callable[[float], str]) -> str:
    """What the user's jobs usually ask for, to be said behind a request; nothing if not known.

    >>> told = Told({"req_cpus": 64.0, "user_cpus_unusual": 2.01}, {}, {}, ["req_cpus"], True)
    >>> usual_request(told, "req_cpus", "cpus_unusual", _cpus)
    '; your jobs usually ask for 8 CPUs'
    """
    usual = _earlier(told, field, told.values.get(f"user_{unusual}", math.nan))
    return "" if usual is None else f"; {told.jobs('user')} usually ask for {show(usual)}"


def _retried(told: Told, group: str, unchanged: float) -> str:
    again = "the same again" if unchanged else "something else"
    return f"the last of {told.jobs(group)} to end failed; this one asks for {again}"


def _cpus(count: float) -> str:
    return many(count, "CPU")


def _limit(seconds: float) -> str:
    return f"a limit of {duration(seconds)}"


def _memory(mebibytes: float) -> str:
    return f"{memory(mebibytes)} of memory"


_BY_STATISTIC: Mapping[str, _TellValue] = {
    "usual_elapsed": _usual_run,
    "limit_slack": _usual_run,
    "elapsed_unusual": _run_so_far,
    "usual_limit_share": _usual_limit_share,
    "usual_memory_share": _usual_memory_share,
    "last_limit_share": _last("used {} of its time limit", percent),
    "last_elapsed_s": _last("ran {}", duration),
    "running": _queue,
    "pending": _queue,
    "ended": seen,
    "ends_1h": _ends,
    "since_end_s": _last("ended {} ago", duration),
    "since_submit_s": _last("was submitted {} before this one", duration),
    "cpus_change": _asks("req_cpus", _cpus, last=True),
    "limit_change": _asks("time_limit_s", _limit, last=True),
    "memory_change": _asks("req_memory_mb", _memory, last=True),
    "cpus_unusual": _asks("req_cpus", _cpus),
    "limit_unusual": _asks("time_limit_s", _limit),
    "retry_unchanged": _retried,
}
