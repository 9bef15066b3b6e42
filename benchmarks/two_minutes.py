"""How well the fate of real jobs is told two minutes after their launch, by what they use.

    python benchmarks/two_minutes.py [--learn 400] [--judge 80] [--per-minute 30]

A lab runs jobs that cannot be told apart before they run: the same script, user and request. Most
of them work for three minutes and are done; some lose memory until they are killed, some stop
working and hang until their time limit. Usage is sampled, and a model learns from the first jobs.
Each of the later ones is predicted as `premortem predict JOB --slurm` does it, while it runs and as
soon as it is two minutes old. At the end Slurm's own accounting tells who was right.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from premortem.errors import InvalidInput
from premortem.features.points import running as running_for
from premortem.lab import Lab
from premortem.lab.collecting import StoreSampler, collect_all, collector_of, store_of
from premortem.operations.predicting import predict_live
from premortem.operations.training import history
from premortem.prediction.model import Model
from premortem.prediction.predict import Prediction
from premortem.sources.live.callers import caller_from
from premortem.sources.live.rest import RestCluster
from premortem.stores import Store, open_store
from premortem.training import metrics
from premortem.training.train import Options, train
from premortem.training.tuning import Budget

AGE_S = 120.0
POINT = running_for(AGE_S)
SAMPLED_EVERY_S = 10
# What a job does is decided when it runs, so that nothing before tells of it.
SCRIPT = """#!/bin/bash
exec python3 - <<'PROGRAM'
import random, time
fate = random.choices(["works", "leaks", "hangs"], [60, 20, 20])[0]
works_until = random.uniform(30, 90) if fate == "hangs" else random.uniform(150, 200)
held, began = [bytearray(random.randrange(8, 16) << 20)], time.monotonic()
while time.monotonic() < began + works_until or fate == "leaks":
    sum(range(50_000))
    if fate == "leaks":
        held.append(bytearray(random.randrange(200, 400) << 10))
    time.sleep(1)
while fate == "hangs":
    time.sleep(60)
