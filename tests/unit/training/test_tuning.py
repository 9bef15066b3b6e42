"""The search for parameters: judged by later jobs, resumed, interrupted, never worse than usual."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from premortem.errors import InvalidInput, Unavailable
from premortem.models.parameters import Recipe, TreeParameters
from premortem.models.port import Moments
from premortem.training import tuned, tuning
from premortem.training.imbalance import Imbalance
from premortem.training.tuned import TunedTrees, time_folds
from premortem.training.tuning import Budget, Fold, Judge, Trial, best_of, search


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

    def __init__(self, scores: list[float], *, killed_at: int | None = None) -> None:
        self.engine = "xgboost"
        self._scores = scores
        self.asked = 0
        self._killed_at = killed_at

    def scores(self, parameters: TreeParameters) -> Iterator[tuple[float, int]]:
        if self.asked == self._killed_at:
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
        assert found.best == (Recipe(parameters=found.trials[2].parameters),)
        assert found.trials[2].parameters != usual
        assert [trial.number for trial in tried] == [0, 1, 2, 3]

    def test_what_is_hardly_better_does_not_replace_the_usual(self) -> None:
        found = search(Scripted([0.5, 0.5005]), Budget(2))
        assert found.best == (Recipe(parameters=TreeParameters(rounds=17)),)
        assert best_of([]) == TreeParameters()

    def test_the_same_seed_tries_the_same(self) -> None:
        script = [0.5, 0.4, 0.6]
        first, again = (search(Scripted(script), Budget(9), seed=4) for _ in range(2))
        other = search(Scripted(script), Budget(9), seed=5)
        assert [t.parameters for t in first.trials] == [t.parameters for t in again.trials]
        assert [t.parameters for t in first.trials] != [t.parameters for t in other.trials]

    def test_an_interrupted_search_keeps_what_it_has_and_goes_on(self, tmp_path: Path) -> None:
        journal = tmp_path / "trials.log"
        judge = Scripted([0.5, 0.7])
        first = search(judge, Budget(5), journal=journal, stopped=lambda: judge.asked == 2)
        assert first.interrupted
        assert [trial.score for trial in first.trials] == [0.5, 0.7]
        assert first.best == (Recipe(parameters=first.trials[1].parameters),)
        judge = Scripted([0.6])
        rest = search(judge, Budget(5), journal=journal)
        assert judge.asked == 3
        assert not rest.interrupted
        assert len(rest.trials) == 5
        assert len({trial.parameters for trial in rest.trials}) == 5
        assert search(Scripted([]), Budget(5), journal=journal).trials == rest.trials
        other = Scripted([0.6])
        search(other, Budget(5), journal=journal, seed=1)
        assert other.asked == 5

    def test_a_search_that_came_to_its_end_was_not_interrupted(self) -> None:
        judge = Scripted([0.5])
        found = search(judge, Budget(2), stopped=lambda: judge.asked == 2)
        assert (len(found.trials), found.interrupted) == (2, False)

    def test_after_a_first_trial_that_was_cut_off_the_usual_parameters_still_come_first(
        self, tmp_path: Path
    ) -> None:
        journal = tmp_path / "trials.log"
        with pytest.raises(KeyboardInterrupt):
            search(Scripted([0.5], killed_at=0), Budget(2), journal=journal)
        found = search(Scripted([0.5, 0.5005]), Budget(2), journal=journal)
        assert found.trials[0].parameters == TreeParameters(rounds=17)
        assert found.best == (Recipe(parameters=TreeParameters(rounds=17)),)

    def test_a_journal_that_is_none_is_told(self, tmp_path: Path) -> None:
        for name, text in (("text", "no journal"), ("other", '{"a": 1}\n')):
            journal = tmp_path / name
            journal.write_text(text)
            with pytest.raises(InvalidInput, match="is not the journal of a search"):
                search(Scripted([0.5]), Budget(1), journal=journal)
        database = tmp_path / "jobs.db"
        database.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 32)
        with pytest.raises(InvalidInput) as told:
            search(Scripted([0.5]), Budget(1), journal=database)
        assert str(told.value) == (
            f"{database} is not the journal of a search: name another file, or one that is not "
            "there yet"
        )
        for journal in (tmp_path, tmp_path / "no" / "folder"):
            with pytest.raises(Unavailable, match="cannot be written"):
                search(Scripted([0.5]), Budget(1), journal=journal)

    def test_time_ends_it_too(self) -> None:
        assert len(search(Scripted([0.5]), Budget(10**6, seconds=0.3)).trials) < 10**6
        assert search(Scripted([0.5]), Budget(None, seconds=0.3)).trials
        judge = Scripted([0.5])
        endless = search(judge, Budget(None), stopped=lambda: judge.asked > 30)
        assert (len(endless.trials), endless.interrupted) == (31, True)

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
        given = (Recipe(parameters=TreeParameters(rounds=5)),)
        model = TunedTrees(recipes=given)
        model.fit(values, outcomes, moments)
        assert (model.search.best, model.search.trials) == (given, ())

    def test_without_moments_it_only_learns(self) -> None:
        values, outcomes, _ = site(500)
        model = TunedTrees(recipes=[Recipe(parameters=TreeParameters(rounds=5))])
        model.fit(values, outcomes)
        assert model.judged is None
        assert model.calibration.kind == "none"

    def test_a_journal_goes_on_with_the_same_rows_only(self, tmp_path: Path) -> None:
        values, outcomes, moments = site()
        journal = tmp_path / "trials.log"
        tried: list[Trial] = []

        def fit(rows: np.ndarray) -> TunedTrees:
            tried.clear()
            model = TunedTrees(budget=Budget(2), journal=journal, progress=tried.append)
            model.fit(rows, outcomes, moments)
            return model

        first = fit(values)
        assert len(tried) == 2
        again = fit(values)
        assert tried == []
        assert again.search.trials == first.search.trials
        assert len(fit(values + 1).search.trials) == len(tried) == 2

    def test_auto_searches_with_every_engine_and_takes_what_judges_best(self) -> None:
        values, outcomes, moments = site()
        model = TunedTrees(engine="auto", budget=Budget(5))
        model.fit(values, outcomes, moments)
        trials = model.search.trials
        assert [trial.engine for trial in trials] == ["xgboost", "lightgbm", "catboost"]
        assert [trial.number for trial in trials] == [0, 1, 2]
        tried = {Recipe(trial.engine, trial.parameters) for trial in trials}
        assert set(model.search.best) <= {*tried, Recipe()}
        parts = [(part.engine, part.parameters) for part in model.trees.parts]
        assert parts == [(recipe.engine, recipe.parameters) for recipe in model.search.best]

    def test_auto_begins_with_no_other_engine_once_it_is_stopped(self) -> None:
        values, outcomes, moments = site()
        tried: list[Trial] = []
        model = TunedTrees(
            engine="auto", budget=Budget(3), progress=tried.append, stopped=lambda: bool(tried)
        )
        model.fit(values, outcomes, moments)
        assert [trial.engine for trial in model.search.trials] == ["xgboost"]
        assert model.search.interrupted

    @pytest.mark.parametrize("strategy", ["oversample", "smote", "active"])
    def test_a_strategy_arranges_what_trials_learn_from_and_not_what_judges(
        self, monkeypatch: pytest.MonkeyPatch, strategy: str
    ) -> None:
        seen: list[tuple[np.ndarray, np.ndarray, Fold]] = []

        class Watched(Judge):
            def __init__(self, values: Any, outcomes: Any, folds: Any, **named: Any) -> None:
                seen.extend((values, outcomes, fold) for fold in folds)
                super().__init__(values, outcomes, folds, **named)

        monkeypatch.setattr(tuned, "Judge", Watched)
        values, outcomes, moments = site(4000)
        model = TunedTrees(budget=Budget(1), imbalance=Imbalance(strategy))
        model.fit(values, outcomes, moments)
        for plain, (rows, became, fold) in zip(time_folds(outcomes, moments), seen, strict=True):
            assert (fold.judge == plain.judge).all()
            assert (rows[fold.judge] == values[fold.judge]).all()
            assert (became[fold.judge] == outcomes[fold.judge]).all()
            learned = became[fold.learn]
            if strategy == "active":
                assert len(learned) < len(plain.learn)
                assert {row.tobytes() for row in rows[fold.learn]} <= {
                    row.tobytes() for row in values[plain.learn]
                }
            else:
                assert len(learned) > len(plain.learn)
                assert learned.mean() == 0.5

    def test_only_what_is_better_for_sure_replaces_the_usual(self) -> None:
        rng = np.random.default_rng(0)
        became = (rng.random(2000) < 0.3).astype(float)
        poor, rest, good = (
            np.clip(became * k + rng.random(2000), 0, 1.9) / 2 for k in (0.2, 0.2, 0.8)
        )
        usual, second, third = (Recipe(name) for name in ("xgboost", "lightgbm", "catboost"))
        assert tuned._chosen({usual: [poor], third: [good]}, [became]) == (third,)
        assert tuned._chosen({usual: [good], third: [poor]}, [became]) == (usual,)
        assert tuned._chosen({usual: [poor], second: [poor + 1e-9]}, [became]) == (usual,)
        assert tuned._chosen({usual: [poor], second: [rest]}, [became]) == (usual, second)
        twin = Recipe("xgboost", TreeParameters(rounds=7))
        assert len(tuned._chosen({usual: [poor], twin: [rest]}, [became])) == 1
        lucky = poor.copy()
        lucky[np.flatnonzero(became)[:3]] = 0.99
        assert not tuned.surely_better([became], [lucky], [poor])
        assert tuned.surely_better([became, became], [good, good], [poor, poor])
        assert not tuned.surely_better([became, became], [good, poor], [poor, poor])

    def test_a_large_site_is_searched_by_a_part_of_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tuned, "MOST_LEARNED", 500)
        monkeypatch.setattr(tuned, "MOST_JUDGED", 100)
        seen: list[int] = []

        class Watched(Judge):
            def __init__(self, *given: Any, **named: Any) -> None:
                seen.extend(len(part) for fold in given[2] for part in (fold.learn, fold.judge))
                super().__init__(*given, **named)

        monkeypatch.setattr(tuned, "Judge", Watched)
        values, outcomes, moments = site()
        model = TunedTrees(budget=Budget(1))
        model.fit(values, outcomes, moments)
        assert all(250 < learned <= 500 for learned in seen[::2])
        assert all(50 < judged <= 100 for judged in seen[1::2])
        assert len(model.validation[0]) == 600
