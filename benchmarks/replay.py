"""How fast the replay makes features, against the plain-Python oracle of the tests.

    python benchmarks/replay.py [--jobs 1000000] [--ricc FILE]

The oracle computes every row from scratch, which takes time by the square of the jobs; so it is run
on the first jobs of a log only, beside the kernels on the same jobs. On the whole log the ratio
would be larger still.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from premortem.features.catalogue import feature_set
from premortem.features.points import START, SUBMIT, Point, running
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.operations.reading import read_log
from premortem.sources.detection import ReadOptions
from premortem.sources.port import Context
from premortem.testing.synthetic import SyntheticCluster

DATA = Path(__file__).parents[2] / "shared" / "data" / "swf" / "RICC-2010-2.swf.gz"
ORACLE_JOBS = 1500
FIRST_ROW = """
from premortem.features.points import SUBMIT
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy
from premortem.testing.synthetic import SyntheticCluster
jobs = LabelPolicy().label(next(SyntheticCluster(jobs=10, seed=1).frames()))
Replay().rows(jobs, SUBMIT)
"""
POINTS = (SUBMIT, START, running(120), running(600), running(3600))


def timed_rows(jobs: pl.DataFrame, point: Point) -> float:
    """How long the features of a point take, as training asks for them."""
    columns = feature_set(point).places
    began = time.perf_counter()
    Replay().rows(jobs, point, columns=columns)
    return time.perf_counter() - began


def best_of_five(jobs: pl.DataFrame, point: Point) -> float:
    """After the first time the machine has found the memory already."""
    return min(timed_rows(jobs, point) for _ in range(5))


def compile_times() -> None:
    """How long a process takes to its first row: with nothing kept, and the next time."""
    with tempfile.TemporaryDirectory() as kept:
        environment = {**os.environ, "NUMBA_CACHE_DIR": kept}
        spent = []
        for _ in range(2):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", FIRST_ROW], env=environment, check=True)
            spent.append(time.perf_counter() - began)
    print(f"start to first row: {spent[0]:.1f} s when compiling, {spent[1]:.1f} s from then on")


def against_oracle(jobs: pl.DataFrame) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
    from replay_oracle import oracle_rows

    for point in POINTS:
        began = time.perf_counter()
        oracle_rows(jobs, point, zone="UTC")
        slow = time.perf_counter() - began
        quick = timed_rows(jobs, point)
        print(
            f"{point!s:12} {jobs.height:,} jobs: oracle {slow:.2f} s, kernels {quick:.3f} s, "
            f"{slow / quick:,.0f}x",
            flush=True,
        )


def live(jobs: pl.DataFrame) -> None:
    """The median time of one live row, beside one call of XGBoost for a single row."""
    import xgboost

    replay = Replay()
    records = jobs.to_dicts()
    spent = []
    for record in records:
        began = time.perf_counter()
        row = replay.row(record, SUBMIT, record["submit_time"])
        spent.append(time.perf_counter() - began)
        replay.observe("submit", record, record["submit_time"])
    rng = np.random.default_rng(0)
    values = rng.random((2000, len(row)), dtype=np.float32)
    model = xgboost.XGBClassifier(n_estimators=400, max_depth=6).fit(values, values[:, 0] > 0.5)
    booster = model.get_booster()
    calls = []
    for n in range(300):
        began = time.perf_counter()
        booster.inplace_predict(values[n : n + 1])
        calls.append(time.perf_counter() - began)
    one, call = float(np.median(spent)), float(np.median(calls))
    print(
        f"one live row: {one * 1e6:.0f} us, {one / call:.2f}x one bare XGBoost call "
        f"({call * 1e6:.0f} us)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--ricc", type=Path, default=DATA)
    options = parser.parse_args()
    policy = LabelPolicy()
    small = policy.label(next(SyntheticCluster(jobs=1000, seed=1).frames()))
    compile_times()
    Replay().rows(small, SUBMIT)
    if options.ricc.is_file():
        log = read_log(str(options.ricc), options=ReadOptions(), context=Context())
        ricc = policy.label(log.jobs)
        against_oracle(ricc.head(ORACLE_JOBS))
        for point in POINTS:
            seconds = best_of_five(ricc, point)
            print(
                f"RICC {point!s:12} {ricc.height:,} jobs: {seconds:.2f} s, "
                f"{ricc.height / seconds:,.0f} jobs/s",
                flush=True,
            )
    else:
        against_oracle(small)
    times = {}
    for count in (options.jobs // 10, options.jobs):
        log = policy.label(pl.concat(SyntheticCluster(jobs=count, seed=1).frames()))
        times[count] = best_of_five(log, SUBMIT)
    growth = times[options.jobs] / times[options.jobs // 10] / 10
    print(f"synthetic, {options.jobs // 10:,} to {options.jobs:,} jobs: {growth:.2f}x linear time")
    live(small)
    print(f"measured {datetime.now(UTC):%Y-%m-%d} with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
