"""Job records as the numbers and group names that the replay works on."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from premortem.features import layout as L
from premortem.features.scripts import Script, read_script
from premortem.jobs.frame import SCHEMA
from premortem.jobs.names import name_stem, stem
from premortem.jobs.outcomes import Cause

Array = np.ndarray[Any, np.dtype[Any]]

# Every field the facts are made of.
INPUTS: tuple[str, ...] = (
    "cluster", "job_id", "submit_time", "start_time", "end_time", "user", "group", "account",
    "partition", "job_name", "executable", "req_nodes", "req_cpus", "req_tasks",
    "req_memory_per_node_mb", "req_memory_per_cpu_mb", "req_memory_mb", "time_limit_s",
    "time_unlimited", "req_gpus", "dependency", "priority", "array_job_id", "alloc_nodes",
    "alloc_cpus", "node_list", "elapsed_s", "max_rss_mb", "work_dir", "script",
)  # fmt: skip

_NO_TRAITS = np.full(L.SCRIPT_WIDTH, np.nan)
_SEPARATOR = "\x1f"
# The first node of `n02,n01` is n02, that of `n[02,04]` too.
_FIRST_NODE = r"^([^,\[]+)(?:\[([0-9]+))?"
_CAUSES = {str(cause): float(code) for code, cause in enumerate(Cause, start=1)}


@dataclass(frozen=True, slots=True)
class Facts:
    """Jobs as numbers, one row each, in the order of the frame they came from.

    `submitted`, `started` and `ended` are when the replay hears of it, NaN for never. `names` are
    the groups each job is in, one column a group, null for none. `traits` are those of each
    different script, the first row being that of no script, and `scripts` tells which is whose.
    """

    values: Array
    traits: Array
    scripts: Array
    names: pl.DataFrame
    submitted: Array
    started: Array
    ended: Array
    order: Array

    @property
    def outcomes(self) -> Array:
        """1 for jobs that failed, 0 for those that completed, NaN for all others."""
        found: Array = self.values[:, L.OUTCOME]
        return found

    @property
    def users(self) -> Array:
        """The number of each job's user, the same for the same one; -1 for nobody known."""
        return self._numbered(L.USER)

    @property
    def clusters(self) -> Array:
        """The number of each job's cluster."""
        return self._numbered(L.CLUSTER)

    def _numbered(self, group: int) -> Array:
        ranks = self.names[str(group)].rank("dense").cast(pl.Int64) - 1
        return ranks.fill_null(-1).to_numpy()


def facts_of(jobs: pl.DataFrame, *, zone: str) -> Facts:
    """The facts of labelled jobs (`outcome` and `cause` of a label policy); `zone` is the site's.

    A job with an allocation but no known start, as in logs without wait times, counts as started
    when it was submitted; its wait stays unknown.
    """
    missing = [
        pl.lit(None, SCHEMA[name]).alias(name) for name in INPUTS if name not in jobs.columns
    ]
    known = jobs.lazy().with_columns(missing)
    traits, scripts, told = _scripts(known.select("script").collect().to_series())
    known = known.with_columns(told[scripts].get_columns())
    started = pl.col("start_time").is_not_null() | pl.col("alloc_cpus").is_not_null()
    begun = pl.coalesce(_seconds("start_time"), _seconds("submit_time"))
    over = pl.col("outcome") != "unfinished"
    times = (
        known.select(
            submitted=_seconds("submit_time"),
            # A clock that jumped back does not let a job end before it began.
            started=pl.when(started).then(pl.max_horizontal(begun, _seconds("submit_time"))),
            ended=_seconds("end_time"),
            ran=pl.col("elapsed_s").fill_null(0),
            over=over,
        )
        .with_columns(
            ended=pl.coalesce("ended", pl.coalesce("started", "submitted") + pl.col("ran"))
        )
        .with_columns(
            ended=pl.when("over").then(pl.max_horizontal("ended", "started", "submitted"))
        )
    )
    collected = times.collect()
    order = known.select(pl.struct("cluster", "job_id", "submit_time").rank("ordinal")).collect()
    values = np.empty((jobs.height, L.FACTS))
    values[:, : L.PATH] = known.select(_values(started, zone)).collect().to_numpy()
    values[:, L.PATH :] = _paths(known.select("work_dir").collect().to_series())
    return Facts(
        values=values,
        traits=traits,
        scripts=scripts,
        names=known.select(_names()).collect(),
        submitted=collected["submitted"].to_numpy(),
        started=collected["started"].to_numpy(),
        ended=collected["ended"].to_numpy(),
        order=order.to_series().to_numpy(),
    )


def has_values(facts: Facts, *, sampled: bool) -> Array:
    """Of each feature, by its place, whether any of these jobs can have a value for it.

    Jobs that tell nothing of names, scripts or nodes leave whole groups of features empty.
    """
    found = np.ones(L.ROW_WIDTH, dtype=bool)
    for group in range(L.GROUPS):
        if facts.names[str(group)].null_count() == facts.names.height:
            at = L.GROUPS_AT + group * L.GROUP_WIDTH
            found[at : at + L.GROUP_WIDTH] = False
            if group in L.LOOKED_BACK:
                at = L.LOOK_AT + L.LOOKED_BACK.index(group) * L.LOOK_WIDTH
                found[at : at + L.LOOK_WIDTH] = False
    found[L.SCRIPT_AT : L.USAGE_AT] = len(facts.traits) > 1
    found[L.USAGE_AT :] = sampled
    return found


