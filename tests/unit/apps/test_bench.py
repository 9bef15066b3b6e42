"""`premortem bench` as a user types it: tables, JSON, the page, and what it says of bad logs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import Finished, Run
from samples import sacct_text

from premortem.apps.cli.bench_page import LogSection, page
from premortem.testing.synthetic import SyntheticCluster
from premortem.testing.writers import write_sacct, write_swf

QUICK = ("--trees", "3")
KEYS = {
    "point", "model", "jobs", "train_jobs", "failure_share", "auc", "average_precision",
    "precision", "recall", "f1", "accuracy", "threshold", "at_threshold", "ece", "fit_seconds",
    "score_seconds", "fold", "leaks", "message", "completed",
}  # fmt: skip


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    return pl.concat(SyntheticCluster(800, seed=5, users=15, days=30).frames())


@pytest.fixture
def site(tmp_path: Path, jobs: pl.DataFrame) -> Path:
    write_sacct([jobs], tmp_path / "site.txt")
    return tmp_path / "site.txt"


def numbers(done: Finished) -> list[dict[str, Any]]:
    """The results without what a clock measured."""
    return [
        {key: value for key, value in result.items() if not key.endswith("_seconds")}
        for log in done.json["logs"]
        for result in log["points"]
    ]


class TestOutput:
    def test_json_has_its_shape_and_a_manifest_to_repeat_it(
        self, premortem: Run, site: Path
    ) -> None:
        with site.open("a") as file:
            file.write("oops|oops\n")
        arguments = ("--points", "submit,posthoc", "--seed", "7", "--json", *QUICK)
        done = premortem("bench", "site.txt", *arguments)
        assert done.code == 0
        assert "1 records were set aside" in done.err
        assert set(done.json) == {"manifest", "logs"}
        (log,) = done.json["logs"]
        assert set(log) == {"log", "jobs", "rejected", "points"}
        assert (log["log"], log["jobs"], log["rejected"]) == ("site.txt", 800, 1)
        for result in log["points"]:
            assert set(result) == KEYS
            assert set(result["at_threshold"]) == {"precision", "recall", "f1", "accuracy"}
        assert log["points"][0]["model"] == "xgboost"
        assert log["points"][-1]["point"] == "posthoc"
        assert [result["leaks"] for result in log["points"]] == [False] * 5 + [True]
        manifest = done.json["manifest"]
        digest = hashlib.sha256(site.read_bytes()).hexdigest()
        assert manifest["logs"] == [{"log": "site.txt", "sha256": digest}]
        assert {"premortem", "python", "xgboost", "polars", "numpy"} <= set(manifest["versions"])
        assert manifest["seed"] == 7
        assert manifest["settings"]["points"] == ["submit", "posthoc"]
        assert manifest["settings"]["zone"] == "UTC"

    def test_two_runs_give_the_same_numbers(self, premortem: Run, site: Path) -> None:
        arguments = ("bench", "site.txt", "--points", "submit,running@2min", "--json", *QUICK)
        first, second = premortem(*arguments), premortem(*arguments)
        assert numbers(first) == numbers(second)
        assert first.json["manifest"] == second.json["manifest"]
        assert numbers(premortem(*arguments, "--seed", "1")) != numbers(first)

    def test_a_table_for_each_log(self, premortem: Run, site: Path, jobs: pl.DataFrame) -> None:
        write_swf([jobs], site.parent / "log.swf.gz")
        done = premortem("bench", "site.txt", "log.swf.gz", "--points", "posthoc,start", *QUICK)
        assert done.code == 0
        assert "site.txt: 800 jobs" in done.out
        assert "log.swf.gz: 800 jobs" in done.out
        lines = [line for line in done.out.splitlines() if line.startswith(("start", "posthoc"))]
        assert len(lines) == 12
        assert "xgboost (leaks)" in lines[5]

    def test_options_reach_the_benchmark(self, premortem: Run, site: Path) -> None:
        base = ("bench", "site.txt", "--points", "submit", "--json", *QUICK)
        whole = numbers(premortem(*base))[0]
        head = premortem(*base, "--head", "400")
        assert head.json["logs"][0]["jobs"] == 400
        assert numbers(head)[0]["jobs"] < whole["jobs"]
        ignored = numbers(premortem(*base, "--ignore", "time_limit", "--ignore", "application"))[0]
        assert ignored["failure_share"] < whole["failure_share"]
        assert numbers(premortem(*base, "--quantile", "0.5"))[0]["jobs"] > whole["jobs"]
        assert {r["fold"] for r in numbers(premortem(*base, "--folds", "2"))} == {None, 1, 2}
        restricted = numbers(premortem(*base, "--family", "restricted"))[0]
        assert restricted["auc"] != whole["auc"]

    def test_only_the_models_asked_for(self, premortem: Run, site: Path) -> None:
        chosen = ("--model", "xgboost_request", "--model", "majority")
        done = premortem("bench", "site.txt", "--points", "submit,start", "--json", *chosen, *QUICK)
        found = [(result["point"], result["model"]) for result in numbers(done)]
        models = ("majority", "xgboost_request")
        assert found == [(point, model) for point in ("submit", "start") for model in models]
        assert done.json["manifest"]["settings"]["models"] == ["xgboost_request", "majority"]

    def test_labels_by_a_file_of_their_own(self, premortem: Run, site: Path) -> None:
        labels = site.parent / "labels.toml"
        labels.write_text('labels.ignored = ["preempted", "time_limit", "application"]\n')
        base = ("bench", "site.txt", "--points", "submit", "--model", "majority", "--json", *QUICK)
        by_file = premortem(*base, "--label-policy", str(labels))
        by_option = premortem(*base, "--ignore", "time_limit", "--ignore", "application")
        assert numbers(by_file) == numbers(by_option)
        assert numbers(by_file) != numbers(premortem(*base))
        told = by_file.json["manifest"]["settings"]["labels"]["ignored"]
        assert told == ["application", "preempted", "time_limit"]

    def test_progress_stays_off_standard_output(self, premortem: Run, site: Path) -> None:
        json.loads(premortem("bench", "site.txt", "--points", "submit", "--json", *QUICK).out)


class TestBadInput:
    """A clear message, never a traceback, and not 0 only if there is no number at all."""

    @pytest.mark.parametrize(
        ("state", "says"),
        [("COMPLETED", "failed"), ("FAILED", "all of the"), ("PENDING", "no jobs")],
    )
    def test_a_log_of_one_outcome(
        self, premortem: Run, tmp_path: Path, jobs: pl.DataFrame, state: str, says: str
    ) -> None:
        write_sacct([jobs.with_columns(state=pl.lit(state))], tmp_path / "one.txt")
        done = premortem("bench", "one.txt", *QUICK)
        assert done.code == 1
        for point in ("submit", "start", "running@2min", "running@10min", "running@1h", "posthoc"):
            assert re.search(rf"^{point}: .*", done.out, re.MULTILINE), point
        assert says in done.out
        assert "Traceback" not in done.err
        messages = [r["message"] for r in numbers(premortem("bench", "one.txt", "--json", *QUICK))]
        assert all(messages)

    def test_ten_jobs(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "ten.txt").write_text(sacct_text(10))
        done = premortem("bench", "ten.txt", *QUICK)
        assert done.code == 1
        assert "too few jobs" in done.out

    def test_one_user_and_no_wait_times(
        self, premortem: Run, tmp_path: Path, jobs: pl.DataFrame
    ) -> None:
        write_swf([jobs.with_columns(user=pl.lit("ada"))], tmp_path / "log.swf")
        lines = (tmp_path / "log.swf").read_text().splitlines()
        without = [line if line[0] == ";" else _with_cell(line, 2, "-1") for line in lines]
        (tmp_path / "log.swf").write_text("\n".join(without) + "\n")
        done = premortem("bench", "log.swf", "--points", "submit,start", "--json", *QUICK)
        assert done.code == 0
        assert all(result["message"] is None for result in numbers(done))

    def test_unsorted_records_and_records_told_twice_change_nothing(
        self, premortem: Run, site: Path
    ) -> None:
        arguments = ("--points", "submit", "--json", *QUICK)
        before = numbers(premortem("bench", "site.txt", *arguments))
        header, *lines = site.read_text().splitlines()
        site.write_text("\n".join([header, *reversed(lines), *lines[:50]]) + "\n")
        assert numbers(premortem("bench", "site.txt", *arguments)) == before

    def test_a_log_that_cannot_be_read_does_not_stop_the_others(
        self, premortem: Run, site: Path
    ) -> None:
        (site.parent / "prose").write_text("Dear all,\n")
        arguments = ("bench", "missing", "prose", "--points", "submit", "--json", *QUICK)
        done = premortem(*arguments, "site.txt")
        assert done.code == 0
        assert "no such file" in done.err
        assert "none of the formats" in done.err
        assert [log["log"] for log in done.json["logs"]] == ["site.txt"]
        alone = premortem(*arguments)
        assert (alone.code, alone.json["logs"]) == (3, [])

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (("--points", "tomorrow"), 1, "not a prediction point"),
            (("--points", "submit,"), 1, "not a prediction point"),
            (("--family", "royal"), 2, "royal"),
            (("--ignore", "boredom"), 2, "boredom"),
            (("--folds", "0"), 2, "folds"),
            (("--quantile", "1"), 2, "quantile"),
            (("--zone", "Mars/North"), 1, "Mars/North"),
            (("--html", "no/such/folder.html"), 5, "cannot be written"),
            (("--model", "oracle"), 1, "no such model: oracle; there are xgboost, lightgbm"),
            (("--label-policy", "no-such.toml"), 3, "there is no settings file no-such.toml"),
        ],
    )
    def test_wrong_options(
        self, premortem: Run, tmp_path: Path, arguments: Iterable[str], code: int, says: str
    ) -> None:
        (tmp_path / "ten.txt").write_text(sacct_text(10))
        done = premortem("bench", "ten.txt", *arguments)
        assert done.code == code
        assert says in done.err
        assert "Traceback" not in done.err


class TestPage:
    def test_it_is_whole_and_needs_nothing_else(self, premortem: Run, site: Path) -> None:
        name = "<img src=x onerror=alert(1)>&'.txt"
        site.rename(site.parent / name)
        done = premortem("bench", name, "--points", "submit,start", "--html", "page.html", *QUICK)
        assert done.code == 0
        text = (site.parent / "page.html").read_text()
        seen = _Seen()
        seen.feed(text)
        assert not {"script", "img", "link", "iframe", "object"} & seen.tags
        assert not {"src", "href", "onerror", "onload"} & seen.attributes
        assert "url(" not in text
        assert "//" not in text
        assert name in seen.text
        assert text.count("<svg") == 2
        assert text.count("<polyline") == 10
        assert "user_last_outcome" in seen.text

    def test_everything_from_outside_is_escaped(self) -> None:
        evil = "</title><script>alert('x')</script>\""
        curve = [(0.0, 1.0), (1.0, 0.5)]
        section = LogSection(evil, [evil], [[evil]], [evil], {evil: {evil: curve}})
        seen = _Seen()
        seen.feed(page([section], {evil: evil}))
        assert "script" not in seen.tags
        assert seen.text.count("alert") >= 6


class _Seen(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def _with_cell(line: str, place: int, value: str) -> str:
    cells = line.split()
    return " ".join([*cells[:place], value, *cells[place + 1 :]])
