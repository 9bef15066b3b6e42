"""A real Slurm in a lab: jobs that end in many ways, the commands, and what is left behind."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import slurm_lab
from command import PREMORTEM, Finished, environment, premortem
from ports import free_port
from requirements import require
from slurm_lab import get, namespace_of, processes_of, submit, wait_for

from premortem.errors import Conflict, InvalidInput, NotFound, Unavailable
from premortem.lab import Lab, cgroups

pytestmark = pytest.mark.alone


@pytest.fixture(params=["slurm", "slurm_2205"])
def lab(request: pytest.FixtureRequest) -> Lab:
    found: Lab = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the commands make and end a lab."""
    slurm_lab.require_lab("24.11")
    folder = tmp_path_factory.mktemp("commands")
    yield folder
    ask(folder, "down", "--purge")


def mounts() -> list[str]:
    return [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]


class TestJobs:
    def test_they_end_as_they_were_meant_to(self, lab: Lab) -> None:
        lost = submit(lab, "sleep 300", "--nodelist=n2")
        late = submit(lab, "sleep 300", "--time=1", "--nodelist=n1")
        completed = submit(lab, "srun hostname", "--nodelist=n1", user="user02")
        failed = submit(lab, "exit 3", "--partition=short", "--nodelist=n1")
        not_found = submit(lab, "no-such-program", "--nodelist=n1", user="user03")
        cancelled = submit(lab, "sleep 300", "--nodelist=n1")
        wait_for(lab, lost, "RUNNING")
        lab.kill("slurmd-n2")
        wait_for(lab, late, "RUNNING")
        # Slurm looks at limits twice a minute; the limit itself cannot be less than one.
        lab.run("scontrol", "update", f"jobid={late}", "endtime=now+1")
        wait_for(lab, cancelled, "RUNNING")
        lab.run("scancel", str(cancelled), user="user01")

        assert wait_for(lab, completed, "COMPLETED")["Account"] == "chemistry"
        assert wait_for(lab, failed, "FAILED")["ExitCode"] == "3:0"
        assert wait_for(lab, not_found, "FAILED")["ExitCode"] == "127:0"
        assert wait_for(lab, cancelled, "CANCELLED")["State"].startswith("CANCELLED by ")
        wait_for(lab, late, "TIMEOUT")
        assert wait_for(lab, lost, "NODE_FAIL")["NodeList"] == "n2"
        assert lab.status().ended == ["slurmd-n2"]
        assert lab.up() == ["slurmd-n2"]
        assert lab.status().nodes["n2"] == "idle"

    def test_one_that_takes_too_much_memory_is_killed_for_it(self, lab: Lab) -> None:
        require(lab.status().oom, f"no job is killed for its memory: {lab.status().no_oom}")
        hungry = submit(lab, "python3 -c 'x = bytearray(400_000_000)'", "--mem=50")
        assert wait_for(lab, hungry, "OUT_OF_MEMORY")["ExitCode"] == "0:125"

    def test_one_makes_way_for_another(self, lab: Lab) -> None:
        whole_node = ("--nodelist=n1", "--exclusive")
        low = submit(lab, "sleep 300", "--partition=low", *whole_node)
        wait_for(lab, low, "RUNNING")
        high = submit(lab, "true", "--partition=high", *whole_node)
        wait_for(lab, low, "PREEMPTED")
        wait_for(lab, high, "COMPLETED")

    def test_one_gets_a_gpu(self, lab: Lab) -> None:
        job = submit(lab, "echo gpu=$CUDA_VISIBLE_DEVICES", "--partition=gpu", "--gres=gpu:1")
        assert wait_for(lab, job, "COMPLETED")["NodeList"] == lab.record.plan.node_names[-1]
        output = lab.folder / "home" / "user01" / f"slurm-{job}.out"
        assert output.read_text() in ("gpu=0\n", "gpu=1\n")

    def test_accounting_keeps_scripts_but_no_environments(self, lab: Lab) -> None:
        job = submit(lab, "true # a remark")
        wait_for(lab, job, "COMPLETED")
        deadline = time.monotonic() + 30
        # The script follows some seconds after the job.
        while "true # a remark" not in lab.run("sacct", f"--jobs={job}", "--batch-script").stdout:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        told = lab.run("sacct", f"--jobs={job}", "--env-vars").stdout
        assert "PATH=" not in told


