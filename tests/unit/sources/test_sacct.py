"""Dumps of sacct, with or without header."""

from datetime import UTC, datetime

import polars as pl
import pytest

from premortem.errors import InvalidInput
from premortem.sources import files
from premortem.sources.files import InputFile
from premortem.sources.port import Context
from premortem.sources.sacct import SacctSource

NOW = datetime(2026, 1, 10, tzinfo=UTC)
SUBMIT = datetime(2026, 1, 5, 8, tzinfo=UTC)


NO_CLUSTER = "no column Cluster: the jobs are filed under"


def load(tmp_path, text, *, columns=None, separator="|", **context):
    """Jobs, rejects and notes, but for the one about a missing column Cluster."""
    path = tmp_path / "dump"
    path.write_text(text)
    with InputFile(path) as file:
        context = Context(now=NOW, seen_at=NOW, **context)
        source = SacctSource(file, context, columns, separator)
        batches = list(source.batches())
    jobs = [job for batch in batches for job in batch.jobs.rows(named=True)]
    rejects = [reject for batch in batches for reject in batch.rejects.rows()]
    return jobs, rejects, [note for note in source.notes if not note.startswith(NO_CLUSTER)]


def row(tmp_path, *, zone="UTC", **cells):
    """The one job of a dump with these columns."""
    cells = {"JobID": "100", "Submit": "2026-01-05T08:00:00"} | cells
    text = "|".join(cells) + "\n" + "|".join(cells.values()) + "\n"
    [job], rejects, _ = load(tmp_path, text, zone=zone)
    assert rejects == []
    return job


def refusal(tmp_path, **cells):
    """Why the one job of a dump with these columns is bad."""
    cells = {"JobID": "100", "Submit": "2026-01-05T08:00:00"} | cells
    text = "|".join(cells) + "\n" + "|".join(cells.values()) + "\n"
    jobs, [(number, reason, _)], _ = load(tmp_path, text)
    assert (jobs, number) == ([], 2)
    return reason


def test_every_column_finds_its_field(tmp_path):
    job = row(
        tmp_path,
        JobIDRaw="100", Cluster="lab", Eligible="2026-01-05T08:01:00", Start="2026-01-05T08:05:00",
        End="2026-01-05T08:15:00", User="ada", UID="1001", Group="staff", GID="50",
        Account="physics", Partition="long", QOS="normal", JobName="relax", WorkDir="/home/ada",
        SubmitLine="sbatch a.sh", Constraints="haswell", Reservation="maint", Priority="1234",
        ReqNodes="2", ReqCPUS="8", ReqMem="4G", TimelimitRaw="90", NNodes="2", NCPUS="8",
        NodeList="n[1-2]", Restarts="1", State="FAILED", ExitCode="3:0", DerivedExitCode="0:125",
        Reason="NonZeroExitCode", ElapsedRaw="600", UserCPU="01:00", SystemCPU="00:01.500",
        TotalCPU="01:01.500", MaxRSS="1024K", AveDiskRead="2M", AveDiskWrite="1M",
        ConsumedEnergy="1.5K",
    )  # fmt: skip
    assert {name: value for name, value in job.items() if value is not None} == {
        "cluster": "lab", "job_id": 100, "submit_time": SUBMIT,
        "eligible_time": datetime(2026, 1, 5, 8, 1, tzinfo=UTC),
        "start_time": datetime(2026, 1, 5, 8, 5, tzinfo=UTC),
        "end_time": datetime(2026, 1, 5, 8, 15, tzinfo=UTC),
        "user": "ada", "uid": 1001, "group": "staff", "gid": 50, "account": "physics",
        "partition": "long",
        "alloc_partition": "long", "qos": "normal", "job_name": "relax", "work_dir": "/home/ada",
        "submit_line": "sbatch a.sh", "features": "haswell", "reservation": "maint",
        "priority": 1234, "req_nodes": 2, "req_cpus": 8, "req_memory_mb": 4096.0,
        "time_limit_s": 5400, "time_unlimited": False, "alloc_nodes": 2, "alloc_cpus": 8,
        "node_list": "n[1-2]", "restart_count": 1, "state": "FAILED", "exit_code": 3,
        "exit_signal": 0, "derived_exit_code": 0, "derived_exit_signal": 125,
        "reason": "NonZeroExitCode", "elapsed_s": 600, "cpu_user_s": 60.0, "cpu_system_s": 1.5,
        "cpu_total_s": 61.5, "max_rss_mb": 1.0, "avg_disk_read_mb": 2.0, "avg_disk_write_mb": 1.0,
        "energy_j": 1500.0, "source": "sacct", "seen_at": NOW,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "JobID|User|Submit|State\n100|ada|2026-01-05T08:00:00|COMPLETED\n",
        "state|SUBMIT|user|jobid\nCOMPLETED|2026-01-05T08:00:00|ada|100\n",
        "JobID|User|Submit|State|\n100|ada|2026-01-05T08:00:00|COMPLETED|\n",
        "\n\nJobID|User|Submit|State\r\n\r\n100|ada|2026-01-05T08:00:00|COMPLETED",
        "JobIDRaw|User|Submit|State\n100|ada|2026-01-05T08:00:00|COMPLETED\n",
    ],
    ids=["parsable2", "other order and case", "parsable", "blank lines", "raw numbers only"],
)
def test_the_header_tells_the_columns(tmp_path, text):
    [job], rejects, notes = load(tmp_path, text)
    assert (rejects, notes) == ([], [])
    assert job["job_id"] == 100
    assert (job["user"], job["state"], job["submit_time"]) == ("ada", "COMPLETED", SUBMIT)


