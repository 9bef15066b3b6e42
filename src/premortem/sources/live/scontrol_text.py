"""The text of `scontrol show … -o`, for releases whose scontrol and squeue know no JSON.

Jobs become records as slurmctld's JSON has them, so that one code reads both. A job's name may hold
anything, line ends and what looks like other columns included; it is taken to end where the next
column begins as Slurm writes it. Times are expected as seconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from premortem.jobs.spellings import ABSENT_WORDS
from premortem.sources.live.machines import Node, Partition, gpus_in, memory_in

_RECORD = re.compile(
    r"^JobId=(?P<job_id>\d+)(?P<place>(?: (?:Array|Het)Job\w+=\S+| ArrayTask\w+=\S+)*) "
    r"JobName=(?P<name>.*?) UserId=(?P<user>\S+)\((?P<uid>\d+)\) "
    r"GroupId=(?P<group>\S+)\((?P<gid>\d+)\)(?P<rest> .*)$",
    re.DOTALL,
)
_BEGINS = re.compile(r"^(?=JobId=\d+ (?:\w+=\S+ )*?JobName=)", re.MULTILINE)
_PATHS = re.compile(
    r" Command=(?P<command>.*?) WorkDir=(?P<folder>.*?)(?: (?:\w*Comment|StdErr|Power)=|\s*$)",
    re.DOTALL,
)
_PLAIN = {
    "account": "Account", "partition": "Partition", "qos": "QOS", "features": "Features",
    "dependency": "Dependency", "nodes": "NodeList", "job_state": "JobState",
    "state_reason": "Reason", "tres_per_node": "TresPerNode", "tres_per_job": "TresPerJob",
    "tres_per_task": "TresPerTask", "tres_per_socket": "TresPerSocket", "resv_name": "Reservation",
}  # fmt: skip
_NUMBERS = {
    "priority": "Priority", "restart_cnt": "Restarts", "requeue": "Requeue", "tasks": "NumTasks",
    "node_count": "NumNodes", "cpus": "NumCPUs", "submit_time": "SubmitTime",
    "eligible_time": "EligibleTime", "start_time": "StartTime", "end_time": "EndTime",
}  # fmt: skip
_PREFIXES = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


def job_records(text: str) -> list[Any]:
    """The jobs as records of slurmctld's; what is none stays a text, to be set aside."""
    pieces = [piece for piece in _BEGINS.split(text) if piece.strip()]
    return [_job(piece.rstrip("\n")) for piece in pieces]


def nodes_in(text: str) -> list[Node]:
    """The nodes."""
    return [
        Node(
            name=told["NodeName"],
            states=_states(told.get("State", "")),
            cpus=_whole(told.get("CPUTot")) or 0,
            memory_mb=_whole(told.get("RealMemory")) or 0,
            gpus=gpus_in(told.get("CfgTRES"), told.get("Gres")),
            alloc_cpus=_whole(told.get("CPUAlloc")) or 0,
            alloc_memory_mb=_whole(told.get("AllocMem")) or 0,
            features=_words(told.get("AvailableFeatures")),
            partitions=_words(told.get("Partitions")),
            reason=_reason(line),
        )
        for line, told in _lines(text, "NodeName=")
    ]


def partitions_in(text: str) -> list[Partition]:
    """The partitions."""
    return [
        Partition(
            name=told["PartitionName"],
            is_up=told.get("State") == "UP",
            nodes=told.get("Nodes", ""),
            total_nodes=_whole(told.get("TotalNodes")) or 0,
            total_cpus=_whole(told.get("TotalCPUs")) or 0,
            total_memory_mb=memory_in(told.get("TRES")),
            total_gpus=gpus_in(told.get("TRES")),
            max_time_s=_seconds(told.get("MaxTime")),
            default_time_s=_seconds(told.get("DefaultTime")),
            max_nodes=_whole(told.get("MaxNodes")),
            max_cpus_per_node=_whole(told.get("MaxCPUsPerNode")),
            max_memory_per_node_mb=_whole(told.get("MaxMemPerNode")),
            max_memory_per_cpu_mb=_whole(told.get("MaxMemPerCPU")),
            default_memory_per_node_mb=_whole(told.get("DefMemPerNode")),
            default_memory_per_cpu_mb=_whole(told.get("DefMemPerCPU")),
        )
        for _, told in _lines(text, "PartitionName=")
    ]


