"""The search on a real Ray of two workers, on this machine."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from requirements import require

from premortem.errors import Unavailable
from premortem.models.parameters import TreeParameters
from premortem.models.port import Moments
from premortem.training.tuned import TunedTrees, time_folds
from premortem.training.tuning import Budget

# Ray warns of its own future, and leaves sockets to the end of the process.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def ray_there(monkeypatch: pytest.MonkeyPatch) -> None:
    require(importlib.util.find_spec("ray") is not None, "ray is not installed")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")


def site(count: int = 1500) -> tuple[np.ndarray, np.ndarray, Moments]:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(count, 5)).astype(np.float32)
    outcomes = (values[:, 0] + rng.normal(0, 0.5, count) > 0.8).astype(float)
    submitted = np.arange(count) * 60.0
    return values, outcomes, Moments(submitted, submitted + 30)


def test_it_finds_what_a_search_finds() -> None:
    values, outcomes, moments = site()
    assert len(time_folds(outcomes, moments)) == 2
    model = TunedTrees(budget=Budget(4), on="ray")
    model.fit(values, outcomes, moments)
    trials = model.search.trials
    assert len(trials) == 4
    assert all(trial.score is not None and trial.seconds > 0 for trial in trials)
    usual = TreeParameters()
    assert any((t.parameters.depth, t.parameters.l2) == (usual.depth, usual.l2) for t in trials)
    assert np.mean((model.risk(values) > 0.5) == outcomes) > 0.8


def test_a_ray_that_is_not_there_is_told() -> None:
    values, outcomes, moments = site()
    with pytest.raises(Unavailable, match="Ray cannot be reached"):
        TunedTrees(budget=Budget(2), on="ray://127.0.0.1:1").fit(values, outcomes, moments)
