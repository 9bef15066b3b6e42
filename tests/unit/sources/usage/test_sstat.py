"""sstat's lines and complaints as Slurm 24.11.5 and 22.05.8 print them, and its troubles."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from premortem.errors import NotFound, Unavailable
from premortem.jobs.samples import SAMPLE_SCHEMA
from premortem.sources.usage import SstatSampler
from premortem.sources.usage import sstat as module
from premortem.sources.usage.sstat_texts import complaints, steps

LINES = """\
1.batch|cpu=00:00:01,energy=0,fs/disk=1048576,mem=14295040,pages=1,vmem=9|energy=0,fs/disk=4464
1.0|cpu=1-00:00:03,energy=0,fs/disk=36414,mem=67356K,pages=3,vmem=73076K|energy=0,fs/disk=1
"""
ERRORS = """\
sstat: error: slurm_job_step_stat: there was an error with the request to n1 rc = Invalid user id
sstat: error: problem getting step_layout for StepId=1.batch: Invalid user id
sstat: error: problem getting step_layout for StepId=2.0: Unable to contact slurmd
sstat: error: No steps running for job 4
sstat: error: couldn't get steps for job 777
"""


def sstat(folder: Path, *, out: str = "", err: str = "", code: int = 0) -> tuple[str, ...]:
    """A command that prints what it is told to, and keeps what it was asked."""
    (folder / "out").write_text(out)
    (folder / "err").write_text(err)
    command = folder / "sstat"
    lines = (f"echo \"$@\" >> '{folder}/asked'", f"cat '{folder}/out'", f"cat '{folder}/err' >&2")
    command.write_text("\n".join(("#!/bin/sh", *lines, f"exit {code}\n")))
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return (str(command),)


class TestTexts:
    def test_steps_are_read_in_both_spellings(self) -> None:
        assert steps(LINES).rows() == [
            (1, "batch", 1.0, 14295040 / 2**20, 1.0, 4464 / 2**20),
            (1, "0", 86_403.0, 67356 / 2**10, 36414 / 2**20, 1 / 2**20),
        ]

    def test_what_cannot_be_read_is_null(self) -> None:
        assert steps("nonsense\n5.0||\n|cpu=x|").rows() == [
            (None,) * 6,
            (5, "0", *(None,) * 4),
            (None,) * 6,
        ]
        assert steps("").is_empty()

    def test_complaints_are_told_by_job(self) -> None:
        assert complaints(ERRORS) == {
            1: "Slurm shows it to its owner and to operators alone",
            2: "Unable to contact slurmd",
            4: "no step of it runs",
            777: "no step of it runs",
        }


class TestAnswers:
    def test_steps_are_summed_and_those_that_ended_stay(self, tmp_path: Path) -> None:
        sampler = SstatSampler("c", lambda: [1, 9], command=sstat(tmp_path, out=LINES))
        first = sampler.sample()
        assert dict(first.schema) == SAMPLE_SCHEMA
        assert first.select("cluster", "job_id", "cpu_s", "processes").row(0) == (
            *("c", 1, 86_404.0),
            None,
        )
        assert first["rss_mb"].item() == pytest.approx(14295040 / 2**20 + 67356 / 2**10)
        assert sampler.refused.rows() == [(9, "sstat told nothing of it")]
        asked = (tmp_path / "asked").read_text()
        assert "--jobs=1,9" in asked
        sstat(tmp_path, out=LINES.splitlines()[0].replace("00:00:01", "00:00:05"))
        second = sampler.sample()
        assert second["cpu_s"].item() == 86_408.0
        assert second["rss_mb"].item() == 14295040 / 2**20
        assert second["read_mb"].item() == first["read_mb"].item()

    def test_a_job_refused_in_part_is_refused(self, tmp_path: Path) -> None:
        error = "sstat: error: problem getting step_layout for StepId=1.2: Unable to contact slurmd"
        sampler = SstatSampler("c", list, command=sstat(tmp_path, out=LINES, err=error))
        answer = sampler.ask([1])
        assert answer.samples.is_empty()
        assert answer.refused.rows() == [(1, "Unable to contact slurmd")]

    def test_nobody_is_asked_about_nothing(self, tmp_path: Path) -> None:
        samples = SstatSampler("c", list, command=("no-such-command",)).sample()
        assert samples.is_empty()
        assert dict(samples.schema) == SAMPLE_SCHEMA

    def test_many_jobs_are_a_few_calls(self, tmp_path: Path) -> None:
        sampler = SstatSampler("c", lambda: range(1, 1201), command=sstat(tmp_path))
        assert sampler.sample().is_empty()
        assert sampler.refused.height == 1200
        assert len((tmp_path / "asked").read_text().splitlines()) == 3


class TestMemory:
    """Of a job that runs, 1.0 has ended; any two looks are far apart."""

    @pytest.fixture(autouse=True)
    def looks_are_far_apart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_FORGET_AFTER_S", 0.0)

    def sampler(self, folder: Path) -> SstatSampler:
        found = SstatSampler("c", lambda: [1], command=sstat(folder, out=LINES))
        assert found.sample()["cpu_s"].item() == 86_404.0
        sstat(folder, out=LINES.splitlines()[0])
        return found

    def test_a_job_that_runs_at_each_look_keeps_its_sums(self, tmp_path: Path) -> None:
        sampler = self.sampler(tmp_path)
        for _ in range(3):
            assert sampler.sample()["cpu_s"].item() == 86_404.0

    @pytest.mark.parametrize("error", ["", "sstat: error: No steps running for job 1"])
    def test_one_that_did_not_run_in_between_was_requeued(self, tmp_path: Path, error: str) -> None:
        sampler = self.sampler(tmp_path)
        sstat(tmp_path, err=error)
        assert sampler.sample().is_empty()
        sstat(tmp_path, out=LINES.splitlines()[0])
        assert sampler.sample()["cpu_s"].item() == 1.0

    def test_and_one_that_was_not_among_those_that_run(self, tmp_path: Path) -> None:
        sampler = self.sampler(tmp_path)
        sampler.ask([2])
        assert not sampler._kept.keys() - {1}
        sampler.ask([])
        assert not sampler._kept
        assert sampler.sample()["cpu_s"].item() == 1.0

    def test_but_not_if_it_was_gone_for_a_moment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_FORGET_AFTER_S", 100.0)
        sampler = self.sampler(tmp_path)
        sampler.ask([])
        assert sampler.sample()["cpu_s"].item() == 86_404.0

    def test_what_could_not_be_asked_is_not_gone(self, tmp_path: Path) -> None:
        sampler = self.sampler(tmp_path)
        error = "sstat: error: problem getting step_layout for StepId=1.2: Unable to contact slurmd"
        sstat(tmp_path, err=error)
        assert sampler.sample().is_empty()
        sstat(tmp_path, code=1)
        with pytest.raises(Unavailable):
            sampler.sample()
        sstat(tmp_path, out=LINES.splitlines()[0])
        assert sampler.sample()["cpu_s"].item() == 86_404.0


class TestTrouble:
    def test_a_missing_command_is_told(self) -> None:
        with pytest.raises(NotFound, match="no command 'no-such-command'"):
            SstatSampler("c", lambda: [1], command=("no-such-command",)).sample()

    def test_a_failing_one_too(self, tmp_path: Path) -> None:
        command = sstat(tmp_path, err="sstat: fatal: no configuration", code=1)
        with pytest.raises(Unavailable, match="ended with 1: sstat: fatal: no configuration"):
            SstatSampler("c", lambda: [1], command=command).sample()

    def test_and_one_that_does_not_answer(self) -> None:
        sampler = SstatSampler(
            "c", lambda: [1], command=("sh", "-c", "exec sleep 30"), timeout_s=0.2
        )
        with pytest.raises(Unavailable, match=r"did not answer in 0\.2 s"):
            sampler.sample()

    def test_and_one_that_may_not_be_run(self, tmp_path: Path) -> None:
        (tmp_path / "sstat").write_text("")
        with pytest.raises(Unavailable, match="cannot be run"):
            SstatSampler("c", lambda: [1], command=(str(tmp_path / "sstat"),)).sample()
