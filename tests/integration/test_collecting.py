"""A real Slurm collected into a store: everything is there once, whatever happens meanwhile."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from collected import (
    collecting,
    ids,
    is_complete,
    listed_by_slurm,
    listed_by_store,
    rounds_until,
    row_of,
    rows_of,
)
from slurm_lab import running, submit, wait_for

from premortem.errors import Unavailable
from premortem.lab import Lab
from premortem.operations.paces import Pace
from premortem.sources.live.port import Daemon
from premortem.sources.live.questions import Patience
from premortem.sources.live.rest import RestCluster
from premortem.sources.port import Batch

pytestmark = pytest.mark.alone

HUNGRY = "srun python3 -c 'x = bytearray(400_000_000)'"
NAMES = (
    b'two words | a=b \' "x" ; $(id)',
    b"line\nend\ttab",
    b"\xff\xfe no utf-8",
    "🔥 é".encode(),
)
IMPATIENT = Patience(timeout_s=3, attempts=1)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab of this module's own, in which things are broken."""
    with running(tmp_path_factory.mktemp("collected"), "24.11", nodes=2) as lab:
        yield lab


def named(lab: Lab, name: bytes) -> int:
    command = lab.command("sbatch", "--parsable", "--wrap=true", user="user02")
    done = subprocess.run(
        [*command[:-1], b"--job-name=" + name, command[-1]], capture_output=True, check=True
    )
    return int(done.stdout)


