"""What a lab's jobs were, what they ran and what they used, kept in a store of the lab's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from premortem.errors import Unavailable
from premortem.lab.lab import Lab
from premortem.operations.collecting import Collector
from premortem.operations.paces import Pace
from premortem.sources.live.callers import caller_from
from premortem.sources.live.rest import RestCluster
from premortem.stores import Store, open_store

STORE = "jobs.db"
# On a lab's own machine nobody is in the way.
_PACE = Pace(every_s=20, slurmctld_calls=600, slurmdbd_calls=600)
_TOKEN = ("scontrol", "token", "username=root", "lifespan=600")
_PATIENCE_S = 120.0


def store_of(folder: Path) -> str:
    """The address of a lab's own store."""
    return f"sqlite:///{folder / STORE}"


@contextmanager
def collector_of(
    lab: Lab,
    store: Store,
    *,
    tell: Callable[..., None] = lambda _event, **_values: None,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Collector]:
    """A collector that asks a lab through its slurmrestd."""
    caller = caller_from(command=lab.command(*_TOKEN), environment={})
    with RestCluster(lab.rest_url, caller) as cluster:
        yield Collector(cluster, store, pace=_PACE, tell=tell, sleep=sleep)


def collect_all(lab: Lab, store: Store) -> None:
    """Ask until nothing is open or missing any more: jobs, their steps and their scripts."""
    deadline = time.monotonic() + _PATIENCE_S
    with collector_of(lab, store) as collector:
        while True:
            done = collector.round()
            if done.problems:
                raise Unavailable("; ".join(done.problems.values()))
            if not collector.state.open and not collector.state.without_details:
                return
            if time.monotonic() > deadline:
                state = collector.state
                raise Unavailable(
                    f"{state.open} jobs of the lab have not ended, and of {state.without_details} "
                    "steps or scripts cannot be had yet: try again later"
                )
            time.sleep(1)


class StoreSampler:
    """Samples a lab's running jobs into its store; used from one thread, which opens the store."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._sampler = lab.sampler()
        self._store: Store | None = None

    def sample(self) -> None:
        """Take one look."""
        if self._store is None:
            self._store = open_store(store_of(self._lab.folder))
        self._store.add_samples(self._sampler.sample())
