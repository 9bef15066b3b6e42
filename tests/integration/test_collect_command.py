"""`premortem collect` and `predict --slurm` as a user types them, beside a real Slurm."""

from __future__ import annotations

import json
import random
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from collected import ids, listed_by_slurm, listed_by_store
from command import PREMORTEM, Finished, environment, premortem
from ports import free_port
from slurm_lab import submit, wait_for

from premortem.lab import Lab
from premortem.stores import open_store
from premortem.testing.synthetic import SyntheticCluster
from premortem.testing.writers import write_sacct

pytestmark = pytest.mark.alone

Ask = Callable[..., Finished]
LOOP = ("collect", "--every", "1s", "--json")


def variables(lab: Lab, **more: str) -> dict[str, str]:
    return {
        "PREMORTEM_SLURM_URL": lab.rest_url,
        "PREMORTEM_SLURM_TOKEN_COMMAND": shlex.join(lab.command("scontrol", "token")),
        "PREMORTEM_SLURM_SLURMCTLD_CALLS": "6000",
        "PREMORTEM_SLURM_SLURMDBD_CALLS": "6000",
        **more,
    }


@pytest.fixture
def ask(slurm: Lab, tmp_path: Path) -> Ask:
    """The command line with its store in the test's folder, and the lab as its cluster."""
    return lambda *words, **more: premortem(tmp_path, *words, **variables(slurm, **more))