class Mix:
    """Jobs of every kind; those that go on are ended by `settle`."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.held = submit(lab, "true", "--hold")
        self.first = self.held
        self.again = submit(lab, "sleep 600", "--requeue", "--time=9")
        self.running = submit(lab, "sleep 600", "--time=7")
        self.done = submit(lab, "export API_KEY=hunter2\nsrun true", "--time=5")
        self.failed = submit(lab, "exit 3")
        self.hungry = submit(lab, HUNGRY, "--mem=50")
        self.cancelled = submit(lab, "true", "--hold")
        self.orphan = submit(lab, "true", f"--dependency=afterok:{self.failed}")
        self.array = submit(lab, "exit $((SLURM_ARRAY_TASK_ID / 9))", "--array=1,3,5-6,9")
        self.names = [named(lab, name) for name in NAMES]
        self.last = self.names[-1]

    def change(self) -> None:
        """What happens after a first look."""
        lab = self.lab
        wait_for(lab, self.running, "RUNNING")
        wait_for(lab, self.again, "RUNNING")
        lab.run("scontrol", "update", f"jobid={self.running}", "timelimit=77")
        lab.run("scancel", str(self.cancelled))
        # A second run within the second of the first would be the same job to Slurm.
        time.sleep(1.1)
        lab.run("scontrol", "requeue", str(self.again))

    def settle(self) -> None:
        self.last += 4  # the tasks of the array
        self.lab.run("scancel", *map(str, (self.running, self.again, self.held, self.orphan)))


class TestNothingMissingNothingDoubled:
    @pytest.mark.parametrize("release", ["lab", "slurm_2205"])
    def test_jobs_of_every_kind(
        self, request: pytest.FixtureRequest, tmp_path: Path, release: str
    ) -> None:
        lab: Lab = request.getfixturevalue(release)
        other = "commands" if release == "lab" else "text"
        with (
            collecting(lab, tmp_path) as (rest, kept),
            collecting(lab, tmp_path, other) as (commands, kept_too),
        ):
            mix = Mix(lab)
            for one in (rest, commands):
                one.round()
            assert row_of(kept, mix.running)["state"] in ("PENDING", "RUNNING")
            mix.change()
            for one, store in ((rest, kept), (commands, kept_too)):
                rounds_until(one, lambda s=store: len(rows_of(s, mix.again)) == 2)
                assert row_of(store, mix.running)["state"] == "RUNNING"
                assert row_of(store, mix.held)["state"] == "PENDING"
            mix.settle()
            for one in (rest, commands):
                rounds_until(one, lambda c=one: is_complete(c))
            told = listed_by_slurm(lab, ids(mix.first, mix.last))
            for store in (kept, kept_too):
                assert listed_by_store(store, mix.first, mix.last) == told
                assert set(told.values()) == {1}
                self._check(mix, store)
            for store, scripts in ((kept, release == "lab"), (kept_too, True)):
                script = "#!/bin/bash\nexport API_KEY=[redacted]\nsrun true\n" if scripts else None
                assert row_of(store, mix.done)["script"] == script

    def _check(self, mix: Mix, store: object) -> None:
        def state(job: int) -> list[str]:
            return [row["state"] for row in rows_of(store, job)]  # type: ignore[arg-type]

        hungry, running = (row_of(store, job) for job in (mix.hungry, mix.running))  # type: ignore[arg-type]
        assert (hungry["state"], hungry["step_state"]) == ("FAILED", "OUT_OF_MEMORY")
        assert (running["state"], running["time_limit_s"]) == ("CANCELLED", 420)
        assert state(mix.again) == ["REQUEUED", "CANCELLED"]
        assert state(mix.failed) == ["FAILED"]
        for job in (mix.held, mix.cancelled, mix.orphan):
            assert state(job) == ["CANCELLED"]
        names = [row_of(store, job)["job_name"] for job in mix.names]  # type: ignore[arg-type]
        assert names == [
            "two words | a=b ' \"x\" ; $(id)", "line\nend\ttab", "\\xff\\xfe no utf-8", "🔥 é",
        ]  # fmt: skip


class TestOutages:
    def test_slurmdbd_and_slurmrestd_go_and_come_back(self, lab: Lab, tmp_path: Path) -> None:
        with collecting(lab, tmp_path, lifespan_s=3) as (collector, store):
            first = submit(lab, "true")
            collector.round()
            lab.kill("slurmdbd")
            jobs = [submit(lab, body) for body in ("true", "exit 4", HUNGRY)]
            held = submit(lab, "true", "--hold")
            lab.run("scancel", str(held))
            rounds_until(
                collector,
                lambda: (
                    [row_of(store, job)["state"] for job in jobs]
                    == ["COMPLETED", "FAILED", "FAILED"]
                ),
            )
            assert list(collector.state.problems) == ["slurmdbd"]
            assert collector.state.without_details
            lab.kill("slurmrestd")
            collector.round()
            assert sorted(collector.state.problems) == ["slurmctld", "slurmdbd"]
            unseen = submit(lab, "exit 5")
            lab.up()
            rounds_until(collector, lambda: is_complete(collector))
            told = listed_by_slurm(lab, ids(first, unseen))
            assert listed_by_store(store, first, unseen) == told
            assert len(told) == 6
            # Without memory control it is killed otherwise.
            assert row_of(store, jobs[2])["step_state"] in ("OUT_OF_MEMORY", "FAILED")
            assert collector.state.counters.failed_slurmdbd >= 2
            assert (collector.state.counters.failed_slurmctld, collector.state.problems) == (1, {})

    def test_slurmctld_goes_and_comes_back(self, lab: Lab, tmp_path: Path) -> None:
        with collecting(lab, tmp_path, patience=IMPATIENT) as (collector, store):
            collector.round()
            # None that runs: slurmctld may not have written down yet that it does.
            job = submit(lab, "exit 6")
            wait_for(lab, job, "FAILED")
            lab.kill("slurmctld")
            collector.round()
            assert list(collector.state.problems) == ["slurmctld"]
            assert row_of(store, job)["step_state"] == "FAILED", "accounting tells"
            lab.up()
            rounds_until(collector, lambda: is_complete(collector))
            assert listed_by_store(store, job, job) == listed_by_slurm(lab, ids(job, job))

    def test_slurmctld_forgets_jobs(self, lab: Lab, tmp_path: Path) -> None:
        settings = lab.folder / "etc" / "slurm.conf"
        usual = settings.read_text()
        with collecting(lab, tmp_path) as (collector, store):
            done, failed = submit(lab, "sleep 3"), submit(lab, "sleep 3; exit 7")
            held = submit(lab, "true", "--hold")
            collector.round()
            settings.write_text(usual.replace("MinJobAge=600", "MinJobAge=2"))
            try:
                lab.run("scontrol", "reconfigure")
                lab.run("scancel", str(held))
                deadline = time.monotonic() + 90
                while lab.run("squeue", "--all", "--states=all", "--noheader").stdout:
                    assert time.monotonic() < deadline
                    time.sleep(0.5)
            finally:
                settings.write_text(usual)
                lab.run("scontrol", "reconfigure")
            rounds_until(collector, lambda: is_complete(collector))
            states = [row_of(store, job)["state"] for job in (done, failed, held)]
            assert states == ["COMPLETED", "FAILED", "CANCELLED"]
            assert listed_by_store(store, done, held) == listed_by_slurm(lab, ids(done, held))


class TestManyTasks:
    def test_ten_thousand_tasks_and_a_node_that_dies(self, lab: Lab, tmp_path: Path) -> None:
        with collecting(lab, tmp_path) as (collector, store):
            doomed = submit(lab, "sleep 600", "--nodelist=n2")
            wait_for(lab, doomed, "RUNNING")
            lab.kill("slurmd-n2")
            tasks = submit(lab, "true", "--array=0-9999%40", "--nodelist=n1", "--mem=10")
            rounds_until(collector, lambda: len(rows_of(store, tasks)) == 1)
            rounds_until(collector, lambda: row_of(store, doomed)["state"] == "NODE_FAIL")
            lab.run("scancel", str(tasks))
            lab.up()
            rounds_until(collector, lambda: is_complete(collector))
            jobs = store.jobs()
            told = listed_by_slurm(lab)
            last = max(number for number, _, _ in told)
            assert listed_by_store(store, doomed, last) == listed_by_slurm(lab, ids(doomed, last))
            ran = jobs.filter(array_job_id=tasks)
            assert ran.height > 20
            assert set(ran["state"]) <= {"COMPLETED", "CANCELLED"}
            assert set(ran["script"]) == {"#!/bin/bash\ntrue\n"}


class TestClocks:
    @pytest.mark.parametrize("behind_s", [3600, -300])
    def test_this_machine_and_the_cluster_differ(
        self, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind_s: int
    ) -> None:
        skews: list[int] = []

        def tell(event: str, **values: int) -> None:
            if event == "clock_skew":
                skews.append(values["cluster_ahead_s"])

        def now() -> datetime:
            return datetime.now(UTC) - timedelta(seconds=behind_s)

        def forgotten(cluster: RestCluster) -> Batch:
            raise Unavailable("slurmctld is not asked")

        with collecting(lab, tmp_path, now=now, tell=tell) as (collector, store):
            first = submit(lab, "exit 8")
            wait_for(lab, first, "FAILED")
            collector.round()
            assert len(skews) == (behind_s > 0)
            # From here on accounting alone tells.
            monkeypatch.setattr(RestCluster, "live", forgotten)
            last = submit(lab, "exit 9")
            wait_for(lab, last, "FAILED")
            rounds_until(collector, lambda: not collector.state.without_details)
            assert listed_by_store(store, first, last) == listed_by_slurm(lab, ids(first, last))
            assert row_of(store, last)["step_state"] == "FAILED"


class TestBudget:
    def test_a_minute_of_real_rounds(self, slurm: Lab, tmp_path: Path) -> None:
        begun, made = time.monotonic(), list[tuple[float, str]]()
        pace = Pace(every_s=0.5, slurmctld_calls=4, slurmdbd_calls=4)
        # A day of history takes more than the calls of a minute: live jobs are looked at meanwhile.
        with collecting(slurm, tmp_path, pace=pace) as (collector, store):
            calls = collector._cluster.calls
            gate = calls.before

            def before(daemon: Daemon) -> None:
                gate(daemon)
                made.append((time.monotonic(), daemon))

            calls.before = before
            for _ in range(6):
                submit(slurm, "exit 3")
            collector.run(lambda: time.monotonic() > begun + 18)
            assert len(made) == calls.slurmctld + calls.slurmdbd
            for daemon in ("slurmctld", "slurmdbd"):
                assert 2 <= sum(who == daemon for _, who in made) <= 4
            assert store.jobs().height >= 6
