"""The search for good parameters, by Optuna: judged by later jobs, given up early when poor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from premortem.errors import InvalidInput, Unavailable
from premortem.models.boosted import finite, used_columns
from premortem.models.engines import DEFAULT, engine
from premortem.models.parameters import Recipe, TreeParameters
from premortem.models.port import Array
from premortem.training import metrics

# The most trees a trial may grow; it ends when later jobs gain nothing more.
MOST_ROUNDS = 600
# The trials of a search that is given neither a number nor a time.
USUAL_TRIALS = 20
# What a better score must exceed, to be more than chance.
WORTHWHILE = 0.001


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows to learn from, and later ones to judge by; places in the matrix."""

    learn: Array
    judge: Array


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of parameters that was tried; `score` is None if it was given up early."""

    number: int
    parameters: TreeParameters
    score: float | None
    seconds: float
    engine: str = DEFAULT

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return {
            "number": self.number, "parameters": self.parameters.as_dict(), "score": self.score,
            "seconds": self.seconds, "engine": self.engine,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found; the first trial is that of the usual parameters.

    `best` is how to grow trees; where there are several, their log odds are to be averaged.
    """

    best: tuple[Recipe, ...] = (Recipe(),)
    trials: tuple[Trial, ...] = ()
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to search: so many trials, or so many seconds, whichever ends first.

    None is as many as there is time for. With neither, a search ends only when it is stopped.
    """

    trials: int | None = USUAL_TRIALS
    seconds: float | None = None

    def left(self, trials: int) -> int | None:
        """The trials that are left after so many."""
        return None if self.trials is None else max(0, self.trials - trials)


def space(trial: Any) -> TreeParameters:
    """The parameters a trial is to try."""
    return TreeParameters(
        rounds=MOST_ROUNDS,
        learning_rate=trial.suggest_float("learning_rate", 0.02, 0.15, log=True),
        depth=trial.suggest_int("depth", 3, 8),
        leaf_weight=trial.suggest_float("leaf_weight", 1.0, 200.0, log=True),
        l2=trial.suggest_float("l2", 0.1, 100.0, log=True),
        rows=trial.suggest_float("rows", 0.5, 1.0),
        columns=trial.suggest_float("columns", 0.1, 1.0),
    )


def usual() -> dict[str, float | int]:
    """The usual parameters, as the space names them."""
    found = TreeParameters().as_dict()
    del found["rounds"]
    return found


class Judge:
    """Scores parameters by the folds; the rows are made ready once for all trials."""

    def __init__(
        self,
        values: Array,
        outcomes: Array,
        folds: Sequence[Fold],
        *,
        engine_name: str = DEFAULT,
        seed: int = 0,
        threads: int = 0,
        weigh: Callable[[Array], Array | None] = lambda _: None,
    ) -> None:
        if not folds:
            raise InvalidInput("a search needs later jobs to judge by")
        self.engine = engine_name
        self._engine = engine(engine_name)
        self._seed, self._threads = seed, threads
        self._ready = []
        for fold in folds:
            used = used_columns(values, fold.learn)
            learned = outcomes[fold.learn]
            learn = self._engine.data(finite(values, used, fold.learn), learned, weigh(learned))
            shown = finite(values, used, fold.judge)
            watch = self._engine.data(shown, outcomes[fold.judge], None, like=learn)
            self._ready.append((learn, watch, shown, outcomes[fold.judge]))

    def scores(self, parameters: TreeParameters) -> Iterator[tuple[float, int]]:
        """The average precision in each fold, one after the other, with the rounds it took."""
        for (risk, rounds), (*_, outcomes) in zip(self.risks(parameters), self._ready, strict=True):
            yield metrics.average_precision(outcomes, risk) or 0.0, rounds

    def risks(
        self, parameters: TreeParameters, *, stops: bool = True
    ) -> Iterator[tuple[Array, int]]:
        """The risk of the jobs that judge in each fold, with the rounds it took.

        Growing `stops` when they gain nothing more, or after the rounds that the parameters say.
        """
        for learn, watch, shown, _ in self._ready:
            booster, rounds = self._engine.train(
                learn, parameters, seed=self._seed, threads=self._threads,
                watch=watch if stops else None,
            )  # fmt: skip
            yield self._engine.risk(booster, shown, self._threads), rounds


def search(
    judge: Judge,
    budget: Budget = Budget(),
    *,
    seed: int = 0,
    journal: Path | None = None,
    name: str = "search",
    progress: Callable[[Trial], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Search:
    """Search until the budget is spent, or until `stopped`, which is asked after each trial.

    With a `journal`, trials already in it under that name count: an interrupted search goes on.
    """
    study = _study(f"{name} {seed}", journal)
    finished = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    done = len(study.get_trials(deepcopy=False, states=finished))
    # One that goes on must not draw again what was drawn already.
    study.sampler = optuna.samplers.TPESampler(seed=seed + done, n_startup_trials=8)
    if not done:
        study.enqueue_trial(usual())

    def objective(trial: Any) -> float:
        began = perf_counter()
        parameters = space(trial)
        scores: list[float] = []
        for step, (score, rounds) in enumerate(judge.scores(parameters)):
            scores.append(score)
            trial.set_user_attr("rounds", rounds)
            trial.report(float(np.mean(scores)), step)
            if trial.should_prune():
                spent = perf_counter() - began
                progress(Trial(trial.number, parameters, None, spent, judge.engine))
                raise optuna.TrialPruned
        tried = replace(parameters, rounds=rounds)
        score = float(np.mean(scores))
        progress(Trial(trial.number, tried, score, perf_counter() - began, judge.engine))
        return score

    def stop_if_asked(study: Any, _: Any) -> None:
        if stopped():
            study.stop()

    left = budget.left(done)
    if left != 0:
        study.optimize(objective, n_trials=left, timeout=budget.seconds, callbacks=[stop_if_asked])
    trials = tuple(_trial(found, judge.engine) for found in study.get_trials(states=finished))
    interrupted = stopped() and budget.left(len(trials)) != 0
    return Search((Recipe(judge.engine, best_of(trials)),), trials, interrupted)


def _study(name: str, journal: Path | None) -> Any:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if journal:
        require_journal(journal)
    with _journal_errors_told(journal):
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(journal))) if journal else None,
            study_name=name,
            load_if_exists=True,
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
        )


def require_journal(path: Path) -> None:
    """Raise if the file cannot be written, or holds something else: it would be written to."""
    with _journal_errors_told(path):
        with path.open("a+", encoding="utf-8") as file:
            file.seek(0)
            first = file.readline()
        if first:
            _ = json.loads(first)["op_code"]


@contextmanager
def _journal_errors_told(journal: Path | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise Unavailable(f"the journal {journal} cannot be written: {why}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{journal} is not the journal of a search: name another file, or one that is not "
            "there yet"
        ) from error


def best_of(trials: Sequence[Trial]) -> TreeParameters:
    """The parameters of the best trial, or the usual ones if none is worthwhile better."""
    scored = [trial for trial in trials if trial.score is not None]
    if not scored:
        return TreeParameters()
    best = max(scored, key=lambda trial: trial.score or 0.0)
    usual = next((trial for trial in scored if _is_usual(trial.parameters)), None)
    if usual and (best.score or 0.0) < (usual.score or 0.0) + WORTHWHILE:
        return usual.parameters
    return best.parameters


def _is_usual(parameters: TreeParameters) -> bool:
    """Whether these are the usual ones, whatever the rounds they were best with."""
    return replace(parameters, rounds=TreeParameters().rounds) == TreeParameters()


def _trial(found: Any, engine_name: str) -> Trial:
    rounds = int(found.user_attrs.get("rounds", MOST_ROUNDS))
    spent = (found.datetime_complete - found.datetime_start).total_seconds()
    complete = found.state is optuna.trial.TrialState.COMPLETE
    parameters = TreeParameters(rounds=rounds, **found.params)
    return Trial(found.number, parameters, found.value if complete else None, spent, engine_name)
