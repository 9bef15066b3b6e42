"""Training for use: models that are kept and loaded, judged by jobs they had not seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from premortem.errors import Conflict, InvalidInput, NotFound
from premortem.features.points import POSTHOC, START, SUBMIT, running
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.models.calibration import Calibration
from premortem.prediction.model import Model, Trees
from premortem.prediction.predict import predictions
from premortem.testing.synthetic import SyntheticCluster
from premortem.training import metrics
from premortem.training.imbalance import Imbalance
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
    judged = training.points["start"].judged
    assert set(judged.named) <= set(one.model.causes)
    true = training.labelled["cause"].gather(judged.jobs).to_list()
    failed = [pair for pair in zip(judged.named, true, strict=True) if pair[1]]
    assert np.mean([named == cause for named, cause in failed]) > 0.3


def test_what_is_saved_says_the_same_when_loaded(training: Training, tmp_path: Path) -> None:
    training.model.save(tmp_path)
    loaded = Model.load(tmp_path)
    assert list(loaded.points) == ["submit", "start"]
    rows = Replay().rows(training.labelled, SUBMIT).values[:200]
    assert (loaded.at(SUBMIT).risk(rows) == training.model.at(SUBMIT).risk(rows)).all()
    assert loaded.labels == training.model.labels
    assert loaded.at(SUBMIT).trade == training.model.at(SUBMIT).trade
    assert not [file for file in tmp_path.rglob("*") if file.suffix in (".pkl", ".joblib")]
    with pytest.raises(
        NotFound, match=r"does not predict at running@1min; it does at submit, start"
    ):
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
    assert "is known to have started" in found.left_out["start"]
    with pytest.raises(InvalidInput, match=r"submit: \d+ jobs to learn from, and 250 are needed"):
        train(jobs.head(100), points=[SUBMIT], options=QUICK)
    fine = jobs.filter(pl.col("state") == "COMPLETED")
    with pytest.raises(InvalidInput, match="0 failed jobs to learn from, and 20 are needed"):
        train(fine, points=[SUBMIT], options=QUICK)


def test_what_the_jobs_of_one_point_do_not_allow_costs_no_other(jobs: pl.DataFrame) -> None:
    place = pl.int_range(pl.len())
    # Early on hardly any job fails that has started: SMOTE would have no neighbours there.
    given_up = (place < 0.6 * jobs.height) & (pl.col("state") != "COMPLETED")
    given_up &= place > 60
    of_the_run = ("start_time", "alloc_cpus", "alloc_nodes", "node_list", "elapsed_s")
    changed = jobs.with_columns(
        pl.when(given_up).then(pl.lit("CANCELLED")).otherwise("state").alias("state"),
        *(pl.when(~given_up).then(name).alias(name) for name in of_the_run),
    )
    options = Options(budget=Budget(0), imbalance=Imbalance.SMOTE)
    found = train(changed, points=[SUBMIT, START], options=options)
    assert list(found.points) == ["submit"]
    assert found.left_out == {"start": "SMOTE needs more than 5 jobs of each outcome"}


def test_a_threshold_needs_later_jobs_of_both_outcomes(jobs: pl.DataFrame) -> None:
    place = pl.int_range(pl.len())
    # After half of the time everything completes.
    early = jobs.with_columns(
        state=pl.when(place > jobs.height // 2).then(pl.lit("COMPLETED")).otherwise("state")
    )
    with pytest.raises(InvalidInput, match=r"no later part of the .* has 50 of both outcomes"):
        train(early, points=[SUBMIT], options=QUICK)


def test_nothing_is_trained_to_leak(jobs: pl.DataFrame) -> None:
    with pytest.raises(InvalidInput, match="posthoc is for comparison only"):
        train(jobs, points=[POSTHOC])


def test_the_policy_travels_with_the_model(training: Training) -> None:
    from premortem.prediction.predict import policy_of

    assert policy_of(training.model) == LabelPolicy()


def test_profiles_are_looked_at_and_told(jobs: pl.DataFrame, tmp_path: Path) -> None:
    options = Options(budget=Budget(0), profiles=True)
    training = train(jobs, points=[SUBMIT], options=options)
    one = training.points["submit"].model
    assert one.kinds
    used = [name for name in one.trees.columns if name.startswith("profile_")]
    assert used == list(one.kinds.columns)
    assert len(used) > 1
    rows = Replay().rows(training.labelled, SUBMIT)
    seen = one.seen(rows.values)
    assert seen[:, -len(used) :].sum(axis=1) == pytest.approx(np.ones(len(seen)))
    training.model.save(tmp_path)
    loaded = Model.load(tmp_path).at(SUBMIT)
    assert loaded.risk(rows.values) == pytest.approx(one.risk(rows.values))
    records = training.labelled[rows.jobs[:300]].to_dicts()
    told = predictions(loaded, rows.values[:300], records, most_reasons=30)
    texts = {r.text for one in told for r in one.reasons if r.topic == "profile"}
    assert texts
    assert all(text.startswith("it is like these jobs: ") for text in texts)
    described = json.loads((tmp_path / "model.json").read_text())
    described["points"]["submit"]["kinds"] = None
    (tmp_path / "model.json").write_text(json.dumps(described))
    with pytest.raises(Conflict, match="profile_1"):
        Model.load(tmp_path)


def test_several_engines_speak_as_one(jobs: pl.DataFrame, tmp_path: Path) -> None:
    training = train(jobs, points=[SUBMIT], options=QUICK)
    single = training.points["submit"].model
    other = train(jobs, points=[SUBMIT], options=replace(QUICK, engine="lightgbm"))
    second = other.points["submit"].model
    assert single.trees.columns == second.trees.columns
    blend = Trees(
        (*single.trees.boosters, *second.trees.boosters), single.trees.columns, Calibration()
    )
    points = {"submit": replace(single, trees=blend)}
    replace(training.model, points=points).save(tmp_path)
    loaded = Model.load(tmp_path).at(SUBMIT).trees
    assert loaded.engines == ("xgboost", "lightgbm")
    rows = Replay().rows(training.labelled, SUBMIT).values[:200]
    shown = loaded.shown(rows)
    margins = (single.trees.flat.margins(shown) + second.trees.flat.margins(shown)) / 2
    assert loaded.flat.margins(shown) == pytest.approx(margins)
    assert loaded.risk(rows) == pytest.approx(1 / (1 + np.exp(-margins)))
    assert loaded.flat.contributions(shown).sum(axis=1) == pytest.approx(margins)
    assert loaded.flat.importance().sum() == pytest.approx(1)


class TestStopped:
    """A training that is stopped keeps what is finished, and finishes what is being searched."""

    @pytest.fixture
    def few(self, jobs: pl.DataFrame) -> pl.DataFrame:
        return jobs.head(600)

    @pytest.mark.parametrize(
        ("phase", "trained", "searched", "interrupted"),
        [
            ("submit: search", ["submit"], 1, True),
            ("submit: final training", ["submit"], 2, True),
            ("start: features", ["submit"], 2, True),
            ("start: search", ["submit", "start"], 1, True),
            ("start: final training", ["submit", "start"], 2, False),
        ],
    )
    def test_in_every_phase(
        self, few: pl.DataFrame, phase: str, trained: list[str], searched: int, interrupted: bool
    ) -> None:
        reached: list[str] = []
        found = train(
            few, points=[SUBMIT, START], options=Options(budget=Budget(2)),
            progress=reached.append, stopped=lambda: phase in reached,
        )  # fmt: skip
        assert list(found.points) == trained
        assert len(found.points[trained[-1]].search.trials) == searched
        assert found.points[trained[-1]].search.interrupted == (searched < 2)
        assert found.interrupted == interrupted
        missing = [name for name in ("submit", "start") if name not in trained]
        assert list(found.left_out) == missing
        assert all("interrupted before its search" in why for why in found.left_out.values())

    def test_before_anything_is_found(self, few: pl.DataFrame) -> None:
        for phase in ("", "submit: features"):
            reached = [""]
            with pytest.raises(KeyboardInterrupt):
                train(few, progress=reached.append, stopped=lambda: phase in reached)  # noqa: B023
            assert reached == (["", phase] if phase else [""])
