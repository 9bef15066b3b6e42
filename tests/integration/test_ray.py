"""The search on a real Ray of two workers: one of its own, and the head of a cluster."""

from __future__ import annotations

import importlib.util
import secrets
from pathlib import Path

import numpy as np
import pytest
import ray_head
from requirements import require

from premortem.errors import Unavailable
from premortem.models.parameters import TreeParameters
from premortem.models.port import Moments
from premortem.training.tuned import TunedTrees, time_folds
from premortem.training.tuning import Budget, Trial

# Ray warns of its own future, and leaves sockets to the end of the process.
pytestmark = pytest.mark.filterwarnings("ignore")

TOKEN = secrets.token_hex(32)  # read once in a process


@pytest.fixture(autouse=True)
def ray_there(monkeypatch: pytest.MonkeyPatch) -> None:
    require(importlib.util.find_spec("ray") is not None, "ray is not installed")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)


def site(count: int = 1500) -> tuple[np.ndarray, np.ndarray, Moments]:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(count, 5)).astype(np.float32)
    outcomes = (values[:, 0] + rng.normal(0, 0.5, count) > 0.8).astype(float)
    submitted = np.arange(count) * 60.0
    return values, outcomes, Moments(submitted, submitted + 30)


def assert_searched(model: TunedTrees) -> None:
    values, outcomes, moments = site()
    assert len(time_folds(outcomes, moments)) == 2
    model.fit(values, outcomes, moments)
    trials = model.search.trials
    assert len(trials) == 4
    assert all(trial.score is not None and trial.seconds > 0 for trial in trials)
    usual = TreeParameters()
    assert any((t.parameters.depth, t.parameters.l2) == (usual.depth, usual.l2) for t in trials)
    assert np.mean((model.risk(values) > 0.5) == outcomes) > 0.8


@pytest.mark.alone
def test_a_ray_of_its_own_finds_what_a_search_finds() -> None:
    assert_searched(TunedTrees(budget=Budget(4), on="ray"))


@pytest.mark.alone
def test_a_search_that_is_stopped_keeps_the_trials_that_are_finished() -> None:
    tried: list[Trial] = []
    model = TunedTrees(
        budget=Budget(None, seconds=600), on="ray", progress=tried.append,
        stopped=lambda: len(tried) >= 2,
    )  # fmt: skip
    model.fit(*site())
    assert model.search.interrupted
    assert 2 <= len(model.search.trials) == len(tried)
    assert {trial.score for trial in tried} == {trial.score for trial in model.search.trials}


@pytest.mark.alone
def test_a_cluster_finds_what_a_search_finds(tmp_path: Path) -> None:
    with ray_head.running(tmp_path) as address:
        assert_searched(TunedTrees(budget=Budget(4), on=address))


def test_a_ray_that_is_not_there_is_told() -> None:
    values, outcomes, moments = site()
    with pytest.raises(Unavailable, match=r"connection timeout.*Is its head running"):
        TunedTrees(budget=Budget(2), on="ray://127.0.0.1:1").fit(values, outcomes, moments)
