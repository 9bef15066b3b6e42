"""The replay's rows computed slowly: for every row, the whole log is read again from the beginning.

Written from what the catalogue says each feature means. Nothing is carried from row to row, so a
feature cannot see more than the few lines that choose its past let it see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from premortem.features.catalogue import CATALOGUE
from premortem.features.points import Point
from premortem.features.scripts import TRAITS, read_script
from premortem.jobs.outcomes import Cause

UNKNOWN = math.nan
Seen = Callable[["Job", int], bool]
LARGER = {
    "account": "cluster", "user": "account", "name": "user", "executable": "user", "shape": "user",
    "directory": "user", "script": "user", "program": "cluster", "partition": "cluster",
    "node": "cluster",
}  # fmt: skip
LABELS = ("cluster", *LARGER)
LOOKED_BACK = ("user", "name", "executable", "shape")
# The failure rate expected of a cluster of which nothing is known, and how many jobs that is worth.
FIRST_GUESS, GUESS_WEIGHT = 0.2, 5
# Of the failures expected, how many are expected to be early, and how many at the limit.
EARLY_PART, AT_LIMIT_PART = 0.5, 0.2
HOUR, DAY = 3600, 86400
SUBMITTED, STARTED, ENDED = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Job:
    """A job of the log: its fields, when it did what, and the groups it is in."""

    fields: dict[str, Any]
    key: tuple[str, int, datetime]
    submitted: int
    started: int | None
    ended: int | None
    groups: dict[str, Any]

    def number(self, name: str) -> float:
        value = self.fields.get(name)
        return UNKNOWN if value is None else float(value)

    @property
    def counts(self) -> bool:
        return self.fields["outcome"] in ("completed", "failed")

    @property
    def failed(self) -> bool:
        return bool(self.fields["outcome"] == "failed")

    @property
    def ran(self) -> bool:
        """Whether it is known how long it ran; one that never started ran if it took time."""
        took = self.fields.get("elapsed_s")
        return took is not None and (self.started is not None or took > 0)

    @property
    def limit_share(self) -> float:
        return ratio(self.number("elapsed_s"), self.number("time_limit_s"))

    @property
    def memory_share(self) -> float:
        by_task = ("req_memory_per_cpu_mb", "req_memory_per_node_mb", "req_memory_mb")
        asked = [self.number(name) for name in by_task if self.fields.get(name) is not None]
        return ratio(self.number("max_rss_mb"), asked[0]) if asked else UNKNOWN


@dataclass(frozen=True)
class OracleRows:
    values: np.ndarray[Any, np.dtype[np.float64]]
    jobs: list[int]
    moments: list[float]


def oracle_rows(labelled: pl.DataFrame, point: Point, *, zone: str) -> OracleRows:
    """The rows of all jobs in the point's population, in the order of the frame."""
    log = [job_of(record) for record in labelled.to_dicts()]
    values, places, moments = [], [], []
    for place, job in enumerate(log):
        now = moment(job, point)
        if now is not None:
            row = row_of(job, log, now, point.after_start_s, zone)
            if row.keys() != {feature.name for feature in CATALOGUE}:
                raise AssertionError("the oracle and the catalogue name different features")
            values.append([row[feature.name] for feature in CATALOGUE])
            places.append(place)
            moments.append(float(now))
    shape = (len(values), len(CATALOGUE))
    return OracleRows(np.array(values, dtype=float).reshape(shape), places, moments)


def moment(job: Job, point: Point) -> float | None:
    """When the job's row is made; None if it has none."""
    if point.after_start_s is None:
        return job.submitted
    if job.started is None:
        return None
    now = job.started + point.after_start_s
    over = point.after_start_s > 0 and job.ended is not None and job.ended <= now
    return None if over else now


def row_of(
    job: Job, log: Sequence[Job], now: float, elapsed: float | None, zone: str
) -> dict[str, float]:
    return {
        **request(job),
        **calendar(job, zone),
        **look_back(job, log, now, elapsed),
        **run(job, elapsed),
        **history(job, log, now, elapsed),
        **script(job),
        **usage(job, now, elapsed),
    }


# --- reading a record ---------------------------------------------------------------------------


