"""What collecting costs a cluster's daemons, and how soon a job is known and predicted.

    python benchmarks/collect.py [--jobs 2000] [--per-minute 600] [--every 10] [--keep]

A lab is started, jobs of short kinds are submitted at a steady pace, and a collector keeps to the
usual budget beside them. After every round the jobs that are new in the store are scored by a small
model, learned beforehand from an invented cluster. At the end the store is held against sacct.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from premortem.features.points import SUBMIT
from premortem.jobs.fields import KEY
from premortem.lab import Lab
from premortem.operations.collecting import Collector
from premortem.operations.paces import Pace
from premortem.operations.training import history
from premortem.prediction.model import Model
from premortem.prediction.predict import predict
from premortem.sources.live.callers import caller_from
from premortem.sources.live.port import Daemon
from premortem.sources.live.rest import RestCluster
from premortem.stores import Store, open_store
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.train import Options, train
from premortem.training.tuning import Budget

TASKS = 4
# A body and options, in turn; every tenth job is an array.
KINDS = (
    ("true", ()),
    ("sleep 1", ("--time=2",)),
    ("exit 3", ()),
    ("srun true", ("--time=5",)),
    ("no-such-command", ("--partition=short",)),
    ("sleep 2", ("--ntasks=2",)),
    ("true", ("--mem=50",)),
    ("echo done > result", ()),
    ("sleep 1; kill -9 $$", ()),
    (f"exit $((SLURM_ARRAY_TASK_ID == {TASKS - 1}))", (f"--array=0-{TASKS - 1}",)),
)
Key = tuple[str, int, datetime]


@dataclass(slots=True)
class Seen:
    """What happened when: calls to each daemon, jobs first in the store, first predicted."""

    calls: list[tuple[float, str]] = field(default_factory=list)
    stored: dict[Key, float] = field(default_factory=dict)
    predicted: dict[Key, float] = field(default_factory=dict)


def submitted(lab: Lab, count: int, per_minute: float) -> None:
    """Submit jobs, tasks included, at a steady pace; each as one of the lab's users."""
    users = lab.record.plan.user_names
    begun, made, turn = time.monotonic(), 0, 0
    while made < count:
        time.sleep(max(0.0, begun + made * 60 / per_minute - time.monotonic()))
        body, options = KINDS[turn % len(KINDS)]
        script = f"#!/bin/bash\n{body}\n"
        name = f"--job-name=kind{turn % len(KINDS)}"
        user = users[turn % len(users)]
        lab.run("sbatch", "--output=/dev/null", name, *options, user=user, input=script)
        made += TASKS if "--array" in str(options) else 1
        turn += 1


def watch(cluster: RestCluster, seen: Seen) -> None:
    """Note every call, behind the collector's own gate."""
    gate = cluster.calls.before

    def before(daemon: Daemon) -> None:
        gate(daemon)
        seen.calls.append((time.monotonic(), daemon))

    cluster.calls.before = before


def look(store: Store, model: Model, seen: Seen) -> None:
    """Note which jobs are new in the store, and score them."""
    now = time.time()
    new = [key for key in store.jobs(columns=list(KEY)).iter_rows() if key not in seen.stored]
    seen.stored |= dict.fromkeys(new, now)
    if not new:
        return
    jobs = history(store)
    asked = pl.DataFrame(new, schema=jobs.select(KEY).schema, orient="row")
    marked = jobs.select(KEY).join(
        asked.with_columns(wanted=True), on=KEY, how="left", maintain_order="left"
    )
    wanted = marked["wanted"].fill_null(False)
    predict(model, jobs, wanted.to_numpy(), point=SUBMIT, now=datetime.now(UTC), most_reasons=3)
    seen.predicted |= dict.fromkeys(new, time.time())


def delays(moments: dict[Key, float]) -> list[float]:
    return sorted(at - submit.timestamp() for (_, _, submit), at in moments.items())


def told_delay(what: str, seconds: list[float]) -> None:
    p50, p95 = (seconds[int(len(seconds) * share)] for share in (0.5, 0.95))
    print(f"{what:36} p50 {p50:5.1f} s   p95 {p95:5.1f} s   most {seconds[-1]:5.1f} s")


def told_calls(seen: Seen, daemon: str, budget: int, minutes: float) -> None:
    times = [at for at, who in seen.calls if who == daemon]
    most = max(sum(1 for t in times if at <= t < at + 60) for at in times)
    verdict = "kept" if most <= budget else "EXCEEDED"
    print(
        f"calls to {daemon:27} {len(times) / minutes:4.1f} a minute, at most {most} in any; "
        f"budget {budget}: {verdict}"
    )


