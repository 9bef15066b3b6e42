"""Why a job is thought to fail or not: what the trees found, gathered into a few topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from premortem.errors import InvalidInput
from premortem.features.catalogue import CATALOGUE, Feature
from premortem.features.layout import PARENTS
from premortem.features.memory import AT_LIMIT_PART, EARLY_PART, FIRST_GUESS, PRIOR_WEIGHT
from premortem.models.port import Array
from premortem.prediction.kinds import TOPIC as PROFILE
from premortem.prediction.phrases import Tally, Told, Voice
from premortem.prediction.wording import sentence

# The groups a job is in, in the order of the layout.
GROUPS = (
    "cluster", "account", "user", "name", "executable", "shape", "directory", "script", "program",
    "partition", "node",
)  # fmt: skip
_NAMES = [feature.name for feature in CATALOGUE]
_PERSONAL = {feature.name for feature in CATALOGUE if feature.personal}
# What is larger is no number of anything in a job.
_LARGEST = 1e15
# How far a number may be off that went through 32 bits.
_ROUNDING = 2.0**-23


@dataclass(frozen=True, slots=True)
class Reason:
    """Something that raises the risk of a job (`effect` above 0) or lowers it.

    `effect` is in log odds. `topic` stays the same from version to version, the text may not.
    `numbers` are the features behind it, the most telling first, without those that are missing.
    """

    text: str
    effect: float
    topic: str
    numbers: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return {
            "text": self.text, "effect": self.effect, "topic": self.topic,
            "numbers": dict(self.numbers),
        }  # fmt: skip


def reasons(
    row: Array,
    columns: Sequence[str],
    contributions: Array,
    job: Mapping[str, Any],
    *,
    most: int = 3,
    voice: Voice = "your",
    least: float = 0.05,
    kind: str | None = None,
) -> list[Reason]:
    """The strongest reasons, at most so many: what raises the risk first, then what lowers it.

    `row` is one of the replay's, in the order of the catalogue; `contributions` are those of the
    trees' columns in log odds, without the expected value. Topics that add up to less than `least`
    are left out, so there may be none; where several say the same, it is said once, with the effect
    of them all. `voice` is to whom it is told: the user, or others. `kind` is the sentence on the
    job's profile, where the trees look at profiles.
    """
    if len(columns) != len(contributions):
        raise InvalidInput(f"{len(columns)} columns cannot have {len(contributions)} contributions")
    topics, topic_of_column = _topics_of(tuple(columns))
    sums = np.bincount(topic_of_column, contributions, minlength=len(topics))
    values = known_values(row)
    if not _PERSONAL & set(columns):
        # Trees that are not shown what the user did before have no words for it either.
        values = {name: value for name, value in values.items() if name not in _PERSONAL}
    found: dict[str, Reason] = {}
    for place in np.argsort(-np.abs(sums), kind="stable"):
        if len(found) >= most or abs(sums[place]) < least:
            break
        topic, effect = topics[place], float(sums[place])
        places = np.flatnonzero(topic_of_column == place)
        parts = contributions[places] if effect < 0 else -contributions[places]
        features = [columns[place] for place in places[np.argsort(parts, kind="stable")]]
        group = topic.partition(".")[0]
        counted = tally(values, group) if group in GROUPS else None
        told = Told(values, {group: counted} if counted else {}, job, features, effect > 0, voice)
        text = kind if topic == PROFILE and kind else sentence(topic, told)
        numbers = {name: values[name] for name in features if name in values}
        if text in found:
            # The same fact by another of its numbers.
            before = found[text]
            effect += before.effect
            topic, numbers = before.topic, {**before.numbers, **numbers}
        found[text] = Reason(text, effect, topic, numbers)
    strong = [reason for reason in found.values() if abs(reason.effect) >= least]
    return sorted(strong, key=lambda reason: (reason.effect < 0, -abs(reason.effect)))


@lru_cache(maxsize=64)
def _topics_of(columns: tuple[str, ...]) -> tuple[list[str], Array]:
    """The topics that these columns belong to, and the place of each column's own among them."""
    named = [_TOPICS.get(name, PROFILE) for name in columns]
    topics = list(dict.fromkeys(named))
    return topics, np.array([topics.index(topic) for topic in named], dtype=np.intp)


