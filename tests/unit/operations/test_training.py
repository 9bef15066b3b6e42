"""From the store to the registry: which model is in use, and where one goes that is refused."""

from __future__ import annotations

import json
import re
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from premortem.errors import InvalidInput
from premortem.features.facts import facts_of
from premortem.features.points import START, SUBMIT
from premortem.features.replay import Replay
from premortem.operations.training import history, load_model, register
from premortem.prediction.predict import risk_as_told
from premortem.registry import open_registry
from premortem.stores import open_store
from premortem.testing.synthetic import SyntheticCluster
from premortem.training import metrics
from premortem.training.report import report_of
from premortem.training.train import Options, Training, train
from premortem.training.tuning import Budget

QUICK = Options(budget=Budget(0))


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    return pl.concat(SyntheticCluster(2000, seed=5, users=25, days=40).frames())


@pytest.fixture(scope="module")
def training(jobs: pl.DataFrame) -> Training:
    return train(jobs, points=[SUBMIT], options=QUICK)


class TestChampion:
    def test_both_are_compared_as_they_would_have_spoken(
        self, jobs: pl.DataFrame, training: Training, tmp_path: Path
    ) -> None:
        registry = open_registry(str(tmp_path / "models"))
        earlier = train(jobs.head(1200), points=[SUBMIT], options=QUICK)
        register(registry, earlier, QUICK, report_of(earlier))
        why = register(registry, training, QUICK, report_of(training)).why

        judged = training.points["submit"].judged
        facts = facts_of(training.labelled, zone="UTC")
        rows = Replay().rows(training.labelled, SUBMIT, facts=facts)
        at = np.searchsorted(rows.jobs, judged.jobs)
        bare = earlier.model.at(SUBMIT).risk(rows.values[at])
        told = risk_as_told(bare, facts, judged.jobs, rows.moments[at])
        score = metrics.average_precision(judged.outcomes, told)
        assert f"that of v1 {score:.3f}" in why
        assert f"{score:.3f}" != f"{metrics.average_precision(judged.outcomes, bare):.3f}"

    def test_one_that_cannot_be_loaded_keeps_its_points(
        self, jobs: pl.DataFrame, training: Training, tmp_path: Path
    ) -> None:
        registry = open_registry(str(tmp_path / "models"))
        both = train(jobs, points=[SUBMIT, START], options=QUICK)
        outdated = {
            name: replace(one, model=replace(one.model, fingerprint="0" * 16))
            for name, one in both.points.items()
        }
        model = replace(both.model, points={name: one.model for name, one in outdated.items()})
        register(registry, replace(both, model=model, points=outdated), QUICK, report_of(both))
        with pytest.raises(Exception, match="train it anew"):
            load_model(registry)
        less = register(registry, training, QUICK, report_of(training))
        assert not less.champion
        assert less.why == "it does not predict at start, as v1 does"
        full = register(registry, both, QUICK, report_of(both))
        assert full.champion
        assert "cannot be loaded any more" in full.why

    def test_one_whose_engine_is_not_installed_stays(
        self, jobs: pl.DataFrame, training: Training, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        registry = open_registry(str(tmp_path / "models"))
        options = replace(QUICK, engine="lightgbm")
        earlier = train(jobs.head(1200), points=[SUBMIT], options=options)
        register(registry, earlier, options, report_of(earlier))
        monkeypatch.setitem(sys.modules, "lightgbm", None)
        monkeypatch.delitem(sys.modules, "premortem.models.engine_lightgbm")
        done = register(registry, training, QUICK, report_of(training))
        assert not done.champion
        assert "cannot be loaded now" in done.why
        assert registry.aliases() == {"champion": 1, "challenger": 2}


def test_what_the_registry_refuses_at_last_is_kept_apart(
    training: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").write_text("in the way")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    pages = {"report.html": "<html>"}
    with pytest.raises(InvalidInput, match="is not a folder") as refused:
        register(
            open_registry(str(tmp_path / "models")), training, QUICK, report_of(training), pages
        )
    found = re.search(r"kept in a registry of its own, --registry (\S+);", str(refused.value))
    assert found
    assert [str(path) for path in (tmp_path / "tmp").iterdir()] == [found[1]]
    kept = open_registry(found[1])
    model, version = load_model(kept)
    assert list(model.points) == ["submit"]
    assert (kept.fetch(version) / "report.html").read_text() == "<html>"


def test_doubts_are_registered(training: Training, tmp_path: Path) -> None:
    one = training.points["submit"]
    turned = replace(one, judged=replace(one.judged, risk=1 - one.judged.risk))
    poor = replace(training, points={"submit": turned})
    registry = open_registry(str(tmp_path / "models"))
    told = register(registry, poor, QUICK, report_of(poor)).version.manifest["warnings"]
    assert len(told) == 1
    assert "no better than chance" in told[0]
    assert json.loads(json.dumps(told)) == told


def test_a_window_beside_the_jobs_is_told_from_an_empty_store(
    jobs: pl.DataFrame, tmp_path: Path
) -> None:
    with closing(open_store(f"sqlite:///{tmp_path / 'jobs.db'}")) as store:
        with pytest.raises(InvalidInput, match="the store has no jobs"):
            history(store, since=datetime(2030, 1, 1, tzinfo=UTC))
        store.append(jobs)
        with pytest.raises(
            InvalidInput, match=r"none of the 2,000 jobs .* since 2030-01-01.* 2024"
        ):
            history(store, since=datetime(2030, 1, 1, tzinfo=UTC))
        with pytest.raises(InvalidInput, match=r"was submitted before 2020-01-01T00:00:00\+00:00:"):
            history(store, until=datetime(2020, 1, 1, tzinfo=UTC))
        assert history(store).height == 2000
