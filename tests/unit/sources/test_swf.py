"""Logs in the Standard Workload Format."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from premortem.errors import InvalidInput
from premortem.sources.files import InputFile
from premortem.sources.formats import SwfStatus
from premortem.sources.port import Context
from premortem.sources.swf import COLUMNS, SwfSource

NOW = datetime(2026, 1, 10, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ORIGIN = datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
HEADER = """\
; Version: 2.2
; Computer: IBM SP2
; UnixStartTime: 1000000000
; MaxProcs: 128
; Queue: 1 express
; Queue: 2 long jobs
; Partition: 1 batch
"""


def line(job=1, **values):
    """One line of a job that ran for ten minutes, changed as told."""
    usual = {
        "submit": 100, "wait": 20, "run": 600, "procs": 4, "cpu": 550.5, "memory": 2048,
        "req_procs": 8, "req_time": 3600, "req_memory": 4096, "status": 1, "user": 7, "group": 3,
        "executable": 12, "queue": 1, "partition": 1, "preceding": -1, "think": -1,
    }  # fmt: skip
    cells = {"job": job} | usual | values
    return " ".join(str(cells[name]) for name in COLUMNS) + "\n"


def load(tmp_path, *lines, header=HEADER, status=SwfStatus.AUTO, name="log.swf", cluster=None):
    """Jobs, rejects and the source itself."""
    path = tmp_path / name
    path.write_text(header + "".join(lines))
    context = Context(cluster=cluster, now=NOW, seen_at=NOW)
    with InputFile(path) as file:
        source = SwfSource(file, context, status)
        batches = list(source.batches())
    jobs = [job for batch in batches for job in batch.jobs.rows(named=True)]
    return jobs, pl.concat(batch.rejects for batch in batches).rows(), source


def one(tmp_path, *args, **options):
    [job], rejects, _ = load(tmp_path, *args, **options)
    assert rejects == []
    return job


def reason(tmp_path, bad, **options):
    jobs, [(number, why, text)], _ = load(tmp_path, line(1), bad, line(3), **options)
    assert [job["job_id"] for job in jobs] == [1, 3]
    assert number == HEADER.count("\n") + 2
    assert text == bad.strip()
    return why


def test_every_column_finds_its_field(tmp_path):
    job = one(tmp_path, line(42, preceding=41, think=5))
    assert {name: value for name, value in job.items() if value is not None} == {
        "cluster": "log", "job_id": 42,
        "submit_time": ORIGIN + timedelta(seconds=100),
        "start_time": ORIGIN + timedelta(seconds=120),
        "end_time": ORIGIN + timedelta(seconds=720),
        "user": "7", "group": "3", "executable": "12", "partition": "batch",
        "alloc_partition": "batch", "qos": "express",
        "dependency": "after:41", "req_cpus": 8, "time_limit_s": 3600,
        "req_memory_per_cpu_mb": 4.0, "req_memory_mb": 32.0,
        "alloc_cpus": 4, "state": "COMPLETED", "elapsed_s": 600, "cpu_total_s": 2202.0,
        "max_rss_mb": 2.0, "source": "swf", "api_version": "2.2", "seen_at": NOW,
    }  # fmt: skip


def test_the_header_tells_facts_and_names(tmp_path):
    _, _, source = load(tmp_path, line())
    assert source.header.facts["Computer"] == "IBM SP2"
    assert source.header.facts["MaxProcs"] == "128"
    assert source.header.queues == {1: "express", 2: "long jobs"}
    assert source.notes[0].startswith("a log of IBM SP2")


@pytest.mark.parametrize("number", ["9" * 25, "²", "one", ""])
def test_a_queue_of_no_number_is_passed_over(tmp_path, number):
    _, rejects, source = load(tmp_path, line(), header=f"{HEADER}; Queue: {number} odd\n")
    assert source.header.queues == {1: "express", 2: "long jobs"}
    assert rejects == []


def test_queues_without_a_name_keep_their_number(tmp_path):
    job = one(tmp_path, line(queue=9, partition=5))
    assert (job["qos"], job["partition"]) == ("9", "5")


def test_without_a_partition_the_queue_stands_for_it(tmp_path):
    job = one(tmp_path, line(queue=2, partition=-1))
    assert (job["qos"], job["partition"]) == ("long jobs", "long jobs")


def test_minus_one_is_unknown(tmp_path):
    unknown = dict.fromkeys(COLUMNS[2:], -1)
    job = one(tmp_path, line(**unknown | {"status": 1}))
    told = {name for name, value in job.items() if value is not None}
    assert told == {
        "cluster", "job_id", "submit_time", "state", "source", "api_version", "seen_at",
    }  # fmt: skip


def test_an_unknown_wait_leaves_start_and_end_open(tmp_path):
    job = one(tmp_path, line(wait=-1))
    assert (job["start_time"], job["end_time"], job["elapsed_s"]) == (None, None, 600)


def test_a_job_that_never_started_has_an_end_and_no_start(tmp_path):
    job = one(tmp_path, line(run=0, procs=0, cpu=0, status=5))
    assert (job["state"], job["start_time"], job["alloc_cpus"]) == ("CANCELLED", None, None)
    assert job["end_time"] == ORIGIN + timedelta(seconds=120)


def test_a_job_that_ran_for_no_time_on_processors_did_start(tmp_path):
    job = one(tmp_path, line(run=0, procs=4, status=0))
    assert job["start_time"] == job["end_time"] == ORIGIN + timedelta(seconds=120)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (0, "FAILED"), (1, "COMPLETED"), (2, "REQUEUED"), (3, "COMPLETED"), (4, "FAILED"),
        (5, "CANCELLED"), (-1, None),
    ],
)  # fmt: skip
def test_the_formats_own_status(tmp_path, status, state):
    job = one(tmp_path, line(status=status))
    assert (job["state"], job["exit_code"]) == (state, None)


@pytest.mark.parametrize(
    ("status", "state", "code"),
    [
        (0, "COMPLETED", 0),
        (1, "FAILED", 1),
        (137, "FAILED", 137),
        (-9, "FAILED", -9),
        (-1, None, None),
    ],
)
def test_exit_codes_in_place_of_a_status(tmp_path, status, state, code):
    job = one(tmp_path, line(status=status), status=SwfStatus.EXIT_CODE)
    assert (job["state"], job["exit_code"]) == (state, code)


def test_a_strange_status_means_exit_codes_and_is_noted(tmp_path):
    lines = [line(n, status=0) for n in range(1, 5)] + [line(n, status=137) for n in (5, 6, 7)]
    jobs, rejects, source = load(tmp_path, *lines)
    assert [job["state"] for job in jobs] == ["COMPLETED"] * 4 + ["FAILED"] * 3
    assert rejects == []
    assert source.notes[-1] == (
        "status 137 is none of the format's: the column is read as exit codes "
        "(--swf-status archive to insist)"
    )


def test_a_few_strange_statuses_do_not_change_how_the_rest_is_read(tmp_path):
    jobs, rejects, _ = load(tmp_path, *[line(n, status=1) for n in (1, 2, 3)], line(4, status=7))
    assert {job["state"] for job in jobs} == {"COMPLETED"}
    assert len(rejects) == 1


def test_one_strange_status_in_a_thousand_is_garbage(tmp_path):
    lines = [line(number, status=0) for number in range(1, 1200)]
    jobs, rejects, source = load(tmp_path, *lines, line(1200, status=77))
    assert {job["state"] for job in jobs} == {"FAILED"}
    assert [number for number, _, _ in rejects] == [HEADER.count("\n") + 1200]
    assert not any("exit codes" in note for note in source.notes)


def test_an_unknown_status_is_bad_when_the_archives_are_insisted_on(tmp_path):
    why = reason(tmp_path, line(2, status=9), status=SwfStatus.ARCHIVE)
    assert why.startswith("status is '9', expected -1 to 5 (--swf-status exit-code")


def test_wrong_column_counts(tmp_path):
    assert reason(tmp_path, line(2).rsplit(" ", 1)[0] + "\n") == "18 columns expected, 17 found"
    assert reason(tmp_path, line(2).strip() + " 5\n") == "18 columns expected, 19 found"


@pytest.mark.parametrize("word", ["soon", "nan", "inf", "1,5", "0x10"])
def test_what_is_no_number(tmp_path, word):
    assert reason(tmp_path, line(2, wait=word)) == f"wait is '{word}', expected a number or -1"


@pytest.mark.parametrize("name", ["wait", "run", "procs", "req_time", "user"])
def test_negative_numbers(tmp_path, name):
    assert reason(tmp_path, line(2, **{name: -2})) == f"{name} is '-2', expected a number or -1"


def test_a_job_without_number_or_time_is_bad(tmp_path):
    assert reason(tmp_path, line(-1)) == "no job id"
    assert reason(tmp_path, line(2, submit=-1)) == "no submit time"


def test_blanks_tabs_and_empty_lines_do_not_matter(tmp_path):
    spaced = "\n   " + line(5).replace(" ", " \t  ").rstrip("\n") + "   \n\n"
    assert one(tmp_path, spaced)["job_id"] == 5


def test_without_a_header_times_count_from_1970_and_that_is_noted(tmp_path):
    [job], rejects, source = load(tmp_path, line(submit=0, wait=0), header="")
    assert job["submit_time"] == EPOCH
    assert rejects == []
    assert source.notes == [
        "the header has no UnixStartTime: times are counted from 1970-01-01 UTC"
    ]


def test_a_start_time_that_is_none_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="UnixStartTime is 'soon'"):
        load(tmp_path, line(), header="; UnixStartTime: soon\n")


@pytest.mark.parametrize(
    ("name", "cluster", "expected"),
    [
        ("SDSC-SP2-1998-4.2-cln.swf", None, "SDSC-SP2-1998-4.2-cln"),
        ("atlas.swf.txt", None, "atlas"),
        ("log.swf", "mine", "mine"),
    ],
)
def test_the_cluster_is_named_by_the_file_unless_told(tmp_path, name, cluster, expected):
    assert one(tmp_path, line(), name=name, cluster=cluster)["cluster"] == expected