@pytest.mark.parametrize("end", ["", "|"], ids=["parsable2", "parsable"])
def test_without_a_header_the_columns_are_given(tmp_path, end):
    text = f"100|ada|2026-01-05T08:00:00{end}\n101|bob|2026-01-05T08:00:00{end}\n"
    jobs, rejects, _ = load(tmp_path, text, columns=["JobID%30", "User", " Submit%-20"])
    assert [(job["job_id"], job["user"]) for job in jobs] == [(100, "ada"), (101, "bob")]
    assert rejects == []


def test_an_empty_last_column_is_not_a_trailing_bar(tmp_path):
    text = "100|2026-01-05T08:00:00|\n101|2026-01-05T08:00:00|bob\n"
    jobs, rejects, _ = load(tmp_path, text, columns=["JobID", "Submit", "User"])
    assert [job["user"] for job in jobs] == [None, "bob"]
    assert rejects == []


def test_without_header_and_columns_the_dump_is_refused_with_advice(tmp_path):
    with pytest.raises(InvalidInput, match=r"no header line: .* --columns JobID,User,Submit"):
        load(tmp_path, "100|ada|2026-01-05T08:00:00\n")


@pytest.mark.parametrize(
    ("header", "columns"),
    [("JobID|User|State", None), ("JobIDRaw|Start", None), ("1|2|3", ["User", "Submit", "State"])],
)
def test_without_the_columns_of_the_key_the_dump_is_refused(tmp_path, header, columns):
    with pytest.raises(InvalidInput, match=r"JobID \(or JobIDRaw\) and Submit; found "):
        load(tmp_path, header + "\n", columns=columns)


def test_a_column_named_twice_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="columns named twice: User"):
        load(tmp_path, "JobID|User|Submit|User\n")


def test_columns_nobody_reads_are_noted(tmp_path):
    _, _, notes = load(tmp_path, "JobID|Submit|AveVMSize|Layout\n")
    assert notes == ["columns not used: AveVMSize, Layout"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("48000Mn", {"req_memory_per_node_mb": 48000, "req_memory_mb": 96000}),
        ("100Mc", {"req_memory_per_cpu_mb": 100, "req_memory_mb": 800}),
        ("2Gc", {"req_memory_per_cpu_mb": 2048, "req_memory_mb": 16384}),
        ("2147486448Mn", {"req_memory_per_cpu_mb": 2800, "req_memory_mb": 22400}),
        ("2147683648Mn", {"req_memory_per_cpu_mb": 200000, "req_memory_mb": 1600000}),
        ("2097156Gn", {"req_memory_per_cpu_mb": 4096, "req_memory_mb": 32768}),
        ("4G", {"req_memory_mb": 4096}),
        ("3P", {"req_memory_mb": 3 * 2**30}),
        ("0n", {"req_memory_per_node_mb": 0, "req_memory_mb": 0}),
        ("", {}),
    ],
)
def test_memory_in_every_spelling(tmp_path, text, expected):
    job = row(tmp_path, ReqNodes="2", ReqCPUS="8", ReqMem=text)
    told = {name: job[name] for name in job if "memory" in name and job[name] is not None}
    assert told == expected


