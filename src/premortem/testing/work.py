"""What is submitted: new pieces of work with their requests, and further attempts at failed ones.

A table of jobs is a dictionary of columns of equal length. The jobs of one submission (an array,
a chain of dependent jobs, a loop around sbatch) stand together and share their `serial`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from premortem.testing.habits import HABITS, KINDS, Array, Programs, Users
from premortem.testing.machine import (
    BATCH,
    BIGMEM,
    CPU_MEMORY_MB,
    DEBUG,
    GPU,
    LIMITS_S,
    NODE_MEMORY_MB,
    PARTITIONS,
    SCAVENGE,
    SHORT,
    Calendar,
    typed,
)

Table = dict[str, Array]

SINGLE, LOOP, ARRAY, CHAIN = range(4)

# Ways for work to be broken: the exit code and signal of each. The last never ends by itself.
BUGS: tuple[tuple[int, int], ...] = (
    (0, 0), (1, 0), (2, 0), (126, 0), (127, 0), (0, 11), (0, 6), (255, 0), (137, 0), (0, 0),
)  # fmt: skip
NO_BUG, HANGS = 0, len(BUGS) - 1
AT_ONCE = (2, 3, 4)  # bugs that end the job in its first seconds
_BUG_SHARES = (0.36, 0.1, 0.05, 0.15, 0.14, 0.04, 0.06, 0.04, 0.06)

# What is settled when a job is submitted, and so carried from one attempt to the next.
SUBMITTED: tuple[str, ...] = (
    "serial", "submit", "program", "shape", "size", "task", "attempt", "bug", "run_s", "need_mb",
    "watchful", "patience_s", "priority", "partition", "limit_s", "memory_mb", "memory_step",
    "unlimited", "deadline_s",
)  # fmt: skip
_MOST_ATTEMPTS, _MOST_ATTEMPTS_AT_MANY = 7, 3


def pick(table: Table, which: Array) -> Table:
    """The jobs at these places, or where a mask is true."""
    return {name: column[which] for name, column in table.items()}


def joined(tables: Sequence[Table]) -> Table:
    """The jobs of several tables, one after the other."""
    if len(tables) == 1:
        return tables[0]
    return {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}


def height(table: Table) -> int:
    """How many jobs a table has."""
    return len(table["serial"])


class Desk:
    """Where submissions come from. Every draw advances `rng`, so the order of calls matters."""

    def __init__(
        self,
        users: Users,
        programs: Programs,
        calendar: Calendar,
        rng: np.random.Generator,
        *,
        largest_array: int,
    ) -> None:
        self._users = users
        self._programs = programs
        self._calendar = calendar
        self._rng = rng
        self._largest_array = largest_array
        self._serials = 0

    def new_work(self, count: int, begin: int, end: int, shares: tuple[float, float]) -> Table:
        """So many new pieces of work submitted from `begin` up to `end`, by the cluster's rhythm.

        A piece of work is one job or more; those of a loop may be submitted after `end`.
        """
        rng, programs = self._rng, self._programs
        submit = self._calendar.time(rng.uniform(*shares, count))
        submit = np.clip(submit, begin, end - 1)
        progress = self._calendar.progress(submit)
        user = self._submitters(progress)
        place = (rng.random(count) ** 1.7 * self._users.program_count[user]).astype(np.int64)
        program = self._users.first_program[user] + place
        habit = self._users.habit[user]
        growth = np.array([h.growth for h in HABITS])[habit] ** progress
        margin = at_progress("margin", habit, progress) * programs.slack[program]
        bugs = at_progress("bugs", habit, progress) * programs.fragility[program]
        broken = rng.random(count) < bugs
        bug = np.where(broken, 1 + rng.choice(len(_BUG_SHARES), count, p=_BUG_SHARES), NO_BUG)
        shape, size = self._shapes(habit, programs.nodes[program])
        work = {
            "serial": self._new_serials(count),
            "submit": submit,
            "program": program,
            "shape": shape,
            "size": size,
            "attempt": np.zeros(count, np.int64),
            "bug": bug,
            "run_s": programs.run_s[program] * growth,
            "need_mb": programs.memory_mb[program] * growth,
            "watchful": rng.random(count) < 0.35,
            "patience_s": self._patience(habit),
            "priority": rng.integers(1000, 9000, count),
        }
        work["run_s"] *= rng.lognormal(0, programs.run_spread[program])
        work["need_mb"] *= rng.lognormal(0, 0.22, count)
        work |= self._requests(program, margin, shape)
        work["run_s"] = np.where(work["partition"] == DEBUG, work["run_s"] * 0.05, work["run_s"])
        return self._spread(work)

    def next_attempts(self, ended: Table) -> Table:
        """The attempts that follow failures: the jobs that did not complete, submitted again."""
        rng = self._rng
        first = np.flatnonzero(np.diff(ended["serial"], prepend=-1))
        group = np.cumsum(np.diff(ended["serial"], prepend=-1) != 0) - 1
        failed = ended["failed"]
        user = self._programs.user[ended["program"][first]]
        habit = self._users.habit[user]
        finished = np.maximum.reduceat(np.where(ended["completed"], 0, ended["end"]), first)
        chance = np.array([h.retry for h in HABITS])[habit]
        again = np.logical_or.reduceat(failed, first) & (rng.random(len(first)) < chance)
        many = np.diff(first, append=height(ended)) > 10
        most = np.where(many, _MOST_ATTEMPTS_AT_MANY, _MOST_ATTEMPTS)
        again &= ended["attempt"][first] + 1 < most
        progress = np.clip(self._calendar.progress(finished), 0, 1)
        fixed = rng.random(len(first)) < at_progress("fix", habit, progress)
        pause = rng.lognormal(np.log(np.array([h.pause_s for h in HABITS])[habit]), 0.9)
        due = finished + np.maximum(pause, 20).astype(np.int64)
        late = fixed & np.logical_or.reduceat(ended["timed_out"], first)
        full = fixed & np.logical_or.reduceat(ended["out_of_memory"], first)
        mended = fixed | (rng.random(len(first)) < 0.08)
        serial = self._new_serials(len(first))

        which = np.flatnonzero(again[group] & ~ended["completed"])
        group = group[which]
        table = pick({name: ended[name] for name in SUBMITTED}, which)
        table["serial"] = serial[group]
        table["submit"] = due[group]
        table["attempt"] = table["attempt"] + 1
        table["deadline_s"] = np.zeros(len(which), np.int64)
        table["bug"] = np.where(mended[group], NO_BUG, table["bug"])
        table["run_s"] = table["run_s"] * rng.lognormal(0, 0.06, len(which))
        return _raised(table, late[group], full[group])

    def _new_serials(self, count: int) -> Array:
        self._serials += count
        return np.arange(self._serials - count, self._serials)

    def _submitters(self, progress: Array) -> Array:
        user = np.searchsorted(self._users.weight, self._rng.random(len(progress)))
        for _ in range(4):
            absent = np.flatnonzero(~self._users.present(user, progress))
            drawn = self._rng.random(len(absent))
            user[absent] = np.searchsorted(self._users.weight, drawn)
        return user

    def _shapes(self, habit: Array, nodes: Array) -> tuple[Array, Array]:
        rng, count = self._rng, len(habit)
        arrays = np.array([h.arrays for h in HABITS])[habit]
        draw = rng.random(count)
        shape = np.where(draw < arrays, ARRAY, SINGLE)
        shape = np.where((draw >= arrays) & (draw < arrays + 0.08), LOOP, shape)
        shape = np.where((draw >= arrays + 0.08) & (draw < arrays + 0.14), CHAIN, shape)
        tasks = np.minimum(2 + rng.pareto(1.1, count) * 5 / nodes, self._largest_array)
        looped = np.minimum(1 + rng.geometric(0.2, count), self._largest_array)
        size = np.where(shape == ARRAY, tasks, np.where(shape == LOOP, looped, 1))
        size = np.where(shape == CHAIN, rng.integers(2, 5, count), size)
        return shape, size.astype(np.int64)

    def _patience(self, habit: Array) -> Array:
        """Seconds until the user cancels, whatever the job is doing then; mostly never."""
        impatience = np.array([h.impatience for h in HABITS])[habit]
        seconds = self._rng.lognormal(np.log(1500), 1.4, len(habit))
        return np.where(self._rng.random(len(habit)) < impatience, seconds, np.inf)

    def _requests(self, program: Array, margin: Array, shape: Array) -> Table:
        rng, programs, count = self._rng, self._programs, len(program)
        limit = typed(programs.run_s[program] * margin, LIMITS_S)
        kind = programs.kind[program]
        cpus = programs.tasks_per_node[program] * programs.cpus_per_task[program]
        on_cpus = (kind == KINDS.index("serial")) | (kind == KINDS.index("mpi"))
        partition = np.where(kind == KINDS.index("gpu"), GPU, BATCH)
        partition = np.where(kind == KINDS.index("bigmem"), BIGMEM, partition)
        short = on_cpus & programs.short[program] & (limit <= PARTITIONS[SHORT].longest_s)
        partition = np.where(short, SHORT, partition)
        elsewhere = rng.random(count)
        partition = np.where(on_cpus & (elsewhere < 0.08), SCAVENGE, partition)
        small = (cpus <= PARTITIONS[DEBUG].cpus) & (programs.nodes[program] <= 2)
        trial = on_cpus & small & (elsewhere > 0.95) & (shape == SINGLE)
        partition = np.where(trial, DEBUG, partition)
        limit = np.minimum(limit, _of_partition("longest_s", partition))
        wanted = programs.memory_mb[program] * (1 + 0.45 * margin) * 0.85
        by_cpu = programs.by_cpu[program]
        step = np.where(by_cpu, cpus, 1)
        memory = typed(wanted, NODE_MEMORY_MB)
        memory = np.where(by_cpu, typed(wanted / cpus, CPU_MEMORY_MB) * cpus, memory)
        deadline = (shape == SINGLE) & (rng.random(count) < 0.03)
        slack_s = limit * rng.uniform(1.02, 1.4, count) + 300
        return {
            "partition": partition,
            "limit_s": limit,
            "memory_mb": _fitting(memory, partition, step),
            "memory_step": step,
            "unlimited": programs.unlimited[program] & (partition == BATCH) & ~deadline,
            "deadline_s": np.where(deadline, slack_s, 0).astype(np.int64),
        }

    def _spread(self, work: Table) -> Table:
        """From pieces of work to jobs: alike, but for their place and a little noise."""
        size = work["size"]
        jobs = pick(work, np.repeat(np.arange(len(size)), size))
        total = len(jobs["serial"])
        jobs["task"] = np.arange(total) - np.repeat(np.cumsum(size) - size, size)
        jobs["submit"] = jobs["submit"] + np.where(jobs["shape"] == LOOP, jobs["task"] // 3, 0)
        jobs["run_s"] = jobs["run_s"] * self._rng.lognormal(0, 0.12, total)
        jobs["need_mb"] = jobs["need_mb"] * self._rng.lognormal(0, 0.05, total)
        return jobs


def at_progress(trait: str, habit: Array, progress: Array) -> Array:
    """A habit's trait at that share of the period, between its first and its last day's."""
    first, last = np.array([getattr(h, trait) for h in HABITS]).T
    return np.asarray(first[habit] + (last - first)[habit] * progress)


def _of_partition(trait: str, partition: Array) -> Array:
    return np.array([getattr(p, trait) for p in PARTITIONS])[partition]


def _fitting(memory: Array, partition: Array, step: Array) -> Array:
    """Memory that the partition's nodes have, in whole steps (of one CPU's share)."""
    return np.asarray(np.minimum(memory, _of_partition("memory_mb", partition) // step * step))


def _raised(table: Table, late: Array, full: Array) -> Table:
    """More time and memory for those that ran out; less work where there is no more to be had."""
    limit = np.where(late, typed(table["limit_s"] * 2, LIMITS_S), table["limit_s"])
    limit = np.minimum(limit, _of_partition("longest_s", table["partition"]))
    shortened = late & (limit == table["limit_s"])
    table["run_s"] = np.where(shortened, table["run_s"] / 2, table["run_s"])
    table["limit_s"] = limit
    memory = np.where(full, table["memory_mb"] * 2, table["memory_mb"])
    memory = _fitting(memory, table["partition"], table["memory_step"])
    table["need_mb"] = np.where(full, np.minimum(table["need_mb"], memory * 0.95), table["need_mb"])
    table["memory_mb"] = memory
    return table
