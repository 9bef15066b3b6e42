"""From the generator's own columns to frames of job fields, with names and Slurm's spellings."""

from __future__ import annotations

import polars as pl

from premortem.jobs.fields import BY_NAME, FIELDS
from premortem.jobs.wording import filled
from premortem.testing.fates import DEADLINE, NEVER, ORPHANED, STATES, STEP_OUT_OF_MEMORY
from premortem.testing.habits import Programs, Users
from premortem.testing.machine import LIMITS_S, PARTITIONS
from premortem.testing.slurm_text import clock_text, size_text
from premortem.testing.work import ARRAY, CHAIN, Table

# What the steps of a job that ended so would show at worst.
_STEP_STATES = {
    "COMPLETED": "COMPLETED",
    "FAILED": "FAILED",
    "OUT_OF_MEMORY": "OUT_OF_MEMORY",
    "TIMEOUT": "CANCELLED",
    "NODE_FAIL": "CANCELLED",
    "PREEMPTED": "CANCELLED",
    "CANCELLED": "CANCELLED",
    "DEADLINE": "CANCELLED",
}
# People type few limits, and nodes are few: looking their texts up beats writing them out.
_LIMITS = pl.DataFrame({"limit_s": LIMITS_S})
_LIMIT_TEXTS = dict(_LIMITS.select("limit_s", text=clock_text(pl.col("limit_s") * 1000)).rows())
_NODE_NUMBERS = pl.Series([f"{number:03d}" for number in range(100)])
_WATTS_PER_CPU, _WATTS_PER_GPU = 4.5, 220.0


class Renderer:
    """Gives jobs the names and the looks of one cluster's."""

    def __init__(self, cluster: str, users: Users, programs: Programs) -> None:
        self._cluster = cluster
        owner = programs.user
        login = pl.Series(users.login)[owner]
        account = pl.Series(users.accounts)[users.account[owner]]
        self._programs = pl.DataFrame(
            {
                "user": login,
                "uid": users.uid[owner],
                "account": account,
                "gid": users.gid[owner],
                "job_name": programs.name,
                "req_nodes": programs.nodes,
                "tasks_per_node": programs.tasks_per_node,
                "cpus_per_task": programs.cpus_per_task,
                "gpus_per_node": programs.gpus_per_node,
                "by_cpu": programs.by_cpu,
                "requeue": programs.requeue,
                "features": programs.feature,
            }
        ).with_columns(
            work_dir=filled("/scratch/{}/{}/{}", "account", "user", "job_name"),
            script=_fixed_options() + filled(" {}.sbatch", "job_name"),
        )
        self._partitions = pl.DataFrame(
            {
                "partition": [p.name for p in PARTITIONS],
                "prefix": [p.prefix for p in PARTITIONS],
                "qos": [p.qos for p in PARTITIONS],
                "metered": [p.metered for p in PARTITIONS],
            }
        )

    def frame(self, jobs: Table, first_job_id: int) -> pl.DataFrame:
        """The jobs as fields, numbered from `first_job_id` in the order given.

        The tasks of an array and the links of a chain must follow each other.
        """
        program, partition = jobs["program"], jobs["partition"]
        own = pl.DataFrame(jobs).drop("program", "partition")
        frame = pl.concat(
            [own, self._programs[program], self._partitions[partition]], how="horizontal"
        )
        lazy = frame.lazy().with_row_index("job_id", offset=first_job_id)
        lazy = lazy.with_columns(pl.col("job_id").cast(pl.Int64), **_counts())
        lazy = lazy.with_columns(**self._request())
        lazy = lazy.with_columns(**_allocation())
        lazy = lazy.with_columns(**_outcome())
        names = [f.name for f in FIELDS if f.name in lazy.collect_schema()]
        return lazy.select(pl.col(name).cast(BY_NAME[name].kind.dtype) for name in names).collect()

    def _request(self) -> dict[str, pl.Expr]:
        is_array = pl.col("shape") == ARRAY
        by_cpu, memory = pl.col("by_cpu"), pl.col("memory_mb")
        limited = ~pl.col("unlimited")
        per_cpu = memory // (pl.col("tasks_per_node") * pl.col("cpus_per_task"))
        before = filled("afterok:{}", pl.col("job_id") - 1)
        option = pl.when(by_cpu).then(pl.lit("--mem-per-cpu=")).otherwise(pl.lit("--mem="))
        limit = pl.col("limit_s").replace_strict(_LIMIT_TEXTS, return_dtype=pl.String)
        return {
            "cluster": pl.lit(self._cluster),
            "array_job_id": pl.when(is_array).then(pl.col("job_id").first().over("serial")),
            "array_task_id": pl.when(is_array).then("task"),
            "group": pl.col("account"),
            "submit_time": _time("submit"),
            "eligible_time": _time("eligible"),
            "start_time": _time("start"),
            "end_time": _time("end"),
            "req_memory_per_node_mb": pl.when(~by_cpu).then(memory),
            "req_memory_per_cpu_mb": pl.when(by_cpu).then(per_cpu),
            "req_memory_mb": memory * pl.col("req_nodes"),
            "time_limit_s": pl.when(limited).then("limit_s"),
            "time_unlimited": pl.col("unlimited"),
            "dependency": pl.when(pl.col("follows")).then(before),
            "submit_line": pl.concat_str(
                pl.lit("sbatch -p "),
                "partition",
                pl.when(is_array & (pl.col("attempt") == 0))
                .then(filled(" --array=0-{}", pl.col("size") - 1))
                .otherwise(pl.lit("")),
                pl.lit(" -t "),
                pl.when(limited).then(limit).otherwise(pl.lit("UNLIMITED")),
                pl.lit(" "),
                option,
                size_text(pl.when(by_cpu).then(per_cpu).otherwise(memory), "M"),
                pl.when(pl.col("deadline_s") > 0)
                .then(filled(" --deadline=now+{}", "deadline_s"))
                .otherwise(pl.lit("")),
                pl.when(pl.col("follows"))
                .then(pl.concat_str(pl.lit(" -d "), before))
                .otherwise(pl.lit("")),
                "script",
            ),
        }