@pytest.mark.parametrize(
    ("text", "limit", "unlimited"),
    [
        ("1-00:00:00", 86400, False),
        ("00:30:00", 1800, False),
        ("UNLIMITED", None, True),
        ("Partition_Limit", None, False),
        ("", None, None),
    ],
)
def test_time_limits(tmp_path, text, limit, unlimited):
    job = row(tmp_path, Timelimit=text)
    assert (job["time_limit_s"], job["time_unlimited"]) == (limit, unlimited)


def test_words_that_mean_nothing_are_absent(tmp_path):
    job = row(
        tmp_path,
        State="PENDING", Start="Unknown", End="Unknown", Eligible="None", User="   ",
        Account="(null)", NodeList="None assigned", Reason="None",
    )  # fmt: skip
    for name in (
        "start_time",
        "end_time",
        "eligible_time",
        "user",
        "account",
        "node_list",
        "reason",
    ):
        assert job[name] is None


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"JobID": "100"}, (100, None, None, None, None)),
        ({"JobID": "100_7", "JobIDRaw": "107"}, (107, 100, 7, None, None)),
        ({"JobID": "100_7"}, (100 + 8 * 2**32, 100, 7, None, None)),
        ({"JobID": "100_0"}, (100 + 2**32, 100, 0, None, None)),
        ({"JobID": "100_[1-5]", "JobIDRaw": "100"}, (100, 100, None, None, None)),
        ({"JobID": "100_[1-5%2]"}, (100, 100, None, None, None)),
        ({"JobID": "100+1", "JobIDRaw": "101"}, (101, None, None, 100, 1)),
        ({"JobID": "100+1"}, (101, None, None, 100, 1)),
    ],
)
def test_job_numbers(tmp_path, cells, expected):
    job = row(tmp_path, **cells)
    names = ("job_id", "array_job_id", "array_task_id", "het_job_id", "het_offset")
    assert tuple(job[name] for name in names) == expected


def test_times_are_read_in_the_zone_of_the_cluster(tmp_path):
    job = row(tmp_path, zone="America/Denver", Submit="2026-01-05T01:00:00")
    assert job["submit_time"] == SUBMIT


def test_a_job_cancelled_in_the_queue_never_started(tmp_path):
    job = row(
        tmp_path,
        State="CANCELLED by 1001", Start="2026-01-05T09:00:00", End="2026-01-05T09:00:00",
        Elapsed="00:00:00", NodeList="None assigned", NCPUS="4",
    )  # fmt: skip
    assert (job["state"], job["start_time"], job["alloc_cpus"]) == ("CANCELLED", None, None)
    assert job["end_time"] == datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cells", "gpus"),
    [
        ({"ReqTRES": "cpu=8,gres/gpu=2"}, 2),
        ({"ReqTRES": "cpu=8,gres/gpu:a100=2,gres/gpu:v100=1"}, 3),
        ({"ReqGRES": "gpu:2"}, 2),
        ({"ReqGRES": "gpu:tesla:4"}, 4),
        ({"ReqGRES": "gpu"}, 1),
        ({"ReqGRES": "gpu:tesla,license:2"}, 1),
        ({"ReqGRES": "craynetwork:1,gpu:k80:1,gpu:p100:2"}, 3),
        ({"ReqGRES": "craynetwork:1"}, None),
        ({"ReqGRES": "", "ReqTRES": "cpu=8"}, None),
    ],
)
def test_gpus_are_counted(tmp_path, cells, gpus):
    assert row(tmp_path, **{"ReqGRES": "", **cells})["req_gpus"] == gpus


