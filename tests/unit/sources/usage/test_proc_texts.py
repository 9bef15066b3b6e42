"""The files of /proc as bytes: control groups of both versions, names of any shape."""

from __future__ import annotations

import pytest

from premortem.sources.usage import proc_texts
from premortem.sources.usage.proc_texts import Groups

REST = (
    b" S 41 42 42 0 -1 4194304 100 200 0 0 150 50 30 20 20 0 1 0 987654 11223344 555 "
    b"18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)


class TestStat:
    @pytest.mark.parametrize(
        "name",
        [b"bash", b"a b", b"(sd-pam)", b") R 1 (", b"x) Z 1 1", b"two\nlines", b"\xff\xfe", b""],
    )
    def test_a_process_may_have_any_name(self, name: bytes) -> None:
        found = proc_texts.stat(b"43 (" + name + b")" + REST)
        assert found == (name, b"S", 41, 200, 50, 987654)
        assert not found.is_dead

    @pytest.mark.parametrize("state", [b"Z", b"X", b"x"])
    def test_a_dead_one_is_told(self, state: bytes) -> None:
        assert proc_texts.stat(b"43 (sh)" + REST.replace(b" S ", b" %b " % state)).is_dead


class TestGroups:
    @pytest.mark.parametrize(
        ("text", "groups"),
        [
            # Version 1, as Slurm 22.05 and 24.11 make them.
            (
                b"9:name=systemd:/\n8:pids:/\n6:freezer:/lab/slurm_n1/uid_20001/job_1/step_batch\n"
                b"4:memory:/lab/slurm_n1/uid_20001/job_1/step_batch/task_0\n2:cpuacct:/\n0::/\n",
                Groups(1, None, None),
            ),
            (
                b"5:cpu,cpuacct:/slurm/uid_7/job_77/step_0/task_3\n3:cpuset:/slurm/uid_7/job_77\n",
                Groups(77, "/slurm/uid_7/job_77", None),
            ),
            (b"6:freezer:/slurm/uid_20001/job_5\n", Groups(5, None, None)),
            # Version 2.
            (
                b"0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0\n",
                Groups(123, None, "/system.slice/slurmstepd.scope/job_123"),
            ),
            (
                b"0::/system.slice/n1_slurmstepd.scope/job_123/step_extern/user/task_special",
                Groups(123, None, "/system.slice/n1_slurmstepd.scope/job_123"),
            ),
            (b"0::/slurmstepd.scope/job_9", Groups(9, None, "/slurmstepd.scope/job_9")),
        ],
    )
    def test_they_name_the_job(self, text: bytes, groups: Groups) -> None:
        assert proc_texts.job_groups(text) == groups

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"0::/\n",
            b"0::/system.slice/slurmd.service\n",
            b"0::/system.slice/slurmstepd.scope/system\n",
            b"0::/user.slice/job_7/step_0\n",
            b"0::/system.slice/slurmstepd.scope/job_x/step_0\n",
            b"0::/system.slice/slurmstepd.scope/job_7x\n",
            b"4:memory:/slurm/job_7\n",
        ],
    )
    def test_others_are_no_job(self, text: bytes) -> None:
        assert proc_texts.job_groups(text) is None


class TestNumbers:
    def test_memory_is_told_apart(self) -> None:
        assert proc_texts.resident(b"1826 1000 300 230 0 400 0\n") == (700, 300)

    def test_data_are_those_of_system_calls(self) -> None:
        text = b"rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\n"
        assert proc_texts.transferred(text + b"read_bytes: 0\n") == (323934931, 323929600)


class TestJob:
    def test_a_daemon_names_it(self) -> None:
        assert proc_texts.job_in_title(b"slurmstepd: [17.batch]\0\0\0") == 17
        assert proc_texts.job_in_title(b"/usr/sbin/slurmstepd: [18.4294967291]\0") == 18
        assert proc_texts.job_in_title(b"slurmstepd infinity\0") is None
        assert proc_texts.job_in_title(b"vi\0slurmstepd: [17.0]\0") is None

    def test_an_environment_names_it(self) -> None:
        assert proc_texts.job_in_environment(b"A=1\0SLURM_JOB_ID=5\0B=2\0") == 5
        assert proc_texts.job_in_environment(b"SLURM_JOBID=6") == 6
        for other in (b"", b"MY_SLURM_JOB_ID=5\0", b"SLURM_JOB_ID=\0", b"SLURM_JOB_ID=5x\0"):
            assert proc_texts.job_in_environment(other) is None
        assert proc_texts.job_in_environment(b"A=\nSLURM_JOB_ID=5\0") is None
