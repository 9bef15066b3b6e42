"""Who submits: users with habits, and the programs each of them runs.

Everything here is drawn once for a cluster, so that a user or a program behaves alike from one
job to the next. That constancy is what a model can learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Habit:
    """How one sort of user asks, errs and reacts. Pairs hold for the first and the last day."""

    name: str
    margin: tuple[float, float]  # time asked for, over the program's usual run time
    bugs: tuple[float, float]  # chance that a new piece of work is broken
    fix: tuple[float, float]  # chance that a failed attempt is corrected before the next
    growth: float = 1.0  # what the programs need on the last day, over the first
    retry: float = 0.75  # chance of another attempt after a failure
    pause_s: float = 900.0  # usual time until then
    arrays: float = 0.08  # share of the work submitted as an array
    impatience: float = 0.03  # chance to be watching with a finger on scancel


HABITS: tuple[Habit, ...] = (
    Habit("careful", margin=(3.0, 3.0), bugs=(0.02, 0.02), fix=(0.85, 0.85), impatience=0.02),
    Habit("novice", margin=(1.5, 1.5), bugs=(0.09, 0.09), fix=(0.35, 0.35), impatience=0.08),
    Habit("stubborn", margin=(1.9, 1.9), bugs=(0.05, 0.05), fix=(0.1, 0.1), retry=0.9, pause_s=150),
    Habit("learning", margin=(1.2, 3.0), bugs=(0.12, 0.02), fix=(0.2, 0.9), retry=0.8),
    Habit("drifting", margin=(2.6, 2.6), bugs=(0.03, 0.04), fix=(0.5, 0.5), growth=3.0),
    Habit("bursty", margin=(2.2, 2.2), bugs=(0.04, 0.04), fix=(0.5, 0.5), retry=0.6, arrays=0.3),
)
# By rank of activity, so that no seed gives the cluster to novices and another to the careful.
_BY_RANK = (0, 5, 3, 0, 4, 1, 0, 2, 0, 3, 1, 0, 4, 5, 0, 2)

KINDS: tuple[str, ...] = ("serial", "mpi", "gpu", "bigmem")
_SERIAL, _MPI, _GPU, _BIGMEM = range(4)
_PROGRAMS: tuple[tuple[str, ...], ...] = (
    ("align", "preproc", "sweep", "fit", "post", "montecarlo", "blast", "docking", "plots", "tree"),
    ("cfd", "wrf", "vasp_relax", "md_prod", "lattice", "ocean", "cp2k_scf", "nbody", "seismic"),
    ("train", "finetune", "infer", "md_gpu", "fold", "render", "embed", "rl_agent", "diffuse"),
    ("assembly", "phylo", "graph_load", "merge_all", "imputation", "kriging", "big_join"),
)
_LOGINS = (
    "ada", "ben", "chi", "dana", "eli", "fay", "gus", "hana", "ivo", "jun", "kai", "lena", "mara",
    "nils", "omar", "pia", "quin", "rosa", "sven", "tara", "uma", "vera", "wim", "yara", "zoe",
)  # fmt: skip
_ACCOUNTS = (
    "astro", "chem", "climate", "econ", "genomics", "geo", "matter", "neuro", "physics", "robots",
)  # fmt: skip
_FIRST_UID, _FIRST_GID = 20_001, 5_001


@dataclass(frozen=True, slots=True)
class Users:
    """The users, one entry each, the most active first. `account` is a place in `accounts`."""

    login: list[str]
    uid: Array
    accounts: list[str]
    account: Array
    gid: Array
    habit: Array
    weight: Array  # running total of the shares of activity
    joins: Array  # when the user comes and goes, as shares of the period
    leaves: Array
    rhythm: Array  # bursts of activity in the period; 0 for the steady
    first_program: Array
    program_count: Array

    def present(self, user: Array, progress: Array) -> Array:
        """Whether each user is about at that share of the period; the bursty often are not."""
        about = (progress >= self.joins[user]) & (progress <= self.leaves[user])
        phase = np.sin(2 * np.pi * (self.rhythm[user] * progress + user * 0.37))
        return np.asarray(about & ((self.rhythm[user] == 0) | (phase > 0.2)))


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs, one entry each; those of a user stand together. Memory is by node."""

    name: list[str]
    user: Array
    kind: Array
    nodes: Array
    tasks_per_node: Array
    cpus_per_task: Array
    gpus_per_node: Array
    run_s: Array  # usual run time
    run_spread: Array  # of its logarithm, from one piece of work to the next
    memory_mb: Array  # usual need
    slack: Array  # this program's own share in how generously its user asks
    fragility: Array  # times the user's rate of bugs
    efficiency: Array  # share of the CPUs kept busy
    by_cpu: Array  # memory asked for by CPU
    short: Array  # sent to the short partition where it fits
    requeue: Array
    unlimited: Array
    feature: list[str | None]


