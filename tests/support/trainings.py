"""A small training for tests of what is told of one, made once for all of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl

from premortem.features.points import SUBMIT, running
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.train import Options, Training, train
from premortem.training.tuning import Budget


@cache
def small_training() -> Training:
    """Two points of an invented cluster, two trials each; a third point has too few jobs."""
    jobs = pl.concat(SyntheticCluster(1500, seed=3, users=30, days=40).frames())
    points = (SUBMIT, running(120), running(9_999_999))
    return train(jobs, points=points, options=Options(budget=Budget(trials=2)))


def judged_otherwise(training: Training, **changes: Any) -> Training:
    """The same training with something changed in what was judged, at every point."""
    points = {
        name: replace(one, judged=replace(one.judged, **changes))
        for name, one in training.points.items()
    }
    return replace(training, points=points)
