"""How long a whole training takes, and how much memory, against as many bare fits of XGBoost.

    python benchmarks/train.py [--log FILE] [--trials 20] [--bare 20] [--head JOBS] [--point start]

The training makes the features, searches with so many trials, judges, calibrates and learns from
all jobs in the end, with a model for each cause. A bare fit puts the same matrix, made beforehand,
into XGBoost and grows the usual trees. Half of the bare fits run before the training and half
after it, each part in a process of its own. Memory is counted in bytes of the features as float32.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "shared" / "data" / "swf"
PATTERN = "SDSC-BLUE*.swf.gz"
# As many as that log has.
SYNTHETIC_JOBS = 243_306
WARM_UP_JOBS = 800
TIME_GOAL, MEMORY_GOAL = 1.5, 3.0


def prepare(jobs_file: str, log: str, head: str) -> dict[str, Any]:
    """Write the labelled jobs of a log, or of an invented cluster, for the others to read."""
    import polars as pl

    from premortem.jobs.labels import LabelPolicy
    from premortem.operations.reading import read_log
    from premortem.sources.detection import ReadOptions
    from premortem.sources.port import Context
    from premortem.testing.synthetic import SyntheticCluster

    if log:
        jobs = read_log(log, options=ReadOptions(), context=Context()).jobs
    else:
        jobs = pl.concat(SyntheticCluster(jobs=SYNTHETIC_JOBS, seed=1).frames())
    if int(head):
        jobs = jobs.head(int(head))
    LabelPolicy().label(jobs).write_parquet(jobs_file)
    return {"jobs": jobs.height}


def bare(jobs_file: str, point_name: str, fits: str) -> dict[str, Any]:
    """Seconds of each of so many bare fits, and the size of the matrix they are of."""
    import numpy as np
    import polars as pl

    from premortem.features.catalogue import feature_set
    from premortem.features.facts import facts_of
    from premortem.features.points import parse_point
    from premortem.features.replay import Replay
    from premortem.models.boosted import finite, used_columns

    point = parse_point(point_name)
    jobs = pl.read_parquet(jobs_file)
    rows = Replay().rows(jobs, point, columns=feature_set(point).places)
    facts = facts_of(jobs, zone="UTC")
    outcomes, ended = facts.outcomes[rows.jobs], facts.ended[rows.jobs]
    counted = ~np.isnan(outcomes) & ~np.isnan(ended)
    values, outcomes = rows.values[counted], outcomes[counted]
    used, width = used_columns(values), values.shape[1]
    shown = finite(values, used)
    _check_bare_fit(shown[:WARM_UP_JOBS])
    del rows, facts, jobs, values
    gc.collect()
    held, seconds = _held_mib(), []
    _forget_peak()
    for _ in range(int(fits)):
        began = time.perf_counter()
        bare_fit(shown, outcomes)
        seconds.append(time.perf_counter() - began)
    return {
        "seconds": seconds, "rows": len(shown), "columns": width, "used": len(used),
        "added_mib": _peak_mib() - held,
    }  # fmt: skip


def bare_fit(values: Any, outcomes: Any, threads: int = 0) -> Any:
    """The usual trees, as one would grow them without premortem."""
    import xgboost

    from premortem.models.parameters import TreeParameters

    usual = TreeParameters()
    told = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": usual.depth,
        "learning_rate": usual.learning_rate,
        "subsample": usual.rows,
        "colsample_bytree": usual.columns,
        "min_child_weight": usual.leaf_weight,
        "reg_lambda": usual.l2,
        "seed": 0,
        "nthread": threads,
    }
    data = xgboost.QuantileDMatrix(values, label=outcomes)
    return xgboost.train(told, data, num_boost_round=usual.rounds)


def _check_bare_fit(values: Any) -> None:
    """Warm up, and make sure that a bare fit is the fit that premortem makes."""
    import numpy as np

    from premortem.models.boosted import BoostedTrees

    outcomes = np.random.default_rng(0).integers(0, 2, len(values))
    model = BoostedTrees(threads=1)
    model.fit(values, outcomes)
    theirs = bare_fit(values, outcomes, threads=1).inplace_predict(values)
    if not np.allclose(theirs, model.risk(values), atol=1e-5):
        raise SystemExit("the bare fit is not the one premortem makes: bring the two together")


def train(jobs_file: str, point_name: str, trials: str) -> dict[str, Any]:
    """Seconds and peak memory of a training, what was held before it, and how it went."""
    import polars as pl

    from premortem.features.points import parse_point
    from premortem.testing.synthetic import SyntheticCluster
    from premortem.training import train as training
    from premortem.training.tuning import Budget

    point = parse_point(point_name)
    few = next(SyntheticCluster(jobs=WARM_UP_JOBS, seed=1).frames())
    options = training.Options(engine="xgboost", budget=Budget(trials=int(trials)))
    training.train(few, points=[point], options=replace(options, budget=Budget(trials=1)))
    jobs = pl.read_parquet(jobs_file)
    gc.collect()
    held, phases = _held_mib(), []
    alone = _forget_peak()

    began = time.perf_counter()
    done = training.train(
        jobs,
        points=[point],
        options=options,
        progress=lambda what: phases.append((what, time.perf_counter() - began)),
    )
    seconds = time.perf_counter() - began
    tried = done.points[point.name].search.trials
    return {
        "seconds": seconds,
        "held_mib": held,
        "peak_mib": _peak_mib(),
        "alone": alone,
        "phases": phases,
        "trials": len(tried),
        "given_up": sum(trial.score is None for trial in tried),
        "rounds": sum(trial.parameters.rounds for trial in tried),
        "in_trials": sum(trial.seconds for trial in tried),
        "slowest": max((trial.seconds for trial in tried), default=0.0),
        "best": str(done.points[point.name].search.best),
    }


def _held_mib() -> float:
    """The memory this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _forget_peak() -> bool:
    """Begin anew to look for the peak; False where the system does not let us."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


TASKS = {"prepare": prepare, "bare": bare, "train": train}


def measured(task: str, *arguments: object) -> dict[str, Any]:
    """Run one task in a process of its own.

    This process stays small: a child's peak is at least what its parent held when it began.
    """
    output = subprocess.check_output(
        [sys.executable, __file__, "--task", task, *map(str, arguments)], text=True
    )
    result: dict[str, Any] = json.loads(output)
    return result


def compare(jobs_file: Path, point: str, trials: int, fits: int) -> None:
    """Measure bare fits, the training, and bare fits again; print all of it."""
    before = measured("bare", jobs_file, point, fits - fits // 2)
    done = measured("train", jobs_file, point, trials)
    after = measured("bare", jobs_file, point, fits // 2) if fits > 1 else {"seconds": []}
    print(
        f"{point}: {before['rows']:,} jobs by {before['columns']} features, "
        f"{before['used']} of them not empty"
    )
    print_time(done, before["seconds"], after["seconds"], trials)
    print_memory(done, before)


def print_time(done: dict[str, Any], early: list[float], late: list[float], trials: int) -> None:
    each = [*early, *late]
    fits = sum(each) * trials / len(each)
    how = f"{len(each)} run" if len(each) == trials else f"from the mean of {len(each)} run"
    ratio = done["seconds"] / fits
    print(f"{'training':28} {done['seconds']:9.1f} s")
    starts = [*(at for _, at in done["phases"][1:]), done["seconds"]]
    for (what, began), ended in zip(done["phases"], starts, strict=True):
        print(f"  {what:26} {ended - began:9.1f} s")
    print(f"{f'{trials} bare fits':28} {fits:9.1f} s ({how})")
    for when, spent in (("before", early), ("after", late)):
        if spent:
            print(f"  {f'each, {when}':26} {sum(spent) / len(spent):9.2f} s")
    print(
        f"{done['trials']} trials took {done['in_trials']:.1f} s, the slowest "
        f"{done['slowest']:.1f} s; {done['given_up']} were given up early; "
        f"{done['rounds'] / max(done['trials'], 1):,.0f} rounds each in the last fold they reached"
    )
    print(f"found: {done['best']}")
    print(
        f"time: {ratio:.2f}x the bare fits, goal at most {TIME_GOAL}x: {verdict(ratio, TIME_GOAL)}"
    )


def print_memory(done: dict[str, Any], matrix: dict[str, Any]) -> None:
    whole, used = (
        matrix["rows"] * columns * 4 / 2**20 for columns in (matrix["columns"], matrix["used"])
    )
    added = done["peak_mib"] - done["held_mib"]
    print(
        f"peak memory: {done['peak_mib']:,.0f} MiB, {done['held_mib']:,.0f} MiB of it held before "
        f"training; features {whole:,.0f} MiB, without the empty ones {used:,.0f} MiB"
    )
    if not done["alone"]:
        print("  the peak may be that of reading the log: it could not be reset")
    print(
        f"  added by training {added:,.0f} MiB, {added / used:.2f}x without the empty ones; a bare "
        f"fit adds {matrix['added_mib']:,.0f} MiB to the features without the empty ones"
    )
    ratio = added / whole
    print(
        f"memory: {ratio:.2f}x the features, goal at most {MEMORY_GOAL:g}x: "
        f"{verdict(ratio, MEMORY_GOAL)}"
    )


def verdict(ratio: float, goal: float) -> str:
    return "met" if ratio <= goal else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, default=next(iter(sorted(DATA.glob(PATTERN))), None))
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--bare", type=int, help="bare fits to run (default: as many as trials)")
    parser.add_argument("--head", type=int, default=0, help="only so many first jobs")
    parser.add_argument("--point", default="start")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    options, arguments = parser.parse_known_args()
    if options.task:
        print(json.dumps(TASKS[options.task](*arguments)))
        return
    fits = options.trials if options.bare is None else options.bare
    if arguments or options.trials < 1 or fits < 1:
        parser.error(f"expected at least one trial and one bare fit, and no {arguments}")
    if options.log and not options.log.is_file():
        parser.error(f"there is no log {options.log}")
    with tempfile.TemporaryDirectory() as folder:
        jobs_file = Path(folder) / "jobs.parquet"
        log = "" if options.log is None else str(options.log)
        found = measured("prepare", jobs_file, log, options.head)
        print(f"{Path(log).name or 'synthetic cluster'}: {found['jobs']:,} jobs", flush=True)
        compare(jobs_file, options.point, options.trials, fits)
    import xgboost

    print(
        f"measured {datetime.now(UTC):%Y-%m-%d} with Python {sys.version.split()[0]}, "
        f"XGBoost {xgboost.__version__}"
    )


if __name__ == "__main__":
    main()
