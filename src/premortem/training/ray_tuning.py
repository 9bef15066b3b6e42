"""The same search with many trials at a time, on one machine or many, by Ray Tune."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from time import perf_counter
from typing import Any

import numpy as np
import optuna

from premortem.errors import MissingExtra, Unavailable
from premortem.models.engines import DEFAULT
from premortem.models.parameters import Recipe
from premortem.models.port import Array
from premortem.training.tuning import Budget, Fold, Judge, Search, Trial, best_of, space, usual

LOCAL = "ray"
STARTS = 3


def require_ray() -> None:
    """Raise `MissingExtra` if Ray is not installed."""
    if find_spec("ray") is None:
        raise MissingExtra("ray", extra="ray")


def search_on_ray(
    values: Array,
    outcomes: Array,
    folds: Sequence[Fold],
    budget: Budget = Budget(),
    *,
    on: str = LOCAL,
    engine_name: str = DEFAULT,
    weigh: Callable[[Array], Array | None] = lambda _: None,
    seed: int = 0,
    progress: Callable[[Trial], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Search:
    """Search with one trial on each core; `on` is `ray`, or the `ray://` address of a cluster.

    With `ray`, one of its own is started on this machine and ended again. Trials come back in no
    order, so that two searches of the same seed may try different parameters. When it is `stopped`,
    trials not yet finished are given up. At an address Ray looks after the search over there: it
    tells of its trials at the end, and does not ask whether it is `stopped` before.
    """
    require_ray()
    import ray
    from ray import tune
    from ray.tune.search.optuna import OptunaSearch

    def tried(config: dict[str, Any], rows: Array, became: Array) -> dict[str, Any]:
        began = perf_counter()
        judge = Judge(
            rows, became, folds, engine_name=engine_name, seed=seed, threads=1, weigh=weigh
        )
        scored = list(judge.scores(space(_Given(config))))
        return {
            "score": float(np.mean([score for score, _ in scored])),
            "rounds": scored[-1][1],
            "seconds": perf_counter() - began,
        }

    class Watch(tune.Callback, tune.Stopper):
        """Tells of each trial that is finished, and ends the search when it is stopped."""

        finished = 0

        def on_trial_complete(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            if "score" in trial.last_result:
                progress(_trial(self.finished, trial.config, trial.last_result, engine_name))
                self.finished += 1

        def __call__(self, *_: Any) -> bool:
            return False

        def stop_all(self) -> bool:
            return stopped()

        def __reduce__(self) -> tuple[Any, ...]:
            # Ray keeps a copy of how it was called, where nobody is told anything.
            return str, ()

    here = on == LOCAL
    watch = Watch()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    _connect(ray, on)
    try:
        # Ray prints tables of its own; standard output is for results.
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
            trial = tune.with_parameters(tried, rows=values, became=outcomes)
            found: Any = tune.Tuner(
                tune.with_resources(trial, {"cpu": 1}),
                tune_config=tune.TuneConfig(
                    search_alg=OptunaSearch(
                        _suggested,
                        metric="score",
                        mode="max",
                        points_to_evaluate=[usual()],
                        seed=seed,
                    ),
                    num_samples=-1 if budget.trials is None else budget.trials,
                    time_budget_s=budget.seconds,
                ),
                run_config=tune.RunConfig(
                    storage_path=folder,
                    verbose=0,
                    callbacks=[watch] if here else None,
                    stop=watch if here else None,
                ),
            ).fit()
    finally:
        ray.shutdown()
    told = [one for one in found if "score" in (one.metrics or {})]
    if found.errors and not told:
        raise Unavailable(f"every trial on Ray failed, the first one thus: {found.errors[0]}")
    trials = tuple(
        _trial(number, one.config, one.metrics, engine_name) for number, one in enumerate(told)
    )
    if not here:
        for one in trials:
            progress(one)
    interrupted = stopped() and budget.left(len(trials)) != 0
    return Search((Recipe(engine_name, best_of(trials)),), trials, interrupted)


def _suggested(trial: Any) -> None:
    """Let a trial choose its parameters; Ray keeps what it chose."""
    space(trial)


def _connect(ray: Any, on: str) -> None:
    """Start a Ray on this machine, or join the one at an address.

    There are `STARTS` chances. On a loaded machine a Ray of our own gives up after 30 seconds, and
    says so with a plain `Exception`; and what a head starts for each client may die at once.
    """
    quietly = {"log_to_driver": False, "logging_level": logging.ERROR}
    for left in reversed(range(STARTS)):
        try:
            if on == LOCAL:
                # "local", or Ray would join whatever else runs on this machine.
                ray.init("local", include_dashboard=False, **quietly)
            else:
                ray.init(on, **quietly)
        except Exception as error:
            ray.shutdown()
            if left and (on == LOCAL or isinstance(error, ConnectionAbortedError)):
                continue
            raise Unavailable(_told(on, error)) from error
        else:
            return


def _told(on: str, error: Exception) -> str:
    if on == LOCAL:
        return f"Ray does not start on this machine: {error}"
    return (
        f"Ray cannot be reached at {on}: {error}. Is its head running with a client server at this "
        "port? If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN."
    )


class _Given:
    """Stands in for a trial of Optuna's whose values are chosen already."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config

    def suggest_float(self, name: str, *_: Any, **__: Any) -> float:
        return float(self._config[name])

    def suggest_int(self, name: str, *_: Any, **__: Any) -> int:
        return int(self._config[name])


def _trial(number: int, config: dict[str, Any], told: dict[str, Any], engine_name: str) -> Trial:
    tried = replace(space(_Given(config)), rounds=int(told["rounds"]))
    return Trial(number, tried, float(told["score"]), float(told["seconds"]), engine_name)