def job_of(record: dict[str, Any]) -> Job:
    """Even by a clock that was put back no job starts before its submission or ends before that."""
    submitted = seconds(record["submit_time"])
    ran = record.get("elapsed_s") or 0
    started = None
    if record.get("start_time") is not None:
        started = max(seconds(record["start_time"]), submitted)
    elif record.get("alloc_cpus") is not None:
        started = submitted
    ended = None
    if record["outcome"] != "unfinished":
        began = submitted if started is None else started
        if record.get("end_time") is not None:
            ended = max(seconds(record["end_time"]), began)
        else:
            ended = began + ran
    key = (record["cluster"], record["job_id"], record["submit_time"])
    return Job(record, key, submitted, started, ended, groups_of(record))


def groups_of(record: dict[str, Any]) -> dict[str, Any]:
    """Each group the job is in; None where what would name it is missing."""
    cluster, user = record["cluster"], record.get("user")
    name, nodes = record.get("job_name"), record.get("node_list")
    directory = record.get("work_dir")
    account = record.get("account") if record.get("account") is not None else record.get("group")

    def named(*parts: Any) -> Any:
        return None if None in parts else (cluster, *parts)

    size = (record.get("req_cpus"), record.get("time_limit_s"))
    text = record.get("script")
    read = None if text is None else read_script(text)
    return {
        "cluster": (cluster,),
        "account": named(account),
        "user": named(user),
        "name": named(user, None if name is None else stem(name)),
        "executable": named(user, record.get("executable")),
        "shape": None if user is None else (cluster, user, size),
        "directory": named(user, None if directory is None else stem(directory)),
        "script": named(user, None if read is None else read.skeleton),
        "program": named(None if read is None else read.program),
        "partition": named(record.get("partition")),
        "node": named(None if nodes is None else first_node(nodes)),
    }


def stem(name: str) -> str:
    runs = groupby(name, key="0123456789".__contains__)
    return "".join("#" if number else "".join(letters) for number, letters in runs)


def first_node(nodes: str) -> str:
    """The first of the nodes in a list such as ``n1,n2`` or ``n[01-04,07]``."""
    before, bracket, after = nodes.partition("[")
    if not bracket or "," in before:
        return before.split(",")[0]
    return before + "".join(takewhile(str.isdigit, after))


def seconds(time: datetime) -> int:
    return math.floor(time.timestamp())


# --- the job itself -----------------------------------------------------------------------------


def request(job: Job) -> dict[str, float]:
    cpus, limit = job.number("req_cpus"), job.number("time_limit_s")
    memory, by_cpu = job.number("req_memory_mb"), job.number("req_memory_per_cpu_mb")
    return {
        "req_cpus": cpus,
        "req_nodes": job.number("req_nodes"),
        "req_tasks": job.number("req_tasks"),
        "time_limit_s": limit,
        "req_memory_mb": memory,
        "req_gpus": job.number("req_gpus"),
        "cpus_per_node": ratio(cpus, job.number("req_nodes")),
        "memory_per_cpu_mb": ratio(memory, cpus) if math.isnan(by_cpu) else by_cpu,
        "core_hours_asked": cpus * limit / HOUR,
        "limit_past_hour_s": limit % HOUR,
        "limit_past_day_s": limit % DAY,
        "cpus_halvings": halvings(cpus),
        "time_unlimited": job.number("time_unlimited"),
        "in_array": float(job.fields.get("array_job_id") is not None),
        "depends": float(job.fields.get("dependency") is not None),
        "priority": job.number("priority"),
    }


def halvings(cpus: float) -> float:
    if math.isnan(cpus) or cpus < 1:
        return UNKNOWN
    return max(n for n in range(21) if cpus % 2**n == 0)


def calendar(job: Job, zone: str) -> dict[str, float]:
    local = job.fields["submit_time"].astimezone(ZoneInfo(zone))
    return {
        "submit_hour": local.hour,
        "submit_weekday": local.weekday(),
        "submit_month": local.month,
        "submit_quarter": math.ceil(local.month / 3),
        "submit_week": math.ceil(local.timetuple().tm_yday / 7),
    }


def run(job: Job, elapsed: float | None) -> dict[str, float]:
    names = (
        "wait_s",
        "alloc_cpus",
        "alloc_nodes",
        "alloc_share",
        "elapsed_s",
        "limit_share",
        "limit_left_s",
    )
    if elapsed is None:
        return dict.fromkeys(names, UNKNOWN)
    limit, got = job.number("time_limit_s"), job.number("alloc_cpus")
    start = job.fields.get("start_time")
    waited = UNKNOWN if start is None else (start - job.fields["submit_time"]).total_seconds()
    share = ratio(got, job.number("req_cpus"))
    values = (
        waited,
        got,
        job.number("alloc_nodes"),
        share,
        elapsed,
        ratio(elapsed, limit),
        limit - elapsed,
    )
    return dict(zip(names, values, strict=True))


