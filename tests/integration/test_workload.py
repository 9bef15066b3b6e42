"""A workload on a real Slurm: flaws lead where they should, and a small run ends in many ways."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import slurm_lab
from command import PREMORTEM, environment, premortem
from requirements import require
from slurm_lab import wait_for

from premortem.errors import Unavailable
from premortem.lab import Lab
from premortem.lab.workload import Progress, software, work
from premortem.lab.workload.cases import Case
from premortem.lab.workload.catalogue import KINDS
from premortem.lab.workload.desk import Desk, Seen
from premortem.lab.workload.flaws import Flaw
from premortem.lab.workload.submissions import Submission
from premortem.lab.workload.users import population

pytestmark = pytest.mark.alone

# What a strict script of a program in C makes of a flaw.
FAILED = {
    Flaw.TYPO: "127:0",
    Flaw.SYNTAX: "2:0",
    Flaw.UNKNOWN_OPTION: "64:0",
    Flaw.UNSET_VARIABLE: "1:0",
    Flaw.MISSING_FOLDER: "1:0",
    Flaw.MISSING_MODULE: "1:0",
    Flaw.MISSING_PYTHON_MODULE: "1:0",
    Flaw.OUTPUT_NOWHERE: "0:53",
    Flaw.BROKEN_PIPE: "141:0",
    Flaw.TOO_MANY_TASKS: "1:0",
    Flaw.OWN_TIME_LIMIT: "124:0",
    Flaw.FILE_SIZE_LIMIT: "153:0",
    Flaw.OPEN_FILES_LIMIT: "24:0",
    Flaw.FAILING_STEP: "1:0",
    Flaw.MISSING_INPUT: "66:0",
    Flaw.UNREADABLE_INPUT: "77:0",
    Flaw.DAMAGED_INPUT: "65:0",
    Flaw.NOT_EXECUTABLE: "126:0",
    Flaw.WRONG_CHECKSUM: "1:0",
    Flaw.SEGFAULT: "139:0",
    Flaw.ASSERTION: "134:0",
    Flaw.DIVISION_BY_ZERO: "136:0",
    Flaw.NOT_CONVERGED: "3:0",
    Flaw.STALL: "75:0",
    Flaw.FULL_DISK: "28:0",
}
GOOD = (
    *("md_relax", "spectra_fit", "fasta_filter", "trajectory_stats", "archive_run"),
    *("notebook_run", "protein_fold", "frequencies", "wave_field"),
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with people enough for a workload, and its programs."""
    folder = tmp_path_factory.mktemp("workload")
    with slurm_lab.running(folder, "24.11", nodes=12, users=30) as lab:
        software.install(lab)
        yield lab


@pytest.fixture(scope="module")
def desk(lab: Lab) -> Iterator[Desk]:
    with Desk(lab) as desk:
        yield desk


def submitted(
    desk: Desk, lab: Lab, number: int, kind: str, flaw: Flaw | None, *, strict: bool = True
) -> int:
    quick = replace(KINDS[kind], seconds=(1, 1.5), tasks=None)
    case = Case(quick, number, 0.4, 90, 1, 1, 2 * number, strict, flaw=flaw)
    user = population(1, lab.record.plan.user_names)[number % 3]
    job = desk.submit(Submission(number, 0, user, case))
    assert isinstance(job, int), job
    return job


def ended(desk: Desk, jobs: set[int], patience_s: float = 50) -> dict[int, Seen]:
    deadline = time.monotonic() + patience_s
    while True:
        seen = {one.job: one for one in desk.look() if one.job in jobs and one.has_ended}
        if seen.keys() == jobs:
            return seen
        assert time.monotonic() < deadline, jobs - seen.keys()
        time.sleep(0.5)


