"""One profile of jobs in numbers, and told in a sentence of plain English."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from premortem.jobs.outcomes import Cause, Outcome

# Jobs that ran for less are short, or of medium length; all others are long.
SHORT_S, MEDIUM_S = 10 * 60, 4 * 3600
# Users of whose jobs fewer had ended are new, or infrequent; all others are frequent.
NEW_JOBS, INFREQUENT_JOBS = 5, 100
# How many times the site's median memory per CPU is no longer balanced, or one over it.
UNBALANCED = 2.0

# What so many of a profile's jobs have in common is said of the profile.
_TYPICAL = 0.6
# From here on it is said without a "mostly".
_NEARLY_ALL = 0.9
_LONGEST_NAME = 40

_DURATIONS = {"short": "short", "medium": "medium-length", "long": "long"}
_KINDS = {"memory": "memory-heavy", "compute": "memory-light"}
# Said after "fails", of one job or of many.
_CAUSES = {
    Cause.APPLICATION: "with an application error",
    Cause.OUT_OF_MEMORY: "for lack of memory",
    Cause.TIME_LIMIT: "at the time limit",
    Cause.NODE_FAILURE: "through node failure",
    Cause.CANCELLED: "by cancellation",
    Cause.CANCELLED_BEFORE_START: "by cancellation before the start",
    Cause.PREEMPTED: "by preemption",
    Cause.DEADLINE: "at a deadline",
}


@dataclass(frozen=True, slots=True)
class Quartiles:
    """Values of three jobs: a quarter of the jobs lies below `low`, half of them below `median`."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class Part:
    """How many of a profile's jobs go by this name, and their share of those that have any."""

    name: str
    jobs: int
    share: float


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile's jobs summed up. What the records do not tell is left out, never made up.

    `share` is that of all jobs described. `resources` are those asked for, or where the records do
    not tell, those given: `cpus`, `nodes`, `memory_mb`, `time_limit_s`, `gpus`. `run_s` and
    `durations` are of jobs that ran and ended. `failure_share` is of jobs that completed or failed,
    `causes` are of those that failed. Parts are in order of their jobs, `partitions` and `names`
    the first few. Names are as the users wrote them; in `title` and `sentence` they are cleaned.
    """

    number: int
    jobs: int
    share: float
    users: int
    kind: str | None
    resources: Mapping[str, Quartiles]
    run_s: Quartiles | None
    wait_s: Quartiles | None
    durations: tuple[Part, ...]
    activity: tuple[Part, ...]
    outcomes: tuple[Part, ...]
    causes: tuple[Part, ...]
    failure_share: float | None
    core_hours: float
    core_hours_lost: float
    partitions: tuple[Part, ...]
    names: tuple[Part, ...]
    title: str = ""
    sentence: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return asdict(self)


def duration_word(run_s: pl.Expr) -> pl.Expr:
    """How long a job ran: `short`, `medium` or `long`; null where that is not known."""
    return _step(run_s, SHORT_S, MEDIUM_S, ("short", "medium", "long"))


def activity_word(user_ended: pl.Expr) -> pl.Expr:
    """How well the user was known by then: `new`, `infrequent` or `frequent`; null likewise."""
    return _step(user_ended, NEW_JOBS, INFREQUENT_JOBS, ("new", "infrequent", "frequent"))


def kind_word(memory_per_cpu_mb: float | None, site_mb: float | None) -> str | None:
    """What a profile needs most, by the medians of memory per CPU of its jobs and of all jobs.

    `memory` from twice the site's median on, `compute` up to half of it, else `balanced`; None
    where no job tells.
    """
    if memory_per_cpu_mb is None or not site_mb:
        return None
    if memory_per_cpu_mb >= UNBALANCED * site_mb:
        return "memory"
    return "compute" if memory_per_cpu_mb <= site_mb / UNBALANCED else "balanced"


def in_words(profiles: Sequence[Profile]) -> list[Profile]:
    """The same profiles, each with a title and a sentence.

    What is true of nearly all jobs is not said of each profile, nor the cause that all failures
    have. Where titles would be alike, the usual run time and limit are added, if known.
    """
    causes = [part.name for profile in profiles for part in profile.causes]
    said = len(set(causes)) > 1 or len(causes) == 1
    typical = _typical_parts(profiles)
    titles = [_title(*pair) for pair in zip(profiles, typical, strict=True)]
    seen = Counter(titles)
    found = []
    for profile, title in zip(profiles, titles, strict=True):
        whole = title + _usual_times(profile) if seen[title] > 1 else title
        told = [_share(profile), *_failing(profile if said else replace(profile, causes=()))]
        found.append(replace(profile, title=whole, sentence=f"{whole}: {', '.join(told)}."))
    return found


def _step(value: pl.Expr, first: int, second: int, words: tuple[str, str, str]) -> pl.Expr:
    low, middle, high = map(pl.lit, words)
    return (
        pl.when(value < first)
        .then(low)
        .when(value < second)
        .then(middle)
        .when(value.is_not_null())
        .then(high)
    )


def _typical_parts(profiles: Sequence[Profile]) -> list[dict[str, Part]]:
    """What is typical of each profile, and not of nearly all jobs, where there are several."""
    enough = _NEARLY_ALL * sum(profile.jobs for profile in profiles)
    found: list[dict[str, Part]] = [{} for _ in profiles]
    for table in ("durations", "activity", "partitions", "names"):
        jobs: Counter[str] = Counter()
        for profile in profiles:
            jobs.update({part.name: part.jobs for part in getattr(profile, table)})
        for profile, typical in zip(profiles, found, strict=True):
            for first in getattr(profile, table)[:1]:
                common = len(profiles) > 1 and jobs[first.name] >= enough
                if first.share >= _TYPICAL and not common:
                    typical[table] = first
    return found


def _title(profile: Profile, typical: Mapping[str, Part]) -> str:
    duration = typical.get("durations")
    first = [
        _DURATIONS[duration.name] if duration else "",
        _KINDS.get(profile.kind or "", ""),
        _size(profile),
    ]
    rest = [
        _owners(profile, typical.get("activity")),
        _nodes(profile),
        _place("in", typical.get("partitions")),
        _place("named", typical.get("names")),
    ]
    if not any(first + rest):
        first = ["mixed"]
    noun = "job" if profile.jobs == 1 else "jobs"
    title = " ".join(filter(None, [*first, noun])) + "".join(rest)
    return title[0].upper() + title[1:]


def _size(profile: Profile) -> str:
    """GPUs where most jobs have any, else cores."""
    gpus, cpus = profile.resources.get("gpus"), profile.resources.get("cpus")
    if gpus and gpus.median >= 1:
        return _span(gpus, "GPU")
    return _span(cpus, "core") if cpus else ""


def _span(quartiles: Quartiles, unit: str) -> str:
    low, high = round(quartiles.low), round(quartiles.high)
    if low == high:
        return f"single-{unit}" if low == 1 else f"{low:,}-{unit}"
    return f"{low:,}- to {high:,}-{unit}"


def _nodes(profile: Profile) -> str:
    """Nodes where most jobs have more than one."""
    nodes = profile.resources.get("nodes")
    if not nodes or nodes.median < 2:
        return ""
    low, high = round(nodes.low), round(nodes.high)
    return f" on {low:,} nodes" if low == high else f" on {low:,} to {high:,} nodes"


def _owners(profile: Profile, activity: Part | None) -> str:
    if not activity:
        return ""
    if profile.users != 1:
        return f" of {activity.name} users"
    return f" of {'an' if activity.name[0] in 'aeiou' else 'a'} {activity.name} user"


def _place(word: str, most: Part | None) -> str:
    """Where most jobs are, or what they are called."""
    name = _cleaned(most.name) if most else ""
    if not most or not name:
        return ""
    return f" {word} `{name}`" if most.share >= _NEARLY_ALL else f", mostly {word} `{name}`"


def _usual_times(profile: Profile) -> str:
    limit = profile.resources.get("time_limit_s")
    told = [
        f"usually running {_time(profile.run_s.median)}" if profile.run_s else "",
        f"with a limit of {_time(limit.median)}" if limit else "",
    ]
    known = " ".join(filter(None, told))
    return f", {known}" if known else ""


def _share(profile: Profile) -> str:
    return "all jobs" if profile.share == 1 else f"{_percent(profile.share)} of all jobs"


def _failing(profile: Profile) -> list[str]:
    """How many fail, and how; nothing where no outcome is known."""
    share = profile.failure_share
    if share is None:
        return []
    failed = sum(part.jobs for part in profile.outcomes if part.name == Outcome.FAILED)
    if profile.jobs == 1:
        return [f"it failed {_cause(profile, failed)}".strip() if failed else "it completed"]
    told = "none fail" if not failed else "all fail" if share == 1 else f"{_percent(share)} fail"
    return list(filter(None, [told, _cause(profile, failed)]))


def _cause(profile: Profile, failed: int) -> str:
    if not profile.causes:
        return ""
    most = profile.causes[0]
    how = _CAUSES[Cause(most.name)]
    if failed == 1:
        return how
    if most.share == 1:
        return f"always {how}"
    return f"mostly {how}" if most.share >= 0.5 else f"most often {how}"


def _percent(share: float) -> str:
    """A share of one in whole percents; neither nothing nor all unless it is.

    >>> _percent(0.414), _percent(0.001), _percent(0.999)
    ('41 %', 'under 1 %', 'over 99 %')
    """
    if share < 0.005:
        return "under 1 %"
    return "over 99 %" if 0.995 <= share < 1 else f"{share * 100:.0f} %"


def _time(seconds: float) -> str:
    """A length of time in its largest sensible unit.

    >>> _time(45), _time(150), _time(5400), _time(90000)
    ('45 s', '2 min', '1.5 h', '25 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{round(seconds / 3600, 1):g} h"


def _cleaned(name: str) -> str:
    """A name from a user, fit to stand in a sentence: no line breaks, no quotes, not too long."""
    text = "".join(c for c in name if c.isprintable() and c != "`").strip()
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