def script(job: Job) -> dict[str, float]:
    text = job.fields.get("script")
    names = [name for name, _ in TRAITS]
    traits = [UNKNOWN] * len(names) if text is None else read_script(text).traits
    return dict(zip(names, traits, strict=True))


def usage(job: Job, now: float, elapsed: float | None) -> dict[str, float]:
    """What the samples taken before now tell; their sums begin with nothing at the job's start."""
    names = [feature.name for feature in CATALOGUE if feature.chapter == "usage"]
    taken = [
        {name: UNKNOWN if value is None else value for name, value in sample.items()}
        | {"at": sample["at"].timestamp()}
        for sample in job.fields.get("samples") or ()
        if sample["at"].timestamp() < now
    ]
    if not elapsed or not taken:
        return dict.fromkeys(names, UNKNOWN)
    began, last = now - elapsed, taken[-1]
    age = last["at"] - began
    since = next((s for s in reversed(taken) if s["at"] <= last["at"] - age / 3), taken[0])
    lately = last["at"] - since["at"]
    cpus = [job.number(name) for name in ("alloc_cpus", "req_cpus") if job.number(name) > 0]
    power = cpus[0] if cpus else UNKNOWN
    asked = job.number("req_memory_mb") if job.number("req_memory_mb") > 0 else UNKNOWN
    sizes = [s["rss_mb"] for s in taken if not math.isnan(s["rss_mb"])]
    growth = ratio(last["rss_mb"] - since["rss_mb"], lately)
    moved = {id(s): s["read_mb"] + s["written_mb"] for s in (last, since)}
    busy = [began]
    for before, after in pairwise([{"at": began, "cpu_s": 0.0}, *taken]):
        took = after["at"] - before["at"]
        if took > 0 and (after["cpu_s"] - before["cpu_s"]) / took >= 0.05:
            busy.append(after["at"])
    values = (
        ratio(last["cpu_s"], age * power),
        ratio(last["cpu_s"] - since["cpu_s"], lately * power),
        now - busy[-1],
        last["rss_mb"],
        last["rss_mb"] / asked,
        max(sizes) / asked if sizes else UNKNOWN,
        growth,
        (asked - last["rss_mb"]) / growth if growth > 0 else UNKNOWN,
        ratio(last["read_mb"], age),
        ratio(last["written_mb"], age),
        ratio(moved[id(last)] - moved[id(since)], lately),
        last["processes"],
        now - last["at"],
    )
    return dict(zip(names, values, strict=True))


# --- the request beside those before it ---------------------------------------------------------


def look_back(job: Job, log: Sequence[Job], now: float, elapsed: float | None) -> dict[str, float]:
    """As seen when the job was submitted, or at the moment of the row if that came no later.

    A later row has seen the job enter the queue, behind those of its second that come before it.
    """
    at = min(now, job.submitted)
    behind = elapsed is not None and job.submitted < now

    def seen_until(other: Job, what: int) -> bool:
        when = (other.submitted, other.started, other.ended)[what]
        ahead = behind and what == SUBMITTED and other.key < job.key
        return when is not None and (when < at or (when == at and ahead))

    earlier = [other for other in log if seen_until(other, SUBMITTED)]
    values = {}
    for label in LOOKED_BACK:
        group = job.groups[label]
        past = in_order(
            (o for o in earlier if group is not None and o.groups[label] == group),
            lambda other: other.submitted,
        )
        cpus, limit, memory = (
            size(job, name) for name in ("req_cpus", "time_limit_s", "req_memory_mb")
        )
        last = past[-1] if past else None
        values |= {
            f"{label}_since_submit_s": at - last.submitted if last else UNKNOWN,
            f"{label}_cpus_change": cpus - size(last, "req_cpus"),
            f"{label}_limit_change": limit - size(last, "time_limit_s"),
            f"{label}_memory_change": memory - size(last, "req_memory_mb"),
            f"{label}_cpus_unusual": cpus - slow_average(size(o, "req_cpus") for o in past),
            f"{label}_limit_unusual": limit - slow_average(size(o, "time_limit_s") for o in past),
            f"{label}_retry_unchanged": retry_unchanged(job, last, log, seen_until, label),
        }
    return values | of_largest(job, log, seen_until) | likeness(job, earlier)


