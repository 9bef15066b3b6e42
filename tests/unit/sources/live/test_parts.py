"""The parts that need no cluster: windows, versions, callers, programs, text."""

from __future__ import annotations

import base64
import errno
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.sources.content import Received
from premortem.sources.live.callers import Caller, caller_from
from premortem.sources.live.commands import CommandCluster
from premortem.sources.live.machines import Node, partition_of
from premortem.sources.live.port import Overlong
from premortem.sources.live.programs import Failed, Programs
from premortem.sources.live.scontrol_text import cluster_in, job_records, nodes_in, partitions_in
from premortem.sources.live.versions import newest_known, served_in
from premortem.sources.live.windows import Windows
from premortem.sources.port import Context
from premortem.sources.slurm_json import SlurmJsonSource, batch_of
from premortem.sources.slurm_values import BadRecord

NOW = datetime(2026, 11, 16, 5, 0, tzinfo=UTC)


class TestWindows:
    def test_they_shrink_and_grow_within_bounds(self) -> None:
        windows = Windows(NOW - timedelta(days=30), NOW, timedelta(minutes=3))
        for _ in range(5):
            windows.halve()
        assert windows.is_shortest
        assert windows.width == timedelta(minutes=1)
        count = 0
        while windows.current:
            windows.answered(0.0)
            count += 1
        assert windows.width == timedelta(days=1)
        assert count < 45

    def test_effort_halves_them(self) -> None:
        windows = Windows(NOW - timedelta(hours=9), NOW, timedelta(hours=2))
        windows.answered(0.8)
        assert windows.current == (
            int(NOW.timestamp()) - 7 * 3600,
            int(NOW.timestamp()) - 6 * 3600,
        )
        windows.answered(0.3)
        assert windows.width == timedelta(hours=1)

    def test_they_settle_where_a_shorter_one_is_no_lighter(self) -> None:
        windows = Windows(NOW - timedelta(days=2), NOW, timedelta(hours=2))
        windows.answered(0.9)
        for effort in (0.8, 0.9, 0.6):
            windows.answered(effort)
            assert (windows.width, windows.is_settled) == (timedelta(hours=1), True)
        windows.answered(0.4)
        assert not windows.is_settled
        windows.answered(0.9)
        windows.answered(0.6)
        assert (windows.width, windows.is_settled) == (timedelta(minutes=15), False)

    def test_those_that_settled_are_halved_if_they_cannot_be_had(self) -> None:
        windows = Windows(NOW - timedelta(days=2), NOW, timedelta(hours=2))
        windows.too_large()
        windows.too_large()
        assert (windows.width, windows.is_settled) == (timedelta(hours=1), True)
        assert not windows.is_shortest
        windows.halve()
        assert (windows.width, windows.is_settled) == (timedelta(minutes=30), False)

    def test_what_cannot_be_cut(self) -> None:
        assert Windows(NOW, NOW).current is None
        assert Windows(datetime(1970, 1, 1, tzinfo=UTC), NOW).current == (10**9, 10**9 + 3600)
        with pytest.raises(InvalidInput, match="no time zone"):
            Windows(NOW.replace(tzinfo=None), NOW)
        with pytest.raises(InvalidInput, match="too short"):
            Windows(NOW, NOW, timedelta(0))


class TestVersions:
    def test_those_in_which_both_daemons_tell_jobs(self) -> None:
        document = rb'{"paths": {"\/slurm\/v0.0.38\/jobs": 1, "\/slurmdb\/v0.0.38\/jobs": 1,'
        document += b'"/slurm/v0.0.42/jobs/": 1, "/slurmdb/v0.0.42/jobs/": 1,'
        document += b'"/slurm/v0.0.43/jobs": 1, "/slurmdb/v0.0.43/job/{id}": 1}}'
        assert served_in(document) == [38, 42]
        assert newest_known([36, 38, 42, 47], at="x") == 42
        # v0.0.37 is wrong about starts.
        with pytest.raises(InvalidInput, match=r"x serves v0\.0\.36, v0\.0\.37"):
            newest_known([36, 37], at="x")


def made(user: str = "monitor", expires: float = 2e9) -> str:
    claims = json.dumps({"sun": user, "exp": expires}).encode()
    return f"x.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.y"