def _values(started: pl.Expr, zone: str) -> list[pl.Expr]:
    local = pl.col("submit_time").dt.convert_time_zone(zone)
    offset = (local.dt.base_utc_offset() + local.dt.dst_offset()).dt.total_seconds()
    per_task = pl.coalesce("req_memory_per_cpu_mb", "req_memory_per_node_mb", "req_memory_mb")
    columns: dict[int, pl.Expr] = {
        L.SUBMITTED_AT: _seconds("submit_time"),
        L.UTC_OFFSET: offset,
        L.CPUS: pl.col("req_cpus"),
        L.NODES: pl.col("req_nodes"),
        L.TASKS: pl.col("req_tasks"),
        L.MEMORY: pl.col("req_memory_mb"),
        L.MEMORY_PER_CPU: pl.coalesce(
            "req_memory_per_cpu_mb", _share(pl.col("req_memory_mb"), pl.col("req_cpus"))
        ),
        L.LIMIT: pl.col("time_limit_s"),
        L.UNLIMITED: pl.col("time_unlimited"),
        L.GPUS: pl.col("req_gpus"),
        L.IN_ARRAY: pl.col("array_job_id").is_not_null(),
        L.DEPENDS: pl.col("dependency").is_not_null(),
        L.PRIORITY: pl.col("priority"),
        L.WAITED: (pl.col("start_time") - pl.col("submit_time")).dt.total_seconds(),
        L.ALLOC_CPUS: pl.col("alloc_cpus"),
        L.ALLOC_NODES: pl.col("alloc_nodes"),
        L.STARTED: started,
        L.RAN: pl.col("elapsed_s"),
        L.OUTCOME: pl.col("outcome").replace_strict(
            {"completed": 0.0, "failed": 1.0}, default=None, return_dtype=pl.Float64
        ),
        L.CAUSE: pl.col("cause").replace_strict(_CAUSES, default=0.0, return_dtype=pl.Float64),
        L.MEMORY_SHARE: _share(pl.col("max_rss_mb"), per_task),
    }
    return [
        columns[place].cast(pl.Float64).fill_null(float("nan")).alias(str(place))
        for place in range(L.PATH)
    ]


def _scripts(texts: pl.Series) -> tuple[Array, Array, pl.DataFrame]:
    """Each different script's traits; which is whose; and their skeletons and programs."""
    distinct = texts.drop_nulls().unique(maintain_order=True)
    read = [_read(text) for text in distinct]
    places = np.zeros(len(texts), dtype=np.int64)
    if read:
        numbers = range(1, 1 + len(read))
        found = texts.replace_strict(distinct, numbers, default=0, return_dtype=pl.Int64)
        places = found.to_numpy()
    traits = np.full((1 + len(read), L.SCRIPT_WIDTH), np.nan, dtype=np.float32)
    traits[1:] = np.array([script.traits for script in read]).reshape(-1, L.SCRIPT_WIDTH)
    told = pl.DataFrame(
        {
            "skeleton": [None, *(script.skeleton for script in read)],
            "program": [None, *(script.program for script in read)],
        },
        schema={"skeleton": pl.String, "program": pl.String},
    )
    return traits, places, told


def _paths(directories: pl.Series) -> Array:
    """The parts of each directory as numbers; each directory is looked at once."""
    found = np.full((len(directories), L.PATH_DEPTH), np.nan)
    distinct = directories.drop_nulls().unique()
    if len(distinct):
        known = directories.is_not_null().to_numpy()
        table = np.array([_path(directory) for directory in distinct])
        places = directories.drop_nulls().replace_strict(
            distinct, range(len(distinct)), return_dtype=pl.Int64
        )
        found[known] = table[places.to_numpy()]
    return found


def _path(directory: str) -> list[float]:
    """One number for each beginning of a path: paths that begin alike begin with like numbers."""
    parts = [part for part in directory.split("/") if part][: L.PATH_DEPTH]
    so_far, found = 0, []
    for part in parts:
        so_far = zlib.crc32(f"/{part}".encode(errors="replace"), so_far)
        found.append(float(so_far))
    return found + [float("nan")] * (L.PATH_DEPTH - len(parts))


def _names() -> list[pl.Expr]:
    def joined(*parts: pl.Expr | str) -> pl.Expr:
        return pl.concat_str("cluster", *parts, separator=_SEPARATOR)

    shape = [pl.col(name).cast(pl.String).fill_null("") for name in ("req_cpus", "time_limit_s")]
    columns = {
        L.CLUSTER: pl.col("cluster"),
        L.ACCOUNT: joined(pl.coalesce("account", "group")),
        L.USER: joined("user"),
        L.NAME: joined("user", name_stem(pl.col("job_name"))),
        L.EXECUTABLE: joined("user", "executable"),
        L.SHAPE: joined("user", *shape),
        L.DIRECTORY: joined("user", name_stem(pl.col("work_dir"))),
        L.SCRIPT: joined("user", "skeleton"),
        L.PROGRAM: joined("program"),
        L.PARTITION: joined("partition"),
        L.NODE: joined(_first_node()),
    }
    return [columns[group].alias(str(group)) for group in range(L.GROUPS)]