def retry_unchanged(
    job: Job, last: Job | None, log: Sequence[Job], seen: Seen, label: str
) -> float:
    """Whether the same is asked for again, if the last one to end failed."""
    alike = (o for o in log if o.groups[label] == job.groups[label])
    over = in_order((o for o in alike if o.counts and seen(o, ENDED)), lambda o: o.ended)
    if last is None or not over or not over[-1].failed:
        return UNKNOWN
    asked = ("req_cpus", "time_limit_s", "req_memory_mb")
    return float(all(job.fields.get(name) == last.fields.get(name) for name in asked))


def of_largest(job: Job, log: Sequence[Job], seen: Seen) -> dict[str, float]:
    """The request against the largest that started in the partition, or on the cluster."""
    label = "partition" if job.groups["partition"] is not None else "cluster"
    others = [o for o in log if o.groups[label] == job.groups[label] and seen(o, STARTED)]
    found = {}
    for name, size in sizes(job).items():
        past = [sizes(o)[name] for o in others if not math.isnan(sizes(o)[name])]
        found[f"partition_{name}_of_largest"] = ratio(size, max(past)) if past else UNKNOWN
    return found


def sizes(job: Job) -> dict[str, float]:
    cpus, memory = job.number("req_cpus"), job.number("req_memory_mb")
    nodes = job.number("req_nodes")
    return {
        "cpus": cpus,
        "limit": job.number("time_limit_s"),
        "memory": memory,
        "node_cpus": ratio(cpus, nodes),
        "node_memory": ratio(memory, nodes),
    }


def likeness(job: Job, earlier: Sequence[Job]) -> dict[str, float]:
    """How many of the first eight directories of two paths are the same, of the longer one's."""
    mine = [
        o
        for o in earlier
        if o.groups["user"] is not None and o.groups["user"] == job.groups["user"]
    ]
    last = in_order(mine, lambda other: other.submitted)[-1:]
    paths = [
        [p for p in (j.fields.get("work_dir") or "").split("/") if p][:8] for j in (job, *last)
    ]
    if len(paths) < 2 or not all(paths):
        return {"directory_likeness": UNKNOWN}
    common = takewhile(lambda pair: pair[0] == pair[1], zip(*paths, strict=False))
    return {"directory_likeness": len(list(common)) / max(map(len, paths))}


def size(job: Job | None, name: str) -> float:
    return UNKNOWN if job is None else math.log1p(job.number(name))


# --- what became of others ----------------------------------------------------------------------


def history(job: Job, log: Sequence[Job], now: float, elapsed: float | None) -> dict[str, float]:
    values: dict[str, float] = {}
    # What is expected of all jobs of a group, of those that started, of those that ran as long.
    rates: dict[str, tuple[float, float, float]] = {}
    for label in LABELS:
        expected = rates[LARGER[label]] if label in LARGER else (FIRST_GUESS,) * 3
        group = job.groups[label]
        if group is None or (label == "node" and elapsed is None):
            names = [f.name for f in CATALOGUE if f.chapter == "history"]
            told = {n: UNKNOWN for n in names if n.startswith(f"{label}_")}
            # A group that is not there hands on what its larger group expects.
            rates[label] = expected
        else:
            others = [other for other in log if other.groups[label] == group]
            statistics = statistics_of(job, others, now, elapsed, expected, on_node=label == "node")
            told = {f"{label}_{name}": value for name, value in statistics.items()}
            kinds = ("failure_rate", "started_failure_rate", "survivor_failure_rate")
            rates[label] = (statistics[kinds[0]], statistics[kinds[1]], statistics[kinds[2]])
        values |= told
    return values