class TestFlaws:
    def test_each_leads_where_it_should(self, lab: Lab, desk: Desk) -> None:
        require(lab.status().oom, f"no job is killed for its memory: {lab.status().no_oom}")
        leak = submitted(desk, lab, 50, "md_relax", Flaw.LEAK)
        spike = submitted(desk, lab, 51, "spectra_fit", Flaw.SPIKE)
        queue = (Flaw.HANG, Flaw.NEVER_ELIGIBLE, Flaw.CANCELLED_PENDING)
        hang, never, pending = (
            submitted(desk, lab, 40 + number, "md_relax", flaw) for number, flaw in enumerate(queue)
        )
        jobs = {
            flaw: submitted(desk, lab, number, "md_relax", flaw)
            for number, flaw in enumerate(FAILED, start=1)
        }
        no_gpu = submitted(desk, lab, 60, "protein_fold", Flaw.NO_GPU_ASKED)
        python = submitted(desk, lab, 61, "spectra_fit", Flaw.DIVISION_BY_ZERO)
        perl = submitted(desk, lab, 62, "fasta_filter", Flaw.ASSERTION)
        careless = submitted(desk, lab, 71, "frequencies", Flaw.FAILING_STEP, strict=False)
        good = {submitted(desk, lab, 80 + number, kind, None) for number, kind in enumerate(GOOD)}
        # Slurm looks at limits twice a minute; the limit itself cannot be less than one.
        wait_for(lab, hang, "RUNNING")
        lab.run("scontrol", "update", f"jobid={hang}", "endtime=now+1")
        waiting = {one.job: one for one in desk.look()}
        assert waiting[never].reason == "PartitionTimeLimit"
        assert waiting[pending].state == "PENDING"
        desk.cancel("root", never, pending)

        extra = {leak, spike, hang, never, pending, no_gpu, python, perl, careless}
        seen = ended(desk, {*jobs.values(), *extra, *good})
        told = {flaw: (seen[job].state, seen[job].exit_code) for flaw, job in jobs.items()}
        assert told == {flaw: ("FAILED", code) for flaw, code in FAILED.items()}
        assert {seen[job].state for job in good} == {"COMPLETED"}
        assert (seen[no_gpu].state, seen[no_gpu].exit_code) == ("FAILED", "100:0")
        assert (seen[python].state, seen[python].exit_code) == ("FAILED", "1:0")
        assert seen[perl].state == "FAILED"
        # Who does not look for errors is told of none.
        assert seen[careless].state == "COMPLETED"
        assert {seen[leak].state, seen[spike].state} == {"OUT_OF_MEMORY"}
        assert seen[hang].state == "TIMEOUT"
        assert {seen[never].state, seen[pending].state} == {"CANCELLED"}

    def test_what_waits_for_a_failure_is_cancelled(self, lab: Lab, desk: Desk) -> None:
        first = submitted(desk, lab, 120, "prepare_case", Flaw.MISSING_INPUT)
        user = population(1, lab.record.plan.user_names)[0]
        case = Case(KINDS["plot_case"], 121, 0.1, 60, 1, 1, 1)
        second = desk.submit(Submission(121, 0, user, case, after=120), after=first)
        assert isinstance(second, int)
        seen = ended(desk, {first, second})
        assert (seen[second].state, seen[second].reason) == (
            "CANCELLED",
            "DependencyNeverSatisfied",
        )


class TestWork:
    def test_a_small_run_ends_in_many_ways(self, lab: Lab) -> None:
        told: list[Progress] = []
        looks = Looks()
        report = work(
            lab,
            jobs=150,
            seed=3,
            minutes=0.3,
            patience_s=5,
            sampler=looks,
            progress=told.append,
        )
        assert report.submitted >= 150
        assert (report.unfinished, report.interrupted, report.refused) == (0, False, {})
        assert {"COMPLETED", "FAILED", "CANCELLED"} <= report.states.keys()
        assert len(report.exit_codes) >= 4
        assert told[-1].ended == report.submitted
        assert looks.taken >= 10
        lines = (lab.folder / "workload" / "seed-3.jsonl").read_text().splitlines()
        assert sum(json.loads(line)["tasks"] or 1 for line in lines) == report.submitted
        assert not lab.status().ended


class Looks:
    """Counts how often it is called."""

    taken = 0

    def sample(self) -> None:
        self.taken += 1


class TestCommand:
    def test_it_tells_what_became_of_the_jobs(self, lab: Lab, tmp_path: Path) -> None:
        options = ("--jobs=5", "--seed=260", "--folder", lab.folder)
        done = premortem(tmp_path, "lab", "work", *options, "--json")
        assert (done.code, done.json["unfinished"]) == (0, 0), done.err
        assert sum(done.json["states"].values()) == done.json["submitted"] >= 5
        assert done.json["states"]["COMPLETED"] >= 2

    def test_an_interruption_leaves_the_lab_running(self, lab: Lab, tmp_path: Path) -> None:
        working = subprocess.Popen(
            [*PREMORTEM, "lab", "work", "--jobs=900", "--seed=5", "--folder", str(lab.folder)],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        ledger = lab.folder / "workload" / "seed-5.jsonl"
        deadline = time.monotonic() + 30
        while not ledger.exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        working.send_signal(signal.SIGINT)
        _, said = working.communicate(timeout=30)
        assert working.returncode == 130
        assert " of 900 jobs were submitted" in said
        assert not lab.status().ended

    def test_a_lab_with_few_users_is_told(self, slurm: Lab, tmp_path: Path) -> None:
        done = premortem(tmp_path, "lab", "work", "--folder", slurm.folder)
        assert (done.code, "a workload wants 30" in done.err) == (4, True)


class TestTrouble:
    def test_a_machine_without_a_compiler_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(Unavailable, match="no C compiler: install one"):
            software.compiled(tmp_path / "simulate")

    def test_a_lab_that_ended_is_told(self, tmp_path: Path) -> None:
        with slurm_lab.running(tmp_path / "lab", "24.11", nodes=1) as small, Desk(small) as desk:
            small.down()
            with pytest.raises(Unavailable, match="the lab has ended"):
                desk.look()