def cluster_in(text: str) -> str | None:
    """The cluster's name in what `scontrol show config` prints."""
    found = re.search(r"^ClusterName\s*=\s*(\S+)\s*$", text, re.MULTILINE)
    return found[1] if found else None


def _job(text: str) -> Any:
    found = _RECORD.match(text)
    if not found:
        return text
    paths = _PATHS.search(found["rest"])
    told = _first_values(found["rest"]) | _first_values(found["place"])
    record: dict[str, Any] = {name: _said(told.get(column)) for name, column in _PLAIN.items()}
    record |= {name: _whole(told.get(column)) for name, column in _NUMBERS.items()}
    # 22.05 tells only what a job has got, once it has.
    has_got = record["nodes"] is not None
    tres = _said(told.get("TRES"))
    code, _, signal = (told.get("ExitCode") or "").partition(":")
    return record | {
        "job_id": int(found["job_id"]),
        "array_job_id": _whole(told.get("ArrayJobId")),
        "array_task_id": _exactly(told.get("ArrayTaskId")),
        "het_job_id": _whole(told.get("HetJobId")),
        "het_job_offset": _whole(told.get("HetJobOffset")),
        "name": found["name"],
        "user_name": found["user"],
        "user_id": int(found["uid"]),
        "group_name": found["group"],
        "group_id": int(found["gid"]),
        "command": _said(paths["command"] if paths else None),
        "current_working_directory": _said(paths["folder"] if paths else None),
        "time_limit": _minutes(told.get("TimeLimit")),
        "memory_per_cpu": _megabytes(told.get("MinMemoryCPU")),
        "memory_per_node": _megabytes(told.get("MinMemoryNode")),
        "tres_req_str": _said(told.get("ReqTRES")) or (None if has_got else tres),
        "tres_alloc_str": _said(told.get("AllocTRES")) or (tres if has_got else None),
        "exit_code": {"return_code": _whole(code), "signal": {"id": _whole(signal)}},
    }


def _lines(text: str, beginning: str) -> Iterator[tuple[str, dict[str, str]]]:
    for line in text.splitlines():
        if line.startswith(beginning):
            yield line, _first_values(line)


def _first_values(text: str) -> dict[str, str]:
    """Each column's value where it first stands; what users wrote comes behind all that is read."""
    values: dict[str, str] = {}
    for name, value in re.findall(r"(?:^|(?<=\s))([A-Za-z][\w/:]*)=(\S*)", text):
        values.setdefault(name, value)
    return values


def _said(value: str | None) -> str | None:
    return None if value is None or value in ABSENT_WORDS else value


def _whole(value: str | None) -> int | None:
    """The number a value begins with: nodes may be told as a range."""
    found = re.match(r"\d+", value or "")
    return int(found[0]) if found else None


def _exactly(value: str | None) -> int | None:
    return int(value) if value and value.isdecimal() else None


def _seconds(value: str | None) -> int | None:
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", value or "")
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _minutes(value: str | None) -> Any:
    if value == "UNLIMITED":
        return {"set": False, "infinite": True, "number": 0}
    seconds = _seconds(value)
    return None if seconds is None else seconds // 60


def _megabytes(value: str | None) -> float | None:
    found = re.fullmatch(r"([\d.]+)([KMGTP]?)", value or "")
    return float(found[1]) * _PREFIXES[found[2]] if found else None


def _states(value: str) -> tuple[str, ...]:
    words = [word for word in re.sub(r"[^A-Z_+]", "", value).split("+") if word]
    silent = ["NOT_RESPONDING"] if "*" in value and "NOT_RESPONDING" not in words else []
    return (*words, *silent)


def _words(value: str | None) -> tuple[str, ...]:
    return tuple((_said(value) or "").split(",")) if _said(value) else ()


def _reason(line: str) -> str | None:
    """Why a node is set aside, without who said so and when."""
    found = re.search(r" Reason=(.*?)(?: \[[^\[\]]*@[^\[\]]*\])?\s*$", line)
    return found[1].strip() or None if found else None
