"""Published job tables, read by a mapping."""

from datetime import UTC, datetime

import polars as pl
import pytest

from premortem.errors import InvalidInput
from premortem.sources import files, tables
from premortem.sources.detection import ReadOptions, source_for
from premortem.sources.files import InputFile
from premortem.sources.port import Context

NOW = datetime(2026, 1, 10, tzinfo=UTC)
COLUMNS = '[columns]\njob_id = "id"\nsubmit_time = "submitted"\n'
TIME = "2026-01-05T08:00:00"
NREL_HEADER = (
    "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,"
    "submit_time,start_time,end_time,run_time,state,name,work_dir,submit_line"
)


def load(tmp_path, table, mapping=COLUMNS, *, name="table.csv", **context):
    """Jobs without what is absent, and rejects."""
    path = tmp_path / name
    if isinstance(table, pl.DataFrame):
        table.write_parquet(path)
    else:
        path.write_text(table, newline="")
    wanted = ReadOptions()
    if mapping:
        (tmp_path / "site.toml").write_text(mapping)
        wanted = ReadOptions(mapping=str(tmp_path / "site.toml"))
    with InputFile(path) as file:
        batches = list(source_for(file, wanted, Context(now=NOW, **context)).batches())
    jobs = [job for batch in batches for job in batch.jobs.drop("seen_at").rows(named=True)]
    jobs = [{name: value for name, value in job.items() if value is not None} for job in jobs]
    return jobs, [reject for batch in batches for reject in batch.rejects.rows()]


def cell(tmp_path, field, text, *, told="", top="", **more):
    """What one cell is read as, by a mapping of its column to a field."""
    column = f'{field} = {{column = "x"{told}}}\n'
    [job], rejects = load(tmp_path, f'id,submitted,x\n1,{TIME},"{text}"\n', top + COLUMNS + column)
    assert rejects == []
    return job.get(field)


def refusal(tmp_path, field, text, told=""):
    column = f'{field} = {{column = "x"{told}}}\n'
    jobs, [(number, reason, _)] = load(
        tmp_path, f"id,submitted,x\n1,{TIME},{text}\n", COLUMNS + column
    )
    assert (jobs, number) == ([], 2)
    return reason


def nrel(job, submit, *, start="", end="", run="", state="COMPLETED", memory="0.0"):
    return (
        f"{job},ada,physics,short,normal,3600,2,72,,{memory},{submit},{start},{end},{run},{state},"
        'relax,/home/ada,"sbatch --nodes=2, a.sh"\n'
    )


def test_the_nrel_preset_is_recognised_by_its_header(tmp_path):
    row = nrel(
        77, "2019-07-01 12:00:00", start="2019-07-01 12:10:00", end="2019-07-01 12:40:00",
        run="1800", memory="90000.0",
    )  # fmt: skip
    [job], rejects = load(tmp_path, f"{NREL_HEADER}\n{row}", None)
    assert rejects == []
    assert job == {
        "cluster": "eagle", "job_id": 77,
        "submit_time": datetime(2019, 7, 1, 18, tzinfo=UTC),
        "start_time": datetime(2019, 7, 1, 18, 10, tzinfo=UTC),
        "end_time": datetime(2019, 7, 1, 18, 40, tzinfo=UTC),
        "user": "ada", "account": "physics", "partition": "short",
        "alloc_partition": "short", "qos": "normal",
        "job_name": "relax", "work_dir": "/home/ada", "submit_line": "sbatch --nodes=2, a.sh",
        "req_nodes": 2, "req_cpus": 72, "req_memory_mb": 90000.0, "time_limit_s": 3600,
        "state": "COMPLETED", "elapsed_s": 1800, "source": "table",
    }  # fmt: skip


def test_secrets_are_taken_out(tmp_path):
    secret = "sbatch --export=API_KEY=hunter2 a.sh"
    mapping = COLUMNS + 'submit_line = "x"\n'
    jobs, rejects = load(tmp_path, f"id,submitted,x\n1,{TIME},{secret}\n2,noon,{secret}\n", mapping)
    assert [job["submit_line"] for job in jobs] == ["sbatch --export=API_KEY=[redacted] a.sh"]
    [(_, _, text)] = rejects
    assert text == "2,noon,sbatch --export=API_KEY=[redacted] a.sh"


def test_nrel_writes_no_memory_as_zero(tmp_path):
    [job], _ = load(tmp_path, f"{NREL_HEADER}\n{nrel(77, '2019-07-01 12:00:00')}", None)
    assert "req_memory_mb" not in job