def _fixed_options() -> pl.Expr:
    """The part of a submission's command line that a program's user never changes."""
    nodes, tasks, cpus = pl.col("req_nodes"), pl.col("tasks_per_node"), pl.col("cpus_per_task")
    gpus = pl.col("gpus_per_node")
    return pl.concat_str(
        pl.when(nodes > 1).then(filled(" -N {}", nodes)).otherwise(pl.lit("")),
        pl.when(tasks > 1).then(filled(" --ntasks-per-node={}", tasks)).otherwise(pl.lit("")),
        pl.when(cpus > 1).then(filled(" -c {}", cpus)).otherwise(pl.lit("")),
        pl.when(gpus > 0).then(filled(" --gres=gpu:{}", gpus)).otherwise(pl.lit("")),
        pl.coalesce(filled(" -C {}", "features"), pl.lit("")),
        pl.when("requeue").then(pl.lit("")).otherwise(pl.lit(" --no-requeue")),
    )


def _counts() -> dict[str, pl.Expr]:
    tasks = pl.col("req_nodes") * pl.col("tasks_per_node")
    return {
        "req_tasks": tasks,
        "req_cpus": tasks * pl.col("cpus_per_task"),
        "req_gpus": pl.col("req_nodes") * pl.col("gpus_per_node"),
        # Whole cores of two threads.
        "granted": pl.col("req_nodes")
        * ((pl.col("tasks_per_node") * pl.col("cpus_per_task") + 1) // 2 * 2),
    }


def _allocation() -> dict[str, pl.Expr]:
    ran = pl.col("ran")
    first, nodes = pl.col("node") + 1, pl.col("req_nodes")
    number = pl.lit(_NODE_NUMBERS).gather(first)
    last = pl.lit(_NODE_NUMBERS).gather(first + nodes - 1)
    several = filled("{}[{}-{}]", "prefix", number, last)
    gpus = pl.when(pl.col("req_gpus") > 0).then(filled(",gres/gpu={}", "req_gpus"))
    rest = pl.concat_str(
        gpus.otherwise(pl.lit("")),
        pl.lit(",mem="),
        size_text(pl.col("req_memory_mb"), "M"),
        pl.lit(",node="),
        nodes.cast(pl.String),
    )
    granted_tres = filled("billing={},cpu={}{}", "granted", "granted", rest)
    return {
        "req_tres": filled("billing={},cpu={}{}", "req_cpus", "req_cpus", rest),
        "alloc_tres": pl.when(ran).then(granted_tres),
        "alloc_nodes": pl.when(ran).then(nodes),
        "alloc_cpus": pl.when(ran).then("granted"),
        "alloc_memory_mb": pl.when(ran).then("req_memory_mb"),
        "alloc_gpus": pl.when(ran).then("req_gpus"),
        "node_list": pl.when(ran).then(
            pl.when(nodes > 1).then(several).otherwise(pl.concat_str("prefix", number))
        ),
        "restart_count": pl.col("restarts"),
    }


def _outcome() -> dict[str, pl.Expr]:
    ran, fate, elapsed = pl.col("ran"), pl.col("fate"), pl.col("elapsed")
    state = fate.replace_strict(dict(enumerate(STATES)), return_dtype=pl.String)
    in_step = fate == STEP_OUT_OF_MEMORY
    by_fate = dict(enumerate(_STEP_STATES[state] for state in STATES))
    by_fate[STEP_OUT_OF_MEMORY] = "OUT_OF_MEMORY"
    wait = pl.col("start") - pl.col("eligible")
    watts = pl.col("req_cpus") * _WATTS_PER_CPU + pl.col("req_gpus") * _WATTS_PER_GPU
    return {
        "state": state,
        "step_state": pl.when(ran).then(fate.replace_strict(by_fate, return_dtype=pl.String)),
        "derived_exit_code": pl.lit(0),
        "derived_exit_signal": pl.when(in_step).then(125).otherwise(0),
        "reason": pl.when(fate == ORPHANED)
        .then(pl.lit("DependencyNeverSatisfied"))
        .when(fate == DEADLINE)
        .then(pl.lit("DeadLine"))
        .when(~ran | (wait > 600))
        .then(pl.lit("Priority"))
        .when(wait > 60)
        .then(pl.lit("Resources"))
        .when((pl.col("shape") == CHAIN) & pl.col("follows"))
        .then(pl.lit("Dependency")),
        "elapsed_s": elapsed,
        "cpu_user_s": pl.col("user_s"),
        "cpu_system_s": pl.col("system_s"),
        "cpu_total_s": pl.col("cpu_s"),
        "max_rss_mb": pl.when(ran).then(pl.col("rss_kb") / 1024),
        "avg_disk_read_mb": pl.when(ran).then("read_mb"),
        "avg_disk_write_mb": pl.when(ran).then("write_mb"),
        "energy_j": pl.when(ran & pl.col("metered")).then((elapsed * watts).round()),
    }


def _time(name: str) -> pl.Expr:
    """Unix seconds as a time; null where it never came."""
    moment = pl.when(pl.col(name) != NEVER).then(pl.col(name) * 1_000_000)
    return moment.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
