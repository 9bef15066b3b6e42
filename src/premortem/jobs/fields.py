"""The one table of job fields: what each is, its unit, and when it becomes known.

Store columns, frame schemas, record checks, the fold of sightings and the reference page all
derive from `FIELDS`. To add a field, add a row here and fill it in the sources that have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TypedDict

import polars as pl


class KnownAt(IntEnum):
    """The moment in a job's life from which a field may be used; later moments compare greater."""

    SUBMIT = 0
    START = 1
    RUNNING = 2
    END = 3

    def __str__(self) -> str:
        return self.name.lower()


class Kind(StrEnum):
    """What a field holds, independent of any store's or library's types."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    FLAG = "flag"
    TIME = "time"

    @property
    def dtype(self) -> pl.DataType:
        """The type of such a column in a frame; times are UTC."""
        return _DTYPES[self]


_DTYPES: dict[Kind, pl.DataType] = {
    Kind.INTEGER: pl.Int64(),
    Kind.NUMBER: pl.Float64(),
    Kind.TEXT: pl.String(),
    Kind.FLAG: pl.Boolean(),
    Kind.TIME: pl.Datetime("us", "UTC"),
}


class Group(StrEnum):
    """The chapters of the reference page."""

    IDENTITY = "identity"
    REQUEST = "request"
    ALLOCATION = "allocation"
    OUTCOME = "outcome"
    USAGE = "usage"
    PROVENANCE = "provenance"


@dataclass(frozen=True, slots=True)
class Field:
    """One job field. A number outside `least`…`most` marks its whole record as bad."""

    name: str
    kind: Kind
    known: KnownAt
    group: Group
    meaning: str
    unit: str = ""
    least: float | None = None
    most: float | None = None


class _Bounds(TypedDict, total=False):
    unit: str
    least: float
    most: float


_INT, _NUM, _TEXT, _FLAG, _TIME = Kind.INTEGER, Kind.NUMBER, Kind.TEXT, Kind.FLAG, Kind.TIME
_SUBMIT, _START, _RUNNING, _END = KnownAt
_IDENTITY, _REQUEST, _ALLOCATION, _OUTCOME, _USAGE, _PROVENANCE = Group

# Bounds far beyond any machine, there to catch garbage rather than ambition.
_ID = _Bounds(least=0, most=2**63 - 1)
_COUNT = _Bounds(least=0, most=1e9)
_MEMORY = _Bounds(unit="MiB", least=0, most=1e12)
_SECONDS = _Bounds(unit="s", least=0, most=3.2e9)
_CPU_SECONDS = _Bounds(unit="s", least=0, most=1e15)
_ENERGY = _Bounds(unit="J", least=0, most=1e15)
_CODE = _Bounds(least=-(2**31), most=2**32)

# fmt: off
FIELDS: tuple[Field, ...] = (
    Field("cluster", _TEXT, _SUBMIT, _IDENTITY, "Name of the cluster."),
    Field("job_id", _INT, _SUBMIT, _IDENTITY, "Slurm's own number of the job, unique among the cluster's live jobs. An array task known only as `base_task` has `base + (task + 1) * 2**32`.", **_ID),
    Field("array_job_id", _INT, _SUBMIT, _IDENTITY, "The array this job is a task of.", **_ID),
    Field("array_task_id", _INT, _SUBMIT, _IDENTITY, "Index of this task in its array.", **_ID),
    Field("het_job_id", _INT, _SUBMIT, _IDENTITY, "Leader of the heterogeneous job this is a component of.", **_ID),
    Field("het_offset", _INT, _SUBMIT, _IDENTITY, "Place of this component in its heterogeneous job, from 0.", **_ID),
    Field("submit_time", _TIME, _SUBMIT, _IDENTITY, "When the job was submitted, or requeued."),
    Field("eligible_time", _TIME, _START, _IDENTITY, "When the job could first have started: not held, dependencies met."),
    Field("start_time", _TIME, _START, _IDENTITY, "When the job started; absent if it never did."),
    Field("end_time", _TIME, _END, _IDENTITY, "When the job ended, whether it had started or not."),
    Field("user", _TEXT, _SUBMIT, _IDENTITY, "Login name of the owner."),
    Field("uid", _INT, _SUBMIT, _IDENTITY, "Numeric id of the owner.", **_ID),
    Field("group", _TEXT, _SUBMIT, _IDENTITY, "Unix group the job runs as."),
    Field("gid", _INT, _SUBMIT, _IDENTITY, "Numeric id of that group.", **_ID),
    Field("account", _TEXT, _SUBMIT, _IDENTITY, "Account the job is charged to."),
    Field("partition", _TEXT, _SUBMIT, _REQUEST, "Partition (queue) asked for; several are separated by commas until one is chosen."),
    Field("qos", _TEXT, _SUBMIT, _REQUEST, "Quality of service."),
    Field("job_name", _TEXT, _SUBMIT, _REQUEST, "Name the user gave the job."),
    Field("executable", _TEXT, _SUBMIT, _REQUEST, "Program or script the job runs, as the source identifies it."),
    Field("work_dir", _TEXT, _SUBMIT, _REQUEST, "Directory the job was submitted from."),
    Field("submit_line", _TEXT, _SUBMIT, _REQUEST, "Command line of the submission, without its secrets."),
    Field("script", _TEXT, _SUBMIT, _REQUEST, "The batch script, secrets taken out."),
    Field("req_nodes", _INT, _SUBMIT, _REQUEST, "Nodes asked for.", **_COUNT),
    Field("req_cpus", _INT, _SUBMIT, _REQUEST, "CPUs (or processors) asked for.", **_COUNT),
    Field("req_tasks", _INT, _SUBMIT, _REQUEST, "Tasks asked for.", **_COUNT),
    Field("req_memory_per_node_mb", _NUM, _SUBMIT, _REQUEST, "Memory asked for on each node, where asked for in this way.", **_MEMORY),
    Field("req_memory_per_cpu_mb", _NUM, _SUBMIT, _REQUEST, "Memory asked for by CPU, where asked for in this way.", **_MEMORY),
    Field("req_memory_mb", _NUM, _SUBMIT, _REQUEST, "Memory asked for in total.", **_MEMORY),
    Field("time_limit_s", _INT, _SUBMIT, _REQUEST, "Time limit asked for; absent where it is unlimited or the partition's default.", **_SECONDS),
    Field("time_unlimited", _FLAG, _SUBMIT, _REQUEST, "Whether the time limit was explicitly unlimited."),
    Field("req_gpus", _INT, _SUBMIT, _REQUEST, "GPUs asked for in total.", **_COUNT),
    Field("req_tres", _TEXT, _SUBMIT, _REQUEST, "All trackable resources asked for, as Slurm writes them."),
    Field("features", _TEXT, _SUBMIT, _REQUEST, "Node features (constraint) asked for."),
    Field("dependency", _TEXT, _SUBMIT, _REQUEST, "Jobs this one waits for, as Slurm writes it."),
    Field("reservation", _TEXT, _SUBMIT, _REQUEST, "Reservation the job runs in."),
    Field("priority", _INT, _SUBMIT, _REQUEST, "Scheduling priority when first seen.", **_ID),
    Field("requeue", _FLAG, _SUBMIT, _REQUEST, "Whether Slurm may requeue the job after a node failure or preemption."),
    Field("alloc_partition", _TEXT, _START, _ALLOCATION, "Partition the job ran in, of those it asked for."),
    Field("alloc_nodes", _INT, _START, _ALLOCATION, "Nodes the job got.", **_COUNT),
    Field("alloc_cpus", _INT, _START, _ALLOCATION, "CPUs (or processors) the job got.", **_COUNT),
    Field("alloc_memory_mb", _NUM, _START, _ALLOCATION, "Memory the job got in total.", **_MEMORY),
    Field("alloc_gpus", _INT, _START, _ALLOCATION, "GPUs the job got in total.", **_COUNT),
    Field("alloc_tres", _TEXT, _START, _ALLOCATION, "All trackable resources the job got, as Slurm writes them."),
    Field("node_list", _TEXT, _START, _ALLOCATION, "Nodes the job ran on, as Slurm writes them."),
    Field("restart_count", _INT, _START, _ALLOCATION, "How often the job had been requeued or restarted.", **_COUNT),
    Field("state", _TEXT, _END, _OUTCOME, "Slurm's base state at the latest sighting; final once the job has ended."),
    Field("step_state", _TEXT, _END, _OUTCOME, "The most telling state among the job's steps: an out-of-memory step inside a job that merely reads FAILED."),
    Field("exit_code", _INT, _END, _OUTCOME, "What the job's script returned.", **_CODE),
    Field("exit_signal", _INT, _END, _OUTCOME, "Signal that ended the job's script, 0 for none.", **_CODE),
    Field("derived_exit_code", _INT, _END, _OUTCOME, "Highest return value among the job's steps.", **_CODE),
    Field("derived_exit_signal", _INT, _END, _OUTCOME, "Signal belonging to the derived exit code.", **_CODE),
    Field("reason", _TEXT, _END, _OUTCOME, "Why the job was last waiting, or why it failed; rewritten by Slurm until the end."),
    Field("elapsed_s", _INT, _RUNNING, _USAGE, "Time the job has run.", **_SECONDS),
    Field("cpu_user_s", _NUM, _RUNNING, _USAGE, "CPU time spent in user code, all processors together.", **_CPU_SECONDS),
    Field("cpu_system_s", _NUM, _RUNNING, _USAGE, "CPU time spent in the kernel, all processors together.", **_CPU_SECONDS),
    Field("cpu_total_s", _NUM, _RUNNING, _USAGE, "CPU time spent, all processors together.", **_CPU_SECONDS),
    Field("max_rss_mb", _NUM, _RUNNING, _USAGE, "Largest resident memory sampled in any task; a lower bound after a kernel out-of-memory kill.", **_MEMORY),
    Field("avg_disk_read_mb", _NUM, _RUNNING, _USAGE, "Data read by a task on average.", **_MEMORY),
    Field("avg_disk_write_mb", _NUM, _RUNNING, _USAGE, "Data written by a task on average.", **_MEMORY),
    Field("energy_j", _NUM, _RUNNING, _USAGE, "Energy consumed.", **_ENERGY),
    Field("source", _TEXT, _SUBMIT, _PROVENANCE, "Kind of source that told us last: swf, sacct, slurmdb, slurmctld, table."),
    Field("api_version", _TEXT, _SUBMIT, _PROVENANCE, "Version of the API or format that told us last."),
    Field("seen_at", _TIME, _SUBMIT, _PROVENANCE, "When that source said so: a file's modification time, or the time of the call."),
)
# fmt: on

BY_NAME: dict[str, Field] = {field.name: field for field in FIELDS}
KEY: tuple[str, ...] = ("cluster", "job_id", "submit_time")
PROVENANCE: tuple[str, ...] = tuple(f.name for f in FIELDS if f.group is Group.PROVENANCE)
