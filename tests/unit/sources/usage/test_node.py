"""Jobs on this machine: real processes that say they are a job's, and folders made like /proc."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from premortem.errors import Unavailable
from premortem.jobs.samples import SAMPLE_SCHEMA
from premortem.sources.usage import NodeSampler

JOB = 987_654_321_000 + os.getpid()
MIB = 2**20


def row(sampler: NodeSampler, job: int = JOB) -> dict[str, Any] | None:
    rows = sampler.sample().to_dicts()
    return next((one for one in rows if one["job_id"] == job), None)


def wait_for(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
    while not (result := found()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result


@contextmanager
def job(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that a job might have started; it ends when its input does."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", f"import os, sys, subprocess\n{code}\nsys.stdin.read()"],
        env={"SLURM_JOB_ID": str(JOB), "PATH": os.environ["PATH"]},
        stdin=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class TestThisMachine:
    def test_a_job_is_seen_with_what_it_uses(self) -> None:
        sampler = NodeSampler("here")
        code = (
            "import time; x = bytearray(60_000_000); f = open('/dev/null', 'wb', buffering=0)\n"
            "for _ in range(20): f.write(bytes(2**20))\n"
            "while time.process_time() < 0.4: pass"
        )
        with job(code):
            seen = wait_for(lambda: (one := row(sampler)) and one["cpu_s"] >= 0.39 and one)
            assert seen["cluster"] == "here"
            assert 57 < seen["rss_mb"] < 90
            assert 20 <= seen["written_mb"] < 20.5
            assert seen["read_mb"] > 0
            assert seen["cpu_s"] < 0.6
            assert seen["processes"] == 1
        assert row(sampler) is None

    def test_children_that_ended_count(self) -> None:
        burn = "import time\nwhile time.process_time() < 0.1: pass"
        code = f"for _ in range(4): subprocess.run([sys.executable, '-S', '-c', {burn!r}])"
        sampler = NodeSampler("here")
        with job(code):
            seen, spent = 0.0, []
            while seen < 0.4:
                one = row(sampler)
                if one:
                    spent.append(one["cpu_s"])
                    seen = one["cpu_s"]
                time.sleep(0.01)
        assert spent == sorted(spent)

    def test_memory_that_is_shared_counts_once(self) -> None:
        code = (
            "import mmap; m = mmap.mmap(-1, 40 * 2**20); m.write(bytes(40 * 2**20))\n"
            "for _ in range(4):\n"
            "    if not os.fork(): m.find(b'x'); sys.stdin.read(); os._exit(0)"
        )
        with job(code):
            sampler = NodeSampler("here")
            seen = wait_for(lambda: (one := row(sampler)) and one["processes"] == 5 and one)
            time.sleep(0.2)
            seen = row(sampler)
            assert 40 < seen["rss_mb"] < 150

    def test_only_those_that_belong_are_seen(self) -> None:
        with job(""):
            wait_for(lambda: row(NodeSampler("here")))
            assert row(NodeSampler("here", belongs=lambda pid: False)) is None

    def test_where_there_is_no_proc_it_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(Unavailable, match="cannot be read"):
            NodeSampler("here", proc=tmp_path / "none").sample()


class Proc:
    """A folder like /proc, on a machine of which we decide."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.cgroups = folder / "cgroup"
        self.proc.mkdir()
        self.cgroups.mkdir()

    def put(
        self,
        pid: int,
        *,
        cgroup: str = "0::/\n",
        name: str = "sh",
        ticks: int = 0,
        waited: int = 0,
        state: str = "S",
        start: int = 5,
        parent: int = 1,
        environ: str = "",
        title: str = "",
    ) -> None:
        folder = self.proc / str(pid)
        folder.mkdir(exist_ok=True)
        numbers = f"{ticks} 0 {waited} 0 20 0 1 0 {start} 1 1"
        texts = {
            "stat": f"{pid} ({name}) {state} {parent} 1 1 0 -1 0 0 0 0 0 {numbers}\n",
            "statm": "500 256 100 1 0 1 0\n",
            "io": f"rchar: {pid * MIB}\nwchar: {MIB}\nsyscr: 1\n",
            "cgroup": cgroup,
            "environ": environ,
            "cmdline": title,
        }
        for file, text in texts.items():
            (folder / file).write_text(text)

    def end(self, pid: int) -> None:
        for file in (self.proc / str(pid)).iterdir():
            file.unlink()
        (self.proc / str(pid)).rmdir()

    def sampler(self) -> NodeSampler:
        return NodeSampler("c", proc=self.proc, cgroups=self.cgroups)