def population(users: int, rng: np.random.Generator) -> tuple[Users, Programs]:
    """Draw the users of a cluster and their programs."""
    rank = np.arange(users)
    share = 1.0 / (rank + 1.0) ** 0.9
    habit = np.take(_BY_RANK, rank % len(_BY_RANK))
    is_bursty = habit == [h.name for h in HABITS].index("bursty")
    accounts = list(_ACCOUNTS[: max(1, min(len(_ACCOUNTS), users // 4))])
    account = rng.integers(len(accounts), size=users)
    passing = (rank % 5 == 4) & (rank > 8)
    joins = np.where(passing, rng.uniform(0, 0.6, users), 0.0)
    count = 2 + np.minimum(rng.poisson(2.0, users), 6)
    drawn = Users(
        login=[f"{_LOGINS[i % len(_LOGINS)]}{i // len(_LOGINS) or ''}" for i in range(users)],
        uid=_FIRST_UID + rng.permutation(users),
        accounts=accounts,
        account=account,
        gid=_FIRST_GID + account,
        habit=habit,
        weight=np.cumsum(share) / share.sum(),
        joins=joins,
        leaves=np.where(passing, joins + rng.uniform(0.3, 0.8, users), 1.0),
        rhythm=np.where(is_bursty, rng.integers(3, 9, users), 0),
        first_program=np.cumsum(count) - count,
        program_count=count,
    )
    return drawn, _programs(np.repeat(rank, count), rng)


def _programs(user: Array, rng: np.random.Generator) -> Programs:
    total = len(user)
    kind = rng.choice(4, total, p=(0.5, 0.22, 0.18, 0.1))
    mpi, gpu, bigmem = kind == _MPI, kind == _GPU, kind == _BIGMEM
    gpus = np.where(gpu, rng.choice((1, 1, 2, 4), total), 0)
    nodes = np.minimum(1 + rng.pareto(0.9, total) * 1.5, 64)
    rounded = 2.0 ** np.floor(np.log2(nodes))  # by most, by habit
    nodes = np.where(mpi, np.where(rng.random(total) < 0.8, rounded, nodes), 1)
    nodes = np.where(gpu & (gpus == 4), rng.choice((1, 1, 2, 4), total), nodes).astype(np.int64)
    tasks = np.where(mpi, rng.choice((16, 32, 64), total), np.maximum(gpus, 1))
    cpus = np.where(mpi, 1, rng.choice((1, 1, 1, 2, 4, 8, 16), total))
    cpus = np.where(gpu, 8, np.where(bigmem, rng.choice((8, 16, 32), total), cpus))
    memory = rng.lognormal(np.log(1300), 0.7, total) * tasks * cpus
    memory = np.where(gpu, rng.lognormal(np.log(24_000), 0.5, total) * gpus, memory)
    memory = np.where(bigmem, rng.lognormal(np.log(330_000), 0.5, total), memory)
    ceiling = np.where(bigmem, 1_400_000, np.where(gpu, 300_000, 150_000))
    run_s = rng.lognormal(np.log(1400), 1.5, total) * np.where(gpu | mpi, 2.5, 1.0)
    return Programs(
        name=_program_names(user, kind, rng),
        user=user,
        kind=kind,
        nodes=nodes,
        tasks_per_node=tasks,
        cpus_per_task=cpus,
        gpus_per_node=gpus,
        run_s=np.clip(run_s, 25, 60 * 3600),
        run_spread=rng.uniform(0.12, 0.6, total),
        memory_mb=np.clip(memory, 150, ceiling),
        slack=rng.lognormal(0.1, 0.3, total),
        fragility=rng.lognormal(-0.15, 0.6, total),
        efficiency=np.clip(rng.beta(5, 2, total), 0.05, 0.99),
        by_cpu=~gpu & ~bigmem & (rng.random(total) < 0.4),
        short=rng.random(total) < 0.5,
        requeue=rng.random(total) < 0.8,
        unlimited=rng.random(total) < 0.03,
        feature=_features(gpu, bigmem, rng),
    )


def _features(gpu: Array, bigmem: Array, rng: np.random.Generator) -> list[str | None]:
    wanted = (rng.random(len(gpu)) < 0.12) & ~bigmem
    return [("a100" if g else "icelake") if w else None for g, w in zip(gpu, wanted, strict=True)]


def _program_names(user: Array, kind: Array, rng: np.random.Generator) -> list[str]:
    """A name for each program, no two of one user alike."""
    taken: set[tuple[int, str]] = set()
    names = []
    for owner, sort, draw in zip(user.tolist(), kind.tolist(), rng.random(len(user)), strict=True):
        stem = _PROGRAMS[sort][int(draw * len(_PROGRAMS[sort]))]
        name, version = stem, 2
        while (owner, name) in taken:
            name, version = f"{stem}_v{version}", version + 1
        taken.add((owner, name))
        names.append(name)
    return names
