"""The sentence of each topic, made of the numbers behind a reason and true to them.

What has nothing to say returns None, and the topic falls back on what is always true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from premortem.prediction.history_wording import history, outcomes, seen, usual_request
from premortem.prediction.own_wording import (
    script_care,
    script_shape,
    script_unbalanced,
    usage_cpu,
    usage_data,
    usage_memory,
    usage_processes,
)
from premortem.prediction.phrases import Told, duration, many, memory, percent

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_LARGEST = {
    "partition_cpus_of_largest": "most CPUs",
    "partition_limit_of_largest": "longest time limit",
    "partition_memory_of_largest": "most memory",
    "partition_node_cpus_of_largest": "most CPUs a node",
    "partition_node_memory_of_largest": "most memory a node",
}


def sentence(topic: str, told: Told) -> str:
    """The sentence of a topic; there always is one.

    >>> told = Told({"req_cpus": 64.0, "req_nodes": 4.0}, {}, {}, ["req_cpus"], raises=True)
    >>> sentence("request.size", told)
    'it asks for 64 CPUs on 4 nodes'
    >>> sentence("request.gpus", told)
    'whether it asks for GPUs is not known'
    """
    if topic in _OF_THE_JOB:
        tell, otherwise = _OF_THE_JOB[topic]
        return tell(told) or otherwise
    group, _, kind = topic.partition(".")
    if kind in _OF_A_GROUP:
        return _OF_A_GROUP[kind](told, group) or seen(told, group)
    return "what else is known of it"


def _size(told: Told) -> str | None:
    hours = told.values.get("core_hours_asked")
    if hours is not None and told.features[0] == "core_hours_asked":
        return f"it may use {f'{hours:,.0f}' if hours >= 10 else f'{hours:.2g}'} CPU hours"
    text = _resources("it asks for", told.values.get("req_cpus"), told.values.get("req_nodes"))
    usual = usual_request(told, "req_cpus", "cpus_unusual", lambda cpus: many(cpus, "CPU"))
    return text and text + usual


def _resources(words: str, cpus: float | None, nodes: float | None) -> str | None:
    parts = [
        "" if cpus is None else many(cpus, "CPU"),
        "" if nodes is None else many(nodes, "node"),
    ]
    return f"{words} {' on '.join(filter(None, parts))}" if any(parts) else None


def _time_limit(told: Told) -> str | None:
    if told.values.get("time_unlimited", 0) > 0:
        return "it asks for no time limit"
    limit = told.values.get("time_limit_s")
    if limit is None:
        return None
    usual = usual_request(told, "time_limit_s", "limit_unusual", duration)
    return f"its time limit is {duration(limit)}{usual}"


def _memory(told: Told) -> str | None:
    total, by_cpu = told.values.get("req_memory_mb"), told.values.get("memory_per_cpu_mb")
    if total is None:
        return None if by_cpu is None else f"it asks for {memory(by_cpu)} of memory a CPU"
    each = "" if by_cpu is None or by_cpu == total else f", {memory(by_cpu)} a CPU"
    return f"it asks for {memory(total)} of memory{each}"


def _gpus(told: Told) -> str | None:
    gpus = told.values.get("req_gpus")
    return None if gpus is None else f"it asks for {many(gpus, 'GPU') if gpus else 'no GPU'}"


def _array(told: Told) -> str | None:
    tell: Mapping[str, Callable[[float], str]] = {
        "in_array": lambda yes: f"it is {'' if yes else 'not '}a task of an array",
        "depends": lambda yes: f"it {'depends' if yes else 'does not depend'} on another job",
        "priority": lambda priority: f"its priority is {priority:,.0f}",
    }
    known = (name for name in told.features if name in tell and name in told.values)
    return next((tell[name](told.values[name]) for name in known), None)


def _calendar(told: Told) -> str | None:
    day, month, hour = map(told.values.get, ("submit_weekday", "submit_month", "submit_hour"))
    parts = []
    if day is not None and 0 <= day < 7:
        parts.append(f"on a {_DAYS[int(day)]}")
    if month is not None and 1 <= month < 13:
        parts.append(f"in {_MONTHS[int(month) - 1]}")
    if hour is not None and 0 <= hour < 24:
        parts.append(f"between {int(hour)}:00 and {int(hour) + 1}:00")
    return f"it was submitted {' '.join(parts)}" if parts else None


def _largest(told: Told) -> str | None:
    known = (name for name in told.features if name in _LARGEST and name in told.values)
    name = next(known, None)
    if name is None:
        return None
    where = told.jobs("cluster" if told.job.get("partition") is None else "partition")
    share, most = percent(told.values[name]), _LARGEST[name]
    return f"it asks for {share} of the {most} that any of {where} started with"


def _likeness(told: Told) -> str | None:
    share = told.values.get("directory_likeness")
    if share is None:
        return None
    common = f"{percent(share)} of its path" if share > 0 else "nothing"
    return f"its directory has {common} in common with that of the last of {told.jobs('user')}"


def _start(told: Told) -> str | None:
    waited = told.values.get("wait_s")
    got = _resources("got", told.values.get("alloc_cpus"), told.values.get("alloc_nodes"))
    parts = ["" if waited is None else f"waited {duration(waited)}", got or ""]
    return f"it {' and '.join(filter(None, parts))}" if any(parts) else None


def _progress(told: Told) -> str | None:
    elapsed, share = told.values.get("elapsed_s"), told.values.get("limit_share")
    if elapsed is None:
        return None
    return f"it has run {duration(elapsed)} so far" + (
        "" if share is None else f", {percent(share)} of its time limit"
    )


_OF_A_GROUP: Mapping[str, Callable[[Told, str], str | None]] = {
    "outcomes": outcomes,
    "times": history,
    "activity": history,
    "changes": history,
}
# Of each topic its sentence, and what is said where nothing is known.
_OF_THE_JOB: Mapping[str, tuple[Callable[[Told], str | None], str]] = {
    "request.size": (_size, "how much it asks for is not known"),
    "request.limit": (_time_limit, "it asks for no time limit of its own"),
    "request.memory": (_memory, "how much memory it asks for is not known"),
    "request.gpus": (_gpus, "whether it asks for GPUs is not known"),
    "request.array": (_array, "whether it is on its own is not known"),
    "calendar": (_calendar, "when it was submitted is not known"),
    "partition.largest": (_largest, "nothing as large as it is known"),
    "directory.likeness": (_likeness, "whether its directory is a new one is not known"),
    "start": (_start, "how it started is not known"),
    "progress": (_progress, "how long it has run is not known"),
    "script.care": (script_care, "its script is not known"),
    "script.shape": (script_shape, "its script is not known"),
    "script.unbalanced": (script_unbalanced, "its script is not known"),
    "usage.cpu": (usage_cpu, "how busy it is is not known"),
    "usage.memory": (usage_memory, "how much memory it uses is not known"),
    "usage.data": (usage_data, "how much it reads and writes is not known"),
    "usage.processes": (usage_processes, "how many processes it has is not known"),
}
