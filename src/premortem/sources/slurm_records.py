"""One job of Slurm's JSON, of any API version, as fields of the table.

Fields this code does not know are ignored; fields it knows and the record lacks are absent. Times
stay seconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from premortem.jobs.states import STEP_WEIGHT
from premortem.sources.slurm_values import (
    BadRecord,
    Json,
    count,
    cpu_seconds,
    exit_status,
    identifier,
    instant,
    memory,
    number,
    part,
    parts,
    resources,
    resources_text,
    said,
    script,
    state,
    state_or_none,
    text,
    time_limit,
    whole,
)

_MIB = 2**20
# What an accounting record tells while the database still waits for the rest of it.
_TOLD_FIRST = ("cluster", "job_id", "submit_time", "user", "account", "state", "source")


def fields_of(record: Json) -> dict[str, Json]:
    """The fields of one job, absent ones left out; raises `BadRecord`."""
    if not isinstance(record, dict):
        raise BadRecord(f"a job must be an object, found {type(record).__name__}")
    if "job_state" in record:
        fields = _controller_fields(record)
    elif "state" in record or "time" in record:
        fields = _accounting_fields(record)
        if _is_requeued(fields, part(record, "state").get("current")):
            fields["state"] = "REQUEUED"
        if fields["state"] == "PENDING" and fields["start_time"]:
            # The database has heard of the start and not yet of the job: the rest is filler.
            fields = {name: fields[name] for name in _TOLD_FIRST}
    else:
        raise BadRecord("neither 'state' nor 'job_state': not a job of Slurm's")
    return {name: value for name, value in fields.items() if value is not None}


def _is_requeued(fields: dict[str, Json], current: Json) -> bool:
    """Whether it is a run that was put back in the queue, which v0.0.40 and later call pending."""
    flags = current if isinstance(current, list) else ()
    return fields["state"] == "PENDING" and bool(fields["end_time"]) and "REQUEUED" in flags


def _accounting_fields(job: dict[str, Json]) -> dict[str, Json]:
    time, required, tres = part(job, "time"), part(job, "required"), part(job, "tres")
    array, het, current = part(job, "array"), part(job, "het"), part(job, "state")
    association = part(job, "association")
    requested, allocated = resources(tres.get("requested")), resources(tres.get("allocated"))
    array_id, het_id = identifier(array.get("job_id")), identifier(het.get("job_id"))
    return {
        "cluster": text(job.get("cluster")) or text(association.get("cluster")),
        "job_id": identifier(job.get("job_id")),
        "array_job_id": array_id,
        "array_task_id": count(array.get("task_id")) if array_id else None,
        "het_job_id": het_id,
        "het_offset": count(het.get("job_offset")) if het_id else None,
        "submit_time": instant(time.get("submission")),
        "eligible_time": instant(time.get("eligible")),
        "start_time": instant(time.get("start")),
        "end_time": instant(time.get("end")),
        "user": text(job.get("user")) or text(association.get("user")),
        "group": text(job.get("group")),
        "account": text(job.get("account")),
        "partition": text(job.get("partition")),
        "qos": text(job.get("qos")),
        "job_name": text(job.get("name")),
        "work_dir": text(job.get("working_directory")),
        "submit_line": text(job.get("submit_line")),
        "script": script(job.get("script")),
        "features": text(job.get("constraints")),
        "reservation": _named(part(job, "reservation").get("name")),
        "priority": count(job.get("priority")),
        "req_cpus": count(required.get("CPUs")) or None,
        **memory(required),
        "req_tres": resources_text(requested),
        **time_limit(time.get("limit")),
        "alloc_nodes": count(job.get("allocation_nodes")) or None,
        "alloc_tres": resources_text(allocated),
        "node_list": said(job.get("nodes")),
        "restart_count": count(job.get("restart_cnt")),
        "state": state(current.get("current")),
        "reason": said(current.get("reason")),
        **_accounted_exit_codes(job, state(current.get("current"))),
        "elapsed_s": count(time.get("elapsed")),
        **_usage(time, parts(job, "steps"), allocated),
        "source": "slurmdb",
    }


def _controller_fields(job: dict[str, Json]) -> dict[str, Json]:
    array_id, het_id = identifier(job.get("array_job_id")), identifier(job.get("het_job_id"))
    nodes, tasks = count(job.get("node_count")), count(job.get("tasks"))
    requeue = job.get("requeue")
    # Once a job runs these are what it got; what it asked for is in the TRES list, if there is one.
    asked = (
        {} if text(job.get("tres_req_str")) else {"req_cpus": job.get("cpus"), "req_nodes": nodes}
    )
    return {
        "cluster": text(job.get("cluster")),
        "job_id": identifier(job.get("job_id")),
        "array_job_id": array_id,
        "array_task_id": count(job.get("array_task_id")) if array_id else None,
        "het_job_id": het_id,
        "het_offset": count(job.get("het_job_offset")) if het_id else None,
        "submit_time": instant(job.get("submit_time")),
        "eligible_time": instant(job.get("eligible_time")),
        "start_time": instant(job.get("start_time")),
        "end_time": instant(job.get("end_time")),
        "user": text(job.get("user_name")),
        "uid": count(job.get("user_id")),
        "group": text(job.get("group_name")),
        "gid": count(job.get("group_id")),
        "account": text(job.get("account")),
        "partition": text(job.get("partition")),
        "qos": text(job.get("qos")),
        "job_name": text(job.get("name")),
        "executable": text(job.get("command")),
        "work_dir": text(job.get("current_working_directory")),
        "submit_line": text(job.get("submit_line")),
        "features": text(job.get("features")),
        "dependency": text(job.get("dependency")),
        "reservation": text(job.get("resv_name")),
        "priority": count(job.get("priority")),
        "requeue": bool(requeue) if isinstance(requeue, bool | int) else None,
        **{name: count(value) for name, value in asked.items()},
        "req_tasks": tasks,
        **memory(job),
        "req_gpus": _requested_gpus(job, nodes, tasks),
        "req_tres": text(job.get("tres_req_str")),
        **time_limit(job.get("time_limit")),
        "alloc_gpus": _detailed_gpus(job.get("gres_detail")),
        "alloc_tres": text(job.get("tres_alloc_str")),
        "node_list": said(job.get("nodes")),
        "restart_count": count(job.get("restart_cnt")),
        "state": state(job.get("job_state")),
        "reason": said(job.get("state_reason")),
        **_exit_codes(job),
        "source": "slurmctld",
    }


def _exit_codes(job: dict[str, Json]) -> dict[str, int | None]:
    code, signal = exit_status(job.get("exit_code"))
    derived_code, derived_signal = exit_status(job.get("derived_exit_code"))
    return {
        "exit_code": code,
        "exit_signal": signal,
        "derived_exit_code": derived_code,
        "derived_exit_signal": derived_signal,
    }


def _named(value: Json) -> str | None:
    """A name; v0.0.38 has the number 0 where there is none."""
    return text(value) if isinstance(value, str) else None


def _accounted_exit_codes(job: dict[str, Json], ended: str) -> dict[str, int | None]:
    """Exit codes of accounting, which up to v0.0.38 calls success whatever was not a signal."""
    codes = _exit_codes(job)
    for name in ("exit_code", "derived_exit_code"):
        is_success = part(job, name).get("status") == "SUCCESS"
        if is_success and not (name == "exit_code" and ended == "COMPLETED"):
            codes[name] = None
    return codes


def _usage(
    time: dict[str, Json], steps: list[dict[str, Json]], allocated: dict[str, float]
) -> dict[str, float | str | None]:
    """What the job used: its own figures, or those of its steps where it has none."""
    usage: dict[str, float | str | None] = {}
    for name in ("user", "system", "total"):
        own = cpu_seconds(time.get(name))
        of_steps = (cpu_seconds(part(step, "time").get(name)) for step in steps)
        usage[f"cpu_{name}_s"] = own or _total(of_steps) or own
    # Slurm files what a step read, and its memory, under `requested`; what it wrote is `consumed`.
    usage["max_rss_mb"] = _largest(_measured_mb(s, "requested", "max", "mem") for s in steps)
    usage["avg_disk_read_mb"] = _largest(
        _measured_mb(step, "requested", "average", "fs/disk") for step in steps
    )
    usage["avg_disk_write_mb"] = _largest(
        _measured_mb(step, "consumed", "average", "fs/disk") for step in steps
    )
    energies = (number(part(part(s, "statistics"), "energy").get("consumed")) for s in steps)
    usage["energy_j"] = allocated.get("energy") or _total(energies)
    states = (state_or_none(step.get("state")) for step in steps)
    usage["step_state"] = max(
        filter(None, states), key=lambda word: STEP_WEIGHT.get(word, -1), default=None
    )
    return usage


def _measured_mb(step: Json, direction: str, statistic: str, resource: str) -> float | None:
    amounts = resources(part(part(step, "tres"), direction).get(statistic))
    return amounts[resource] / _MIB if resource in amounts else None


def _requested_gpus(job: dict[str, Json], nodes: int | None, tasks: int | None) -> int | None:
    """GPUs asked for by job, node, task or socket, where the cluster does not track them."""
    for share, times in (("job", 1), ("node", nodes), ("task", tasks), ("socket", 1)):
        wanted = str(job.get(f"tres_per_{share}") or "")
        amounts = re.findall(r"gpu(?::[^:=,]*[A-Za-z][^:=,]*)?[:=](\d+)", wanted)
        if amounts:
            return whole(sum(map(float, amounts)) * (times or 1))
    return None


def _detailed_gpus(detail: Json) -> int | None:
    entries = detail if isinstance(detail, list) else ()
    amounts = [n for entry in entries for n in re.findall(r"gpu(?::[^:(,]+)?:(\d+)\(", str(entry))]
    return whole(sum(map(float, amounts))) if amounts else None


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