def test_counts_are_filled_from_the_resources_and_do_not_replace_columns(tmp_path):
    job = row(
        tmp_path,
        State="COMPLETED", ReqCPUS="6", ReqTRES="cpu=8,mem=16G,node=2",
        AllocTRES="cpu=8,mem=32G,node=2,gres/gpu=4",
    )  # fmt: skip
    assert (job["req_cpus"], job["req_nodes"], job["req_memory_mb"]) == (6, 2, 16384)
    assert (job["alloc_cpus"], job["alloc_nodes"], job["alloc_memory_mb"]) == (8, 2, 32768)
    assert job["alloc_gpus"] == 4
    assert job["req_tres"] == "cpu=8,mem=16G,node=2"


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"Submit": "yesterday"}, "Submit is 'yesterday', expected a time such as"),
        ({"Submit": ""}, "no submit time"),
        ({"JobID": "many"}, "no job id"),
        ({"State": "ASLEEP"}, "State is 'ASLEEP', expected one of Slurm's job states"),
        ({"ReqMem": "lotsn"}, "ReqMem is 'lotsn', expected a size"),
        ({"Timelimit": "soon"}, "Timelimit is 'soon', expected a duration"),
        ({"ExitCode": "one"}, "ExitCode is 'one', expected an exit code"),
        ({"NCPUS": "1.5"}, "NCPUS is '1.5', expected a whole number"),
        ({"NCPUS": "-4"}, "alloc_cpus is -4, which is not between"),
        ({"End": "2026-01-04T00:00:00"}, "the job ends before it is submitted"),
        ({"ReqTRES": "cpu=99999999999999999999"}, "req_cpus is "),
    ],
)
def test_a_bad_value_is_named(tmp_path, cells, reason):
    assert refusal(tmp_path, **cells).startswith(reason)


def test_wrong_column_counts_and_repeated_headers(tmp_path):
    header = "JobID|Submit|User\n"
    text = (
        header
        + "1|2026-01-05T08:00:00|a\n"
        + "2|2026-01-05T08:00:00\n"
        + header
        + "3|2026-01-05T08:00:00|b|c\n"
        + "4|2026-01-05T08:00:00|d\n"
    )
    jobs, rejects, _ = load(tmp_path, text)
    assert [job["job_id"] for job in jobs] == [1, 4]
    assert rejects == [
        (3, "3 columns expected, 2 found", "2|2026-01-05T08:00:00"),
        (5, "3 columns expected, 4 found", "3|2026-01-05T08:00:00|b|c"),
    ]


def test_a_header_alone_is_a_dump_of_no_jobs(tmp_path):
    assert load(tmp_path, "JobID|Submit\n") == ([], [], [])
    assert load(tmp_path, "\n") == ([], [], [])


@pytest.mark.parametrize(
    ("given", "own", "expected"),
    [(None, "lab", "lab"), (None, "", "fallback"), ("told", "lab", "told")],
)
def test_the_name_of_the_cluster(tmp_path, given, own, expected):
    text = f"JobID|Submit|Cluster\n1|2026-01-05T08:00:00|{own}\n"
    [job], _, _ = load(tmp_path, text, cluster=given, fallback_cluster="fallback")
    assert job["cluster"] == expected


@pytest.mark.parametrize("size", [16, 50, 64, 200])
def test_blocks_change_nothing(tmp_path, monkeypatch, size):
    lines = ["JobID|Submit|NCPUS|State"]
    lines += [f"{n}|2026-01-05T08:00:00|{n % 5 - (n == 7)}|COMPLETED" for n in range(1, 40)]
    lines[20] = "20|broken"
    text = "\n".join(lines) + "\n"
    whole = load(tmp_path, text)
    monkeypatch.setattr(files, "BLOCK_BYTES", size)
    assert load(tmp_path, text) == whole
    assert [number for number, _, _ in whole[1]] == [21]


def test_the_batches_have_the_schema_of_the_table(tmp_path):
    path = tmp_path / "dump"
    path.write_text("Submit|JobID|ReqMem\n2026-01-05T08:00:00|1|4G\n")
    with InputFile(path) as file:
        [batch] = SacctSource(file, Context(now=NOW)).batches()
    assert batch.jobs.schema["submit_time"] == pl.Datetime("us", "UTC")
    assert batch.jobs.schema["req_memory_mb"] == pl.Float64
    assert batch.read == 1


