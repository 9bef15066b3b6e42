"""Every feature: what it means, what it is made of, and so when it is known.

The order is that of the replay's rows. A feature is known when the last of its inputs is; a set of
features for a prediction point can only hold what is known by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from premortem.errors import InvalidInput
from premortem.features import layout as L
from premortem.features.points import Point
from premortem.features.scripts import TRAITS
from premortem.features.usage import USAGE
from premortem.jobs.fields import BY_NAME, KnownAt


class Family(StrEnum):
    """Which features a set is made of, as the site's data and rules allow.

    `generic` is everything; `restricted` leaves out who the user is and what the user did before,
    for new users and for privacy; `swf` is what Standard Workload Format logs carry.
    """

    GENERIC = "generic"
    RESTRICTED = "restricted"
    SWF = "swf"


@dataclass(frozen=True, slots=True)
class Feature:
    """One number about a job; `inputs` are fields of the job itself, history needs none.

    `personal` features tell who the user is or what the user did before.
    """

    name: str
    chapter: str
    inputs: tuple[str, ...]
    meaning: str
    personal: bool = False

    @property
    def known(self) -> KnownAt:
        """The latest moment at which one of its inputs becomes known."""
        return max((BY_NAME[name].known for name in self.inputs), default=KnownAt.SUBMIT)


_SIZES = ("req_cpus", "time_limit_s")
_Spec = tuple[str, tuple[str, ...], str]

_REQUEST: tuple[_Spec, ...] = (
    ("req_cpus", ("req_cpus",), "CPUs asked for."),
    ("req_nodes", ("req_nodes",), "Nodes asked for."),
    ("req_tasks", ("req_tasks",), "Tasks asked for."),
    ("time_limit_s", ("time_limit_s",), "Time limit asked for."),
    ("req_memory_mb", ("req_memory_mb",), "Memory asked for in total."),
    ("req_gpus", ("req_gpus",), "GPUs asked for."),
    ("cpus_per_node", ("req_cpus", "req_nodes"), "CPUs asked for on each node."),
    (
        "memory_per_cpu_mb",
        ("req_memory_per_cpu_mb", "req_memory_mb", "req_cpus"),
        "Memory asked for by CPU.",
    ),
    ("core_hours_asked", _SIZES, "CPUs times limit: what the job may cost at most."),
    ("limit_past_hour_s", ("time_limit_s",), "What the limit has beyond whole hours."),
    ("limit_past_day_s", ("time_limit_s",), "What the limit has beyond whole days."),
    (
        "cpus_halvings",
        ("req_cpus",),
        "How often the CPUs can be halved: people like powers of two.",
    ),
    ("time_unlimited", ("time_unlimited",), "Whether no limit was asked for."),
    ("in_array", ("array_job_id",), "Whether the job is a task of an array."),
    ("depends", ("dependency",), "Whether it waits for another job."),
    ("priority", ("priority",), "Priority at submission."),
)

_CALENDAR = (
    ("submit_hour", "Hour of the day, by the site's clock."),
    ("submit_weekday", "Day of the week, Monday 0."),
    ("submit_month", "Month of the year."),
    ("submit_quarter", "Quarter of the year."),
    ("submit_week", "Week of the year, the first beginning on its first day."),
)

_LOOK: tuple[_Spec, ...] = (
    ("since_submit_s", (), "time since the last submission"),
    ("cpus_change", ("req_cpus",), "CPUs against the last request (logarithm of the ratio)"),
    ("limit_change", ("time_limit_s",), "limit against the last request (logarithm of the ratio)"),
    ("memory_change", ("req_memory_mb",), "memory against the last request (logarithm)"),
    ("cpus_unusual", ("req_cpus",), "CPUs against the usual request (logarithm of the ratio)"),
    (
        "limit_unusual",
        ("time_limit_s",),
        "limit against the usual request (logarithm of the ratio)",
    ),
    (
        "retry_unchanged",
        ("req_cpus", "time_limit_s", "req_memory_mb"),
        "if the last one to end failed, whether the same is asked for as last time,",
    ),
)

_OF_LARGEST: tuple[_Spec, ...] = (
    ("cpus_of_largest", ("req_cpus",), "CPUs"),
    ("limit_of_largest", ("time_limit_s",), "limit"),
    ("memory_of_largest", ("req_memory_mb",), "memory"),
    ("node_cpus_of_largest", ("req_cpus", "req_nodes"), "CPUs a node"),
    ("node_memory_of_largest", ("req_memory_mb", "req_nodes"), "memory a node"),
)

_STARTED: tuple[_Spec, ...] = (
    ("wait_s", ("submit_time", "start_time"), "Time the job waited."),
    ("alloc_cpus", ("alloc_cpus",), "CPUs the job got."),
    ("alloc_nodes", ("alloc_nodes",), "Nodes the job got."),
    ("alloc_share", ("alloc_cpus", "req_cpus"), "CPUs it got against those it asked for."),
    ("elapsed_s", ("elapsed_s",), "Time it has run by now."),
    ("limit_share", ("elapsed_s", "time_limit_s"), "Share of its limit that it has run."),
    ("limit_left_s", ("elapsed_s", "time_limit_s"), "What is left of its limit."),
)

_GROUPS: tuple[tuple[str, tuple[str, ...], str, bool], ...] = (
    ("cluster", ("cluster",), "on the cluster", False),
    ("account", ("account", "group"), "of the account", True),
    ("user", ("user",), "of the user", True),
    ("name", ("user", "job_name"), "of the user's jobs of this name, numbers aside", True),
    ("executable", ("user", "executable"), "of the user's jobs of this executable", True),
    ("shape", ("user", *_SIZES), "of the user's jobs of the same CPUs and limit", True),
    (
        "directory",
        ("user", "work_dir"),
        "of the user's jobs in this directory, numbers aside",
        True,
    ),
    ("script", ("user", "script"), "of the user's jobs of this script, numbers aside", True),
    ("program", ("script",), "of the jobs of anybody whose script runs this program", False),
    ("partition", ("partition",), "in the partition", False),
    ("node", ("node_list",), "on the first of the nodes", False),
)

_STATISTICS: tuple[_Spec, ...] = (
    ("ended", (), "jobs that ended so far"),
    ("failure_rate", (), "share that failed, drawn to that of the larger group"),
    ("failure_rate_1d", (), "the same, fading by half in a day"),
    ("failure_rate_14d", (), "the same, fading by half in two weeks"),
    ("failures_1h", (), "failures, fading by half in an hour"),
    ("ends_1h", (), "ends, fading by half in an hour"),
    ("last_outcome", (), "whether the last one to end failed"),
    ("last_cause", (), "how the last one to end failed"),
    ("streak", (), "failures in a row, completions below zero"),
    ("since_end_s", (), "time since the last end"),
    ("since_failure_s", (), "time since the last failure"),
    ("pending", (), "jobs waiting now"),
    ("running", (), "jobs running now"),
    ("usual_elapsed", (), "usual run time (logarithm)"),
    ("usual_limit_share", (), "usual share of the limit used"),
    ("usual_memory_share", (), "usual share of the memory used"),
    ("last_elapsed_s", (), "run time of the last one"),
    ("last_limit_share", (), "share of the limit used by the last one"),
    ("early_failure_rate", (), "share that failed within two minutes"),
    ("limit_failure_rate", (), "share that failed at the limit"),
    ("started_failure_rate", (), "share that failed of those that started"),
    ("survivor_failure_rate", ("elapsed_s",), "share that failed of those that ran as long"),
    ("elapsed_unusual", ("elapsed_s",), "run time so far against the usual (logarithm)"),
    ("limit_slack", ("time_limit_s",), "limit against the usual run time (logarithm)"),
)

# Shares of small groups are drawn to those of the larger group, and so made of its fields too.
_DRAWN = {
    "failure_rate", "failure_rate_1d", "failure_rate_14d", "early_failure_rate",
    "limit_failure_rate", "started_failure_rate", "survivor_failure_rate",
}  # fmt: skip

# What Standard Workload Format logs carry, as the sources fill it in.
_SWF_FIELDS = {
    "cluster", "submit_time", "start_time", "user", "group", "account", "executable", "partition",
    "req_cpus", "req_memory_mb", "req_memory_per_cpu_mb", "time_limit_s", "dependency",
    "alloc_cpus", "elapsed_s",
}  # fmt: skip


def _all() -> Iterable[Feature]:
    for name, inputs, meaning in _REQUEST:
        yield Feature(name, "request", inputs, meaning)
    for name, meaning in _CALENDAR:
        yield Feature(name, "calendar", ("submit_time",), meaning)
    for group in L.LOOKED_BACK:
        label, fields, of, personal = _GROUPS[group]
        for name, inputs, meaning in _LOOK:
            told = f"At submission, {meaning} {of}."
            yield Feature(f"{label}_{name}", "comparison", (*fields, *inputs), told, personal)
    for name, inputs, what in _OF_LARGEST:
        told = f"At submission, {what} against the most that ever started in the partition."
        yield Feature(f"partition_{name}", "comparison", ("partition", *inputs), told)
    told = "At submission, share of the path in common with the user's last job."
    yield Feature("directory_likeness", "comparison", ("user", "work_dir"), told, personal=True)
    for name, inputs, meaning in _STARTED:
        yield Feature(name, "run", inputs, meaning)
    for group, (label, fields, of, personal) in enumerate(_GROUPS):
        for name, inputs, meaning in _STATISTICS:
            told = f"{meaning[0].upper()}{meaning[1:]}, {of}."
            made_of = (*fields, *(_larger(group) if name in _DRAWN else ()), *inputs)
            yield Feature(
                f"{label}_{name}", "history", tuple(dict.fromkeys(made_of)), told, personal
            )
    for name, meaning in TRAITS:
        yield Feature(name, "script", ("script",), meaning)
    for name, inputs, meaning in USAGE:
        made_of = ("start_time", "elapsed_s", *inputs)
        yield Feature(name, "usage", tuple(dict.fromkeys(made_of)), meaning)


def _larger(group: int) -> Iterable[str]:
    """The fields that name the larger groups of a group."""
    while (group := L.PARENTS[group]) >= 0:
        yield from _GROUPS[group][1]


CATALOGUE: tuple[Feature, ...] = tuple(_all())


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """The features of a prediction point, and where they stand in the replay's rows."""

    point: Point
    features: tuple[Feature, ...]
    places: tuple[int, ...]

    @property
    def names(self) -> list[str]:
        """The features' names, in the order of the columns."""
        return [feature.name for feature in self.features]

    @property
    def fingerprint(self) -> str:
        """What tells this set from another: the point, the features and what they mean."""
        parts = [self.point.name]
        parts += [f"{f.name}:{','.join(f.inputs)}:{f.meaning}" for f in self.features]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def feature_set(
    point: Point,
    family: Family = Family.GENERIC,
    *,
    names: Sequence[str] | None = None,
    without: Sequence[str] = (),
    catalogue: Sequence[Feature] = CATALOGUE,
) -> FeatureSet:
    """All features of the family known at the point; or those named, if they are.

    Left out are those of a chapter, or made of a field, that `without` names. Asking for one that
    is not known yet is an error that names it and the field at fault.
    """
    chapters = {feature.chapter for feature in catalogue}
    strange = [name for name in without if name not in chapters and name not in BY_NAME]
    if strange:
        raise InvalidInput(
            f"neither a chapter of features nor a field: {', '.join(strange)}; chapters are "
            f"{', '.join(sorted(chapters))}"
        )
    by_name = {feature.name: place for place, feature in enumerate(catalogue)}
    if names is None:
        places = [
            place
            for place, feature in enumerate(catalogue)
            if feature.known <= point.known
            and _belongs(feature, family)
            and not {feature.chapter, *feature.inputs} & set(without)
        ]
        return FeatureSet(point, tuple(catalogue[p] for p in places), tuple(places))
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise InvalidInput(f"no such feature: {', '.join(unknown)} (docs/reference/features.md)")
    places = [by_name[name] for name in names]
    chosen = FeatureSet(point, tuple(catalogue[p] for p in places), tuple(places))
    for feature in chosen.features:
        require_known(feature, point)
    return chosen


def require_known(feature: Feature, point: Point) -> None:
    """Raise `InvalidInput` if the feature is made of anything not known at the point."""
    for name in feature.inputs:
        if BY_NAME[name].known > point.known:
            raise InvalidInput(
                f"{feature.name} cannot be used at {point}: it is made of {name}, which is known "
                f"at {BY_NAME[name].known} only"
            )


def _belongs(feature: Feature, family: Family) -> bool:
    if family is Family.RESTRICTED:
        return not feature.personal
    if family is Family.SWF:
        return set(feature.inputs) <= _SWF_FIELDS
    return True
