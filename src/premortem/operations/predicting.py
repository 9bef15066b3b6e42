"""Predictions for jobs of the store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
import polars as pl

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.features.points import Point
from premortem.jobs.fields import KEY, Kind
from premortem.jobs.frame import SCHEMA
from premortem.jobs.numbers import NUMBERS
from premortem.jobs.samples import with_samples
from premortem.jobs.sightings import fold
from premortem.jobs.states import STATES, UNFINISHED, Progress
from premortem.operations.collecting import Cluster
from premortem.operations.lookup import find_job
from premortem.operations.sampling import Sampler, sampled
from premortem.operations.training import HISTORY, history
from premortem.prediction.model import Model
from premortem.prediction.predict import Prediction, policy_of, predict
from premortem.stores.port import Store

_WAITING = [state for state, progress in STATES.items() if progress is Progress.PENDING]
_NUMBERS = pl.DataFrame(schema={name: SCHEMA[name] for name in NUMBERS})


@dataclass(frozen=True, slots=True)
class Answer:
    """Predictions for jobs in the order in which they were asked for.

    `unreached` are those that have not reached the point asked for, or any of the model's: their
    key and what else they are called by.
    """

    predictions: list[Prediction]
    unreached: list[dict[str, Any]]


def predict_jobs(
    store: Store,
    model: Model,
    names: Sequence[str],
    *,
    cluster: str | None = None,
    point: Point | None = None,
    most_reasons: int = 3,
    voice: Literal["your", "their"] = "your",
    now: datetime | None = None,
) -> Answer:
    """Predictions for jobs by their numbers, as Slurm writes them; the newest run of each."""
    policy = policy_of(model)
    found = [find_job(store, name, policy, cluster=cluster) for name in names]
    asked = pl.concat([_newest(jobs) for jobs in found])
    return _predict(history(store), model, asked, point, most_reasons, voice, now)


def predict_live(
    store: Store,
    model: Model,
    cluster: Cluster,
    names: Sequence[str],
    *,
    sampler: Sampler | None = None,
    point: Point | None = None,
    most_reasons: int = 3,
    voice: Literal["your", "their"] = "your",
) -> Answer:
    """Predictions for jobs that wait or run now, as Slurm itself tells of them.

    The store has the history that they are judged by, and is not written to. A running job of
    which nothing can be sampled is judged without, and so is one whose script cannot be had. A task
    that waits with others of its array is judged by the record that they share.
    """
    told = pl.concat([_NUMBERS, *(_live(cluster, name) for name in names)], how="diagonal")
    asked = told.with_columns(array_task_id=pl.coalesce("asked_task", "array_task_id"))
    numbers = told["job_id"].to_list()
    scripts: dict[int, str] = {}
    with suppress(Unavailable):
        # slurmdbd has them, and may be down while slurmctld answers.
        scripts = cluster.scripts(numbers)
    told = told.with_columns(
        script=pl.Series([scripts.get(number) for number in numbers], dtype=pl.String)
    )
    running = told.filter(pl.col("state") == "RUNNING").select(KEY).rows()
    samples = [store.samples(numbers)]
    if sampler is not None and running:
        with suppress(NotFound, Unavailable):
            samples.append(sampled(sampler, running))
    # A row sees what was before its second: with the next one, the sample just taken counts.
    now = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    told = told.select(name for name in HISTORY if name in told.columns)
    told = told.with_columns(seen_at=pl.lit(now).cast(Kind.TIME.dtype))
    known = store.jobs(columns=list(HISTORY))
    jobs = fold(pl.concat([known, told], how="diagonal")).sort("submit_time", "job_id", "cluster")
    jobs = with_samples(jobs, pl.concat(samples))
    return _predict(jobs, model, asked, point, most_reasons, voice, now)


def _live(cluster: Cluster, name: str) -> pl.DataFrame:
    """A job that waits or runs, as slurmctld tells; else an error that tells what became of it.

    `asked_task` is the array's task that was asked for, if one was.
    """
    parts = re.fullmatch(r"(\d{1,10})(?:_(\d{1,9}))?", name)
    if parts is None:
        raise InvalidInput(f"'{name}' is not a job number; expected one such as 436277 or 436277_4")
    number, task = int(parts[1]), int(parts[2]) if parts[2] else None
    found = cluster.controlled(number).jobs
    if found.is_empty():
        found = cluster.by_id([number]).jobs
    if task is not None and found.height:
        found = _task(cluster, found, number, task)
    if found.is_empty():
        raise NotFound(f"Slurm knows no job {name}")
    live = found.filter(pl.col("state").is_in(UNFINISHED))
    if live.is_empty():
        state = found.sort("submit_time")["state"][-1]
        raise InvalidInput(f"job {name} is over ({state}): only what waits or runs is predicted")
    return live.with_columns(asked_task=pl.lit(task, pl.Int64))


def _task(cluster: Cluster, told: pl.DataFrame, number: int, task: int) -> pl.DataFrame:
    """What is told of an array's task; while it waits with others, the record that they share."""
    tasks = _of_array(told, number)
    if tasks.is_empty():
        raise NotFound(f"Slurm knows no job {number}_{task}: {number} is not an array")
    if (own := tasks.filter(pl.col("array_task_id") == task)).height:
        return own
    shared = tasks.filter(pl.col("array_task_id").is_null() & pl.col("state").is_in(_WAITING))
    # slurmctld forgets a task that is over, while others of its array still wait.
    try:
        accounted = _of_array(cluster.by_id([number]).jobs, number)
    except Unavailable:
        if shared.is_empty():
            raise
        return shared
    # Accounting may have an older array, from before the numbers began anew.
    since = pl.lit(tasks["submit_time"].min())
    ended = accounted.filter(pl.col("array_task_id") == task, pl.col("submit_time") >= since)
    return ended if ended.height else shared


