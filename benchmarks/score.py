"""How fast flat trees score rows and give reasons, against XGBoost itself on the same rows.

    python benchmarks/score.py [--columns 230] [--trees 400] [--depth 6] [--rows 1000]

Both work on one core. Calls of the two alternate, so that whatever else the machine does slows
both; times are medians. A single row's reasons by XGBoost include the matrix it has to be put in.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import xgboost

from premortem.models.flat import FlatTrees
from premortem.models.flat_readers import flat_from_xgboost

FIRST_SCORE = """
import sys
from pathlib import Path
import numpy as np
from premortem.models.flat_readers import flat_from_xgboost
model = flat_from_xgboost(Path(sys.argv[1]).read_bytes())
row = np.zeros((1, model.width), np.float32)
model.risk(row), model.contributions(row)
"""


def trained(columns: int, trees: int, depth: int) -> tuple[xgboost.Booster, np.ndarray]:
    """A model of rows with gaps in which many columns matter a little."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6000, columns)).astype(np.float32)
    matters = rng.normal(size=columns) * (rng.random(columns) < 0.3)
    scores = values @ matters + 3 * values[:, 0] * values[:, 1]
    outcomes = scores + 4 * rng.normal(size=len(values)) > 1
    values[rng.random(values.shape) < 0.1] = np.nan
    parameters = {
        "objective": "binary:logistic",
        "max_depth": depth,
        "learning_rate": 0.02,
        "colsample_bytree": 0.5,
        "nthread": 1,
    }
    data = xgboost.QuantileDMatrix(values, label=outcomes, nthread=1)
    return xgboost.train(parameters, data, num_boost_round=trees), values


def side_by_side(
    what: str, theirs: Callable[[], object], ours: Callable[[], object], *, rows: int, times: int
) -> None:
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for call, seconds in zip((theirs, ours), spent, strict=True):
            began = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - began)
    library, flat = (float(np.median(seconds)) / rows * 1e6 for seconds in spent)
    print(
        f"{what:28} XGBoost {library:8.1f} us a row, flat {flat:7.1f} us, {library / flat:6.1f}x",
        flush=True,
    )


def compile_times(raw: bytes) -> None:
    """How long a process takes to its first score and reasons: nothing kept, and the next time."""
    with tempfile.TemporaryDirectory() as kept:
        path = os.path.join(kept, "model.json")
        with open(path, "wb") as file:
            file.write(raw)
        spent = []
        for _ in range(2):
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", FIRST_SCORE, path],
                env={**os.environ, "NUMBA_CACHE_DIR": kept},
                check=True,
            )
            spent.append(time.perf_counter() - began)
    print(f"start to first reasons: {spent[0]:.1f} s when compiling, {spent[1]:.1f} s from then on")


def compare(booster: xgboost.Booster, model: FlatTrees, values: np.ndarray, rows: int) -> None:
    def reasons(part: np.ndarray) -> np.ndarray:
        found: np.ndarray = booster.predict(xgboost.DMatrix(part, nthread=1), pred_contribs=True)
        return found

    many, few = values[:rows], values[: min(rows, 100)]
    apart = np.abs(reasons(few) - model.contributions(few)).max()
    scale = np.abs(model.margins(few)).max()
    print(f"reasons differ by at most {apart:.1e}, margins reach {scale:.1f}")
    single = iter(np.resize(np.arange(rows), 10**6))

    def one() -> np.ndarray:
        at = next(single)
        return values[at : at + 1]

    side_by_side(
        "risk of a single row",
        lambda: booster.inplace_predict(one()),
        lambda: model.risk(one()),
        rows=1,
        times=1000,
    )
    side_by_side(
        f"risk of {rows:,} rows",
        lambda: booster.inplace_predict(many),
        lambda: model.risk(many),
        rows=rows,
        times=20,
    )
    side_by_side(
        "reasons of a single row",
        lambda: reasons(one()),
        lambda: model.contributions(one()),
        rows=1,
        times=200,
    )
    side_by_side(
        f"reasons of {len(few):,} rows",
        lambda: reasons(few),
        lambda: model.contributions(few),
        rows=len(few),
        times=5,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=230)
    parser.add_argument("--trees", type=int, default=400)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    booster, values = trained(options.columns, options.trees, options.depth)
    booster.set_param({"nthread": 1})
    raw = bytes(booster.save_raw("json"))
    compile_times(raw)
    began = time.perf_counter()
    model = flat_from_xgboost(raw)
    splits = sum(booster.get_score(importance_type="weight").values())
    print(
        f"{options.trees} trees of depth {options.depth} with {splits:,.0f} splits, "
        f"read in {time.perf_counter() - began:.2f} s"
    )
    compare(booster, model, values, min(options.rows, len(values)))
    print(f"measured {datetime.now(UTC):%Y-%m-%d} with Python {sys.version.split()[0]}, one core")


if __name__ == "__main__":
    main()