PROGRAM
"""
REQUEST = ("--job-name=solve", "--mem=80", "--time=4", "--output=/dev/null")


@dataclass(frozen=True, slots=True)
class Told:
    """A prediction of a running job, how old it was then, and when that was."""

    prediction: Prediction
    age_s: float
    at: datetime


def submitted(lab: Lab, count: int, per_minute: float) -> Iterator[int]:
    """The numbers of new jobs, at a steady pace."""
    begun = time.monotonic()
    user = lab.record.plan.user_names[0]
    for turn in range(count):
        time.sleep(max(0.0, begun + turn * 60 / per_minute - time.monotonic()))
        done = lab.run("sbatch", "--parsable", *REQUEST, user=user, input=SCRIPT)
        yield int(done.stdout.split(";")[0])


def sample(lab: Lab, over: threading.Event) -> None:
    """Look at all running jobs until told to stop."""
    sampler = StoreSampler(lab)
    while not over.wait(SAMPLED_EVERY_S):
        sampler.sample()


def learned(lab: Lab, store: Store, count: int, per_minute: float) -> Model:
    """A model of so many first jobs."""
    with collector_of(lab, store) as collector:
        for turn, _ in enumerate(submitted(lab, count, per_minute)):
            if turn % 20 == 19:
                collector.round()
                tell(f"{turn + 1} of {count} jobs to learn from submitted")
    wait_until_idle(lab)
    collect_all(lab, store)
    tell("learning")
    options = Options(budget=Budget(trials=0))
    model = train(history(store), points=[POINT], options=options).model
    model.prepare()
    return model


def watched(lab: Lab, store: Store, model: Model, numbers: Iterator[int]) -> dict[int, Told]:
    """Predictions of these jobs, each as soon as it has run for two minutes."""
    told: dict[int, Told] = {}
    submitting = threading.Thread(target=lambda: deque(numbers, maxlen=0), daemon=True)
    submitting.start()
    caller = caller_from(command=lab.command("scontrol", "token"), environment={})
    with RestCluster(lab.rest_url, caller) as cluster:
        while (ages := running(lab)) or submitting.is_alive():
            for number in sorted(ages.keys() - told.keys(), key=lambda number: -ages[number]):
                if ages[number] < AGE_S:
                    break
                try:
                    answer = predict_live(store, model, cluster, [str(number)])
                except InvalidInput as error:  # it ended meanwhile
                    tell(str(error))
                    continue
                for found in answer.predictions:
                    told[number] = Told(found, ages[number], datetime.now(UTC))
            time.sleep(1)
    return told


def running(lab: Lab) -> dict[int, float]:
    """How many seconds each running job has run."""
    asked = ("squeue", "--noheader", "--states=RUNNING", "--format=%i %S")
    said = lab.run("env", "SLURM_TIME_FORMAT=%s", *asked).stdout.split()
    now = time.time()
    return {
        int(number): now - int(start) for number, start in zip(said[::2], said[1::2], strict=True)
    }


def wait_until_idle(lab: Lab) -> None:
    while lab.run("squeue", "--noheader").stdout.strip():
        time.sleep(2)


def tell_results(told: dict[int, Told], store: Store) -> None:
    jobs = store.jobs(columns=["job_id", "state", "end_time"])
    ends = {number: (state, end) for number, state, end in jobs.iter_rows()}
    outcomes = np.array([ends[number][0] != "COMPLETED" for number in told], dtype=np.float64)
    risk = np.array([one.prediction.risk for one in told.values()])
    alarms = np.array([one.prediction.fails for one in told.values()])
    failed = outcomes == 1
    states = Counter(ends[number][0] for number in told)
    print(f"{len(told)} judged: " + ", ".join(f"{n} {s}" for s, n in states.most_common()))
    ages = sorted(one.age_s for one in told.values())
    print(f"their age at the prediction: p50 {ages[len(ages) // 2]:.0f} s, most {ages[-1]:.0f} s")
    print(
        f"average precision {metrics.average_precision(outcomes, risk):.3f}, "
        f"share of failures {outcomes.mean():.3f}"
    )
    print(
        f"warned of {int(alarms[failed].sum())} of {int(failed.sum())} failures, "
        f"and of {int(alarms[~failed].sum())} of {int((~failed).sum())} others"
    )
    ahead = sorted(
        (ends[number][1] - one.at).total_seconds()
        for number, one in told.items()
        if one.prediction.fails and ends[number][0] != "COMPLETED"
    )
    if ahead:
        print(f"ahead of their end: p50 {ahead[len(ahead) // 2]:.0f} s, least {ahead[0]:.0f} s")
    topics = Counter(
        one.prediction.reasons[0].topic for one in told.values() if one.prediction.reasons
    )
    print("first reason: " + ", ".join(f"{topic} {n}" for topic, n in topics.most_common(5)))
    for number, one in list(told.items())[:6]:
        first = one.prediction.reasons[0].text if one.prediction.reasons else ""
        print(f"  job {number}: risk {one.prediction.risk:.0%}; {first}; {ends[number][0]}")


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--learn", type=int, default=400, help="jobs to learn from")
    parser.add_argument("--judge", type=int, default=80, help="jobs to predict")
    parser.add_argument("--per-minute", type=float, default=30, help="how fast they come")
    parser.add_argument("--nodes", type=int, default=14)
    parser.add_argument("--cache", type=Path, help="where the lab's packages are kept")
    options = parser.parse_args()
    over = threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="premortem-") as folder,
        Lab(
            Path(folder) / "lab", slurm="24.11", nodes=options.nodes, oom=True, cache=options.cache
        ) as lab,
        closing(open_store(store_of(lab.folder))) as store,
    ):
        sampling = threading.Thread(target=sample, args=(lab, over), daemon=True)
        sampling.start()
        model = learned(lab, store, options.learn, options.per_minute)
        later = submitted(lab, options.judge, options.per_minute)
        told = watched(lab, store, model, later)
        wait_until_idle(lab)
        collect_all(lab, store)
        over.set()
        sampling.join()
        tell_results(told, store)
    print(f"measured {datetime.now(UTC):%Y-%m-%d} with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