def listed(lab: Lab) -> Iterator[tuple[int, int, str]]:
    told = lab.run(
        *("env", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "sacct", "--allusers", "--duplicates"),
        *("--allocations", "--parsable2", "--noheader", "--format=JobIDRaw,Submit,State"),
        *("--starttime=now-1days", "--endtime=now+1days"),
    ).stdout
    for line in told.splitlines():
        number, at, state = line.split("|")
        yield int(number), int(at), state.split()[0]


def told_differences(lab: Lab, store: Store) -> None:
    theirs = {(number, at): state for number, at, state in listed(lab)}
    seconds = pl.col("submit_time").dt.epoch("s")
    rows = list(store.jobs().select("job_id", seconds, "state").iter_rows())
    times = Counter((number, at) for number, at, _ in rows)
    ours = {(number, at): state for number, at, state in rows}
    missing = theirs.keys() - ours.keys()
    other = [key for key in theirs.keys() & ours.keys() if theirs[key] != ours[key]]
    doubled = sum(count > 1 for count in times.values())
    states = Counter(theirs.values())
    print(f"sacct lists {len(theirs):,}: " + ", ".join(f"{n:,} {s}" for s, n in states.items()))
    print(
        f"the store has {len(ours):,}: {len(missing)} missing, {doubled} doubled, {len(other)} of "
        f"other state, {len(ours.keys() - theirs.keys())} that sacct does not list"
    )
    jobs = store.jobs()
    failed = jobs.filter(state="FAILED")
    print(
        f"scripts {jobs['script'].count():,} of {jobs.height:,}; steps of failed jobs "
        f"{failed['step_state'].count():,} of {failed.height:,}"
    )


def small_model() -> Model:
    jobs = pl.concat(SyntheticCluster(3000, seed=1, users=30, days=40).frames())
    trained = train(jobs, points=[SUBMIT], options=Options(budget=Budget(trials=0)))
    trained.model.prepare()
    return trained.model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=2000, help="jobs to submit, tasks included")
    parser.add_argument("--per-minute", type=float, default=600, help="how fast")
    parser.add_argument("--every", type=float, default=10, help="seconds between rounds")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--cache", type=Path, help="where the lab's packages are kept")
    parser.add_argument("--keep", action="store_true", help="leave the folder behind")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="premortem-collect-"))
    model, seen = small_model(), Seen()
    pace = Pace(every_s=options.every)
    with (
        Lab(folder / "lab", slurm="24.11", nodes=options.nodes, cache=options.cache) as lab,
        closing(open_store(f"sqlite:///{folder / 'jobs.db'}")) as store,
        RestCluster(
            lab.rest_url,
            caller_from(command=lab.command("scontrol", "token"), environment={}),
        ) as cluster,
    ):
        longest: list[float] = []

        def tell(event: str, **values: object) -> None:
            if event == "round":
                look(store, model, seen)
                longest.append(float(str(values["seconds"])))

        collector = Collector(cluster, store, pace=pace, tell=tell)
        watch(cluster, seen)
        submitting = threading.Thread(
            target=submitted, args=(lab, options.jobs, options.per_minute), daemon=True
        )
        begun = time.monotonic()
        submitting.start()
        submitting_s = 0.0

        def is_over() -> bool:
            nonlocal submitting_s
            if submitting.is_alive():
                return False
            submitting_s = submitting_s or time.monotonic() - begun
            state = collector.state
            left = state.open or state.without_details or state.problems
            return not left or time.monotonic() - begun > submitting_s + 900

        collector.run(is_over)
        took = time.monotonic() - begun
        print(
            f"{store.jobs(columns=['job_id']).height:,} jobs submitted in {submitting_s:.0f} s, "
            f"collected in {took:.0f} s: {len(longest)} rounds, each "
            f"{statistics.median(longest):.2f} s (median)"
        )
        told_calls(seen, "slurmctld", pace.slurmctld_calls, took / 60)
        told_calls(seen, "slurmdbd", pace.slurmdbd_calls, took / 60)
        told_delay("from submission to the store", delays(seen.stored))
        told_delay("from submission to a prediction", delays(seen.predicted))
        told_differences(lab, store)
    if options.keep:
        print(f"kept in {folder}")
    else:
        shutil.rmtree(folder)
    print(f"measured {datetime.now(UTC):%Y-%m-%d} with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
