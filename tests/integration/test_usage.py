"""Usage of real jobs in a real Slurm, seen from /proc and told by sstat."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from slurm_lab import submit, wait_for

from premortem.jobs.samples import SAMPLE_SCHEMA
from premortem.lab import Lab
from premortem.sources.usage import Sampler, SstatSampler

pytestmark = pytest.mark.alone

SECOND = "import time; began = time.time()\nwhile time.time() < began + {}: pass"


@pytest.fixture(params=["slurm", "slurm_2205"])
def lab(request: pytest.FixtureRequest) -> Lab:
    found: Lab = request.getfixturevalue(request.param)
    return found


@contextmanager
def running(lab: Lab, body: str, *options: str) -> Iterator[int]:
    """A job while it is needed."""
    job = submit(lab, body, *options)
    try:
        wait_for(lab, job, "RUNNING", patience_s=30)
        yield job
    finally:
        lab.run("scancel", str(job), check=False)


def sstat(lab: Lab, *job_ids: int, user: str = "root") -> SstatSampler:
    return SstatSampler("lab", lambda: job_ids, command=lab.command("sstat", user=user))


def row(sampler: Sampler, job: int) -> dict[str, Any]:
    found = sampler.sample().filter(job_id=job).to_dicts()
    return found[0] if found else {}


def until(
    sampler: Sampler, job: int, met: Callable[[dict[str, Any]], bool], patience_s: float = 25
) -> list[dict[str, Any]]:
    """What a sampler sees, from now until something is met."""
    deadline, seen = time.monotonic() + patience_s, list[dict[str, Any]]()
    while not (seen and met(seen[-1])):
        assert time.monotonic() < deadline, f"last seen: {seen[-1:]}"
        found = row(sampler, job)
        seen += [found] if found else []
        time.sleep(0.2)
    cpu_s = [one["cpu_s"] for one in seen]
    assert cpu_s == sorted(cpu_s), "CPU time never falls"
    return seen


class TestBoth:
    def test_a_job_that_computes_and_holds_memory(self, lab: Lab) -> None:
        code = f"x = bytearray(60_000_000)\n{SECOND.format(60)}"
        with running(lab, f"exec python3 -c '{code}'", "--mem=300") as job:
            node, asked = lab.sampler(), sstat(lab, job)
            first = until(node, job, lambda one: one["cpu_s"] > 0.2 and one["rss_mb"] > 55)[-1]
            last = until(node, job, lambda one: one["cpu_s"] > first["cpu_s"] + 1.5)[-1]
            told = until(asked, job, lambda one: one["cpu_s"] >= 2)[-1]
            late = row(node, job)
            passed_s = (late["at"] - first["at"]).total_seconds()
            assert late["cpu_s"] - first["cpu_s"] <= passed_s + 0.2, "it has one CPU at most"
            assert 57 < last["rss_mb"] < 90
            assert 57 < told["rss_mb"] < 90
            # Slurm tells whole seconds of a look up to a second ago.
            assert late["cpu_s"] - 3.5 < told["cpu_s"] <= late["cpu_s"] + 0.1
            assert (late["processes"], told["processes"]) == (1, None)
            assert (late["cluster"], told["cluster"]) == ("lab", "lab")

    def test_a_job_that_writes(self, lab: Lab) -> None:
        body = "dd if=/dev/zero of=large bs=1M count=20\nrm large\nsleep 60"
        with running(lab, body) as job:
            seen = until(lab.sampler(), job, lambda one: one["written_mb"] > 19)[-1]
            assert seen["written_mb"] == pytest.approx(20, abs=0.5)
            assert seen["read_mb"] == pytest.approx(20, abs=0.5)

    def test_a_job_of_several_steps_on_two_nodes(self, lab: Lab) -> None:
        burn = SECOND.format(1.5)
        body = (
            f"srun --overlap python3 -c '{burn}'\nsrun --overlap python3 -c '{burn}'\n"
            "srun --overlap sleep 60"
        )
        with running(lab, body, "--nodes=2", "--ntasks=2") as job:
            node, asked = lab.sampler(), sstat(lab, job)
            seen = until(
                node,
                job,
                lambda one: bool(row(asked, job)) and f"{job}.2" in _steps(lab, job),
            )
            assert seen[-1]["cpu_s"] > 1.5, "steps that ended count"
            assert row(asked, job)["rss_mb"] > 3
            # The script, srun with its helper, and a task on each node, the second a little later.
            until(node, job, lambda one: one["processes"] == 5)

    def test_nothing_gives_an_empty_frame(self, lab: Lab) -> None:
        for sampler in (lab.sampler(), sstat(lab)):
            deadline = time.monotonic() + 20
            while not (samples := sampler.sample()).is_empty():
                assert time.monotonic() < deadline
                time.sleep(0.2)
            assert dict(samples.schema) == SAMPLE_SCHEMA


class TestNode:
    def test_children_that_ended_count(self, lab: Lab) -> None:
        burn = "awk 'BEGIN { for (i = 0; i < 1000000; i++) x += i }'"
        body = f"for i in $(seq 20); do {burn}; done\ntimes\necho done\nsleep 60"
        with running(lab, body) as job:
            output = lab.folder / "home" / "user01" / f"slurm-{job}.out"
            node = lab.sampler()
            until(node, job, lambda one: output.exists() and "done" in output.read_text())
            # The second line tells user and system time of all that it has waited for.
            spent = output.read_text().splitlines()[1].split()
            truth = sum(float(one.partition("m")[2].rstrip("s")) for one in spent)
            assert row(node, job)["cpu_s"] == pytest.approx(truth, abs=0.1 + 0.1 * truth)
            # One that comes late learns it from those who waited.
            assert row(lab.sampler(), job)["cpu_s"] == pytest.approx(truth, abs=0.1 + 0.1 * truth)

    def test_two_labs_are_not_mixed(self, slurm: Lab, slurm_2205: Lab) -> None:
        labs = (slurm, slurm_2205)
        with running(slurm, "sleep 60") as one, running(slurm_2205, "sleep 60") as other:
            for lab, job in zip(labs, (one, other), strict=True):
                until(lab.sampler(), job, lambda seen: seen["processes"] == 2)
                assert lab.sampler().sample()["job_id"].to_list() == [job]


class TestSstat:
    def test_what_is_refused_is_told(self, lab: Lab) -> None:
        with running(lab, "sleep 60") as job:
            until(sstat(lab, job), job, lambda one: True)
            answer = sstat(lab, user="user02").ask([job, 999_999])
            assert answer.samples.is_empty()
            assert dict(answer.refused.iter_rows()) == {
                job: "Slurm shows it to its owner and to operators alone",
                999_999: "no step of it runs",
            }


def _steps(lab: Lab, job: int) -> str:
    return lab.run("squeue", "--steps", f"--jobs={job}", "--noheader", "--format=%i").stdout