def topic_of(feature: Feature) -> str:
    """The one topic a feature belongs to; a new feature falls into that of its kind.

    >>> [topic_of(f) for f in CATALOGUE if f.name in ("req_gpus", "user_pending", "name_streak")]
    ['request.gpus', 'user.activity', 'name.outcomes']
    """
    if feature.chapter == "request":
        return f"request.{_first(_REQUEST, feature.name, 'size')}"
    if feature.chapter == "run":
        return _first({"progress": ("elapsed", "limit")}, feature.name, "start")
    if feature.chapter == "script":
        return f"script.{_first(_SCRIPT, feature.name, 'shape')}"
    if feature.chapter == "usage":
        return f"usage.{_first(_USAGE, feature.name, 'memory')}"
    group, _, statistic = feature.name.partition("_")
    if group not in GROUPS:
        return feature.chapter
    if feature.chapter == "comparison":
        return f"{group}.{_first(_COMPARISON, statistic, 'changes')}"
    return f"{group}.{_first(_HISTORY, statistic, 'outcomes')}"


# Which words in a feature's name lead to which topic; the first that fits does.
_Words = Mapping[str, tuple[str, ...]]
_REQUEST: _Words = {
    "memory": ("memory",),
    "gpus": ("gpu",),
    "array": ("array", "depends", "priority"),
    "limit": ("limit", "time"),
}
_SCRIPT: _Words = {
    "care": ("stops", "minds", "checks", "exits"),
    "unbalanced": ("unbalanced",),
}
_USAGE: _Words = {
    "cpu": ("cpu", "idle"),
    "data": ("read", "written", "data"),
    "processes": ("processes", "sample"),
}
_COMPARISON: _Words = {
    "activity": ("since",),
    "largest": ("of_largest",),
    "likeness": ("likeness",),
}
_HISTORY: _Words = {
    "times": ("elapsed", "usual", "limit_share", "memory_share", "slack"),
    "activity": ("ended", "ends", "since_end", "since_submit", "pending", "running"),
}


def _first(topics: _Words, name: str, otherwise: str) -> str:
    fitting = (topic for topic, words in topics.items() if any(word in name for word in words))
    return next(fitting, otherwise)


_TOPICS = {feature.name: topic_of(feature) for feature in CATALOGUE}


def known_values(row: Array) -> dict[str, float]:
    """What a row tells, by feature, without what is missing or no sensible number."""
    numbers = zip(_NAMES, row.tolist(), strict=True)
    return {name: number for name, number in numbers if -_LARGEST < number < _LARGEST}


def tally(values: Mapping[str, float], group: str) -> Tally | None:
    """How the jobs of a group ended, out of the shares that were drawn to those of its parent.

    None where the group is not known. A count is given only if the row cannot mean another.
    """
    ended = values.get(f"{group}_ended", -1.0)
    rate = values.get(f"{group}_failure_rate")
    if ended < 0 or rate is None:
        return None
    prior = _rate_above(values, group)

    def count(share: str, part: float) -> int | None:
        drawn, given = values.get(f"{group}_{share}", 0.0) * (ended + PRIOR_WEIGHT), prior * part
        found = drawn - PRIOR_WEIGHT * given
        off = _ROUNDING * (abs(drawn) + PRIOR_WEIGHT * abs(given)) + 1e-9
        sure = off < 0.25 and abs(found - round(found)) <= off and 0 <= round(found) <= ended
        return round(found) if sure else None

    failed = count("failure_rate", 1.0)
    estimate = rate * (ended + PRIOR_WEIGHT) - PRIOR_WEIGHT * prior if failed is None else failed
    return Tally(
        round(ended),
        min(max(estimate / max(ended, 1.0), 0.0), 1.0),
        failed,
        _within(count("limit_failure_rate", AT_LIMIT_PART), failed),
        _within(count("early_failure_rate", EARLY_PART), failed),
    )


def _within(part: int | None, whole: int | None) -> int | None:
    return part if part is not None and whole is not None and part <= whole else None


def _rate_above(values: Mapping[str, float], group: str) -> float:
    """The failure rate of the smallest group above one, which hands it on where it is missing."""
    place = PARENTS[GROUPS.index(group)]
    while place >= 0:
        rate = values.get(f"{GROUPS[place]}_failure_rate")
        if rate is not None:
            return rate
        place = PARENTS[place]
    return FIRST_GUESS
