"""Predictions for jobs of the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import polars as pl

from premortem.errors import NotFound
from premortem.features.points import Point
from premortem.jobs.fields import KEY
from premortem.jobs.states import STATES, Progress
from premortem.operations.lookup import find_job
from premortem.operations.training import history
from premortem.prediction.model import Model
from premortem.prediction.predict import Prediction, policy_of, predict
from premortem.stores.port import Store


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
) -> list[Prediction]:
    """Predictions for jobs by their numbers, as Slurm writes them; the newest run of each."""
    policy = policy_of(model)
    found = [find_job(store, name, policy, cluster=cluster) for name in names]
    keys = pl.concat([_newest(jobs) for jobs in found]).select(KEY)
    return _predict(history(store), model, keys, point, most_reasons, voice, now)


def predict_pending(
    store: Store,
    model: Model,
    *,
    most_reasons: int = 3,
    voice: Literal["your", "their"] = "their",
    now: datetime | None = None,
) -> list[Prediction]:
    """Predictions for every job that waits, the riskiest first."""
    waiting = [state for state, progress in STATES.items() if progress is Progress.PENDING]
    jobs = history(store)
    keys = jobs.filter(pl.col("state").is_in(waiting)).select(KEY)
    found = _predict(jobs, model, keys, None, most_reasons, voice, now)
    return sorted(found, key=lambda one: -one.risk)


def _newest(jobs: pl.DataFrame) -> pl.DataFrame:
    """The last run of a job; of an array's number, the last run of each task."""
    return jobs.sort("submit_time").unique("job_id", keep="last", maintain_order=True)


def _predict(
    jobs: pl.DataFrame,
    model: Model,
    keys: pl.DataFrame,
    point: Point | None,
    most_reasons: int,
    voice: Literal["your", "their"],
    now: datetime | None,
) -> list[Prediction]:
    if keys.is_empty():
        return []
    asked = keys.with_columns(wanted=pl.lit(True)).unique(KEY)
    marked = jobs.select(KEY).join(asked, on=KEY, how="left", maintain_order="left")
    wanted = marked["wanted"].fill_null(False).to_numpy()
    if not wanted.any():
        raise NotFound("the jobs are no longer in the store")
    return predict(
        model, jobs, wanted, point=point, now=now or datetime.now(UTC),
        most_reasons=most_reasons, voice=voice,
    )  # fmt: skip