def test_a_missing_cluster_is_noted_unless_it_is_given(tmp_path):
    path = tmp_path / "dump"
    path.write_text("JobID|Submit\n1|2026-01-05T08:00:00\n")
    for context, noted in ((Context(now=NOW), True), (Context(now=NOW, cluster="lab"), False)):
        with InputFile(path) as file:
            source = SacctSource(file, context)
            list(source.batches())
        assert any(note.startswith(NO_CLUSTER) for note in source.notes) is noted


def test_free_text_in_the_last_column_may_hold_separators(tmp_path):
    text = "JobID|Submit|SubmitLine\n1|2026-01-05T08:00:00|sbatch --wrap 'make | tee log'\n"
    [job], rejects, _ = load(tmp_path, text)
    assert (job["submit_line"], rejects) == ("sbatch --wrap 'make | tee log'", [])
    text = text.replace("Line\n", "Line|\n").replace("log'\n", "log'|\n")
    [job], rejects, _ = load(tmp_path, text)
    assert (job["submit_line"], rejects) == ("sbatch --wrap 'make | tee log'", [])


def test_another_separator(tmp_path):
    text = "JobID^Submit^User\n1^2026-01-05T08:00:00^a|b\n"
    [job], rejects, _ = load(tmp_path, text, separator="^")
    assert (job["user"], rejects) == ("a|b", [])


def test_dumps_of_different_columns_one_behind_another(tmp_path, monkeypatch):
    text = (
        "JobID|Submit|User|Account\n1|2026-01-05T08:00:00|ada|phys\n"
        "JobID|Account|User|Submit\n2|chem|bob|2026-01-05T09:00:00\n"
    )
    for size in (files.BLOCK_BYTES, 20):
        monkeypatch.setattr(files, "BLOCK_BYTES", size)
        jobs, rejects, _ = load(tmp_path, text)
        assert rejects == []
        assert [(j["job_id"], j["user"], j["account"]) for j in jobs] == [
            (1, "ada", "phys"),
            (2, "bob", "chem"),
        ]


def test_a_job_cannot_pass_for_a_header(tmp_path):
    text = (
        "JobID|Submit|User|JobName\n1|2026-01-05T08:00:00|ada|Submit|JobID|User\n"
        "2|2026-01-05T09:00:00|bob|x\n"
    )
    jobs, rejects, _ = load(tmp_path, text)
    assert [(job["job_id"], job["user"]) for job in jobs] == [(1, "ada"), (2, "bob")]
    assert rejects == []


def test_names_are_not_taken_for_empty_words(tmp_path):
    job = row(tmp_path, User="None", JobName="Unknown", Account="(null)")
    assert (job["user"], job["job_name"], job["account"]) == ("None", "Unknown", None)


@pytest.mark.parametrize(
    ("submit", "start", "end"),
    [
        ("2025-10-26T02:40:00", "2025-10-26T02:50:00", "2025-10-26T02:10:00"),
        ("2025-10-26T02:55:00", "2025-10-26T02:05:00", "2025-10-26T02:25:00"),
        ("2025-10-26T01:55:00", "2025-10-26T02:50:00", "2025-10-26T03:10:00"),
    ],
)
def test_the_hour_that_comes_twice_sets_no_job_aside(tmp_path, submit, start, end):
    job = row(tmp_path, zone="Europe/Berlin", Submit=submit, Start=start, End=end, State="FAILED")
    assert job["submit_time"] <= job["start_time"] <= job["end_time"]
    assert (job["end_time"] - job["submit_time"]).total_seconds() < 2.5 * 3600


def test_the_partition_that_ran_the_job_is_kept_apart(tmp_path):
    assert (
        row(tmp_path, State="PENDING", Partition="cpu,gpu", Start="Unknown").get("alloc_partition")
        is None
    )
    job = row(tmp_path, State="FAILED", Partition="gpu", Start="2026-01-05T09:00:00")
    assert (job["partition"], job["alloc_partition"]) == ("gpu", "gpu")


def test_a_submit_line_is_kept_without_secrets(tmp_path):
    line = "sbatch --export=ALL,API_KEY={} x.sh"
    text = f"JobID|Submit|SubmitLine\n1|2026-01-05T08:00:00|{line}\n2|soon|{line}\n"
    [job], [(_, _, shown)], _ = load(tmp_path, text.replace("{}", "hunter2"))
    assert job["submit_line"] == line.format("[redacted]")
    assert shown == f"2|soon|{line.format('[redacted]')}"
