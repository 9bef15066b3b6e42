"""How fast predictions are made, from the job's record on, against bare calls of XGBoost.

    python benchmarks/predict.py [--jobs 20000] [--live 2000] [--rows 100000] [--point start]

A model of the usual trees is trained on a synthetic cluster; the jobs after those are predicted
live, each when it reaches the point, by a replay that has observed whatever happened before. Its
features are part of the time, and so are the events it catches up with. XGBoost is given the same
booster and rows that are ready, of the same columns; with one thread for a single row, which is
faster, and all of them for many. Calls of the two alternate; times are medians.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xgboost

from premortem.features.catalogue import CATALOGUE
from premortem.features.points import Point, parse_point
from premortem.features.replay import Replay, Rows
from premortem.jobs.fields import BY_NAME, KnownAt
from premortem.jobs.labels import LabelPolicy
from premortem.models.port import Array
from premortem.prediction.model import Model, PointModel
from premortem.prediction.predict import predictions
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.train import Options, train
from premortem.training.tuning import Budget

EVENTS = (
    ("submit", "submit_time", KnownAt.SUBMIT),
    ("start", "start_time", KnownAt.START),
    ("end", "end_time", KnownAt.END),
)
WARM_UP = 50
ROUNDS = 9
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bare:
    """The booster of a model as XGBoost's own, for single rows and for many."""

    single: xgboost.Booster
    many: xgboost.Booster
    places: Array

    def shown(self, rows: Array) -> Array:
        """The booster's columns of the replay's rows."""
        return np.ascontiguousarray(rows[:, self.places])


def bare_of(model: Model, point: Point) -> Bare:
    """The booster as XGBoost finds it among the files of a model with this one point."""
    names = [feature.name for feature in CATALOGUE]
    places = np.array([names.index(name) for name in model.at(point).trees.columns])
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder))
        (file,) = Path(folder).glob("*/xgboost.ubj")
        single, many = (
            xgboost.Booster({"nthread": threads}, model_file=file) for threads in (1, 0)
        )
    return Bare(single, many, places)


def live(
    jobs: pl.DataFrame, rows: Rows, first: int, point: Point
) -> Iterator[tuple[Replay, Record, datetime]]:
    """The jobs from the first on as they reach the point, and a replay that knows the past."""
    records = jobs.to_dicts()
    agenda: list[tuple[datetime, Any, Record]] = [
        (job[field], kind, known_by(job, known))
        for job in records
        for kind, field, known in EVENTS
        if job[field] is not None
    ]
    for place, moment in zip(rows.jobs, rows.moments, strict=True):
        if place >= first:
            at = datetime.fromtimestamp(moment, UTC)
            agenda.append((at, None, known_by(records[place], point.known)))
    replay = Replay()
    for at, kind, job in sorted(agenda, key=itemgetter(0)):
        if kind is None:
            yield replay, job, at
        else:
            replay.observe(kind, job, at)


def known_by(job: Record, known: KnownAt) -> Record:
    """What is known of a job at a moment; how it ended is known at its end."""
    return {
        name: value
        for name, value in job.items()
        if (BY_NAME[name].known if name in BY_NAME else KnownAt.END) <= known
    }


def one_by_one(
    jobs: Iterator[tuple[Replay, Record, datetime]],
    point: Point,
    bare: Bare,
    ours: Callable[[Array, Record], object],
    theirs: dict[str, Callable[[Array], object]],
) -> dict[str, float]:
    """Median seconds of our features, of all of ours, and of each of their calls for the row."""
    spent: dict[str, list[float]] = {"features": [], "ours": [], **{name: [] for name in theirs}}
    for replay, job, at in jobs:
        began = time.perf_counter()
        row = replay.row(job, point, at)
        made = time.perf_counter()
        ours(row[None], job)
        spent["ours"].append(time.perf_counter() - began)
        spent["features"].append(made - began)
        shown = bare.shown(row[None])
        for name, call in theirs.items():
            began = time.perf_counter()
            call(shown)
            spent[name].append(time.perf_counter() - began)
    return {name: float(np.median(seconds[WARM_UP:])) for name, seconds in spent.items()}


def tight_loop(bare: Bare, rows: Array) -> float:
    """Median seconds of a bare call for one row when nothing else takes the processor's cache."""
    spent = []
    for row in bare.shown(rows[-1000:]):
        began = time.perf_counter()
        bare.single.inplace_predict(row[None])
        spent.append(time.perf_counter() - began)
    return float(np.median(spent))