@pytest.fixture
def began(slurm: Lab, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a collector that goes on until it is ended."""
    processes: list[subprocess.Popen[str]] = []

    def begin() -> subprocess.Popen[str]:
        with open(tmp_path / "errors.txt", "a") as errors:
            process = subprocess.Popen(
                [*PREMORTEM, *LOOP],
                cwd=tmp_path,
                env=environment(tmp_path, **variables(slurm)),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout
    for line in process.stdout:
        yield json.loads(line)


def rounds(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    return (one for one in events(process) if one["event"] == "round")


class TestOnce:
    def test_the_jobs_are_there_and_the_state_is_told(self, slurm: Lab, ask: Ask) -> None:
        job = submit(slurm, "exit 3")
        wait_for(slurm, job, "FAILED")
        done = ask("collect", "--once")
        assert (done.code, done.out) == (0, ""), done.err
        assert " round " in done.err
        shown = ask("show", str(job), "--json").json
        assert "FAILED" in json.dumps(shown)
        status = ask("collect", "--status")
        assert (status.code, "fine" in status.out) == (0, True)
        told = ask("collect", "--status", "--json").json
        assert (told["state"], told["clusters"], told["problems"]) == ("fine", ["lab"], {})
        assert told["counters"]["rounds"] == 1
        assert told["counters"]["new"] >= 1
        again = [json.loads(line) for line in ask("collect", "--once", "--json").out.splitlines()]
        assert again[-1]["event"] == "round"
        assert "new" not in again[-1]

    def test_by_commands(self, slurm: Lab, ask: Ask) -> None:
        prefix = shlex.join(slurm.command())
        done = ask(
            "collect", "--once", "--usage", PREMORTEM_SLURM_URL="", PREMORTEM_SLURM_PREFIX=prefix
        )
        assert (done.code, done.out) == (0, ""), done.err

    def test_nothing_was_collected_yet(self, tmp_path: Path) -> None:
        done = premortem(tmp_path, "collect", "--status")
        assert (done.code, "there is no store" in done.err) == (3, True)
        with closing(open_store(f"sqlite:///{tmp_path / 'jobs.db'}")):
            pass
        for more in ((), ("--json",)):
            done = premortem(tmp_path, "collect", "--status", *more)
            assert (done.code, done.out) == (3, "")
            assert "nothing was collected into this store yet" in done.err

    def test_nobody_there(self, tmp_path: Path) -> None:
        url = f"http://127.0.0.1:{free_port()}"
        done = premortem(tmp_path, "collect", "--once", "--url", url, SLURM_JWT="a.b.c")
        assert (done.code, done.out) == (5, "")
        last = done.err.splitlines()[-1]
        assert last.startswith(f"premortem: {url}")
        assert last.count("refused") == 1
        status = premortem(tmp_path, "collect", "--status")
        assert (status.code, "failing" in status.out) == (0, True)


class TestUntilStopped:
    def test_killed_at_any_moment(
        self, slurm: Lab, tmp_path: Path, began: Callable[[], subprocess.Popen[str]], ask: Ask
    ) -> None:
        chance = random.Random(5)
        jobs = []
        for _ in range(3):
            process = began()
            jobs += [submit(slurm, body) for body in ("true", "exit 2", "sleep 2")]
            jobs += [submit(slurm, "exit $SLURM_ARRAY_TASK_ID", "--array=0-1")]
            # While it works on its second round, or waits for it.
            next(rounds(process))
            time.sleep(chance.uniform(0.8, 1.5))
            process.send_signal(signal.SIGKILL)
            process.wait()
        process = began()
        for one in rounds(process):
            if not one["open"]:
                break
        process.send_signal(signal.SIGTERM)
        assert all(one["at"] for one in events(process))
        assert process.wait(60) == 0
        told = listed_by_slurm(slurm, ids(jobs[0], jobs[-1] + 1))
        with closing(open_store(f"sqlite:///{tmp_path / 'jobs.db'}")) as store:
            assert listed_by_store(store, jobs[0], jobs[-1] + 1) == told
        assert (tmp_path / "errors.txt").read_text() == ""
        assert ask("collect", "--status", "--json").json["state"] == "fine"

    def test_interrupted(self, tmp_path: Path, began: Callable[[], subprocess.Popen[str]]) -> None:
        process = began()
        next(rounds(process))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert (tmp_path / "errors.txt").read_text() == ""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of another cluster's jobs."""
    folder = tmp_path_factory.mktemp("site")
    write_sacct(
        [pl.concat(SyntheticCluster(1500, seed=5, users=25, days=40).frames())], folder / "jobs.txt"
    )
    assert premortem(folder, "load", "jobs.txt").code == 0
    done = premortem(folder, "train", "--points", "submit,start", "--trials", "1")
    assert done.code == 0, done.err
    return folder


class TestPredict:
    def test_a_job_as_it_is_now(self, slurm: Lab, site: Path) -> None:
        def ask(*words: object, **more: str) -> Finished:
            return premortem(site, *map(str, words), **variables(slurm, **more))

        running, held = submit(slurm, "sleep 600"), submit(slurm, "true", "--hold")
        ended = submit(slurm, "exit 3")
        try:
            wait_for(slurm, running, "RUNNING")
            wait_for(slurm, ended, "FAILED")
            prefix = shlex.join(slurm.command())
            done = ask("predict", held, running, "--slurm", "--json", PREMORTEM_SLURM_PREFIX=prefix)
            assert done.code == 0, done.err
            found = {one["job_id"]: one for one in done.json["predictions"]}
            assert {job: one["point"] for job, one in found.items()} == {
                held: "submit",
                running: "start",
            }
            assert {one["user"] for one in found.values()} == {"user01"}
            assert all(0 <= one["risk"] <= 1 for one in found.values())
            # Where there is no sstat, too.
            assert str(running) in ask("predict", running, "--slurm").out
            over = ask("predict", ended, "--slurm")
            assert (over.code, f"job {ended} is over (FAILED)" in over.err) == (1, True)
            unknown = ask("predict", 9_999_999, "--slurm")
            assert (unknown.code, "Slurm knows no job 9999999" in unknown.err) == (3, True)
            with closing(open_store(f"sqlite:///{site / 'jobs.db'}", read_only=True)) as store:
                assert "lab" not in store.jobs(columns=["cluster"])["cluster"], "nothing is written"
        finally:
            slurm.run("scancel", str(running), str(held))

    def test_what_a_running_job_uses_counts(self, slurm: Lab, tmp_path: Path) -> None:
        """By a model of the lab's own jobs, which had samples; the store has none of this job."""
        data = Path(__file__).parents[2] / "datasets" / "lab" / "jobs.parquet"
        assert premortem(tmp_path, "load", data).code == 0
        trained = premortem(tmp_path, "train", "--points", "running@5s", "--trials", "0")
        assert trained.code == 0, trained.err
        grows = "while x=$x$(head -c 2000000 /dev/zero | tr '\\0' a); do sleep 0.5; done"
        job = submit(slurm, grows, "--mem=2000")
        more = variables(slurm, PREMORTEM_SLURM_PREFIX=shlex.join(slurm.command()))
        try:
            wait_for(slurm, job, "RUNNING")
            time.sleep(8)
            done = premortem(
                tmp_path, "predict", str(job), "--slurm", "--reasons", "20", "--json", **more
            )
        finally:
            slurm.run("scancel", str(job))
        assert done.code == 0, done.err
        (found,) = done.json["predictions"]
        assert found["point"] == "running@5s"
        used = {
            name: value
            for reason in found["reasons"]
            if reason["topic"].startswith("usage.")
            for name, value in reason["numbers"].items()
        }
        assert used, found["reasons"]
        assert min(used.values()) > 0