def _of_array(jobs: pl.DataFrame, number: int) -> pl.DataFrame:
    """Those that are an array's; where none is, answers have no such columns."""
    if jobs.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    return pl.concat([_NUMBERS, jobs], how="diagonal").filter(pl.col("array_job_id") == number)


def predict_pending(
    store: Store,
    model: Model,
    *,
    cluster: str | None = None,
    point: Point | None = None,
    most_reasons: int = 3,
    voice: Literal["your", "their"] = "their",
    now: datetime | None = None,
) -> Answer:
    """Predictions for every job that waits, on one cluster or all, the riskiest first."""
    jobs = history(store)
    asked = jobs.filter(pl.col("state").is_in(_WAITING))
    if cluster is not None:
        asked = asked.filter(pl.col("cluster") == cluster)
    found = _predict(jobs, model, asked, point, most_reasons, voice, now)
    return replace(found, predictions=sorted(found.predictions, key=lambda one: -one.risk))


def _newest(jobs: pl.DataFrame) -> pl.DataFrame:
    """The last run of a job on each cluster; of an array's number, the last run of each task."""
    last = jobs.sort("cluster", "submit_time")
    last = last.unique(["cluster", "job_id"], keep="last", maintain_order=True)
    return last.sort("array_task_id", maintain_order=True)


def _predict(
    jobs: pl.DataFrame,
    model: Model,
    asked: pl.DataFrame,
    point: Point | None,
    most_reasons: int,
    voice: Literal["your", "their"],
    now: datetime | None,
) -> Answer:
    """Predictions for those of the jobs whose keys are asked, called by the numbers there."""
    if asked.is_empty():
        return Answer([], [])
    places = jobs.select(KEY).with_row_index("place")
    asked = asked.select(*KEY, *NUMBERS).unique(maintain_order=True)
    asked = asked.join(places, on=KEY, maintain_order="left")
    if asked.is_empty():
        raise NotFound("the jobs are no longer in the store")
    wanted = np.zeros(jobs.height, dtype=bool)
    wanted[asked["place"]] = True
    found = predict(
        model, jobs, wanted, point=point, now=now or datetime.now(UTC),
        most_reasons=most_reasons, voice=voice,
    )  # fmt: skip
    by_key = {one.key: one for one in found}
    answer = Answer([], [])
    for names in asked.drop("place").iter_rows(named=True):
        one = by_key.get(tuple(names[name] for name in KEY))
        if one is None:
            answer.unreached.append(names)
        else:
            answer.predictions.append(replace(one, **{name: names[name] for name in NUMBERS}))
    return answer