def in_batch(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Median seconds of both; the first round does not count."""
    spent = np.empty((ROUNDS + 1, 2))
    for at in range(ROUNDS + 1):
        for side, call in enumerate((ours, theirs)):
            began = time.perf_counter()
            call()
            spent[at, side] = time.perf_counter() - began
    medians = np.median(spent[1:], axis=0)
    return float(medians[0]), float(medians[1])


def told(what: str, ours: str, theirs: str = "", ratio: str = "", goal: str = "") -> None:
    print(f"{what:44} {ours:>16} {theirs:>16} {ratio:>7}  {goal}".rstrip(), flush=True)


def told_times(what: str, ours: float, theirs: float, most: float | None = None) -> None:
    ratio = ours / theirs
    goal = "" if most is None else f"at most {most:g}x: {'met' if ratio <= most else 'missed'}"
    told(what, f"{ours * 1e6:,.0f} us", f"{theirs * 1e6:,.0f} us", f"{ratio:.2f}x", goal)


def told_rates(
    what: str, rows: int, ours: float, theirs: float, least: float | None = None
) -> None:
    share = theirs / ours
    goal = "" if least is None else f"at least {least:.0%}: {'met' if share >= least else 'missed'}"
    told(what, f"{rows / ours:,.0f} /s", f"{rows / theirs:,.0f} /s", f"{share:.0%}", goal)


def compare_singles(
    model: PointModel,
    bare: Bare,
    rows: Array,
    agenda: Callable[[], Iterator[tuple[Replay, Record, datetime]]],
) -> None:
    found = one_by_one(
        agenda(),
        model.point,
        bare,
        lambda rows, _: model.risk(rows),
        {
            "inplace": lambda row: bare.single.inplace_predict(row),
            "matrix": lambda row: bare.single.predict(xgboost.DMatrix(row, nthread=1)),
        },
    )
    told_times("one risk, by inplace_predict", found["ours"], found["inplace"], 1.5)
    told("  of which features", f"{found['features'] * 1e6:,.0f} us")
    told_times("one risk, by predict of a DMatrix", found["ours"], found["matrix"])
    told_times(
        "one risk, by inplace_predict in a tight loop", found["ours"], tight_loop(bare, rows)
    )
    found = one_by_one(
        agenda(),
        model.point,
        bare,
        lambda rows, job: predictions(model, rows, [job]),
        {"contributions": lambda row: contributions(bare.single, row, 1)},
    )
    told_times("one prediction with reasons", found["ours"], found["contributions"], 1.3)
    told("  of which features", f"{found['features'] * 1e6:,.0f} us")


def compare_batches(
    model: PointModel, bare: Bare, rows: Array, records: list[Record], count: int
) -> None:
    many = rows[np.random.default_rng(0).integers(0, len(rows), count)]
    shown = bare.shown(many)
    seconds = in_batch(lambda: model.risk(many), lambda: bare.many.inplace_predict(shown))
    told_rates(f"risks of {count:,} rows", count, *seconds, least=0.5)
    few, fewer = rows[-len(records) :], bare.shown(rows[-len(records) :])
    seconds = in_batch(
        lambda: predictions(model, few, records), lambda: contributions(bare.many, fewer, 0)
    )
    told_rates(f"predictions with reasons of {len(few):,} rows", len(few), *seconds)


def contributions(booster: xgboost.Booster, rows: Array, threads: int) -> Array:
    data = xgboost.DMatrix(rows, nthread=threads or None)
    found: Array = booster.predict(data, pred_contribs=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs to train on")
    parser.add_argument("--live", type=int, default=2_000, help="jobs to predict one by one")
    parser.add_argument("--rows", type=int, default=100_000, help="rows to score at once")
    parser.add_argument("--point", type=parse_point, default="start")
    options = parser.parse_args()
    point: Point = options.point
    # Some never reach the point.
    more = 2 * (options.live + WARM_UP)
    jobs = pl.concat(SyntheticCluster(jobs=options.jobs + more, seed=1).frames())
    usual = Options(engine="xgboost", budget=Budget(trials=0))
    trained = train(jobs.head(options.jobs), points=[point], options=usual)
    trained.model.prepare()
    model = trained.model.at(point)
    labelled = LabelPolicy().label(jobs)
    rows = Replay().rows(labelled, point)
    bare = bare_of(trained.model, point)
    apart = np.abs(
        model.trees.calibration.apply(bare.many.inplace_predict(bare.shown(rows.values)))
        - model.risk(rows.values)
    ).max()
    print(
        f"{bare.many.num_boosted_rounds()} trees on {len(bare.places)} columns, and "
        f"{len(model.causes)} models of causes; risks differ by at most {apart:.0e}"
    )

    def agenda() -> Iterator[tuple[Replay, Record, datetime]]:
        for at, found in enumerate(live(labelled, rows, options.jobs, point)):
            if at == options.live + WARM_UP:
                return
            yield found

    told("", "premortem", "XGBoost", "ratio", "goal")
    compare_singles(model, bare, rows.values, agenda)
    last = labelled[rows.jobs[-options.live :]].to_dicts()
    compare_batches(model, bare, rows.values, last, options.rows)
    print(
        f"measured {datetime.now(UTC):%Y-%m-%d} with Python {sys.version.split()[0]}, "
        f"XGBoost {xgboost.__version__}"
    )


if __name__ == "__main__":
    main()