def _first_node() -> pl.Expr:
    parts = pl.col("node_list").str.extract_groups(_FIRST_NODE)
    return pl.concat_str(parts.struct.field("1"), parts.struct.field("2").fill_null(""))


def facts_of_one(job: Mapping[str, Any], *, zone: str) -> tuple[Array, list[str | None]]:
    """The facts and group names of a single labelled job, without the cost of a frame.

    The same numbers, bit for bit, as `facts_of` gives for it.
    """
    told = job.get
    submitted, began, limit = told("submit_time"), told("start_time"), told("time_limit_s")
    cpus, total, per_cpu = told("req_cpus"), told("req_memory_mb"), told("req_memory_per_cpu_mb")
    per_task = next(
        (m for m in (per_cpu, told("req_memory_per_node_mb"), total) if m is not None), None
    )
    local = submitted.astimezone(ZoneInfo(zone)) if submitted else None
    values: dict[int, float | None] = {
        L.SUBMITTED_AT: _epoch(submitted),
        L.UTC_OFFSET: local.utcoffset().total_seconds() if local else None,
        L.CPUS: cpus,
        L.NODES: told("req_nodes"),
        L.TASKS: told("req_tasks"),
        L.MEMORY: total,
        L.MEMORY_PER_CPU: per_cpu if per_cpu is not None else _ratio(total, cpus),
        L.LIMIT: limit,
        L.UNLIMITED: told("time_unlimited"),
        L.GPUS: told("req_gpus"),
        L.IN_ARRAY: told("array_job_id") is not None,
        L.DEPENDS: told("dependency") is not None,
        L.PRIORITY: told("priority"),
        L.WAITED: int((began - submitted).total_seconds()) if began and submitted else None,
        L.ALLOC_CPUS: told("alloc_cpus"),
        L.ALLOC_NODES: told("alloc_nodes"),
        L.STARTED: has_started(job),
        L.RAN: told("elapsed_s"),
        L.OUTCOME: {"completed": 0.0, "failed": 1.0}.get(told("outcome") or ""),
        L.CAUSE: _CAUSES.get(told("cause") or "", 0.0),
        L.MEMORY_SHARE: _ratio(told("max_rss_mb"), per_task),
    }
    row = [_float(values[place]) for place in range(L.PATH)] + _path(told("work_dir") or "")
    return np.array(row), _names_of_one(job)


def traits_of_one(job: Mapping[str, Any]) -> Array:
    """The traits of a single job's script."""
    script = job.get("script")
    return _NO_TRAITS if script is None else np.array(_read(script).traits)


@lru_cache(maxsize=20_000)
def _read(text: str) -> Script:
    return read_script(text)


def has_started(job: Mapping[str, Any]) -> bool:
    """Whether a job has started, with or without a known time of it."""
    return job.get("start_time") is not None or job.get("alloc_cpus") is not None


def _names_of_one(job: Mapping[str, Any]) -> list[str | None]:
    told = job.get

    def joined(*parts: str | None) -> str | None:
        known = [told("cluster"), *parts]
        return None if None in known else _SEPARATOR.join(map(str, known))

    name, directory, nodes = told("job_name"), told("work_dir"), told("node_list")
    script = None if told("script") is None else _read(told("script"))
    first_node = re.match(_FIRST_NODE, nodes) if nodes else None
    account = told("account") if told("account") is not None else told("group")
    sizes = ["" if told(n) is None else str(told(n)) for n in ("req_cpus", "time_limit_s")]
    names = {
        L.CLUSTER: told("cluster"),
        L.ACCOUNT: joined(account),
        L.USER: joined(told("user")),
        L.NAME: joined(told("user"), None if name is None else stem(name)),
        L.EXECUTABLE: joined(told("user"), told("executable")),
        L.SHAPE: joined(told("user"), *sizes),
        L.DIRECTORY: joined(told("user"), None if directory is None else stem(directory)),
        L.SCRIPT: joined(told("user"), script.skeleton if script else None),
        L.PROGRAM: joined(script.program if script else None),
        L.PARTITION: joined(told("partition")),
        L.NODE: joined(first_node[1] + (first_node[2] or "") if first_node else None),
    }
    return [names[group] for group in range(L.GROUPS)]


def _epoch(moment: datetime | None) -> float | None:
    return None if moment is None else float(int(moment.timestamp()))


def _float(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _ratio(part: float | None, whole: float | None) -> float | None:
    """A quotient; none of nothing."""
    return None if part is None or whole is None or whole <= 0 else part / whole


def _share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """The same, by whole columns."""
    return pl.when(whole > 0).then(part / whole)


def _seconds(name: str) -> pl.Expr:
    return pl.col(name).dt.epoch("s").cast(pl.Float64)