class TestCallers:
    def test_where_a_token_comes_from(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text(f"SLURM_JWT={made('fay')}\n")
        printing = [sys.executable, "-c", f"print('SLURM_JWT={made('coco')}')"]
        environment = {"SLURM_JWT": made("eve")}
        for caller, user in (
            (caller_from(file=file, environment={}), "fay"),
            (caller_from(command=printing, environment={}), "coco"),
            (caller_from(environment=environment), "eve"),
            (caller_from(environment=environment, user="me"), "me"),
            (caller_from(environment=environment | {"SLURM_USER_NAME": "her"}), "her"),
        ):
            assert caller.headers()["X-SLURM-USER-NAME"] == user
            assert "x." not in repr(caller)

    def test_one_that_says_nothing_of_itself_is_used_as_it_is(self) -> None:
        for text in ("plain", "a.b.c", "a.bnVsbA.c", "a.eyJleHAiOiJ4In0.c"):
            assert Caller(lambda text=text: text).headers() == {"X-SLURM-USER-TOKEN": text}

    def test_one_that_has_expired_is_read_anew(self) -> None:
        tokens = iter([made(expires=10), made(expires=20)])
        clock = [5.0]
        caller = Caller(lambda: next(tokens), clock=lambda: clock[0])
        first = caller.headers()
        assert caller.headers() == first
        clock[0] = 15.0
        assert caller.headers() != first

    def test_none_to_be_had(self, tmp_path: Path) -> None:
        (tmp_path / "binary").write_bytes(b"\xff\xfe")
        failing = [
            sys.executable,
            "-c",
            "import sys; print('s3' + 'cret'); sys.exit('no ' + 'luck')",
        ]
        for options, kind, words in (
            ({}, InvalidInput, "set SLURM_JWT"),
            ({"file": tmp_path / "none"}, NotFound, "no such file"),
            ({"file": tmp_path / "binary"}, InvalidInput, "no token can be read"),
            ({"command": ["/no/such/program"]}, InvalidInput, "cannot be run"),
            ({"command": failing}, Unavailable, "ended with 1: no luck"),
        ):
            with pytest.raises(kind, match=words) as found:
                caller_from(environment={}, **options).headers()
            assert "s3cret" not in str(found.value)

    def test_what_is_no_token_is_not_shown(self) -> None:
        for text in ("", "two words", "x\r\nX-Evil: 1", "\x00"):
            with pytest.raises(InvalidInput, match="is none") as found:
                Caller(lambda text=text: text).headers()
            assert "Evil" not in str(found.value)
        with pytest.raises(InvalidInput, match="no user name"):
            caller_from(user="a\nb", environment={})


class TestPrograms:
    def test_what_is_printed(self) -> None:
        with Programs().run("printf", "a\\nb") as printed:
            assert printed.read(100) == b"a\nb"
        with Programs(("nice",)).run("sh", "-c", "echo $SLURM_TIME_FORMAT $TZ") as printed:
            assert printed.read(100) == b"standard UTC\n"

    def test_one_that_does_not_end_is_ended_with_its_children(self, tmp_path: Path) -> None:
        sign = tmp_path / "sign"
        began = time.monotonic()
        with pytest.raises(Overlong, match=r"did not end in 0\.5 s"):
            Programs(timeout_s=0.5).run("sh", "-c", f"(sleep 1.5; touch {sign}) & sleep 60")
        assert time.monotonic() - began < 5
        time.sleep(1.5)
        assert not sign.exists()

    def test_one_that_fails_or_is_not_there(self) -> None:
        with pytest.raises(Failed, match="ended with 3: oh") as found:
            Programs().run("sh", "-c", "echo oh >&2; exit 3")
        assert found.value.said == "oh"
        with pytest.raises(InvalidInput, match="Install Slurm's commands"):
            Programs().run("no-such-command")
        with pytest.raises(InvalidInput, match="cannot be run"):
            Programs(("/no/such/prefix",)).run("true")

    def test_a_full_disk_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Received, "write", full)
        with pytest.raises(Unavailable, match="cannot be kept: No space left"):
            Programs().run("echo", "hello")

    def test_a_cluster_without_commands(self) -> None:
        with pytest.raises(InvalidInput, match="`sacct` cannot be run"):
            CommandCluster(("env", "PATH=/nowhere")).by_id([1])


class TestReceived:
    def test_it_reads_as_a_file_does(self) -> None:
        with Received("x") as answer:
            answer.write(b'{"jobs"')
            assert answer.head() == b'{"jobs"'
            answer.write(b": []}")
            assert (answer.read(3), answer.head(), answer.tail()) == (
                b'{"j',
                b'{"jobs": []}',
                b'{"jobs": []}',
            )
            assert (answer.read(100), answer.read(100)) == (b'obs": []}', b"")
            assert answer.position == answer.size == 12
            answer.position = 0
            assert list(SlurmJsonSource(answer, Context()).batches()) == []


JOB = (
    "JobId={id} {place}JobName={name} UserId=ann(1000) GroupId=users(100) MCS_label=N/A Priority=5 "
    "Nice=0 Account=physics QOS=normal JobState={state} Reason=None Dependency=(null) Requeue=1 "
    "Restarts=0 BatchFlag=1 Reboot=0 ExitCode=3:0 RunTime=00:00:01 TimeLimit={limit} "
    "SubmitTime=1794804844 EligibleTime=1794804844 StartTime=1794804845 EndTime=1794804850 "
    "Partition=normal NodeList={nodes} NumNodes=2-4 NumCPUs=4 NumTasks=N/A "
    "TRES=cpu=4,mem=2G,node=2 MinMemoryNode=1G Features=(null) "
    "Command=/home/ann/my job.sh WorkDir=/home/ann/a b "
    "Comment=JobState=FAILED StdErr=/x StdIn=/dev/null StdOut=/x Power= \n"
)