@pytest.fixture
def machine(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


class TestGroups:
    JOB_7 = "/system.slice/slurmstepd.scope/job_7"

    def test_nothing_gives_an_empty_frame(self, machine: Proc) -> None:
        machine.put(1)
        samples = machine.sampler().sample()
        assert samples.is_empty()
        assert dict(samples.schema) == SAMPLE_SCHEMA

    def test_version_2_tells_the_time_of_those_never_seen(self, machine: Proc) -> None:
        (machine.cgroups / "cgroup.controllers").write_text("cpu memory\n")
        group = machine.cgroups / self.JOB_7[1:]
        group.mkdir(parents=True)
        (group / "cpu.stat").write_text("usage_usec 12500000\nuser_usec 1\n")
        machine.put(20, cgroup=f"0::{self.JOB_7}/step_0/user/task_0\n", ticks=100)
        sampler = machine.sampler()
        samples = sampler.sample()
        assert dict(samples.schema) == SAMPLE_SCHEMA
        assert samples.select("cluster", "job_id", "cpu_s", "rss_mb", "processes").row(0) == (
            *("c", 7, 12.5),
            *(1.0, 1),
        )
        # Made anew for the next step, it counts from nothing.
        (group / "cpu.stat").write_text("usage_usec 500000\n")
        assert sampler.sample()["cpu_s"].item() == 13.0
        (group / "cpu.stat").unlink()
        assert sampler.sample()["cpu_s"].item() == 13.0

    def test_version_1_does_so_too(self, machine: Proc) -> None:
        group = machine.cgroups / "cpuacct" / "slurm_n1" / "uid_1" / "job_8"
        group.mkdir(parents=True)
        (group / "cpuacct.usage").write_text("2500000000\n")
        machine.put(20, cgroup="2:cpuacct:/slurm_n1/uid_1/job_8/step_0\n", ticks=100)
        assert machine.sampler().sample()["cpu_s"].item() == 2.5

    def test_several_nodes_on_one_machine_are_one_sample(self, machine: Proc) -> None:
        for pid, node in ((20, "n1"), (21, "n2"), (22, "n2")):
            machine.put(pid, cgroup=f"4:memory:/slurm_{node}/uid_1/job_8/step_0\n", ticks=100)
        samples = machine.sampler().sample()
        ticks_per_s = os.sysconf("SC_CLK_TCK")
        assert samples.select("job_id", "cpu_s", "read_mb", "written_mb", "processes").rows() == [
            (8, 300 / ticks_per_s, 63.0, 3.0, 3)
        ]


class TestProcesses:
    def test_the_daemon_counts_only_for_whom_it_waited(self, machine: Proc) -> None:
        hz = os.sysconf("SC_CLK_TCK")
        title = "slurmstepd: [9.0]\0"
        machine.put(20, name="slurmstepd", title=title, ticks=70 * hz, waited=3 * hz)
        sampler = machine.sampler()
        assert sampler.sample().is_empty()
        machine.put(21, parent=20, environ="SLURM_JOB_ID=9\0", ticks=2 * hz)
        seen = sampler.sample().row(0, named=True)
        assert (seen["cpu_s"], seen["processes"], seen["written_mb"]) == (5, 1, 1)

    def test_the_dead_are_not_alive_but_have_used(self, machine: Proc) -> None:
        machine.put(20, environ="SLURM_JOB_ID=9\0")
        machine.put(21, parent=20, environ="SLURM_JOB_ID=9\0", ticks=100, state="Z")
        seen = machine.sampler().sample().row(0, named=True)
        assert seen["processes"] == 1
        assert seen["cpu_s"] == 100 / os.sysconf("SC_CLK_TCK")

    def test_one_that_vanished_is_kept(self, machine: Proc) -> None:
        for pid in (20, 21):
            machine.put(pid, environ="SLURM_JOB_ID=9\0", ticks=100)
        sampler = machine.sampler()
        first = sampler.sample().row(0, named=True)
        machine.end(21)
        second = sampler.sample().row(0, named=True)
        assert second["processes"] == 1
        for name in ("cpu_s", "read_mb", "written_mb"):
            assert second[name] == first[name]

    def test_a_number_used_again_is_another_process(self, machine: Proc) -> None:
        machine.put(20, environ="SLURM_JOB_ID=9\0", ticks=100)
        sampler = machine.sampler()
        sampler.sample()
        machine.end(20)
        machine.put(20, environ="SLURM_JOB_ID=10\0", ticks=7, start=90)
        # A folder like /proc may give the same inode again, unlike /proc itself.
        samples = [sampler.sample(), sampler.sample()][-1]
        assert 9 not in samples["job_id"].to_list()

    def test_what_may_not_be_seen_is_absent(self, machine: Proc) -> None:
        machine.put(20, environ="SLURM_JOB_ID=9\0", ticks=100)
        (machine.proc / "20" / "io").unlink()
        seen = machine.sampler().sample().row(0, named=True)
        assert (seen["read_mb"], seen["written_mb"]) == (None, None)
        assert seen["cpu_s"] > 0

    def test_a_young_process_may_become_a_job_s(self, machine: Proc) -> None:
        young = int((time.clock_gettime(time.CLOCK_BOOTTIME) - 1) * os.sysconf("SC_CLK_TCK"))
        machine.put(20, start=young)
        machine.put(21, start=5)
        sampler = machine.sampler()
        assert sampler.sample().is_empty()
        machine.put(20, start=young, environ="SLURM_JOB_ID=9\0")
        assert sampler.sample()["job_id"].to_list() == [9]
