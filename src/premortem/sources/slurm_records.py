"""One job of Slurm's JSON, of any API version, as fields of the table.

Numbers come plain or as `{set, infinite, number}`, states as a text or a list, exit codes as an
object or as a raw wait status. Fields this code does not know are ignored; fields it knows and the
record lacks are absent. Times stay seconds since 1970.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from premortem.jobs.spellings import ABSENT_WORDS
from premortem.jobs.states import STEP_WEIGHT, normal_state

Json = Any
_NO_VALUE = {2**16 - 2, 2**32 - 2, 2**64 - 2}
_INFINITE = {2**32 - 1, 2**64 - 1}
_MEMORY_PER_CPU = 1 << 63
_MIB = 2**20


class BadRecord(Exception):
    """This record cannot be read; the message is the reason to keep with it."""


def fields_of(record: Json) -> dict[str, Json]:
    """The fields of one job, absent ones left out; raises `BadRecord`."""
    if not isinstance(record, dict):
        raise BadRecord(f"a job must be an object, found {type(record).__name__}")
    if "job_state" in record:
        fields = _controller_fields(record)
    elif "state" in record or "time" in record:
        fields = _accounting_fields(record)
    else:
        raise BadRecord("neither 'state' nor 'job_state': not a job of Slurm's")
    return {name: value for name, value in fields.items() if value is not None}


def _accounting_fields(job: dict[str, Json]) -> dict[str, Json]:
    time, required, tres = _object(job, "time"), _object(job, "required"), _object(job, "tres")
    array, het, state = _object(job, "array"), _object(job, "het"), _object(job, "state")
    association = _object(job, "association")
    requested, allocated = _tres(tres.get("requested")), _tres(tres.get("allocated"))
    code, signal = _exit(job.get("exit_code"))
    derived_code, derived_signal = _exit(job.get("derived_exit_code"))
    array_id, het_id = _id(array.get("job_id")), _id(het.get("job_id"))
    return {
        "cluster": _text(job.get("cluster")) or _text(association.get("cluster")),
        "job_id": _id(job.get("job_id")),
        "array_job_id": array_id,
        "array_task_id": _count(array.get("task_id")) if array_id else None,
        "het_job_id": het_id,
        "het_offset": _count(het.get("job_offset")) if het_id else None,
        "submit_time": _instant(time.get("submission")),
        "eligible_time": _instant(time.get("eligible")),
        "start_time": _instant(time.get("start")),
        "end_time": _instant(time.get("end")),
        "user": _text(job.get("user")) or _text(association.get("user")),
        "group": _text(job.get("group")),
        "account": _text(job.get("account")),
        "partition": _text(job.get("partition")),
        "qos": _text(job.get("qos")),
        "job_name": _text(job.get("name")),
        "work_dir": _text(job.get("working_directory")),
        "submit_line": _text(job.get("submit_line")),
        "features": _text(job.get("constraints")),
        "reservation": _text(_object(job, "reservation").get("name")),
        "priority": _count(job.get("priority")),
        "req_cpus": _count(required.get("CPUs")) or _whole(requested.get("cpu")),
        "req_nodes": _whole(requested.get("node")),
        "req_memory_mb": requested.get("mem"),
        **_memory(required.get("memory"), required),
        "req_gpus": _gpus(requested),
        "req_tres": _tres_text(requested),
        **_time_limit(time.get("limit")),
        "alloc_cpus": _whole(allocated.get("cpu")),
        "alloc_nodes": _whole(allocated.get("node")) or _count(job.get("allocation_nodes")),
        "alloc_memory_mb": allocated.get("mem"),
        "alloc_gpus": _gpus(allocated),
        "alloc_tres": _tres_text(allocated),
        "node_list": _text(job.get("nodes")),
        "restart_count": _count(job.get("restart_cnt")),
        "state": _state(state.get("current")),
        "reason": _text(state.get("reason")),
        "exit_code": code,
        "exit_signal": signal,
        "derived_exit_code": derived_code,
        "derived_exit_signal": derived_signal,
        "elapsed_s": _count(time.get("elapsed")),
        **_usage(time, _list(job, "steps"), allocated),
        "source": "slurmdb",
    }


def _controller_fields(job: dict[str, Json]) -> dict[str, Json]:
    requested, allocated = _tres(job.get("tres_req_str")), _tres(job.get("tres_alloc_str"))
    code, signal = _exit(job.get("exit_code"))
    derived_code, derived_signal = _exit(job.get("derived_exit_code"))
    array_id, het_id = _id(job.get("array_job_id")), _id(job.get("het_job_id"))
    nodes, tasks = _count(job.get("node_count")), _count(job.get("tasks"))
    requeue = job.get("requeue")
    return {
        "cluster": _text(job.get("cluster")),
        "job_id": _id(job.get("job_id")),
        "array_job_id": array_id,
        "array_task_id": _count(job.get("array_task_id")) if array_id else None,
        "het_job_id": het_id,
        "het_offset": _count(job.get("het_job_offset")) if het_id else None,
        "submit_time": _instant(job.get("submit_time")),
        "eligible_time": _instant(job.get("eligible_time")),
        "start_time": _instant(job.get("start_time")),
        "end_time": _instant(job.get("end_time")),
        "user": _text(job.get("user_name")),
        "uid": _count(job.get("user_id")),
        "group": _text(job.get("group_name")),
        "gid": _count(job.get("group_id")),
        "account": _text(job.get("account")),
        "partition": _text(job.get("partition")),
        "qos": _text(job.get("qos")),
        "job_name": _text(job.get("name")),
        "executable": _text(job.get("command")),
        "work_dir": _text(job.get("current_working_directory")),
        "submit_line": _text(job.get("submit_line")),
        "features": _text(job.get("features")),
        "dependency": _text(job.get("dependency")),
        "reservation": _text(job.get("resv_name")),
        "priority": _count(job.get("priority")),
        "requeue": bool(requeue) if isinstance(requeue, bool | int) else None,
        "req_cpus": _whole(requested.get("cpu")) or _count(job.get("cpus")),
        "req_nodes": _whole(requested.get("node")) or nodes,
        "req_tasks": tasks,
        "req_memory_mb": requested.get("mem"),
        **_memory(None, job),
        "req_gpus": _gpus(requested) or _requested_gpus(job, nodes, tasks),
        "req_tres": _text(job.get("tres_req_str")),
        **_time_limit(job.get("time_limit")),
        "alloc_cpus": _whole(allocated.get("cpu")),
        "alloc_nodes": _whole(allocated.get("node")),
        "alloc_memory_mb": allocated.get("mem"),
        "alloc_gpus": _gpus(allocated) or _detailed_gpus(job.get("gres_detail")),
        "alloc_tres": _text(job.get("tres_alloc_str")),
        "node_list": _text(job.get("nodes")),
        "restart_count": _count(job.get("restart_cnt")),
        "state": _state(job.get("job_state")),
        "reason": _text(job.get("state_reason")),
        "exit_code": code,
        "exit_signal": signal,
        "derived_exit_code": derived_code,
        "derived_exit_signal": derived_signal,
        "source": "slurmctld",
    }


def _usage(
    time: dict[str, Json], steps: list[Json], allocated: dict[str, float]
) -> dict[str, float | str | None]:
    """What the job used: its own figures, or those of its steps where it has none."""
    usage: dict[str, float | str | None] = {}
    for name in ("user", "system", "total"):
        own = _cpu_seconds(time.get(name))
        of_steps = [_cpu_seconds(_object(step, "time").get(name)) for step in steps]
        usage[f"cpu_{name}_s"] = own or _sum(of_steps) or own
    usage["max_rss_mb"] = _largest(_measured(step, "requested", "max", "mem") for step in steps)
    for name, kind in (("avg_disk_read_mb", "requested"), ("avg_disk_write_mb", "consumed")):
        usage[name] = _largest(_measured(step, kind, "average", "fs/disk") for step in steps)
    of_steps = [
        _number(_object(_object(step, "statistics"), "energy").get("consumed")) for step in steps
    ]
    usage["energy_j"] = allocated.get("energy") or _sum(of_steps)
    states = [normal_state(s) for step in steps if (s := step.get("state"))]
    usage["step_state"] = max(
        (state for state in states if state), key=lambda s: STEP_WEIGHT.get(s, -1), default=None
    )
    return usage


def _measured(step: Json, kind: str, statistic: str, resource: str) -> float | None:
    """A step's usage in MiB; Slurm files what was read under `requested`, written as `consumed`."""
    usage = _tres(_object(_object(step, "tres"), kind).get(statistic), memory_unit=1 / _MIB)
    value = usage.get(resource)
    return value / _MIB if value is not None and resource != "mem" else value