def text_of(**told: object) -> str:
    usual = {"id": 7, "place": "", "name": "x", "state": "COMPLETED", "limit": "1-00:00:00"}
    return JOB.format(**(usual | {"nodes": "n[1-2]"} | told))


def rows(text: str) -> list[dict[str, object]]:
    numbered = list(enumerate(job_records(text), start=1))
    return batch_of(numbered, context=Context(now=NOW), cluster="lab").jobs.rows(named=True)


class TestScontrolText:
    def test_a_job(self) -> None:
        [job] = rows(text_of(name="two words, é"))
        assert job["job_name"] == "two words, é"
        assert (job["user"], job["uid"], job["gid"]) == ("ann", 1000, 100)
        assert (job["state"], job["exit_code"], job["exit_signal"]) == ("COMPLETED", 3, 0)
        assert (job["time_limit_s"], job["time_unlimited"]) == (86400, False)
        assert (job["executable"], job["work_dir"]) == ("/home/ann/my job.sh", "/home/ann/a b")
        assert (job["alloc_cpus"], job["alloc_memory_mb"], job["req_nodes"]) == (4, 2048, 2)
        assert job["req_memory_per_node_mb"] == 1024
        assert job["end_time"] == datetime(2026, 11, 16, 4, 54, 10, tzinfo=UTC)

    def test_one_that_waits_tells_what_it_asked_for(self) -> None:
        [job] = rows(text_of(state="PENDING", nodes="", limit="UNLIMITED"))
        assert (job["req_cpus"], job["req_memory_mb"]) == (4, 2048)
        assert (job["time_unlimited"], job["start_time"]) == (True, None)

    def test_names_with_line_ends_and_columns_in_them(self) -> None:
        name = "a\nb JobState=FAILED\nJobId=9 x"
        jobs = rows(text_of(name=name) + text_of(id=8, name="c"))
        assert [(job["job_id"], job["job_name"], job["state"]) for job in jobs] == [
            (7, name, "COMPLETED"),
            (8, "c", "COMPLETED"),
        ]

    def test_places_in_arrays_and_components(self) -> None:
        array, rest, het = rows(
            text_of(place="ArrayJobId=5 ArrayTaskId=2 ArrayTaskThrottle=2 ")
            + text_of(id=8, place="ArrayJobId=8 ArrayTaskId=5-9 ", state="PENDING", nodes="")
            + text_of(id=9, place="HetJobId=8 HetJobOffset=1 HetJobIdSet=8-9 ")
        )
        assert (array["array_job_id"], array["array_task_id"]) == (5, 2)
        assert (rest["array_job_id"], rest["array_task_id"]) == (8, None)
        assert (het["het_job_id"], het["het_offset"]) == (8, 1)

    def test_what_is_no_job_is_set_aside(self) -> None:
        numbered = list(enumerate(job_records("slurm says\n" + text_of()), start=1))
        batch = batch_of(numbered, context=Context(now=NOW), cluster="lab")
        assert (batch.jobs.height, batch.rejects.height) == (1, 1)
        assert job_records("No jobs in the system\n") == ["No jobs in the system"]

    def test_nodes_and_partitions(self) -> None:
        line = (
            "NodeName=n1 CPUAlloc=1 CPUTot=8 AvailableFeatures=a,b Gres=gpu:a100:2,gpu:2 "
            "OS=Linux 6 #1 State=X RealMemory=8000 AllocMem=200 State=DOWN*+DRAIN "
            "Partitions=p,q  CfgTRES=cpu=8 Reason=a b [root@2026-11-16T04:59:23]"
        ).replace("State=X ", "")
        assert nodes_in(f"{line}\n\n") == [
            Node(
                "n1", ("DOWN", "DRAIN", "NOT_RESPONDING"), 8, 8000, 4, 1, 200, ("a", "b"),
                ("p", "q"), "a b",
            )
        ]  # fmt: skip
        [partition] = partitions_in(
            "PartitionName=p DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=n1 "
            "State=DOWN TotalCPUs=8 TotalNodes=1 MaxMemPerCPU=100 TRES=cpu=8,mem=2T\n"
        )
        assert (partition.is_up, partition.max_time_s, partition.default_time_s) == (
            False,
            None,
            None,
        )
        assert (partition.max_memory_per_cpu_mb, partition.total_memory_mb) == (100, 2 << 20)
        assert cluster_in("X = 1\nClusterName             = lab\n") == "lab"
        assert cluster_in("") is None

    def test_a_record_without_a_name_is_a_bad_one(self) -> None:
        for record in ({}, "x", None):
            with pytest.raises(BadRecord):
                partition_of(record)