class TestRest:
    def test_it_answers_whoever_has_a_token(self, lab: Lab) -> None:
        job = submit(lab, "exit 3")
        wait_for(lab, job, "FAILED")
        version = lab.record.plan.release.rest_version
        status, answer = get(lab, f"/slurmdb/{version}/job/{job}", user="user01")
        assert (status, answer["jobs"][0]["job_id"]) == (200, job)
        assert answer["jobs"][0]["user"] == "user01"
        status, answer = get(lab, f"/slurm/{version}/nodes", user="root")
        assert (status, len(answer["nodes"])) == (200, lab.record.plan.nodes)

    def test_it_refuses_all_others(self, lab: Lab) -> None:
        jobs = f"/slurmdb/{lab.record.plan.release.rest_version}/jobs"
        assert get(lab, jobs, user=None)[0] == 401
        status, answer = get(lab, jobs, user="root", token="not.a.token")
        # 22.05 says that all is well, and then that it is not.
        assert status >= 400 or (answer["errors"] and not answer.get("jobs"))


class TestSideBySide:
    def test_labs_know_nothing_of_each_other(self, slurm: Lab, slurm_2205: Lab) -> None:
        assert not {*slurm.record.ports.all} & {*slurm_2205.record.ports.all}
        job = submit(slurm, "true", "--job-name=only_here")
        wait_for(slurm, job, "COMPLETED")
        names = ("sacct", "--allusers", "--noheader", "--format=JobName%20")
        assert "only_here" in slurm.run(*names).stdout
        assert "only_here" not in slurm_2205.run(*names).stdout
        assert slurm.run("sinfo", "--version").stdout == "slurm-wlm 24.11.5\n"
        assert slurm_2205.run("sinfo", "--version").stdout == "slurm-wlm 22.05.8\n"

    def test_they_listen_on_loopback_alone(self, lab: Lab) -> None:
        # local address, remote address, state: listening
        rows = [row.split()[1:4] for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        at = {
            int(own.split(":")[1], 16): own.split(":")[0] for own, _, state in rows if state == "0A"
        }
        assert {at[port] for port in lab.record.ports.all} == {"0100007F"}


class TestCommands:
    """The life of one small lab, beside the others."""

    @pytest.fixture
    def up(self, folder: Path) -> dict[str, Any]:
        done = ask(folder, "up", "--nodes=1", "--users=2", "--cluster=small", "--json")
        assert done.code == 0, done.err
        told: dict[str, Any] = done.json
        return told

    def test_up_tells_how_to_reach_it(self, folder: Path, up: dict[str, Any]) -> None:
        assert up["runs"]
        assert up["nodes"] == {"n1": "idle"}
        assert up["versions"]["Slurm"] == "24.11.5"
        told = ask(folder, "up")
        assert "It was running already." in told.out
        for words in (up["rest_url"], "v0.0.42", "scontrol token", "small: n1", "MariaDB"):
            assert words in told.out
        token = ask(folder, *up["token_command"].split()[5:], verb="run")
        assert token.out.startswith("SLURM_JWT=")
        assert Lab(folder / "lab").rest_url == up["rest_url"]

    def test_run_is_the_command_itself(self, folder: Path, up: dict[str, Any]) -> None:
        done = ask(folder, "sh", "-c", "cat; echo on error >&2; exit 7", verb="run", stdin="in")
        assert (done.code, done.out, done.err) == (7, "in", "on error\n")
        assert ask(folder, "--user=user02", "--", "sh", "-c", "id -un; pwd", verb="run").out == (
            "user02\n/home/user02\n"
        )
        assert ask(folder, "env", verb="run").out.count("\n") <= 6
        assert ask(folder, "sh", "-c", "kill -9 $$", verb="run").code in (-9, 137)
        unknown = ask(folder, "--user=eve", "id", verb="run")
        assert (unknown.code, "no user 'eve'" in unknown.err) == (3, True)

    def test_a_killed_daemon_is_told_and_started_again(
        self, folder: Path, up: dict[str, Any]
    ) -> None:
        Lab(folder / "lab").kill("slurmctld")
        told = ask(folder, "status")
        assert told.code == 5
        assert [line.split()[:3] for line in told.out.splitlines() if "ended" in line] == [
            ["slurmctld", "has", "ended"]
        ]
        again = ask(folder, "up")
        assert "slurmctld had ended, and runs again" in again.out
        told = ask(folder, "status", "--json")
        assert (told.code, told.json["nodes"]) == (0, {"n1": "idle"})

    def test_what_it_is_cannot_be_changed_while_it_runs(
        self, folder: Path, up: dict[str, Any]
    ) -> None:
        for options in (["--nodes=3"], ["--slurm=22.05"], ["--cluster=other"]):
            done = ask(folder, "up", *options)
            assert (done.code, "was made with" in done.err) == (4, True)

    def test_down_leaves_nothing_but_its_memory(self, folder: Path, up: dict[str, Any]) -> None:
        lab = Lab(folder / "lab")
        namespace = namespace_of(lab)
        submit(lab, "sleep 300")
        assert any("slurmrestd" in line for line in processes_of(namespace))
        assert not [path for path in mounts() if path.startswith((str(folder), "/tmp/lab"))]

        done = ask(folder, "down")
        assert (done.code, done.out.endswith("has ended.\n")) == (0, True)
        assert processes_of(namespace) == []
        assert not [path for path in mounts() if str(slurm_lab.CACHE) in path]
        assert not list(cgroups.CGROUPS.glob(f"*/{cgroups._name(lab.folder)}"))

        again = ask(folder, "down")
        assert (again.code, again.out.endswith("was not running.\n")) == (0, True)
        told = ask(folder, "status")
        assert (told.code, "is not running" in told.out) == (5, True)
        assert ask(folder, "sinfo", verb="run").code == 5

        assert ask(folder, "up").code == 0
        assert ask(folder, "status", "--json").json["jobs"]["CANCELLED"] == 1

    def test_purge_removes_the_folder(self, folder: Path, up: dict[str, Any]) -> None:
        assert ask(folder, "down", "--purge").code == 0
        assert not (folder / "lab").exists()
        assert ask(folder, "down", "--purge").code == 0


class TestTrouble:
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
    def test_an_interrupted_start_leaves_nothing(self, tmp_path: Path, how: signal.Signals) -> None:
        slurm_lab.require_lab("24.11")
        starting = subprocess.Popen(
            [*PREMORTEM, "lab", "up", "--folder", str(tmp_path / "lab")],
            env=environment(tmp_path, PREMORTEM_LAB_CACHE=str(slurm_lab.CACHE)),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert starting.stderr is not None
        with starting.stderr as said:
            for line in said:
                if "slurmdbd" in line:
                    break
            # Its world is the only one with the folder's name in its mounts.
            keepers = [one for one in worlds() if str(tmp_path) in mounts_of(one)]
            assert keepers
            starting.send_signal(how)
            words = said.read()
        assert starting.wait() == (130 if how is signal.SIGINT else -how)
        assert ("interrupted" in words) == (how is signal.SIGINT)
        deadline = time.monotonic() + 10
        while [one for one in worlds() if str(tmp_path) in mounts_of(one)]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert ask(tmp_path, "down", "--purge").code == 0
        assert not list(cgroups.CGROUPS.glob(f"*/{cgroups._name(tmp_path / 'lab')}"))

    def test_a_lab_ends_with_the_process_it_was_for(self, tmp_path: Path) -> None:
        slurm_lab.require_lab("24.11")
        code = (
            "import sys, time; from pathlib import Path; from premortem.lab import Lab\n"
            "with Lab(sys.argv[1], cache=Path(sys.argv[2]), nodes=1): print('up'); time.sleep(600)"
        )
        command = [sys.executable, "-u", "-c", code, str(tmp_path / "lab"), str(slurm_lab.CACHE)]
        owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert owner.stdout is not None
        with owner.stdout as said:
            assert said.readline() == "up\n"
        lab = Lab(tmp_path / "lab")
        namespace = namespace_of(lab)
        owner.kill()
        owner.wait()
        deadline = time.monotonic() + 10
        while processes_of(namespace):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert not lab.status().runs
        lab.down(purge=True)

    def test_a_daemon_that_ends_at_once_shows_why(self, tmp_path: Path) -> None:
        slurm_lab.require_lab("24.11")
        lab = Lab(tmp_path / "lab", cache=slurm_lab.CACHE, nodes=1)
        (tmp_path / "lab").mkdir()
        with lab:
            pass
        (lab.folder / "state" / "state" / "clustername").write_text("another")
        with pytest.raises(Unavailable, match=r"slurmctld ended while it started.*\n.*MISMATCH"):
            lab.up()
        assert not lab.status().runs
        lab.down(purge=True)

    def test_a_taken_port_is_told(self, tmp_path: Path, slurm: Lab) -> None:
        port = slurm.record.ports.slurmrestd
        done = ask(tmp_path, "up", f"--rest-port={port}")
        assert (done.code, f"port {port} of 127.0.0.1 is taken" in done.err) == (4, True)
        assert not (tmp_path / "lab" / "log").exists()

    def test_a_port_can_be_chosen_and_memory_left_alone(self, tmp_path: Path) -> None:
        wanted: dict[str, Any] = {"nodes": 1, "rest_port": free_port(), "oom": False}
        with slurm_lab.running(tmp_path / "lab", "24.11", **wanted) as lab:
            assert lab.rest_url == f"http://127.0.0.1:{wanted['rest_port']}"
            assert lab.status().no_oom == "the lab was started with --no-oom"
            assert not list(cgroups.CGROUPS.glob(f"*/{cgroups._name(lab.folder)}"))
            # Slurm itself looks once in a second, and ends the job without a word of memory.
            greedy = "python3 -c 'import time; x = bytearray(400_000_000); time.sleep(60)'"
            assert wait_for(lab, submit(lab, greedy, "--mem=50"), "FAILED")["ExitCode"] == "0:9"
            # Whoever finds it running leaves it so.
            with Lab(lab.folder) as same:
                assert same.rest_url == lab.rest_url
            assert lab.status().runs

    def test_a_folder_of_something_else_is_left_alone(self, tmp_path: Path) -> None:
        require(os.geteuid() == 0, "a lab needs root")
        (tmp_path / "lab").mkdir()
        (tmp_path / "lab" / "thesis.tex").touch()
        done = ask(tmp_path, "up")
        assert (done.code, "is not a lab's" in done.err) == (4, True)
        for verb in ("status", "down"):
            done = ask(tmp_path, verb)
            assert (done.code, "there is no lab in" in done.err) == (3, True)
        assert [path.name for path in (tmp_path / "lab").iterdir()] == ["thesis.tex"]

    def test_a_full_disk_is_told(self, small_disk: Path) -> None:
        slurm_lab.require_lab("24.11")
        with (small_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while filler.write(b"x" * 4096):
                pass
        done = ask(small_disk, "up")
        assert done.code == 5
        assert "No space left on device" in done.err

    def test_only_root_may(self, tmp_path: Path) -> None:
        require(os.geteuid() == 0 and bool(shutil.which("setpriv")), "to be another needs root")
        tmp_path.chmod(0o755)
        code = (
            "import os; os.setuid(65534); from premortem.errors import InvalidInput\n"
            "from premortem.lab import Lab\n"
            "try: Lab('/tmp/no-such-lab').up()\n"
            "except InvalidInput as error: print(error)"
        )
        # Imported by root, who may read this Python wherever it is.
        code = f"import premortem.lab\n{code}"
        said = subprocess.check_output([sys.executable, "-c", code], text=True)
        assert said.startswith("a lab needs root")

    def test_another_system_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        require(os.geteuid() == 0, "a lab needs root")
        other = {"ID": "fedora", "PRETTY_NAME": "Fedora Linux 42"}
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: other)
        with pytest.raises(InvalidInput, match=r"this machine is Fedora Linux 42\."):
            Lab(tmp_path / "lab", cache=tmp_path / "cache").up()

    def test_packages_that_cannot_be_fetched_are_told(self, tmp_path: Path) -> None:
        slurm_lab.require_lab("24.11")
        (tmp_path / "sources.list").write_text(
            f"deb [trusted=yes] http://127.0.0.1:{free_port()}/debian bookworm main\n"
        )
        (tmp_path / "apt.conf").write_text(
            f'Dir::Etc::SourceList "{tmp_path}/sources.list";\n'
            'Dir::Etc::SourceParts "/dev/null";\nAcquire::Retries "0";\n'
        )
        done = premortem(
            tmp_path,
            *("lab", "up", "--folder", "lab", "--cache", "cache"),
            APT_CONFIG=str(tmp_path / "apt.conf"),
        )
        assert done.code == 5
        assert "could not be fetched: see whether `apt-get update` works" in done.err
        assert "Connection refused" in done.err

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--slurm=19.05"], "a lab runs Slurm 24.11 or 22.05, not '19.05'"),
            (["--nodes=0"], "a lab has 1 to 64 nodes, not 0"),
            (["--users=-1"], "a lab has 1 to 500 users, not -1"),
            (["--cluster=Two Words"], "a cluster's name is of small letters"),
        ],
    )
    def test_options_that_make_no_sense_are_told(
        self, tmp_path: Path, options: list[str], words: str
    ) -> None:
        require(os.geteuid() == 0, "a lab needs root")
        done = ask(tmp_path, "up", *options)
        assert (done.code, words in done.err) == (1, True)
        assert not (tmp_path / "lab" / "lab.json").exists()

    def test_a_command_that_fails_is_an_error_unless_asked_for(self, slurm: Lab) -> None:
        with pytest.raises(
            InvalidInput, match=r"`scontrol show job 999999` ended with 1.*Invalid job"
        ):
            slurm.run("scontrol", "show", "job", "999999")
        assert slurm.run("sh", "-c", "exit 4", check=False).returncode == 4
        with pytest.raises(NotFound, match="no user 'eve'"):
            slurm.run("id", user="eve")
        with pytest.raises(NotFound, match="no daemon 'httpd'; it has munged"):
            slurm.kill("httpd")
        with pytest.raises(Conflict, match="not a lab's"):
            Lab(slurm.folder / "home").up()


def ask(
    folder: Path, *arguments: str, verb: str | None = None, stdin: str | None = None
) -> Finished:
    """`premortem lab` of the lab in a folder; the first argument is the verb unless given."""
    verb, rest = (verb, arguments) if verb else (arguments[0], arguments[1:])
    return premortem(
        folder,
        *("lab", verb, "--folder", str(folder / "lab"), *rest),
        stdin=stdin,
        PREMORTEM_LAB_CACHE=str(slurm_lab.CACHE),
    )


def worlds() -> list[int]:
    """The keepers of all labs."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if "lab/keeper.py" in _text(path)
    ]


def mounts_of(pid: int) -> str:
    return _text(Path(f"/proc/{pid}/mountinfo"))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
