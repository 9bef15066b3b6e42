"""Predictions as they are told: by the model, and by the jobs that ended since it learned."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from premortem.features.points import SUBMIT
from premortem.features.replay import Replay
from premortem.prediction.predict import policy_of, predict
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.train import Options, Training, train
from premortem.training.tuning import Budget

LEARNED, ALL = 1200, 2000
NOW = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    found = pl.concat(SyntheticCluster(ALL, seed=5, users=25, days=40).frames())
    return found.sort("submit_time", "job_id")


@pytest.fixture(scope="module")
def training(jobs: pl.DataFrame) -> Training:
    return train(jobs.head(LEARNED), points=[SUBMIT], options=Options(budget=Budget(0)))


def told(training: Training, history: pl.DataFrame, asked: pl.Expr) -> list[float]:
    """The risks at submission of the jobs asked for."""
    wanted = history.select(asked).to_series().to_numpy()
    found = predict(training.model, history, wanted, point=SUBMIT, now=NOW, most_reasons=0)
    return [one.risk for one in found]


def own(training: Training, history: pl.DataFrame, job_id: int) -> float:
    """The risk by the model alone."""
    labelled = policy_of(training.model).label(history)
    rows = Replay().rows(labelled, SUBMIT)
    (at,) = np.flatnonzero(history["job_id"].gather(rows.jobs).to_numpy() == job_id)
    return float(training.model.at(SUBMIT).risk(rows.values[[at]])[0])


def is_job(job_id: int) -> pl.Expr:
    return pl.col("job_id") == job_id


def test_jobs_it_learned_from_tell_a_model_nothing_of_the_cluster(
    training: Training, jobs: pl.DataFrame
) -> None:
    history = jobs.head(LEARNED + 1)
    last = history["job_id"][-1]
    assert told(training, history, is_job(last)) == [own(training, history, last)]


def test_jobs_that_ended_since_do(training: Training, jobs: pl.DataFrame) -> None:
    since = np.arange(ALL) >= LEARNED
    # All of them failed, which cannot have been foreseen.
    failed = jobs.with_columns(
        state=pl.when(pl.Series(since)).then(pl.lit("FAILED")).otherwise("state")
    )
    last = jobs["job_id"][-1]
    (followed,) = told(training, failed, is_job(last))
    assert followed > own(training, failed, last)


def test_those_of_another_cluster_do_not(training: Training, jobs: pl.DataFrame) -> None:
    last = jobs["job_id"][-1]
    elsewhere = jobs.tail(ALL - LEARNED).with_columns(
        cluster=pl.lit("elsewhere"), state=pl.lit("FAILED")
    )
    both = pl.concat([jobs, elsewhere]).sort("submit_time", "job_id")
    here = is_job(last) & (pl.col("cluster") != "elsewhere")
    assert told(training, both, here) == told(training, jobs, is_job(last))


def test_a_job_gets_the_same_risk_alone_and_among_others(
    training: Training, jobs: pl.DataFrame
) -> None:
    numbers = jobs["job_id"].gather([100, 600, LEARNED + 50, LEARNED + 400, ALL - 1]).to_list()
    alone = [risk for number in numbers for risk in told(training, jobs, is_job(number))]
    assert told(training, jobs, pl.col("job_id").is_in(numbers)) == alone