def _tres(value: Json, memory_unit: float = 1.0) -> dict[str, float]:
    """Resources and counts, memory in MiB, from a list of objects or a text."""
    counts: dict[str, float] = {}
    if isinstance(value, str):
        for entry in filter(None, value.split(",")):
            name, _, amount = entry.partition("=")
            found = re.fullmatch(r"([\d.]+)([KMGTPE]?)", amount)
            if found:
                power = "KMGTPE".find(found[2]) if found[2] else 1 if name == "mem" else -1
                unit = 1024.0 ** (power - 1 if name == "mem" else power + 1)
                counts[name] = float(found[1]) * unit
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict) and (count := _number(entry.get("count"))) is not None:
                kind, name = entry.get("type"), entry.get("name")
                label = f"{kind}/{name}" if name else f"{kind}"
                # Slurm marks what it did not measure with negative counts.
                if count >= 0:
                    counts[label] = count * memory_unit if label == "mem" else count
    return counts


def _tres_text(counts: dict[str, float]) -> str | None:
    entries = (f"{n}={c:.0f}{'M' if n == 'mem' else ''}" for n, c in counts.items())
    return ",".join(entries) or None


def _gpus(counts: dict[str, float]) -> int | None:
    typed = [count for name, count in counts.items() if name.startswith("gres/gpu:")]
    return _whole(counts.get("gres/gpu", sum(typed) if typed else None))


