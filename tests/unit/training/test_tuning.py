"""The search for parameters: judged by later jobs, resumed, interrupted, never worse than usual."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from premortem.errors import InvalidInput
from premortem.models.parameters import TreeParameters
from premortem.models.port import Moments
from premortem.training import tuned, tuning
from premortem.training.tuned import TunedTrees, time_folds
from premortem.training.tuning import Budget, Judge, Trial, best_of, search


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MOST_ROUNDS", 30)


def site(count: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, Moments]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, 8)).astype(np.float32)
    odds = 1.5 * values[:, 0] + values[:, 1] * values[:, 2] - 1
    outcomes = (rng.random(count) < 1 / (1 + np.exp(-odds))).astype(float)
    submitted = np.arange(count) * 60.0
    return values, outcomes, Moments(submitted, submitted + rng.integers(1, 5000, count))


class Scripted(Judge):
    """Scores by a script instead of by training; the search itself is what is tested."""

    def __init__(self, scores: list[float], *, interrupt_at: int | None = None) -> None:
        self._scores = scores
        self.asked = 0
        self._interrupt_at = interrupt_at

    def scores(self, parameters: TreeParameters) -> Iterator[tuple[float, int]]:
        if self.asked == self._interrupt_at:
            raise KeyboardInterrupt
        score = self._scores[self.asked % len(self._scores)]
        self.asked += 1
        yield score, 17


class TestFolds:
    def test_nobody_learns_from_what_was_not_over(self) -> None:
        _, outcomes, moments = site()
        folds = time_folds(outcomes, moments)
        assert len(folds) == 2
        for fold in folds:
            cut = moments.submitted[fold.judge].min()
            assert moments.ended[fold.learn].max() < cut
            assert (np.diff(moments.submitted[fold.judge]) >= 0).all()
        assert not set(folds[0].judge) & set(folds[1].judge)

    def test_a_fold_that_cannot_judge_is_left_out(self) -> None:
        _, outcomes, moments = site()
        outcomes[moments.submitted > np.quantile(moments.submitted, 0.8)] = 0
        assert len(time_folds(outcomes, moments)) == 1
        assert time_folds(np.zeros(3000), moments) == []


class TestSearch:
    def test_the_usual_parameters_come_first_and_the_best_are_found(self) -> None:
        tried: list[Trial] = []
        found = search(Scripted([0.5, 0.4, 0.9, 0.6]), Budget(4), progress=tried.append)
        usual = TreeParameters(rounds=17)
        assert [trial.score for trial in found.trials] == [0.5, 0.4, 0.9, 0.6]
        assert found.trials[0].parameters == usual
        assert found.best == found.trials[2].parameters != usual
        assert [trial.number for trial in tried] == [0, 1, 2, 3]

    def test_what_is_hardly_better_does_not_replace_the_usual(self) -> None:
        found = search(Scripted([0.5, 0.5005]), Budget(2))
        assert found.best == TreeParameters(rounds=17)
        assert best_of([]) == TreeParameters()

    def test_the_same_seed_tries_the_same(self) -> None:
        script = [0.5, 0.4, 0.6]
        first, again = (search(Scripted(script), Budget(9), seed=4) for _ in range(2))
        other = search(Scripted(script), Budget(9), seed=5)
        assert [t.parameters for t in first.trials] == [t.parameters for t in again.trials]
        assert [t.parameters for t in first.trials] != [t.parameters for t in other.trials]

    def test_an_interrupted_search_keeps_what_it_has_and_goes_on(self, tmp_path: Path) -> None:
        journal = tmp_path / "trials.log"
        first = search(Scripted([0.5, 0.7], interrupt_at=2), Budget(5), journal=journal)
        assert first.interrupted
        assert [trial.score for trial in first.trials] == [0.5, 0.7]
        assert first.best == first.trials[1].parameters
        judge = Scripted([0.6])
        rest = search(judge, Budget(5), journal=journal)
        assert judge.asked == 3
        assert not rest.interrupted
        assert len(rest.trials) == 5
        assert search(Scripted([]), Budget(5), journal=journal).trials == rest.trials

    def test_time_ends_it_too(self) -> None:
        assert len(search(Scripted([0.5]), Budget(10**6, seconds=0.3)).trials) < 10**6

    def test_without_folds_there_is_nothing_to_judge_by(self) -> None:
        values, outcomes, _ = site(100)
        with pytest.raises(InvalidInput, match="later jobs"):
            Judge(values, outcomes, [])


class TestTunedTrees:
    def test_it_searches_calibrates_and_learns(self) -> None:
        values, outcomes, moments = site()
        model = TunedTrees(budget=Budget(2))
        model.fit(values, outcomes, moments)
        assert len(model.search.trials) == 2
        places, risk = model.validation
        assert len(places) == len(risk) >= tuned.FEWEST_JUDGED
        assert moments.submitted[places].min() >= np.quantile(moments.submitted, 0.8)
        later, became, _ = site(seed=1)
        assert np.mean((model.risk(later) > 0.5) == became) > 0.7

    def test_given_parameters_are_not_searched_for(self) -> None:
        values, outcomes, moments = site()
        given = TreeParameters(rounds=5)
        model = TunedTrees(parameters=given)
        model.fit(values, outcomes, moments)
        assert (model.search.best, model.search.trials) == (given, ())

    def test_without_moments_it_only_learns(self) -> None:
        values, outcomes, _ = site(500)
        model = TunedTrees(parameters=TreeParameters(rounds=5))
        model.fit(values, outcomes)
        assert model.judged is None
        assert model.calibration.kind == "none"
