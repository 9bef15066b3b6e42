"""The part of a report's page on the profiles of jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from premortem.apps import report_drawings as drawings
from premortem.apps.markup import (
    Safe,
    above_range,
    core_hours,
    count,
    figure,
    paragraph,
    percent,
    row,
    table,
)
from premortem.prediction.phrases import duration, memory
from premortem.training.profile_words import (
    INFREQUENT_JOBS,
    MEDIUM_S,
    NEW_JOBS,
    SHORT_S,
    UNBALANCED,
)

Told = Mapping[str, Any]
Spoken = Callable[[float], str]


def _whole(number: float) -> str:
    return count(round(number))


_RESOURCES: Mapping[str, tuple[str, Spoken]] = {
    "cpus": ("CPUs", _whole),
    "nodes": ("nodes", _whole),
    "gpus": ("GPUs", _whole),
    "memory_mb": ("memory", memory),
    "time_limit_s": ("time limit", duration),
}
_TIMES = {"run_s": "run", "wait_s": "wait"}
_DURATIONS = ("short", "medium", "long")
_ACTIVITIES = ("frequent", "infrequent", "new")


def profiles_section(told: Told) -> str:
    """The profiles as `describe` has them, and how their number was chosen."""
    described: Sequence[Told] = told.get("described", ())
    parts = [
        "<h2 id='profiles'>Profiles of jobs</h2>",
        paragraph(
            "Groups of jobs that ask alike and belong to alike users, found without looking at how "
            "they end; where one fails far more than the others, it is worth a look.",
            note=True,
        ),
    ]
    if described:
        parts += [_sentences(described), _details(described)]
    if told.get("curve"):
        parts.append(_number(told))
    return "".join(parts)


def _sentences(described: Sequence[Told]) -> str:
    rows = [
        (
            str(one["number"]), _set_apart(one["sentence"]), count(one["jobs"]),
            percent(one["share"]), percent(one["failure_share"]), core_hours(one["core_hours"]),
            core_hours(one["core_hours_lost"]),
        )
        for one in described
    ]  # fmt: skip
    columns = ("", "profile", "jobs", "share", "failed", "core-hours", "lost to failures")
    return table(columns, rows, text=0, long=1)


def _set_apart(sentence: str) -> Safe:
    """The sentence with its names, which stand in backticks, as the page shows names."""
    return Safe(re.sub("`([^`]*)`", r"<code>\1</code>", escape(sentence)))


def _details(described: Sequence[Told]) -> str:
    """A table for each kind of thing, with a row for each profile."""
    note = (
        "Of resources and times, the median above the middle half of the jobs. Jobs that ran less "
        f"than {duration(SHORT_S)} are short, those that ran {duration(MEDIUM_S)} or more long. A "
        f"user of whose jobs fewer than {NEW_JOBS} had ended by then is new, with "
        f"{INFREQUENT_JOBS} or more frequent. The type is memory where the median memory per CPU "
        f"is at least {UNBALANCED:g} times that of all jobs, compute where it is at most "
        f"1/{UNBALANCED:g} of it, and else balanced."
    )
    outcomes, causes = _names(described, "outcomes"), _names(described, "causes")
    resources = [name for name in _RESOURCES if any(name in one["resources"] for one in described)]
    return paragraph(note, note=True) + row(
        _by_profile(
            "What they ask for",
            ("type", *(_RESOURCES[name][0] for name in resources)),
            described,
            lambda one: (
                one["kind"] or "",
                *(_spread(one["resources"].get(name), _RESOURCES[name][1]) for name in resources),
            ),
        ),
        _by_profile(
            "How long they run and wait",
            (*_TIMES.values(), *_DURATIONS),
            described,
            lambda one: (
                *(_spread(one[name], duration) for name in _TIMES),
                *_shares(one["durations"], _DURATIONS),
            ),
        ),
        _by_profile(
            "Whose they are",
            ("users", *_ACTIVITIES),
            described,
            lambda one: (count(one["users"]), *_shares(one["activity"], _ACTIVITIES)),
        ),
        _by_profile(
            "How all of them end",
            outcomes,
            described,
            lambda one: _shares(one["outcomes"], outcomes),
        ),
        _by_profile(
            "How those fail that fail",
            causes,
            described,
            lambda one: _shares(one["causes"], causes),
        ),
    )


def _by_profile(
    caption: str,
    columns: Sequence[str],
    described: Sequence[Told],
    cells: Callable[[Told], Sequence[str]],
) -> str:
    if not columns:
        return ""
    rows = [(str(one["number"]), *cells(one)) for one in described]
    named = (name.replace("_", " ") for name in columns)
    return table(("profile", *named), rows, text=0, caption=caption)


def _names(described: Sequence[Told], table: str) -> list[str]:
    """The names that occur in any profile, in the order of their jobs."""
    jobs: dict[str, int] = {}
    for part in (part for one in described for part in one[table]):
        jobs[part["name"]] = jobs.get(part["name"], 0) + part["jobs"]
    return sorted(jobs, key=lambda name: -jobs[name])


def _shares(parts: Sequence[Told], names: Sequence[str]) -> tuple[str, ...]:
    """The share of each name; nothing at all where none is known."""
    shares = {part["name"]: part["share"] for part in parts}
    return tuple(percent(shares.get(name, 0.0)) if shares else "" for name in names)


def _spread(quartiles: Told | None, spoken: Spoken) -> Safe:
    """The median above the quartiles, unless all are the same."""
    if not quartiles:
        return Safe("")
    low, median, high = (spoken(quartiles[name]) for name in ("low", "median", "high"))
    return above_range(median, low, high)


def _number(told: Told) -> str:
    """How many profiles there are, and why."""
    chosen, elbow = told["chosen"], told["elbow"]
    sentences = [f"Of the numbers tried, {chosen} has the lowest BIC and was chosen."]
    if told["profiles"] != chosen:
        sentences.append(f"Of these, {told['profiles']} have enough jobs to be kept.")
    if told["still_falling"]:
        sentences.append("The BIC still fell at the last number tried, so that was the limit.")
    if elbow is not None:
        where = "there, too" if elbow == chosen else f"at {elbow}, though"
        sentences.append(f"The curve of K-Means, to compare with, has its elbow {where}.")
    rows = [
        (
            str(one["number"]), str(one["profiles"]), f"{one['bic']:,.0f}",
            f"{one['inertia']:,.0f}", f"{one['agreement']:.2f}",
        )
        for one in told["curve"]
    ]  # fmt: skip
    columns = ("tried", "profiles", "BIC", "K-Means inertia", "agreement")
    place = [one["number"] for one in told["curve"]].index(chosen)
    drawn = ""
    if len(rows) > 1:
        drawn = figure(
            drawings.numbers_tried(told["curve"], "bic", "BIC", chosen, "chosen"),
            "How well so many profiles describe the jobs, less what so many may cost: the lower, "
            "the better.",
        ) + figure(
            drawings.numbers_tried(told["curve"], "inertia", "K-Means inertia", elbow, "elbow"),
            "How far jobs are from the middles of as many groups by K-Means: it always falls, and "
            "after the elbow more slowly.",
        )
    return "".join(
        (
            "<h3>How many profiles there are</h3>",
            paragraph(" ".join(sentences)),
            row(drawn, table(columns, rows, text=0, chosen=place)),
        )
    )