def _requested_gpus(job: dict[str, Json], nodes: int | None, tasks: int | None) -> int | None:
    """GPUs asked for by job, node, task or socket, where the cluster does not track them."""
    for name, times in (("job", 1), ("node", nodes), ("task", tasks), ("socket", 1)):
        text = job.get(f"tres_per_{name}")
        amounts = re.findall(r"gpu(?::[^:=,]*[A-Za-z][^:=,]*)?[:=](\d+)", str(text or ""))
        if amounts:
            return sum(map(int, amounts)) * (times or 1)
    return None


def _detailed_gpus(detail: Json) -> int | None:
    texts = detail if isinstance(detail, list) else []
    amounts = [n for text in texts for n in re.findall(r"gpu(?::[^:(,]+)?:(\d+)\(", str(text))]
    return sum(map(int, amounts)) if amounts else None


def _memory(joint: Json, holder: dict[str, Json]) -> dict[str, float | None]:
    """Memory per node and per CPU; one number with a flag bit until v0.0.39, two numbers after."""
    per_node, per_cpu = (_number(holder.get(f"memory_per_{name}")) for name in ("node", "cpu"))
    flagged = _number(joint)
    if flagged is not None:
        if flagged >= _MEMORY_PER_CPU:
            per_cpu = flagged - _MEMORY_PER_CPU
        else:
            per_node = flagged
    return {
        "req_memory_per_node_mb": per_node or None,
        "req_memory_per_cpu_mb": per_cpu or None,
    }


def _time_limit(minutes: Json) -> dict[str, int | bool | None]:
    value = _number(minutes, infinite=math.inf)
    if value is None:
        return {}
    if value == math.inf:
        return {"time_unlimited": True}
    return {"time_limit_s": round(value * 60), "time_unlimited": False}


def _exit(value: Json) -> tuple[int | None, int | None]:
    """Return value and signal, from an object or from the raw status of wait(2)."""
    if (
        isinstance(value, dict)
        and "return_code" in value
        or isinstance(value, dict)
        and "signal" in value
    ):
        signal = value.get("signal")
        if isinstance(signal, dict):
            signal = signal.get("id", signal.get("signal_id"))
        code, number = _count(value.get("return_code")), _count(signal)
        return code, number if number is not None or code is None else 0
    status = _count(value)
    return (None, None) if status is None else (status >> 8, status & 0x7F)


def _state(value: Json) -> str:
    if not isinstance(value, str | list) or not value:
        raise BadRecord(f"state is {value!r}, expected one of Slurm's job states")
    state = normal_state(value if isinstance(value, str) else [str(part) for part in value])
    if state is None:
        raise BadRecord(f"state is {value!r}, expected one of Slurm's job states")
    return state


def _number(value: Json, infinite: float | None = None) -> float | None:
    """A number in either spelling; None where it is not set."""
    if isinstance(value, dict):
        if value.get("infinite") is True:
            return infinite
        if value.get("set") is False:
            return None
        value = value.get("number")
    if value is None or value == "":
        return None
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,20}(\.\d+)?", value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise BadRecord(f"{str(value)[:60]!r} where a number was expected")
    if value in _INFINITE:
        return infinite
    return None if value in _NO_VALUE else value


def _count(value: Json) -> int | None:
    return _whole(_number(value))


def _whole(value: float | None) -> int | None:
    if value is None:
        return None
    if abs(value) >= 2**63:
        raise BadRecord(f"{value:g} is beyond any count")
    return int(value)


def _id(value: Json) -> int | None:
    """A number that is 0 where there is none."""
    return _count(value) or None


_instant = _id


def _cpu_seconds(value: Json) -> float | None:
    if not isinstance(value, dict) or "seconds" not in value:
        return _number(value)
    seconds, micros = _number(value.get("seconds")), _number(value.get("microseconds"))
    return None if seconds is None else seconds + (micros or 0) / 1e6


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _text(value: Json) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    text = str(value).strip()
    return None if text in ABSENT_WORDS else text


def _object(holder: Json, name: str) -> dict[str, Json]:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def _list(holder: dict[str, Json], name: str) -> list[Json]:
    value = holder.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
