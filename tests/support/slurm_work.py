"""Jobs of a lab in every state, and what two ways to ask of them disagree in."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from slurm_lab import submit, wait_for

from premortem.lab import Lab

# What depends on when one asks, and on whom.
OF_THE_MOMENT = {"seen_at", "api_version", "source", "elapsed_s", "reason", "priority"}
NAME = "two words | a=b ' State=FAILED é"


class Work:
    """Jobs of a release in every state, by what they are."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.began = datetime.now(UTC) - timedelta(seconds=2)
        done = "export API_KEY=hunter2\nsrun true"
        self.done = submit(lab, done, f"--job-name={NAME}", "--nodelist=n1", user="user02")
        self.failed = submit(lab, "exit 3", "--time=7", "--nodelist=n1")
        self.signalled = submit(lab, "kill -9 $$", "--nodelist=n1")
        self.hungry = submit(
            lab, "srun python3 -c 'x = bytearray(400_000_000)'", "--mem=50", "--nodelist=n1"
        )
        self.array = submit(lab, "exit $SLURM_ARRAY_TASK_ID", "--array=0-1", "--nodelist=n1")
        self.running = submit(lab, "sleep 600", "--partition=gpu", "--gres=gpu:1", "--time=2:00:00")
        self.held = submit(lab, "true", "--hold", "--mem-per-cpu=300", "--ntasks=2")
        self.held_array = submit(lab, "true", "--hold", "--array=5-9")
        self.cancelled = submit(lab, "true", "--hold")
        lab.run("scancel", str(self.cancelled))
        self.odd = self._with_name(b"\xff\xfe line\nend \x01 <\"'\\>", "--hold")
        for job in (self.done, self.failed, self.signalled, self.hungry):
            wait_for(lab, job, "COMPLETED", "FAILED", "OUT_OF_MEMORY")
        wait_for(lab, self.running, "RUNNING")
        self._wait_for_array()

    @property
    def all(self) -> list[int]:
        return [
            *(self.done, self.failed, self.signalled, self.hungry, self.array, self.running),
            *(self.held, self.held_array, self.cancelled, self.odd),
        ]

    def end(self) -> None:
        left = (self.running, self.held, self.held_array, self.odd)
        self.lab.run("scancel", *map(str, left), check=False)

    def _wait_for_array(self) -> None:
        asked = ("--allocations", "--noheader", "--parsable2", "--format=State")
        deadline = time.monotonic() + 60
        while True:
            said = self.lab.run("sacct", f"--jobs={self.array}", *asked).stdout.split()
            if sorted(said) == ["COMPLETED", "FAILED"]:
                return
            assert time.monotonic() < deadline, said
            time.sleep(0.2)

    def _with_name(self, name: bytes, *options: str) -> int:
        command = self.lab.command("sbatch", "--parsable", *options, "--wrap=true", user="user01")
        done = subprocess.run(
            [*command[:-1], b"--job-name=" + name, command[-1]], capture_output=True
        )
        return int(done.stdout)


def differences(left: pl.DataFrame, right: pl.DataFrame, *besides: str) -> list[Any]:
    """Where two frames of the same jobs disagree in what both tell."""
    names = set(left.columns) & set(right.columns) - OF_THE_MOMENT - set(besides)
    mine, others = (
        {(row["job_id"], row["submit_time"]): row for row in frame.rows(named=True)}
        for frame in (left, right)
    )
    assert set(mine) == set(others)
    return [
        (key[0], name, row[name], others[key][name])
        for key, row in mine.items()
        for name in sorted(names)
        if None not in (row[name], others[key][name])
        and not same(name, row[name], others[key][name])
    ]


def same(name: str, left: Any, right: Any) -> bool:
    if name.endswith("_tres"):
        return set(left.split(",")) == set(right.split(","))
    if isinstance(left, float):
        # Text is rounded.
        return left == pytest.approx(right, abs=0.02)
    return bool(left == right)
