from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from premortem.jobs.fields import BY_NAME
from premortem.testing.synthetic import SyntheticCluster
from premortem.testing.writers import SACCT_COLUMNS, write_sacct, write_swf

SUBMIT = datetime(2026, 1, 5, 8, 0, 0, tzinfo=UTC)
JOB: dict[str, object] = {
    "cluster": "tin",
    "job_id": 123,
    "submit_time": SUBMIT,
    "eligible_time": SUBMIT,
    "start_time": SUBMIT + timedelta(minutes=1),
    "end_time": SUBMIT + timedelta(days=1, hours=2, minutes=1),
    "user": "ada",
    "uid": 2001,
    "group": "astro",
    "gid": 501,
    "account": "astro",
    "partition": "batch",
    "qos": "normal",
    "job_name": "align",
    "work_dir": "/scratch/ada",
    "submit_line": "sbatch -n 4 align.sbatch",
    "req_nodes": 2,
    "req_cpus": 8,
    "req_tasks": 4,
    "req_memory_mb": 48_000.0,
    "req_tres": "billing=8,cpu=8,mem=48000M,node=2",
    "time_limit_s": 172_800,
    "time_unlimited": False,
    "alloc_nodes": 2,
    "alloc_cpus": 8,
    "alloc_tres": "billing=8,cpu=8,mem=48000M,node=2",
    "node_list": "cn[007-008]",
    "state": "COMPLETED",
    "step_state": "COMPLETED",
    "exit_code": 0,
    "exit_signal": 0,
    "derived_exit_code": 0,
    "derived_exit_signal": 0,
    "elapsed_s": 93_600,
    "cpu_user_s": 90_000.25,
    "cpu_system_s": 65.5,
    "cpu_total_s": 90_065.75,
    "max_rss_mb": 12_345 / 1024,
    "avg_disk_read_mb": 1.5,
    "avg_disk_write_mb": 1024.0,
    "energy_j": 1234.0,
}
NEVER_STARTED: dict[str, object] = {
    "start_time": None,
    "alloc_nodes": None,
    "alloc_cpus": None,
    "alloc_tres": None,
    "node_list": None,
    "step_state": None,
    "elapsed_s": 0,
    "cpu_user_s": 0.0,
    "cpu_system_s": 0.0,
    "cpu_total_s": 0.0,
    "max_rss_mb": None,
    "avg_disk_read_mb": None,
    "avg_disk_write_mb": None,
    "energy_j": None,
    "state": "CANCELLED",
}


def frame(*changes: dict[str, object]) -> pl.DataFrame:
    schema = {name: BY_NAME[name].kind.dtype for change in changes for name in JOB | change}
    return pl.DataFrame([JOB | change for change in changes], schema=schema)


def sacct(path: Path, *changes: dict[str, object], steps: bool = False) -> list[dict[str, str]]:
    write_sacct([frame(*changes)], path, steps=steps)
    header, *lines = path.read_text().splitlines()
    return [dict(zip(header.split("|"), line.split("|"), strict=True)) for line in lines]


