"""A workload: people and jobs that keep a lab busy, and fail in every way that jobs fail.

`work` runs one. Who submits what, and how they react, is decided without Slurm (`users`,
`campaign`, `catalogue`, `scripts`, `inputs`); the driver alone talks to the lab. Nobody here says
how a job ends: that is Slurm's to say.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from premortem.errors import InvalidInput
from premortem.lab import Lab
from premortem.lab.plans import CPUS_PER_NODE
from premortem.lab.workload.accidents import Accidents
from premortem.lab.workload.campaign import Campaign
from premortem.lab.workload.driver import PATIENCE_S, Driver, Progress, Report
from premortem.lab.workload.ledger import Ledger
from premortem.lab.workload.pacing import USUAL_RATE, Pace
from premortem.lab.workload.sampling import Sampler
from premortem.lab.workload.software import install
from premortem.lab.workload.users import population

__all__ = ["Progress", "Report", "Sampler", "work"]

NODES = 16
USERS = 30
_JOBS_BETWEEN_ACCIDENTS = 900


def work(
    lab: Lab,
    *,
    jobs: int,
    seed: int = 0,
    minutes: float | None = None,
    sampler: Sampler | None = None,
    patience_s: float = PATIENCE_S,
    progress: Callable[[Progress], None] = lambda progress: None,
    tell: Callable[[str], None] = lambda text: None,
) -> Report:
    """Run so many jobs on a lab that runs, and wait for them; the lab goes on running.

    The last array may go beyond the number. `minutes` is how long submitting them takes, if the
    machine can keep up; what has not ended `patience_s` after that is cancelled by its users. The
    `sampler` is called every two seconds from a thread of its own.
    """
    if jobs < 1 or (minutes is not None and minutes <= 0):
        raise InvalidInput(f"a workload has jobs and takes minutes, not {jobs} in {minutes}")
    install(lab)
    plan = lab.record.plan
    users = population(seed, plan.user_names)
    processors = plan.nodes * CPUS_PER_NODE
    return Driver(
        lab,
        Campaign(users, seed=seed, nodes=plan.node_names),
        jobs=jobs,
        pace=Pace(
            rate=jobs / minutes if minutes else USUAL_RATE,
            most_waiting=6 * plan.nodes,
            most_running=processors,
            most_load=6.0 * (os.cpu_count() or 1),
        ),
        ledger=Ledger(lab.folder / "workload", seed),
        accidents=Accidents(lab, every=_JOBS_BETWEEN_ACCIDENTS, seed=seed, tell=tell),
        sampler=sampler,
        patience_s=patience_s,
        progress=progress,
        tell=tell,
    ).run()
