"""Nodes and partitions of a cluster: what there is, and what may be asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from premortem.sources.slurm_values import BadRecord, count, number, part, text

_PER_CPU = 1 << 63


@dataclass(frozen=True, slots=True)
class Node:
    """A node: what it has, how much of that is given out, and its state with all flags."""

    name: str
    states: tuple[str, ...]
    cpus: int
    memory_mb: int
    gpus: int = 0
    alloc_cpus: int = 0
    alloc_memory_mb: int = 0
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition and its limits; None where there is no limit, or no default."""

    name: str
    is_up: bool
    nodes: str
    total_nodes: int
    total_cpus: int
    total_memory_mb: int
    total_gpus: int = 0
    max_time_s: int | None = None
    default_time_s: int | None = None
    max_nodes: int | None = None
    max_cpus_per_node: int | None = None
    max_memory_per_node_mb: int | None = None
    max_memory_per_cpu_mb: int | None = None
    default_memory_per_node_mb: int | None = None
    default_memory_per_cpu_mb: int | None = None


def node_of(record: Any) -> Node:
    """A node from slurmrestd's answer, of any version; raises `BadRecord`."""
    name = text(record.get("name")) if isinstance(record, dict) else None
    if name is None:
        raise BadRecord("a node without a name")
    states = record.get("state")
    words = [*(states if isinstance(states, list) else [states]), *_list(record, "state_flags")]
    return Node(
        name=name,
        states=tuple(str(word).upper() for word in words if word),
        cpus=count(record.get("cpus")) or 0,
        memory_mb=count(record.get("real_memory")) or 0,
        gpus=gpus_in(text(record.get("tres")), text(record.get("gres"))),
        alloc_cpus=count(record.get("alloc_cpus")) or 0,
        alloc_memory_mb=count(record.get("alloc_memory")) or 0,
        features=_words(record.get("features")),
        partitions=_words(record.get("partitions")),
        reason=text(record.get("reason")),
    )


def partition_of(record: Any) -> Partition:
    """A partition from slurmrestd's answer, of any version; raises `BadRecord`."""
    name = text(record.get("name")) if isinstance(record, dict) else None
    if name is None:
        raise BadRecord("a partition without a name")
    return _nested(name, record) if "maximums" in record else _flat(name, record)


def _nested(name: str, record: dict[str, Any]) -> Partition:
    """As v0.0.39 and later write it."""
    most, usual, nodes = (part(record, key) for key in ("maximums", "defaults", "nodes"))
    tres = text(part(record, "tres").get("configured")) or ""
    return Partition(
        name=name,
        is_up="UP" in _list(part(record, "partition"), "state"),
        nodes=text(nodes.get("configured")) or "",
        total_nodes=count(nodes.get("total")) or 0,
        total_cpus=count(part(record, "cpus").get("total")) or 0,
        total_memory_mb=memory_in(tres),
        total_gpus=gpus_in(tres),
        max_time_s=_seconds(most.get("time")),
        default_time_s=_seconds(usual.get("time")),
        max_nodes=_limit(most.get("nodes")),
        max_cpus_per_node=_limit(most.get("cpus_per_node")),
        max_memory_per_node_mb=_memory(most.get("memory_per_cpu"), per_cpu=False),
        max_memory_per_cpu_mb=_memory(most.get("memory_per_cpu"), per_cpu=True),
        default_memory_per_node_mb=_memory(usual.get("memory_per_cpu"), per_cpu=False),
        default_memory_per_cpu_mb=_memory(usual.get("memory_per_cpu"), per_cpu=True),
    )


def _flat(name: str, record: dict[str, Any]) -> Partition:
    """As v0.0.38 and v0.0.37 write it; the latter's default time is that of something else."""
    tres = text(record.get("tres")) or ""
    memory = {
        f"{kind}_memory_per_{share}_mb": _limit(record.get(f"{word}_memory_per_{share}"))
        for kind, word in (("max", "maximum"), ("default", "default"))
        for share in ("node", "cpu")
    }
    raw = record.get("default_memory_per_cpu")
    if isinstance(raw, int) and raw < 0:
        memory["default_memory_per_cpu_mb"] = _memory(raw, per_cpu=True)
    return Partition(
        name=name,
        is_up=text(record.get("state")) == "UP",
        nodes=text(record.get("nodes")) or "",
        total_nodes=count(record.get("total_nodes")) or 0,
        total_cpus=count(record.get("total_cpus")) or 0,
        total_memory_mb=memory_in(tres),
        total_gpus=gpus_in(tres),
        max_time_s=_seconds(record.get("max_time_limit")),
        default_time_s=_seconds(record.get("default_time_limit")),
        max_nodes=_limit(record.get("maximum_nodes_per_job")),
        max_cpus_per_node=_limit(record.get("maximum_cpus_per_node")),
        **memory,
    )


def memory_in(tres: str | None) -> int:
    """MiB of memory in a list such as ``cpu=16,mem=16000M,gres/gpu=2``."""
    found = re.search(r"(?:^|,)mem=([\d.]+)([KMGTP]?)(?:,|$)", tres or "")
    powers = {"K": -1, "": 0, "M": 0, "G": 1, "T": 2, "P": 3}
    return int(float(found[1]) * 1024 ** powers[found[2]]) if found else 0


def gpus_in(tres: str | None, gres: str | None = None) -> int:
    """GPUs in a list of resources, or in one such as ``gpu:a100:4`` where that has none."""
    found = re.search(r"(?:^|,)gres/gpu=(\d+)", tres or "")
    if found:
        return int(found[1])
    return sum(int(n) for n in re.findall(r"(?:^|,)gpu(?::[^:,(]+)?:(\d+)", gres or ""))


def _limit(value: Any) -> int | None:
    """A limit; older versions write what has none as -1 or 0."""
    limit = number(value)
    return int(limit) if limit is not None and 0 < limit < _PER_CPU else None


def _seconds(minutes: Any) -> int | None:
    limit = _limit(minutes)
    return limit * 60 if limit is not None else None


def _memory(flagged: Any, *, per_cpu: bool) -> int | None:
    """One of the two meanings of a number whose highest bit says which it is."""
    if not isinstance(flagged, int) or bool(flagged & _PER_CPU) is not per_cpu:
        return None
    return (flagged & (_PER_CPU - 1)) or None


def _list(holder: dict[str, Any], name: str) -> list[Any]:
    value = holder.get(name)
    return value if isinstance(value, list) else []


def _words(value: Any) -> tuple[str, ...]:
    """A list of words, or one with commas between them."""
    words = value if isinstance(value, list) else str(value or "").split(",")
    return tuple(str(word) for word in words if word)
