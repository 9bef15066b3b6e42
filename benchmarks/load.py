"""How fast job history loads, against a bare Python loop that only reads and splits the same lines.

    python benchmarks/load.py [--jobs 1000000] [--ricc FILE]

Every measurement is a process of its own; ratios are of times in this run on this machine.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "shared" / "data" / "swf" / "RICC-2010-2.swf.gz"


def bare_loop(path: Path, separator: str | None) -> dict[str, Any]:
    """Read and split every line; nothing else."""
    lines = 0
    began = time.perf_counter()
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for line in file:
            line.split(separator)
            lines += 1
    return {"seconds": time.perf_counter() - began, "jobs": lines}


def load(path: Path, store_path: Path) -> dict[str, Any]:
    """Load into a fresh store, as `premortem load` does."""
    from premortem.operations.loading import load_file
    from premortem.sources.detection import ReadOptions
    from premortem.sources.port import Context
    from premortem.stores import open_store

    began = time.perf_counter()
    store = open_store(f"sqlite:///{store_path}")
    report = load_file(
        str(path), store, options=ReadOptions(), context=Context(), progress=lambda *_: None
    )
    store.close()
    seconds = time.perf_counter() - began
    assert not report.problem, report.problem
    assert not report.rejected
    return {"seconds": seconds, "jobs": report.new + report.unchanged}


def read_store(store_path: Path) -> dict[str, Any]:
    """All jobs' submit-time columns as a frame."""
    from premortem.jobs.fields import FIELDS, KnownAt
    from premortem.stores import open_store

    columns = [field.name for field in FIELDS if field.known is KnownAt.SUBMIT]
    store = open_store(f"sqlite:///{store_path}", read_only=True)
    began = time.perf_counter()
    frame = store.jobs(columns=columns)
    seconds = time.perf_counter() - began
    frame.write_parquet(store_path.with_suffix(".parquet"))
    return {"seconds": seconds, "jobs": frame.height, "columns": frame.width}


def read_parquet(store_path: Path) -> dict[str, Any]:
    """The same frame from Parquet."""
    import polars as pl

    began = time.perf_counter()
    frame = pl.read_parquet(store_path.with_suffix(".parquet"))
    return {"seconds": time.perf_counter() - began, "jobs": frame.height}


def write_sacct(path: Path, jobs: int) -> dict[str, Any]:
    """A synthetic cluster's sacct text."""
    from premortem.testing.synthetic import SyntheticCluster
    from premortem.testing.writers import write_sacct as write

    began = time.perf_counter()
    write(SyntheticCluster(jobs=jobs, seed=1).frames(), path)
    return {"seconds": time.perf_counter() - began, "jobs": jobs}


TASKS = {
    "bare": lambda path, separator: bare_loop(Path(path), separator or None),
    "load": lambda path, store: load(Path(path), Path(store)),
    "read_store": lambda store: read_store(Path(store)),
    "read_parquet": lambda store: read_parquet(Path(store)),
    "write_sacct": lambda path, jobs: write_sacct(Path(path), int(jobs)),
}


def measured(task: str, *arguments: object) -> dict[str, Any]:
    """Run one task in a process of its own; adds its peak memory in MiB."""
    output = subprocess.check_output(
        [sys.executable, __file__, "--task", task, *map(str, arguments)], text=True
    )
    result: dict[str, Any] = json.loads(output)
    return result


def compare(name: str, path: Path, store: Path, separator: str) -> dict[str, Any]:
    """Load a file beside the bare loop, and print both."""
    bare = measured("bare", path, separator)
    done = measured("load", path, store)
    again = measured("load", path, store)
    ratio = done["seconds"] / bare["seconds"]
    print(
        f"{name:34} {done['jobs']:>9,} jobs  {done['seconds']:6.2f} s  "
        f"{done['jobs'] / done['seconds']:>9,.0f} jobs/s  peak {done['peak_mib']:5.0f} MiB  "
        f"{ratio:4.1f}x the bare loop ({bare['seconds']:.2f} s); loading again "
        f"{again['seconds'] / bare['seconds']:.1f}x",
        flush=True,
    )
    return done


def main() -> None:
    """Measure, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--ricc", type=Path, default=DATA)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    options, arguments = parser.parse_known_args()
    if options.task:
        result = TASKS[options.task](*arguments)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({**result, "peak_mib": peak}))
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        if options.ricc.is_file():
            compare("RICC, SWF in gzip", options.ricc, folder / "ricc.db", "")
        else:
            print(f"RICC is not at {options.ricc}: left out (--ricc FILE)")
        small, large = options.jobs // 10, options.jobs
        results = {}
        for jobs in (small, large):
            text = folder / f"{jobs}.txt"
            measured("write_sacct", text, jobs)
            results[jobs] = compare(
                f"synthetic sacct, {text.stat().st_size >> 20} MiB",
                text,
                folder / f"{jobs}.db",
                "|",
            )
        growth = results[large]["seconds"] / results[small]["seconds"] / (large / small)
        memory = results[large]["peak_mib"] / results[small]["peak_mib"]
        print(f"ten times the jobs: {growth:.2f}x linear time, {memory:.2f}x the peak memory")
        stored = measured("read_store", folder / f"{large}.db")
        parquet = measured("read_parquet", folder / f"{large}.db")
        print(
            f"reading {stored['columns']} submit-time columns of {stored['jobs']:,} jobs: "
            f"{stored['seconds']:.2f} s, {stored['seconds'] / parquet['seconds']:.1f}x "
            f"the same frame from Parquet ({parquet['seconds']:.2f} s)"
        )
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "premortem", "--help"], check=True, stdout=subprocess.DEVNULL
    )
    print(f"premortem --help: {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
