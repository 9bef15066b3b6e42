"""What a collector brought, beside what Slurm itself lists."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from premortem.lab import Lab
from premortem.operations.collecting import Collector
from premortem.operations.paces import Pace
from premortem.sources.live.callers import caller_from
from premortem.sources.live.commands import CommandCluster
from premortem.sources.live.questions import Patience
from premortem.sources.live.rest import RestCluster
from premortem.stores import Store, open_store

# On a lab's own machine nobody is in the way.
AT_ONCE = Pace(every_s=1, slurmctld_calls=6000, slurmdbd_calls=6000)
QUICK = Patience(timeout_s=20, attempts=2, pause_s=0.01)

Listed = Counter[tuple[int, int, str]]


@contextmanager
def collecting(
    lab: Lab,
    folder: Path,
    way: str = "rest",
    *,
    lifespan_s: int = 600,
    patience: Patience = QUICK,
    **options: Any,
) -> Iterator[tuple[Collector, Store]]:
    """A collector of a lab with a store of its own, asking through slurmrestd or by commands."""
    with ExitStack() as opened:
        store = open_store(f"sqlite:///{folder / f'{way}.db'}")
        opened.callback(store.close)
        cluster: RestCluster | CommandCluster
        if way == "rest":
            token = lab.command("scontrol", "token", f"lifespan={lifespan_s}")
            cluster = RestCluster(
                lab.rest_url, caller_from(command=token, environment={}), patience=patience
            )
        else:
            cluster = CommandCluster(lab.command(), json=way == "commands")
        opened.callback(cluster.close)
        yield Collector(cluster, store, **{"pace": AT_ONCE, **options}), store


def rounds_until(
    collector: Collector, met: Callable[[], object], *, patience_s: float = 60
) -> None:
    """Round after round until something is met."""
    deadline = time.monotonic() + patience_s
    while True:
        collector.round()
        if met():
            return
        assert time.monotonic() < deadline, collector.state
        time.sleep(0.3)


def is_complete(collector: Collector) -> bool:
    """Whether nothing is open or missing any more."""
    return not (collector.state.open or collector.state.without_details or collector.state.problems)


def rows_of(store: Store, job_id: int) -> list[dict[str, Any]]:
    """The runs of a job as they are in the store, the first submitted first."""
    return store.jobs().filter(pl.col("job_id") == job_id).to_dicts()


def row_of(store: Store, job_id: int) -> dict[str, Any]:
    """The only run of a job."""
    [row] = rows_of(store, job_id)
    return row


def listed_by_slurm(lab: Lab, *which: str) -> Listed:
    """Number, submission and state of every run that sacct lists; windows lack some, see `ids`."""
    told = lab.run(
        *("env", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "sacct", "--allusers", "--duplicates"),
        *("--allocations", "--parsable2", "--noheader", "--format=JobIDRaw,Submit,State"),
        *(which or ("--starttime=now-1days", "--endtime=now+1days")),
    ).stdout
    rows = (line.split("|") for line in told.splitlines())
    return Counter((int(number), int(at), state.split()[0]) for number, at, state in rows)


def ids(first: int, last: int) -> str:
    """An option that names jobs by number, so that those are told which were never eligible."""
    return f"--jobs={','.join(map(str, range(first, last + 1)))}"


def listed_by_store(store: Store, first: int = 1, last: int = 10**9) -> Listed:
    """The same of what was collected."""
    jobs = store.jobs().filter(pl.col("job_id").is_between(first, last))
    seconds = pl.col("submit_time").dt.epoch("s")
    return Counter(jobs.select("job_id", seconds, "state").iter_rows())