@pytest.mark.parametrize("batch", [1, 2, 3, 50_000])
def test_repeated_ids_are_numbered_as_array_tasks(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(tables, "_BATCH", batch)
    noon, later = "2019-07-01 12:00:00", "2019-07-01 12:00:01"
    rows = [nrel(77, noon), nrel(77, noon), nrel(78, noon), nrel(77, later), nrel(77, noon)]
    jobs, rejects = load(tmp_path, f"{NREL_HEADER}\n{''.join(rows)}", None)
    assert rejects == []
    assert [(job["job_id"], job.get("array_job_id"), job.get("array_task_id")) for job in jobs] == [
        (77, None, None),
        (77 + 2 * 2**32, 77, 1),
        (78, None, None),
        (77, None, None),
        (77 + 3 * 2**32, 77, 2),
    ]


def test_repeated_ids_are_sightings_unless_told(tmp_path):
    jobs, _ = load(tmp_path, f"id,submitted\n1,{TIME}\n1,{TIME}\n")
    assert [job["job_id"] for job in jobs] == [1, 1]


@pytest.mark.parametrize(
    ("field", "told", "text", "value"),
    [
        ("time_limit_s", "", "90", 90),
        ("time_limit_s", ', unit = "min"', "1.5", 90),
        ("time_limit_s", ', unit = "h"', "2", 7200),
        ("time_limit_s", ', unit = "d"', "1", 86400),
        ("time_limit_s", ', unit = "slurm"', "1-12:00:00", 129600),
        ("req_memory_mb", "", "90", 90),
        ("req_memory_mb", ', unit = "B"', "1048576", 1),
        ("req_memory_mb", ', unit = "KiB"', "512", 0.5),
        ("req_memory_mb", ', unit = "GiB"', "1.5", 1536),
        ("req_memory_mb", ', unit = "TiB"', "1", 2**20),
        ("req_memory_mb", ', unit = "slurm"', "4G", 4096),
        ("req_memory_mb", ', unit = "slurm"', "100", 100),
        ("energy_j", ', unit = "kWh"', "2", 7.2e6),
        ("req_cpus", "", "2K", 2048),
        ("req_cpus", "", "16.0", 16),
        ("requeue", "", "Yes", True),
        ("requeue", "", "0", False),
        ("user", "", " ada ", "ada"),
        ("user", "", "Unknown", "Unknown"),
        ("state", "", "CANCELLED by 7", "CANCELLED"),
        ("array_task_id", "", "3", 3),
        ("array_job_id", "", "90", 90),
    ],
)
def test_units_and_kinds(tmp_path, field, told, text, value):
    assert cell(tmp_path, field, text, told=told) == value


def test_a_text_can_stand_for_no_value(tmp_path):
    for field, absent in (("req_memory_mb", "-1"), ("user", "nobody"), ("end_time", "never")):
        assert cell(tmp_path, field, absent, told=f', absent = "{absent}"') is None
    assert cell(tmp_path, "req_cpus", "4", told=', absent = "-1"') == 4


@pytest.mark.parametrize(
    ("field", "told", "text", "reason"),
    [
        ("time_limit_s", ', unit = "h"', "long", "x is 'long', expected a number of h"),
        ("time_limit_s", ', unit = "slurm"', "90", "x is '90', expected a duration such as"),
        ("req_memory_mb", ', unit = "slurm"', "4GB", "x is '4GB', expected a size such as"),
        ("req_cpus", "", "1.5", "x is '1.5', expected a whole number"),
        ("requeue", "", "maybe", "x is 'maybe', expected true or false"),
        ("state", "", "done", "x is 'done', expected one of Slurm's job states, or one under"),
        ("start_time", "", "noon", "x is 'noon', expected a time as in ISO 8601"),
        ("req_cpus", "", "-4", "req_cpus is -4, which is not between"),
    ],
)
def test_a_bad_value_is_named(tmp_path, field, told, text, reason):
    assert refusal(tmp_path, field, text, told).startswith(reason)


def test_braces_in_a_columns_name_do_no_harm(tmp_path):
    mapping = COLUMNS + 'req_cpus = "x{}"\n'
    _, [(_, reason, _)] = load(tmp_path, f"id,submitted,x{{}}\n1,{TIME},many\n", mapping)
    assert reason == "x{} is 'many', expected a whole number"


def test_a_site_can_name_its_own_states(tmp_path):
    mapping = COLUMNS + 'state = "s"\n[states]\ndone = "COMPLETED"\n"0" = "failed"\n'
    rows = [f"{n},{TIME},{state}" for n, state in enumerate(("done", "0", "TIMEOUT"), start=1)]
    jobs, _ = load(tmp_path, "id,submitted,s\n" + "\n".join(rows), mapping)
    assert [job["state"] for job in jobs] == ["COMPLETED", "FAILED", "TIMEOUT"]


@pytest.mark.parametrize(
    ("top", "text", "hour"),
    [
        ('time_format = "%d.%m.%Y %H:%M"\n', "05.01.2026 09:30", 9),
        ('zone = "Europe/Berlin"\n', "2026-01-05T09:30:00", 8),
        ('time_format = "%d.%m.%Y %H:%M"\nzone = "Europe/Berlin"\n', "05.01.2026 09:30", 8),
        ('time_format = "%Y-%m-%d %H:%M:%S%z"\n', "2026-01-05 09:30:00+0200", 7),
        ('zone = "Europe/Berlin"\n', "1767605400", 9),
    ],
)
def test_times(tmp_path, top, text, hour):
    [job], rejects = load(tmp_path, f"id,submitted\n1,{text}\n", top + COLUMNS)
    assert rejects == []
    assert job["submit_time"] == datetime(2026, 1, 5, hour, 30, tzinfo=UTC)


def test_the_zone_of_the_caller_counts_where_the_mapping_names_none(tmp_path):
    [job], _ = load(tmp_path, f"id,submitted\n1,{TIME}\n", zone="America/Denver")
    assert job["submit_time"] == datetime(2026, 1, 5, 15, tzinfo=UTC)


def test_quotes_commas_and_newlines_in_cells(tmp_path):
    mapping = COLUMNS + 'job_name = "n"\n'
    table = (
        "id,submitted,n\r\n"
        f'1,{TIME},"a, ""b"""\r\n'
        f'2,{TIME},"two\nlines"\r\n'
        f"3,{TIME},bad,row\r\n"
        f"4,{TIME},plain\r\n"
    )
    jobs, rejects = load(tmp_path, table, mapping)
    assert [job["job_name"] for job in jobs] == ['a, "b"', "two\nlines", "plain"]
    assert [(number, reason) for number, reason, _ in rejects] == [
        (5, "3 columns expected, 4 found")
    ]


def test_wrong_column_counts_and_blank_lines(tmp_path):
    jobs, rejects = load(tmp_path, f"id,submitted\n1,{TIME}\n\n2\n3,{TIME},x\n4,{TIME}\n")
    assert [job["job_id"] for job in jobs] == [1, 4]
    assert rejects == [
        (4, "2 columns expected, 1 found", "2"),
        (5, "2 columns expected, 3 found", f"3,{TIME},x"),
    ]


def test_a_stray_quote_tells_which_lines_it_swallowed(tmp_path):
    jobs, rejects = load(
        tmp_path, f'id,submitted\n1,{TIME}\n"2,{TIME}\n3,{TIME}\n4",{TIME},x\n5,{TIME}\n'
    )
    assert [job["job_id"] for job in jobs] == [1, 5]
    [(number, reason, _)] = rejects
    assert number == 3
    assert reason.endswith("(lines 3 to 5 read as one row)")


def test_a_cell_beyond_reason_is_set_aside(tmp_path):
    jobs, rejects = load(tmp_path, f"id,submitted\n1,{'x' * 200_000}\n2,{TIME}\n")
    assert [job["job_id"] for job in jobs] == [2]
    assert [(number, reason[:7]) for number, reason, _ in rejects] == [(2, "not CSV")]


def test_a_line_too_long_is_set_aside_and_later_ones_keep_their_number(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 40)
    jobs, rejects = load(tmp_path, f"id,submitted\n1,{'x' * 50}\n2,{TIME}\n3,noon\n")
    assert [job["job_id"] for job in jobs] == [2]
    assert sorted(number for number, _, _ in rejects) == [2, 4]


def test_another_delimiter(tmp_path):
    mapping = 'delimiter = ";"\n' + COLUMNS + 'user = "u"\n'
    [job], _ = load(tmp_path, f"id;submitted;u\n1;{TIME};a,b\n", mapping)
    assert job["user"] == "a,b"


def test_array_and_component_numbers_are_understood(tmp_path):
    jobs, rejects = load(tmp_path, f"id,submitted\n100_7,{TIME}\n100+1,{TIME}\nmany,{TIME}\n")
    assert [(job["job_id"], job.get("array_task_id")) for job in jobs] == [
        (100 + 8 * 2**32, 7),
        (101, None),
    ]
    assert [(number, reason) for number, reason, _ in rejects] == [(4, "no job id")]


def test_missing_columns_are_all_named(tmp_path):
    mapping = COLUMNS + 'user = "owner"\n'
    with pytest.raises(InvalidInput, match=r"has no column submitted, owner, .*; it has id, x"):
        load(tmp_path, "id,x\n1,2\n", mapping)
    with pytest.raises(InvalidInput, match="it has none"):
        load(tmp_path, "", mapping)
    with pytest.raises(InvalidInput, match="has no column submitted"):
        load(tmp_path, pl.DataFrame({"id": [1]}))


def test_a_table_of_no_rows_has_no_jobs(tmp_path):
    assert load(tmp_path, "id,submitted\n") == ([], [])


@pytest.mark.parametrize(
    ("mapping", "context", "expected"),
    [
        (COLUMNS, {}, "cluster"),
        ('cluster = "map"\n' + COLUMNS, {}, "map"),
        ('cluster = "map"\n' + COLUMNS + 'cluster = "c"\n', {}, "own"),
        ('cluster = "map"\n' + COLUMNS + 'cluster = "c"\n', {"cluster": "told"}, "told"),
    ],
)
def test_the_name_of_the_cluster(tmp_path, mapping, context, expected):
    [job], _ = load(tmp_path, f"id,submitted,c\n1,{TIME},own\n", mapping, **context)
    assert job["cluster"] == expected


FULL = (
    'zone = "Europe/Berlin"\n'
    + COLUMNS
    + 'end_time = "ended"\nreq_cpus = "cpus"\nrequeue = "again"\nuser = "owner"\n'
    + 'time_limit_s = {column = "hours", unit = "h"}\nstate = "state"\n'
)
CSV = """\
id,submitted,ended,cpus,again,owner,hours,state
1,2026-01-05T09:00:00,2026-01-05T10:00:00,4,true,ada,1.5,COMPLETED
2,2026-01-05T09:00:01,,,false,bob,,PENDING
3,2026-01-05T09:00:02,2026-01-05T08:00:00,8,true,eve,2.0,FAILED
4,2026-07-05T09:00:00,,16,,ada,24.0,RUNNING
"""


def typed(text):
    """The table with the types a data frame would give it."""
    clock = pl.col("submitted", "ended").str.to_datetime("%Y-%m-%dT%H:%M:%S")
    return (
        pl.read_csv(text.encode(), infer_schema=False)
        .with_columns(clock)
        .cast({"id": pl.Int64, "cpus": pl.Float64, "hours": pl.Float64})
        .with_columns(again=pl.col("again") == "true", state=pl.col("state").cast(pl.Categorical))
    )


@pytest.mark.parametrize("batch", [1, 3, 50_000])
@pytest.mark.parametrize("kind", ["text", "typed", "zoned"])
def test_parquet_tells_the_same_as_csv(tmp_path, monkeypatch, kind, batch):
    text = CSV.replace("2026-07", "2025-07")
    frame = pl.read_csv(text.encode(), infer_schema=False) if kind == "text" else typed(text)
    if kind == "zoned":
        clock = pl.col("submitted", "ended").dt.replace_time_zone("Europe/Berlin")
        frame = frame.with_columns(clock.dt.convert_time_zone("America/Denver"))
    expected, rejects = load(tmp_path, text, FULL)
    monkeypatch.setattr(tables, "_BATCH", batch)
    jobs, bad = load(tmp_path, frame, FULL, name="table[1].parquet")
    assert jobs == expected
    assert [job["job_id"] for job in jobs] == [1, 2, 4]
    # A row of a Parquet file has no header line before it.
    assert [(n + 1, reason) for n, reason, _ in bad] == [(n, reason) for n, reason, _ in rejects]


def test_a_damaged_parquet_file_is_refused(tmp_path):
    path = tmp_path / "whole.parquet"
    pl.DataFrame({"id": [1], "submitted": [TIME]}).write_parquet(path)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:-20])
    (tmp_path / "site.toml").write_text(COLUMNS)
    wanted = ReadOptions(mapping=str(tmp_path / "site.toml"))
    with InputFile(broken) as file:
        source = source_for(file, wanted, Context(now=NOW))
        with pytest.raises(InvalidInput, match="not a readable Parquet file"):
            list(source.batches())
