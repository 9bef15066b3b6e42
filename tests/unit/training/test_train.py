"""Training for use: models that are kept and loaded, judged by jobs they had not seen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from premortem.errors import Conflict, InvalidInput, NotFound
from premortem.features.points import POSTHOC, START, SUBMIT, running
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.prediction.model import Model
from premortem.testing.synthetic import SyntheticCluster
from premortem.training import metrics
from premortem.training.train import Options, Training, train
from premortem.training.tuning import Budget

QUICK = Options(budget=Budget(1))


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    return pl.concat(SyntheticCluster(3000, seed=5, users=25, days=40).frames())


@pytest.fixture(scope="module")
def training(jobs: pl.DataFrame) -> Training:
    return train(jobs, points=[SUBMIT, START], options=QUICK)


def test_the_latest_jobs_judge_what_had_not_seen_them(
    training: Training, jobs: pl.DataFrame
) -> None:
    for one in training.points.values():
        judged = one.judged
        cut = jobs["submit_time"].gather(judged.jobs).min()
        assert judged.learned_from < (jobs["end_time"] < cut).sum() + 1
        score = metrics.average_precision(judged.outcomes, judged.risk)
        assert score is not None
        assert score > 1.5 * judged.outcomes.mean()
        assert 0 <= one.model.threshold <= 1


def test_causes_are_told_apart(training: Training) -> None:
    one = training.points["start"]
    assert {"application", "time_limit"} <= set(one.model.causes)
    rows = Replay().rows(training.labelled, START).values[:50]
    shares = one.model.cause_shares(rows)
    assert shares.shape == (50, len(one.model.causes))
    assert shares.sum(axis=1) == pytest.approx(np.ones(50))


def test_what_is_saved_says_the_same_when_loaded(training: Training, tmp_path: Path) -> None:
    training.model.save(tmp_path)
    loaded = Model.load(tmp_path)
    assert list(loaded.points) == ["submit", "start"]
    rows = Replay().rows(training.labelled, SUBMIT).values[:200]
    assert (loaded.at(SUBMIT).risk(rows) == training.model.at(SUBMIT).risk(rows)).all()
    assert loaded.labels == training.model.labels
    assert loaded.at(SUBMIT).trade == training.model.at(SUBMIT).trade
    assert not [file for file in tmp_path.rglob("*") if file.suffix in (".pkl", ".joblib")]
    with pytest.raises(NotFound, match=r"does not predict at running@60; it does at submit, start"):
        loaded.at(running(60))


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        ({"format": 99}, Conflict, "train it anew"),
        ({"family": "noble"}, InvalidInput, "usable model"),
        ({"points": None}, InvalidInput, "usable model"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(
    training: Training, tmp_path: Path, change: dict[str, object], kind: type, says: str
) -> None:
    training.model.save(tmp_path)
    description = tmp_path / "model.json"
    description.write_text(json.dumps(json.loads(description.read_text()) | change))
    with pytest.raises(kind, match=says):
        Model.load(tmp_path)


def test_a_model_of_other_features_is_refused(training: Training, tmp_path: Path) -> None:
    training.model.save(tmp_path)
    description = tmp_path / "model.json"
    told = json.loads(description.read_text())
    told["points"]["submit"]["fingerprint"] = "0" * 16
    description.write_text(json.dumps(told))
    with pytest.raises(Conflict, match="other features at submit"):
        Model.load(tmp_path)
    with pytest.raises(NotFound, match="no model in"):
        Model.load(tmp_path / "elsewhere")


def test_a_point_without_enough_jobs_is_left_out_with_the_number_needed(jobs: pl.DataFrame) -> None:
    unstarted = jobs.with_columns(
        pl.lit(None, jobs.schema[name]).alias(name) for name in ("start_time", "alloc_cpus")
    )
    found = train(unstarted, points=[SUBMIT, START], options=QUICK)
    assert list(found.points) == ["submit"]
    assert "there are no jobs" in found.left_out["start"]
    with pytest.raises(InvalidInput, match=r"submit: \d+ jobs to learn from, and 200 are needed"):
        train(jobs.head(100), points=[SUBMIT], options=QUICK)
    fine = jobs.filter(pl.col("state") == "COMPLETED")
    with pytest.raises(InvalidInput, match="0 failed jobs to learn from, and 20 are needed"):
        train(fine, points=[SUBMIT], options=QUICK)


def test_nothing_is_trained_to_leak(jobs: pl.DataFrame) -> None:
    with pytest.raises(InvalidInput, match="posthoc is for comparison only"):
        train(jobs, points=[POSTHOC])


def test_the_policy_travels_with_the_model(training: Training) -> None:
    from premortem.prediction.predict import policy_of

    assert policy_of(training.model) == LabelPolicy()
