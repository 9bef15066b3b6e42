"""Splits: no training job may end after the cut, no test job be submitted before it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from premortem.errors import InvalidInput
from premortem.training.splits import Split, splits, validation

NAN = float("nan")
seconds = st.integers(0, 50).map(float)
# Times in any order, clocks that jump back and jobs that never ended included.
times = st.lists(st.tuples(seconds, seconds | st.just(NAN)), min_size=1, max_size=40)


@given(times, st.integers(1, 6), st.floats(0.05, 0.95))
def test_nothing_is_learned_from_the_time_that_is_judged(
    jobs: list[tuple[float, float]], folds: int, quantile: float
) -> None:
    submitted, ended = np.array(jobs).T
    for split in splits(submitted, folds=folds, quantile=quantile):
        training, test = split.training(submitted, ended), split.test(submitted)
        assert not (training & test).any()
        assert (ended[training] < split.cut).all()
        assert (submitted[test] >= split.cut).all()
        assert not np.isnan(ended[training]).any()


@given(times, st.integers(2, 6))
def test_folds_judge_every_job_after_the_first_cut_once(
    jobs: list[tuple[float, float]], folds: int
) -> None:
    submitted, _ = np.array(jobs).T
    cuts = splits(submitted, folds=folds)
    judged = sum(split.test(submitted).astype(int) for split in cuts)
    assert (judged == (submitted >= cuts[0].cut)).all()
    assert [split.fold for split in cuts] == list(range(1, folds + 1))


def test_the_cut_is_at_the_quantile() -> None:
    submitted = np.arange(101.0)
    assert splits(submitted) == [Split(80.0)]
    assert splits(submitted, quantile=0.3) == [Split(30.0)]
    assert [split.cut for split in splits(submitted, folds=2)] == [50.0, 75.0]
    assert [split.cut for split in splits(submitted, folds=2, quantile=0.8)] == [80.0, 90.0]


def test_what_is_no_split_is_refused() -> None:
    submitted = np.arange(3.0)
    for wrong in ({"folds": 0}, {"quantile": 0.0}, {"quantile": 1.0}):
        with pytest.raises(InvalidInput):
            splits(submitted, **wrong)
    assert splits(np.array([NAN])) == []


def test_validation_jobs_are_the_last_to_end() -> None:
    ended = np.array([5.0, 1, 2, 3, 4, 10, 6, 7, 8, 9])
    assert ended[validation(ended, 0.2)].tolist() == [10.0, 9.0]
    assert validation(np.full(4, 3.0)).all()
    assert not len(validation(np.empty(0)))


@given(st.lists(seconds, min_size=1, max_size=40))
def test_the_threshold_is_never_chosen_by_jobs_that_were_learned_from(ends: list[float]) -> None:
    ended = np.array(ends)
    last = validation(ended)
    assert last.any()
    assert ended[~last].max(initial=-1) < ended[last].min()