def statistics_of(
    job: Job,
    others: list[Job],
    now: float,
    elapsed: float | None,
    rates: tuple[float, float, float],
    *,
    on_node: bool,
) -> dict[str, float]:
    """What a group has seen strictly before `now`; `rates` are its larger group's failure rates.

    A node hears of a job only once it has started there.
    """
    expected, of_started, of_survivors = rates
    if on_node:
        others = [o for o in others if o.started is not None]
    over = in_order(
        (o for o in others if o.ended is not None and o.ended < now and o.counts),
        lambda other: other.ended,
    )
    failures = [o for o in over if o.failed]
    runs = [o for o in over if o.ran]
    last_run = runs[-1] if runs else None
    pending, running = queue(others, now, on_node=on_node)
    rate = drawn(len(failures), len(over), expected)
    usual = slow_average(math.log1p(o.number("elapsed_s")) for o in runs)
    early = [o for o in runs if o.failed and o.number("elapsed_s") < 120]
    at_limit = [o for o in runs if o.failed and o.limit_share >= 0.98]
    limit = size(job, "time_limit_s")
    return {
        "ended": len(over),
        "failure_rate": rate,
        "failure_rate_1d": drawn(faded(failures, now, DAY), faded(over, now, DAY), rate),
        "failure_rate_14d": drawn(faded(failures, now, 14 * DAY), faded(over, now, 14 * DAY), rate),
        "failures_1h": faded(failures, now, HOUR),
        "ends_1h": faded(over, now, HOUR),
        "last_outcome": float(over[-1].failed) if over else UNKNOWN,
        "last_cause": cause_code(over[-1]) if over else UNKNOWN,
        "streak": streak(over),
        "since_end_s": now - over[-1].ended if over else UNKNOWN,
        "since_failure_s": now - failures[-1].ended if failures else UNKNOWN,
        "pending": pending,
        "running": running,
        "usual_elapsed": usual,
        "usual_limit_share": slow_average(o.limit_share for o in runs),
        "usual_memory_share": slow_average(o.memory_share for o in runs),
        "last_elapsed_s": last_run.number("elapsed_s") if last_run else UNKNOWN,
        "last_limit_share": last_run.limit_share if last_run else UNKNOWN,
        "early_failure_rate": drawn(len(early), len(over), expected * EARLY_PART),
        "limit_failure_rate": drawn(len(at_limit), len(over), expected * AT_LIMIT_PART),
        "started_failure_rate": survivors(runs, 0, of_started),
        "survivor_failure_rate": survivors(runs, elapsed, of_survivors),
        "elapsed_unusual": UNKNOWN if elapsed is None else math.log1p(elapsed) - usual,
        "limit_slack": limit - usual,
    }


def queue(others: list[Job], now: float, *, on_node: bool) -> tuple[int, int]:
    """Jobs waiting and running just before `now`, counted as an observer at the door would."""
    seen = [
        (when, what, other.key, other)
        for other in others
        for what, when in enumerate((other.submitted, other.started, other.ended))
        if when is not None and when < now and not (on_node and what == SUBMITTED)
    ]
    pending = running = 0
    for _, what, _, other in sorted(seen, key=lambda event: event[:3]):
        if what == SUBMITTED:
            pending += 1
        elif what == STARTED:
            pending, running = max(0, pending - 1), running + 1
        elif other.started is not None:
            running = max(0, running - 1)
        else:
            pending = max(0, pending - 1)
    return pending, running


def survivors(runs: list[Job], elapsed: float | None, expected: float) -> float:
    """Of those that passed the last mark this job has passed, the share that failed."""
    if elapsed is None:
        return UNKNOWN
    passed = [mark for mark in (0, 2 * 60, 10 * 60, HOUR, 4 * HOUR) if elapsed >= mark]
    alike = [o for o in runs if o.number("elapsed_s") >= passed[-1]]
    return drawn(sum(o.failed for o in alike), len(alike), expected)


def streak(over: list[Job]) -> float:
    if not over:
        return UNKNOWN
    alike = len(list(takewhile(lambda o: o.failed == over[-1].failed, reversed(over))))
    return alike if over[-1].failed else -alike


def cause_code(job: Job) -> float:
    cause = job.fields.get("cause")
    return 0.0 if cause is None else 1.0 + list(Cause).index(Cause(cause))


def faded(over: list[Job], now: float, half_life: float) -> float:
    return sum(2.0 ** -((now - job.ended) / half_life) for job in over if job.ended is not None)


def drawn(some: float, of: float, expected: float) -> float:
    """A share, drawn to what is expected as if five more jobs had shown just that."""
    return (some + GUESS_WEIGHT * expected) / (of + GUESS_WEIGHT)


def slow_average(values: Iterable[float]) -> float:
    """The mean of the first ten values known; from then on a new one weighs a tenth."""
    average, seen = UNKNOWN, 0
    for value in values:
        if not math.isnan(value):
            seen += 1
            weight = max(1 / seen, 0.1)
            average = value if seen == 1 else (1 - weight) * average + weight * value
    return average


def ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else UNKNOWN


def in_order(jobs: Iterable[Job], time: Callable[[Job], Any]) -> list[Job]:
    """By time; those of the same second by their key."""
    return sorted(jobs, key=lambda job: (time(job), job.key))
