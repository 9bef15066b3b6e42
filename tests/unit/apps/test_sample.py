"""`premortem sample` on this machine: once, for a while, until a signal; a table, JSON, files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from command import PREMORTEM, Run, environment

JOB = 876_543_210_000 + os.getpid()


@pytest.fixture(autouse=True)
def a_job() -> Iterator[None]:
    """A process that says it is a job's."""
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code],
        env={"SLURM_JOB_ID": str(JOB)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield
        process.kill()


def of_job(lines: str) -> list[dict[str, object]]:
    return [one for one in map(json.loads, lines.splitlines()) if one["job_id"] == JOB]


def test_a_table_shows_jobs_once(premortem: Run) -> None:
    done = premortem("sample", "--once")
    assert done.code == 0
    assert str(JOB) in done.out
    assert "memory MB" in done.out


def test_json_is_a_line_a_sample(premortem: Run) -> None:
    done = premortem("sample", "--json", "--every", "0.1s", "--for", "0.35s", "--cluster", "mine")
    rows = of_job(done.out)
    assert (done.code, len(rows)) == (0, 4)
    assert {row["cluster"] for row in rows} == {"mine"}
    assert rows[0]["processes"] == 1


def test_files_grow(premortem: Run, tmp_path: Path) -> None:
    for name in ("x.jsonl", "x.parquet"):
        for _ in range(2):
            assert premortem("sample", "--once", "--output", name).code == 0
    assert len(of_job((tmp_path / "x.jsonl").read_text())) == 2
    assert pl.read_parquet(tmp_path / "x.parquet").filter(job_id=JOB).height == 2


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(tmp_path: Path, name: signal.Signals) -> None:
    with subprocess.Popen(
        [*PREMORTEM, "sample", "--json", "--every", "0.1s", "--output", "x.parquet"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stderr
        assert any(of_job(line) for line in iter(process.stdout.readline, ""))
        process.send_signal(name)
        process.stdout.read()
        assert process.stderr.read() == ""
        assert process.wait(timeout=20) == 0
    assert pl.read_parquet(tmp_path / "x.parquet").filter(job_id=JOB).height >= 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--every", "soon"], "'soon' is not a length of time"),
        (["--every", "0s"], "'0s' is not a length of time"),
        (["--once", "--for", "5m"], "two ways to end"),
        (["--once", "--output", "x.csv"], "end in .jsonl or .parquet"),
    ],
)
def test_wrong_options_are_explained(premortem: Run, options: list[str], words: str) -> None:
    done = premortem("sample", *options)
    assert (done.code, done.out) == (1, "")
    assert words in done.err