def test_a_job_line_reads_as_sacct_prints_it(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    assert write_sacct([frame({})], path) == 1
    header, line = path.read_text().splitlines()
    assert tuple(header.split("|")) == SACCT_COLUMNS
    assert line == (
        "123|123|tin|batch|normal|astro|astro|501|ada|2001|2026-01-05T08:00:00|2026-01-05T08:00:00"
        "|2026-01-05T08:01:00|2026-01-06T10:01:00|1-02:00:00|0:0|0:0|COMPLETED|2|8|8|2|48000M"
        "|billing=8,cpu=8,mem=48000M,node=2|billing=8,cpu=8,mem=48000M,node=2|2-00:00:00"
        "|cn[007-008]|align|/scratch/ada|sbatch -n 4 align.sbatch|None|1-01:00:00|01:05.500"
        "|1-01:01:05|12345K|1.50M|1024.00M|1234"
    )


def test_the_header_is_left_out_on_request(tmp_path: Path) -> None:
    write_sacct([frame({}), frame({}, {})], tmp_path / "sacct.txt", header=False)
    assert len((tmp_path / "sacct.txt").read_text().splitlines()) == 3


def test_an_array_task_shows_its_array_and_its_own_id(tmp_path: Path) -> None:
    (line,) = sacct(tmp_path / "a", {"job_id": 107, "array_job_id": 100, "array_task_id": 7})
    assert (line["JobID"], line["JobIDRaw"]) == ("100_7", "107")


def test_a_job_cancelled_while_pending(tmp_path: Path) -> None:
    orphan = NEVER_STARTED | {"eligible_time": None, "reason": "DependencyNeverSatisfied"}
    line, other = sacct(tmp_path / "a", NEVER_STARTED, orphan)
    assert line["State"] == "CANCELLED by 2001"
    assert (line["Start"], line["End"]) == ("None", "2026-01-06T10:01:00")
    assert (line["NodeList"], line["AllocTRES"]) == ("None assigned", "")
    assert (line["NNodes"], line["NCPUS"], line["Elapsed"]) == ("2", "0", "00:00:00")
    assert (line["MaxRSS"], line["ConsumedEnergyRaw"]) == ("", "")
    assert (other["State"], other["Eligible"]) == ("CANCELLED", "Unknown")
    assert other["Reason"] == "DependencyNeverSatisfied"


@pytest.mark.parametrize(
    ("change", "column", "text"),
    [
        ({"time_limit_s": None, "time_unlimited": True}, "Timelimit", "UNLIMITED"),
        ({"time_limit_s": None}, "Timelimit", "Partition_Limit"),
        ({"time_limit_s": 1800}, "Timelimit", "00:30:00"),
        ({"req_memory_mb": 4096.0}, "ReqMem", "4G"),
        ({"req_memory_mb": 2.0 * 1024**2}, "ReqMem", "2T"),
        ({"max_rss_mb": 12.0}, "MaxRSS", "12M"),
        ({"max_rss_mb": 0.0}, "MaxRSS", "0"),
        ({"exit_code": 0, "exit_signal": 11}, "ExitCode", "0:11"),
        ({"derived_exit_signal": 125}, "DerivedExitCode", "0:125"),
        ({"cpu_total_s": 0.0}, "TotalCPU", "00:00:00"),
        ({"cpu_total_s": 59.0}, "TotalCPU", "00:00:59"),
        ({"cpu_total_s": 0.026}, "TotalCPU", "00:00.026"),
        ({"cpu_total_s": 3600.5}, "TotalCPU", "01:00:00"),
        ({"avg_disk_read_mb": 0.004}, "AveDiskRead", "0.00M"),
    ],
)
def test_spellings(tmp_path: Path, change: dict[str, object], column: str, text: str) -> None:
    (line,) = sacct(tmp_path / "a", change)
    assert line[column] == text


def test_steps_follow_their_job_and_carry_its_usage(tmp_path: Path) -> None:
    job, batch, extern, after = sacct(tmp_path / "a", {}, NEVER_STARTED, steps=True)
    assert [line["JobID"] for line in (job, batch, extern)] == ["123", "123.batch", "123.extern"]
    assert after["Start"] == "None"
    assert (job["MaxRSS"], job["AveDiskRead"]) == ("", "")
    assert (batch["MaxRSS"], batch["AveDiskRead"]) == ("12345K", "1.50M")
    assert batch["TotalCPU"] == job["TotalCPU"]
    assert (batch["NodeList"], batch["AllocTRES"]) == ("cn007", "cpu=8,mem=48000M,node=2")
    assert (batch["JobName"], batch["User"], batch["Partition"]) == ("batch", "", "")
    assert (extern["State"], extern["ExitCode"]) == ("COMPLETED", "0:0")


def test_an_array_task_names_its_steps_both_ways(tmp_path: Path) -> None:
    change = {"job_id": 107, "array_job_id": 100, "array_task_id": 7}
    _, batch, _ = sacct(tmp_path / "a", change, steps=True)
    assert (batch["JobID"], batch["JobIDRaw"]) == ("100_7.batch", "107.batch")


def test_a_job_stopped_from_outside_has_a_cancelled_batch_step(tmp_path: Path) -> None:
    change: dict[str, object] = {"state": "TIMEOUT", "step_state": "CANCELLED"}
    job, batch, _ = sacct(tmp_path / "a", change, steps=True)
    assert (job["State"], batch["State"], batch["ExitCode"]) == ("TIMEOUT", "CANCELLED", "0:15")


def test_a_step_out_of_memory_inside_a_failed_job_has_its_own_line(tmp_path: Path) -> None:
    change: dict[str, object] = {
        "state": "FAILED",
        "step_state": "OUT_OF_MEMORY",
        "exit_code": 1,
        "derived_exit_signal": 125,
    }
    job, batch, _, step = sacct(tmp_path / "a", change, steps=True)
    assert (job["State"], job["ExitCode"], job["DerivedExitCode"]) == ("FAILED", "1:0", "0:125")
    assert (batch["State"], batch["ExitCode"], batch["TotalCPU"]) == ("FAILED", "1:0", "00:00:00")
    assert (step["JobID"], step["JobName"]) == ("123.0", "align")
    assert (step["State"], step["ExitCode"]) == ("OUT_OF_MEMORY", "0:125")
    assert (step["MaxRSS"], step["TotalCPU"]) == ("12345K", job["TotalCPU"])


@pytest.mark.parametrize("steps", [False, True])
def test_a_whole_cluster_has_the_same_columns_on_every_line(tmp_path: Path, steps: bool) -> None:
    cluster = SyntheticCluster(jobs=2000, seed=3)
    assert write_sacct(cluster.frames(batch=300), tmp_path / "a", steps=steps) == 2000
    header, *lines = (tmp_path / "a").read_text().splitlines()
    assert {line.count("|") for line in lines} == {header.count("|")}
    raw = [line.split("|")[1] for line in lines]
    own = [job for job in raw if "." not in job]
    assert own == [str(job) for f in cluster.frames() for job in f["job_id"]]
    started = sum(f["start_time"].count() for f in cluster.frames())
    assert sum(job.endswith(".batch") for job in raw) == (started if steps else 0)
    write_sacct(cluster.frames(batch=2000), tmp_path / "b", steps=steps)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_swf_lines(tmp_path: Path) -> None:
    later = {"submit_time": SUBMIT + timedelta(seconds=30), "user": "ben", "state": "TIMEOUT"}
    frames = [frame({}), frame(later, NEVER_STARTED | {"time_limit_s": None})]
    assert write_swf(frames, tmp_path / "log.swf") == 3
    lines = (tmp_path / "log.swf").read_text().splitlines()
    header = [line for line in lines if line.startswith(";")]
    for entry in (
        "; Version: 2.2",
        "; Computer: tin",
        "; MaxJobs: 3",
        f"; UnixStartTime: {int(SUBMIT.timestamp())}",
        "; TimeZoneString: UTC",
        "; Queue: 1 batch",
    ):
        assert entry in header
    assert lines[len(header) :] == [
        "1 0 60 93600 8 11258.22 6172 8 172800 6144000 1 1 1 1 1 -1 -1 -1",
        "2 30 30 93600 8 11258.22 6172 8 172800 6144000 0 2 1 1 1 -1 -1 -1",
        "3 0 93660 -1 -1 -1.00 -1 8 -1 6144000 5 1 1 1 1 -1 -1 -1",
    ]


def test_swf_is_compressed_by_name_and_keeps_its_numbers_across_frames(tmp_path: Path) -> None:
    cluster = SyntheticCluster(jobs=3000, seed=1)
    write_swf(cluster.frames(batch=500), tmp_path / "a.swf")
    write_swf(cluster.frames(), tmp_path / "b.swf.gz")
    unpacked = gzip.decompress((tmp_path / "b.swf.gz").read_bytes())
    assert unpacked == (tmp_path / "a.swf").read_bytes()
    rows = [line.split() for line in unpacked.decode().splitlines() if line[0] != ";"]
    assert [int(row[0]) for row in rows] == list(range(1, 3001))
    assert {len(row) for row in rows} == {18}
    users = [user for f in cluster.frames() for user in f["user"]]
    assert len({(user, row[11]) for user, row in zip(users, rows, strict=True)}) == len(set(users))
    assert all(int(number) >= 1 for row in rows for number in row[11:15])


def test_no_jobs_make_a_log_of_none(tmp_path: Path) -> None:
    assert write_sacct([], tmp_path / "a") == 0
    assert write_swf([], tmp_path / "b") == 0
    assert (tmp_path / "a").read_text().splitlines() == ["|".join(SACCT_COLUMNS)]
    assert "; MaxJobs: 0\n" in (tmp_path / "b").read_text()
