"""The commands as a user types them: what they print, and what they return."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest
from command import Run
from samples import HEADER, sacct_line, sacct_text, swf_text

from premortem.apps.cli import exits
from premortem.apps.cli.main import app
from premortem.errors import PremortemError


class TestLoad:
    def test_counts_what_it_did(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "jobs.txt").write_text(sacct_text(3) + "4|oops\n")
        first = premortem("load", "jobs.txt", "--json").json
        names = ("read", "new", "updated", "unchanged", "rejected")
        assert [first[name] for name in names] == [4, 3, 0, 0, 1]
        second = premortem("load", "jobs.txt", "--json").json
        assert [second[name] for name in names] == [4, 0, 0, 3, 1]

    def test_prints_a_table_and_points_to_the_rejects(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "jobs.txt").write_text(sacct_text(3) + "4|oops\n")
        done = premortem("load", "jobs.txt")
        assert done.code == 0
        assert "jobs.txt" in done.out
        assert "premortem rejects" in done.out

    def test_takes_several_files_of_several_formats(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "jobs.txt").write_text(sacct_text(2))
        (tmp_path / "log.swf.gz").write_bytes(gzip.compress(swf_text(5).encode()))
        job = {"job_id": 1, "state": {"current": "FAILED"}, "time": {"submission": 1700000000}}
        (tmp_path / "jobs.json").write_text(json.dumps({"jobs": [job]}))
        done = premortem("load", "jobs.txt", "log.swf.gz", "jobs.json", "--json").json
        assert done["new"] == 8
        assert [file["new"] for file in done["files"]] == [2, 5, 1]

    def test_reads_standard_input(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        path = tmp_path / "in"
        path.write_text(sacct_text(2) + "bad\n")
        with path.open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            assert premortem("load", "-", "--json").json["new"] == 2
        assert premortem("rejects", "--source", "-", "--json").json[0]["line"] == 4
        path.write_text(sacct_text(2) + "worse\n")
        with path.open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            premortem("load", "-")
        kept = premortem("rejects", "--source", "-", "--json").json
        assert [(one["line"], one["text"]) for one in kept] == [(4, "bad"), (8, "worse")]

    def test_columns_say_what_a_text_without_header_holds(
        self, premortem: Run, tmp_path: Path
    ) -> None:
        (tmp_path / "jobs.txt").write_text(sacct_line(1) + "\n")
        without = premortem("load", "jobs.txt")
        assert without.code == 1
        assert "--columns" in without.err
        columns = HEADER.replace("|", ",")
        assert premortem("load", "jobs.txt", "--columns", columns, "--json").json["new"] == 1

    def test_cluster_and_zone_can_be_given(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "jobs.txt").write_text(sacct_text(1))
        premortem("load", "jobs.txt", "--cluster", "omega", "--zone", "Europe/Berlin")
        (job,) = premortem("jobs", "--json").json
        assert (job["cluster"], job["submit_time"]) == ("omega", "2026-01-05T11:00:00Z")

    def test_a_mapping_reads_a_table(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "jobs.csv").write_text("id,when,hours\n1,2026-01-05T12:00:00,2\n")
        (tmp_path / "map.toml").write_text(
            'columns = {job_id = "id", submit_time = "when", '
            'time_limit_s = {column = "hours", unit = "h"}}'
        )
        assert premortem("load", "jobs.csv", "--mapping", "map.toml").code == 0
        assert premortem("jobs", "--json").json[0]["time_limit_s"] == 7200

    def test_notes_are_told(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "log.swf").write_text("1 0 10 100 4 90 -1 4 3600 -1 1 7 2 5 1 -1 -1 -1\n")
        assert "UnixStartTime" in premortem("load", "log.swf").out


class TestBadInput:
    """A clear message, never a traceback, and not 0 only if nothing useful could be done."""

    @pytest.mark.parametrize(
        ("name", "content", "code", "says"),
        [
            ("missing", None, 3, "no such file"),
            ("folder", "folder", 1, "is a directory"),
            ("empty", b"", 1, "empty"),
            ("binary", bytes(range(256)) * 10, 1, "none of the formats"),
            ("prose", b"Dear all,\nplease find attached\n", 1, "none of the formats"),
            ("cut.gz", gzip.compress(b"x" * 1000, mtime=0)[:12], 1, "cut short"),
            ("table.csv", b"a,b,c\n1,2,3\n", 1, "--mapping"),
            ("bad.json", b'{"jobs": ', 1, "cut short or malformed"),
            ("all-bad.txt", f"{HEADER}\n1|2|3\n".encode(), 1, "rejects"),
            ("no-key.txt", b"User|State|End\nada|COMPLETED|Unknown\n", 1, "JobID"),
        ],
    )
    def test_a_file_that_cannot_be_used(
        self,
        premortem: Run,
        tmp_path: Path,
        name: str,
        content: bytes | str | None,
        code: int,
        says: str,
    ) -> None:
        if content == "folder":
            (tmp_path / name).mkdir()
        elif isinstance(content, bytes):
            (tmp_path / name).write_bytes(content)
        done = premortem("load", name)
        assert done.code == code
        assert says in done.err + done.out
        assert "Traceback" not in done.err
        # Beside a good file it does not matter.
        (tmp_path / "good.txt").write_text(sacct_text(2))
        beside = premortem("load", name, "good.txt", "--json")
        assert (beside.code, beside.json["new"]) == (0, 2)

    @pytest.mark.parametrize(
        "content", [f"{HEADER}\n", '{"jobs": [], "errors": []}', "; only: comments\n"]
    )
    def test_a_file_without_jobs_is_no_error(
        self, premortem: Run, tmp_path: Path, content: str
    ) -> None:
        (tmp_path / "quiet").write_text(content)
        done = premortem("load", "quiet")
        assert done.code == 0
        assert "no jobs in it" in done.out

    def test_an_empty_answer_of_a_known_format_is_no_error(
        self, premortem: Run, tmp_path: Path
    ) -> None:
        (tmp_path / "quiet.txt").write_text("")
        assert premortem("load", "quiet.txt", "--format", "sacct").code == 0

    def test_a_truncated_gzip_keeps_its_beginning(self, premortem: Run, tmp_path: Path) -> None:
        whole = gzip.compress(swf_text(200_000).encode())
        (tmp_path / "log.swf.gz").write_bytes(whole[: len(whole) // 2])
        done = premortem("load", "log.swf.gz", "--json")
        assert done.code == 0
        assert 0 < done.json["new"] < 200_000
        assert "cut short" in premortem("rejects", "--json").json[-1]["reason"]

    @pytest.mark.parametrize(
        ("cells", "says"),
        [
            ({"Submit": "2096-01-05T12:00:00", "Start": "Unknown", "End": "Unknown"}, "future"),
            ({"Submit": "yesterday"}, "expected a time"),
            ({"Start": "2026-01-05T11:00:00"}, "starts before"),
            ({"End": "2026-01-05T12:05:00"}, "ends before"),
            ({"NCPUS": "-4"}, "not between"),
            ({"NCPUS": "99999999999"}, "not between"),
            ({"NCPUS": "four"}, "whole number"),
            ({"ReqMem": "lots"}, "size"),
            ({"State": "EXPLODED"}, "job states"),
            ({"JobID": "x", "JobIDRaw": "x"}, "job number"),
            ({"Partition": "a|b"}, "expected a time"),
        ],
    )
    def test_a_bad_record_is_set_aside_and_its_neighbours_kept(
        self, premortem: Run, tmp_path: Path, cells: dict[str, str], says: str
    ) -> None:
        rows = [HEADER, sacct_line(1), sacct_line(2, **cells), sacct_line(3)]
        (tmp_path / "jobs.txt").write_text("\n".join(rows))
        done = premortem("load", "jobs.txt", "--json").json
        assert (done["new"], done["rejected"]) == (2, 1)
        (reject,) = premortem("rejects", "--json").json
        assert reject["line"] == 3
        assert says in reject["reason"]
        assert reject["text"].startswith(cells.get("JobID", "2"))

    def test_repeated_lines_are_one_job(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "jobs.txt").write_text("\n".join([HEADER, *[sacct_line(1)] * 5]))
        done = premortem("load", "jobs.txt", "--json").json
        assert (done["read"], done["new"], done["unchanged"]) == (5, 1, 4)

    def test_text_that_is_not_utf8_keeps_its_place(self, premortem: Run, tmp_path: Path) -> None:
        row = sacct_line(1, JobName="caf\u00e9").encode("latin-1")
        (tmp_path / "jobs.txt").write_bytes(HEADER.encode() + b"\n" + row + b"\n")
        assert premortem("load", "jobs.txt", "--json").json["new"] == 1
        assert premortem("jobs", "--json").json[0]["job_name"] == "caf\\xe9"

    @pytest.mark.parametrize(
        "arguments",
        [
            ("load",),
            ("load", "x", "--format", "xml"),
            ("jobs", "--limit", "-1"),
            ("jobs", "--cause", "bad luck"),
            ("nothing",),
        ],
    )
    def test_wrong_options_are_usage_errors(
        self, premortem: Run, arguments: tuple[str, ...]
    ) -> None:
        assert premortem(*arguments).code == 2

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("jobs", "--since", "whenever"), "not a time"),
            (("collect", "--once", "--since", "2100-01-01"), "is yet to come"),
            (("jobs", "--state", "exploded"), "not a job state"),
            (("show", "my job"), "not a job number"),
            (("load", "x", "--zone", "Mars/Olympus"), "not a time zone"),
            (("stats", "--store", "jobs.db"), "sqlite:///"),
        ],
    )
    def test_wrong_values_are_told(
        self, premortem: Run, tmp_path: Path, arguments: tuple[str, ...], says: str
    ) -> None:
        (tmp_path / "jobs.txt").write_text(sacct_text(1))
        premortem("load", "jobs.txt")
        done = premortem(*arguments)
        assert done.code == 1
        assert says in done.err


class TestLooking:
    @pytest.fixture(autouse=True)
    def loaded(self, premortem: Run, tmp_path: Path) -> None:
        rows = [
            sacct_line(1),
            sacct_line(2, State="FAILED", ExitCode="1:0", User="bob", JobName="relax_17"),
            sacct_line(3, State="OUT_OF_MEMORY", ExitCode="0:125", Submit="2026-01-05T12:00:01"),
            sacct_line(4, State="CANCELLED by 7", Partition="gpu", Submit="2026-01-05T12:00:02"),
            sacct_line(5, JobID="90_4", State="TIMEOUT", Submit="2026-01-05T12:00:03"),
            sacct_line(6, State="PREEMPTED", Submit="2026-01-05T12:00:04"),
        ]
        (tmp_path / "jobs.txt").write_text("\n".join([HEADER, *rows]))
        premortem("load", "jobs.txt")

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ((), [1, 2, 3, 4, 5, 6]),
            (("--user", "bob"), [2]),
            (("-u", "bob", "-u", "ada", "-n", "2"), [5, 6]),
            (("--state", "F"), [2]),
            (("--state", "CA"), [4]),
            (("--cause", "out_of_memory"), [3]),
            (("--cause", "out_of_memory", "--cause", "time_limit"), [3, 5]),
            (("--cause", "time_limit", "--user", "bob"), []),
            (("--outcome", "failed", "-n", "2"), [4, 5]),
            (("--outcome", "ignored"), [6]),
            (("--partition", "gpu"), [4]),
            (("--name", "relax_17"), [2]),
            (("--cluster", "beta"), []),
            (("--since", "2026-01-05T12:00:03"), [5, 6]),
            (("--until", "2026-01-05T12:00:01"), [1, 2]),
        ],
    )
    def test_jobs_filters(
        self, premortem: Run, arguments: tuple[str, ...], expected: list[int]
    ) -> None:
        found = premortem("jobs", *arguments, "--json").json
        assert [job["job_id"] for job in found] == expected

    def test_jobs_prints_a_table(self, premortem: Run) -> None:
        printed = premortem("jobs").out
        assert "90_4" in printed
        assert "failed: time limit" in printed
        assert "No such jobs" in premortem("jobs", "--user", "nobody").out

    def test_show_tells_everything_known(self, premortem: Run) -> None:
        printed = premortem("show", "90_4").out
        assert "failed: time limit" in printed
        assert "time_limit_s" in printed
        assert "02:00:00" in printed
        assert premortem("show", "5", "--json").json["cause"] == "time_limit"

    def test_show_says_when_there_is_no_such_job(self, premortem: Run) -> None:
        done = premortem("show", "777")
        assert done.code == 3
        assert "777" in done.err

    def test_show_tells_of_older_records(self, premortem: Run, tmp_path: Path) -> None:
        rows = [HEADER, sacct_line(1, Submit="2026-01-05T12:00:09", State="FAILED")]
        (tmp_path / "more.txt").write_text("\n".join(rows))
        premortem("load", "more.txt")
        assert "1 older record" in premortem("show", "1").out
        assert [job["state"] for job in premortem("show", "1", "--all", "--json").json] == [
            "COMPLETED",
            "FAILED",
        ]

    def test_stats_sums_up(self, premortem: Run) -> None:
        summed = premortem("stats", "--json").json
        assert (summed["jobs"], summed["users"]) == (6, 2)
        assert summed["outcomes"] == {"failed": 4, "completed": 1, "ignored": 1}
        assert summed["causes"] == {
            "application": 1, "cancelled": 1, "out_of_memory": 1, "time_limit": 1,
        }  # fmt: skip
        assert summed["core_hours"]["total"] == 24.0
        assert summed["core_hours"]["lost"] == 16.0
        assert summed["top_failing"]["users"][0]["user"] == "ada"
        assert {row["name"] for row in summed["top_failing"]["names"]} == {"relax", "relax_#"}
        assert sum(row["jobs"] for row in summed["over_time"]["rows"]) == 6

    def test_stats_prints_a_report(self, premortem: Run) -> None:
        printed = premortem("stats").out
        for words in ("6 jobs of 2 users", "Causes of failure", "Over time", "Users with the most"):
            assert words in printed
        assert "No jobs" in premortem("stats", "--user", "nobody").out

    def test_the_label_policy_is_a_setting(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PREMORTEM_LABELS_IGNORED", "preempted,cancelled")
        monkeypatch.setenv("PREMORTEM_LABELS_COMPLETED", "time_limit")
        monkeypatch.setenv("PREMORTEM_LABELS_EXIT_CODES", "1=out_of_memory")
        summed = premortem("stats", "--json").json
        assert summed["outcomes"] == {"completed": 2, "failed": 2, "ignored": 2}
        assert summed["causes"] == {"out_of_memory": 2}

    def test_names_cannot_drive_the_terminal(self, premortem: Run, tmp_path: Path) -> None:
        evil = "\x1b[2J[bold]boo"
        (tmp_path / "evil.txt").write_text(
            "\n".join([HEADER, sacct_line(9, JobName=evil, User=evil)])
        )
        premortem("load", "evil.txt")
        for command in (("jobs",), ("show", "9"), ("stats",)):
            printed = premortem(*command).out
            assert "\x1b" not in printed
        assert "[bold]boo" in premortem("jobs").out

    def test_rejects_are_explained(self, premortem: Run, tmp_path: Path) -> None:
        assert "Nothing was set aside" in premortem("rejects").out
        rows = [sacct_line(n, NCPUS="four") for n in range(100, 130)]
        (tmp_path / "bad.txt").write_text("\n".join([HEADER, *rows]))
        premortem("load", "bad.txt")
        printed = premortem("rejects", "-n", "5").out
        assert "5 of 30 shown" in printed
        assert "By kind" in printed


class TestHelp:
    def test_every_command_and_option_explains_itself(self) -> None:
        from typer.main import get_command

        group = get_command(app)
        for name, command in group.commands.items():  # type: ignore[attr-defined]
            assert command.help, name
            for parameter in command.params:
                assert getattr(parameter, "help", None), f"{name} {parameter.name}"

    def test_exit_codes_cover_every_error(self) -> None:
        def family(kind: type[PremortemError]) -> set[type[PremortemError]]:
            return {kind}.union(*(family(child) for child in kind.__subclasses__()))

        ours = {kind for kind in family(PremortemError) if kind.__module__ == "premortem.errors"}
        assert ours == set(exits.EXIT_CODES)
        for code in exits.EXIT_CODES.values():
            assert f" {code} " in f" {exits.MEANINGS}"

    def test_help_explains_exit_codes(self, premortem: Run) -> None:
        assert "Exit codes" in premortem("--help").out

    def test_a_fault_of_ours_shows_no_traceback(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("oh no")

        monkeypatch.setattr("premortem.settings.load_settings", broken)
        done = premortem("settings")
        assert done.code == exits.INTERNAL
        assert "oh no" in done.err
        assert "Traceback" not in done.err


def test_a_parquet_table_loads_by_mapping(premortem: Run, tmp_path: Path) -> None:
    table = pl.DataFrame({"id": [1, 2], "when": [1767600000, 1767600060], "st": ["done", "dead"]})
    table.write_parquet(tmp_path / "jobs.parquet")
    (tmp_path / "map.toml").write_text(
        'columns = {job_id = "id", submit_time = "when", state = "st"}\n'
        'states = {done = "COMPLETED", dead = "NODE_FAIL"}\n'
    )
    assert premortem("load", "jobs.parquet", "--mapping", "map.toml", "--json").json["new"] == 2
    assert premortem("stats", "--json").json["causes"] == {"node_failure": 1}


class TestHostileSurroundings:
    @pytest.fixture(autouse=True)
    def loaded(self, premortem: Run, tmp_path: Path) -> None:
        rows = [sacct_line(1), sacct_line(2, User="bob", State="FAILED", ExitCode="1:0")]
        (tmp_path / "jobs.txt").write_text("\n".join([HEADER, *rows]))
        premortem("load", "jobs.txt")

    def test_lists_with_commas_mean_alternatives(self, premortem: Run) -> None:
        for arguments in (("--state", "COMPLETED,FAILED"), ("-u", "ada,bob"), ("-p", "cpu,gpu")):
            found = premortem("jobs", *arguments, "--json").json
            assert [job["job_id"] for job in found] == [1, 2]

    def test_the_partition_filter_means_the_one_that_ran_the_job(
        self, premortem: Run, tmp_path: Path
    ) -> None:
        for state, partition in (("PENDING", "cpu,gpu"), ("TIMEOUT", "gpu")):
            row = sacct_line(7, State=state, Partition=partition)
            (tmp_path / "more.txt").write_text(f"{HEADER}\n{row}\n")
            premortem("load", "more.txt")
        (job,) = premortem("jobs", "-p", "gpu", "--json").json
        assert (job["partition"], job["alloc_partition"]) == ("cpu,gpu", "gpu")

    @pytest.mark.parametrize("age", ["²d", "٣d", "d", "123456d"])
    def test_odd_digits_are_no_age(self, premortem: Run, age: str) -> None:
        done = premortem("jobs", "--since", age)
        assert done.code == 1
        assert "not a time" in done.err

    @pytest.mark.parametrize("patience", ["inf", "nan", "-1", "1e300"])
    def test_an_absurd_patience_is_refused(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch, patience: str
    ) -> None:
        monkeypatch.setenv("PREMORTEM_STORE_PATIENCE_S", patience)
        done = premortem("stats")
        assert done.code == 1
        assert "store.patience_s" in done.err

    def test_a_cause_cannot_be_ignored_and_completed(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PREMORTEM_LABELS_COMPLETED", "preempted")
        done = premortem("stats")
        assert done.code == 1
        assert "both ignored and completed" in done.err

    def test_a_closed_standard_input_is_told(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", None)
        done = premortem("load", "-")
        assert done.code == 1
        assert "standard input is closed" in done.err

    def test_a_password_in_an_address_is_not_repeated(self, premortem: Run) -> None:
        done = premortem("stats", "--store", "postgres://ada:secret@host/db")
        assert done.code == 1
        assert "secret" not in done.err

    def test_notes_and_errors_cannot_drive_the_terminal(
        self, premortem: Run, tmp_path: Path
    ) -> None:
        evil = "\x1b[2J\x1b]0;boo\x07"
        job = {"job_id": 1, "state": {"current": "FAILED"}, "time": {"submission": 1700000000}}
        document = {"jobs": [job], "errors": [{"description": evil}]}
        (tmp_path / "evil.json").write_text(json.dumps(document))
        (tmp_path / "evil.txt").write_text(f"JobID|{evil}\n1|2\n")
        for name in ("evil.json", "evil.txt"):
            done = premortem("load", name)
            assert "\x1b" not in done.out + done.err

    def test_a_file_whose_name_is_not_text_keeps_its_rejects(
        self, premortem: Run, tmp_path: Path
    ) -> None:
        name = os.fsdecode(b"bad\xff.txt")
        (tmp_path / name).write_text(f"{HEADER}\n{sacct_line(8)}\n9|oops\n")
        assert premortem("load", name).code == 0
        (reject,) = premortem("rejects", "--json").json
        assert reject["source"].endswith("bad\\xff.txt")

    def test_a_mended_file_forgets_its_rejects(self, premortem: Run, tmp_path: Path) -> None:
        path = tmp_path / "mended.txt"
        path.write_text(f"{HEADER}\n9|oops\n")
        premortem("load", "mended.txt")
        assert len(premortem("rejects", "--json").json) == 1
        path.write_text(f"{HEADER}\n")
        premortem("load", "mended.txt")
        assert premortem("rejects", "--json").json == []

    def test_an_answer_that_only_reports_an_error_is_a_failure(
        self, premortem: Run, tmp_path: Path
    ) -> None:
        document = {"jobs": [], "errors": [{"description": "Authentication failure"}]}
        (tmp_path / "auth.json").write_text(json.dumps(document))
        done = premortem("load", "auth.json")
        assert done.code == 1
        assert "Authentication failure" in done.err

    def test_an_arrays_number_shows_its_tasks(self, premortem: Run, tmp_path: Path) -> None:
        rows = [sacct_line(50 + n, JobID=f"40_{n}") for n in (1, 2)]
        (tmp_path / "array.txt").write_text("\n".join([HEADER, *rows]))
        premortem("load", "array.txt")
        tasks = premortem("show", "40", "--all", "--json").json
        assert [task["array_task_id"] for task in tasks] == [1, 2]
        assert premortem("show", "40+1").code == 3

    def test_core_hours_fall_back_on_what_was_asked_for(
        self, premortem: Run, tmp_path: Path
    ) -> None:
        (tmp_path / "t.csv").write_text("id,at,cpus,ran\n1,2026-01-05T12:00:00,8,3600\n")
        (tmp_path / "map.toml").write_text(
            'cluster = "t"\ncolumns = {job_id = "id", submit_time = "at", req_cpus = "cpus", '
            'elapsed_s = "ran"}'
        )
        premortem("load", "t.csv", "--mapping", "map.toml")
        assert premortem("stats", "--cluster", "t", "--json").json["core_hours"]["total"] == 8.0

    def test_outcomes_and_causes_are_told_over_time(self, premortem: Run) -> None:
        (period,) = premortem("stats", "--json").json["over_time"]["rows"]
        assert period["outcomes"] == {"completed": 1, "failed": 1}
        assert period["causes"] == {"application": 1}

    def test_columns_are_those_that_are_read(self, premortem: Run) -> None:
        from premortem.sources.sacct_columns import readings_for

        names = premortem("columns").out.strip().split(",")
        readings, unused = readings_for(names, "UTC")
        assert unused == []
        assert names[-1] == "JobName"
        assert {reading.column for reading in readings} | {"JobID"} == set(names)
        assert premortem("columns", "--json").json == names
