"""The ways to treat rare failures, and other models, as `premortem bench` compares them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import Run
from samples import sacct_text

from premortem.apps.cli.bench_imbalance import COLUMNS, TITLE, Cell, strategy_rows
from premortem.apps.cli.bench_page import LogSection, page
from premortem.testing.synthetic import SyntheticCluster
from premortem.testing.writers import write_sacct
from premortem.training.benchmark import PointResult
from premortem.training.metrics import Decided

STRATEGIES = ["none", "weights", "oversample", "smote", "active"]
QUICK = ("--points", "submit", "--trees", "25")
MEASURES = {
    "P failed": "precision",
    "R failed": "recall",
    "F1 failed": "f1",
    "P completed": "completed precision",
    "R completed": "completed recall",
    "F1 completed": "completed f1",
    "acc": "accuracy",
    "AP": "average_precision",
    "ECE": "ece",
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "site.txt"
    write_sacct(SyntheticCluster(700, seed=5, users=15, days=30).frames(), path)
    return path


def result(strategy: str, number: float = 0.5, point: str = "submit", **more: Any) -> PointResult:
    """A result whose measures are all `number`, but for those given."""
    same: dict[str, Any] = dict.fromkeys(
        ("precision", "recall", "f1", "accuracy", "average_precision", "ece"), number
    )
    completed = Decided(number, number, number, number)
    values = {**same, "completed": completed, **more}
    return PointResult(point, f"xgboost+{strategy}", 100, 400, **values)


def best(rows: list[tuple[Cell, ...]]) -> list[set[str]]:
    """The columns in which each row stands out."""
    return [{c for c, cell in zip(COLUMNS, row, strict=True) if cell.best} for row in rows]


class TestRows:
    def test_each_value_is_in_its_column(self) -> None:
        one = result(
            "smote", precision=0.11, recall=0.12, f1=0.13, completed=Decided(0.21, 0.22, 0.23, 0.9),
            accuracy=0.31, average_precision=0.41, ece=0.51,
        )  # fmt: skip
        ((*cells,),) = strategy_rows([one])
        assert dict(zip(COLUMNS, [cell.text for cell in cells], strict=True)) == {
            "point": "submit", "strategy": "smote",
            "P failed": ".110", "R failed": ".120", "F1 failed": ".130",
            "P completed": ".210", "R completed": ".220", "F1 completed": ".230",
            "acc": ".310", "AP": ".410", "ECE": ".510",
        }  # fmt: skip

    def test_only_strategies_over_the_whole_test(self) -> None:
        results = [
            PointResult("submit", "xgboost", 100, 400, precision=0.5),
            PointResult("submit", "xgboost_request", 100, 400, precision=0.5),
            result("none"),
            result("none", fold=1),
            PointResult("start", "xgboost+none", 3, 4, message="too few jobs"),
            result("none", point="start"),
        ]
        rows = strategy_rows(results)
        assert [(row[0].text, row[1].text) for row in rows] == [
            ("submit", "none"),
            ("start", "none"),
        ]

    def test_the_best_of_a_point_stand_out_the_lowest_error_among_them(self) -> None:
        rows = strategy_rows(
            [
                result("none", 0.4),
                result("weights", 0.6, recall=0.3),
                result("none", 0.1, point="start", ece=0.9),
                result("weights", 0.1, point="start", ece=0.8),
            ]
        )
        measures = set(MEASURES)
        assert best(rows) == [
            {"R failed", "ECE"},
            measures - {"R failed", "ECE"},
            measures - {"ECE"},
            measures,
        ]

    def test_what_looks_the_same_is_as_good(self) -> None:
        rows = strategy_rows([result("none", 0.50001), result("weights", 0.49999)])
        assert best(rows) == [set(MEASURES)] * 2

    def test_what_is_not_defined_is_empty_and_never_best(self) -> None:
        nothing: dict[str, Any] = {"precision": None, "completed": Decided(None, 0.5, 0.5, 0.5)}
        rows = strategy_rows([result("none", **nothing), result("weights", 0.0, **nothing)])
        for row in rows:
            by_column = dict(zip(COLUMNS, row, strict=True))
            assert by_column["P failed"] == Cell("")
            assert by_column["P completed"] == Cell("")

    def test_one_alone_is_not_the_best_of_any(self) -> None:
        assert best(strategy_rows([result("smote")])) == [set()]


class TestCommand:
    def test_all_strategies_follow_the_table_and_are_on_the_page(
        self, premortem: Run, log: Path, tmp_path: Path
    ) -> None:
        arguments = ("bench", str(log), *QUICK, "--model", "majority", "--imbalance", "all")
        shown = premortem(*arguments, "--html", "page.html")
        assert shown.code == 0, shown.err
        before, _, after = shown.out.partition(f"\n{TITLE}")
        assert "submit majority" in before
        assert [line for line in before.splitlines() if "xgboost+smote" in line]
        header, *lines = after.splitlines()[1:7]
        assert header.split() == " ".join(COLUMNS).split()
        table = [line.split() for line in lines]
        assert [row[:2] for row in table] == [["submit", strategy] for strategy in STRATEGIES]

        told = premortem(*arguments, "--json").json["logs"][0]["points"]
        by_model = {one["model"]: one for one in told}
        assert list(by_model) == ["majority", *(f"xgboost+{s}" for s in STRATEGIES)]
        wanted = [expected(by_model[f"xgboost+{strategy}"]) for strategy in STRATEGIES]
        assert [row[2:] for row in table] == [[cell for cell in row if cell] for row in wanted]

        seen = Tables()
        seen.feed((tmp_path / "page.html").read_text())
        assert len(seen.tables) == 2
        (caption, (head, *rows)), least = seen.tables[1], min(wanted, key=lambda row: row[-1])
        assert caption == TITLE
        assert tuple(head) == COLUMNS
        assert [row[2:] for row in rows] == wanted
        assert (len(COLUMNS) - 1, least[-1]) in seen.bold

    def test_bold_on_a_terminal_only(
        self, premortem: Run, log: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chosen = ("--imbalance", "none", "--imbalance", "weights", "--model", "majority")
        arguments = ("bench", str(log), *QUICK, *chosen)
        plain = premortem(*arguments).out
        assert "\x1b" not in plain
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        coloured = premortem(*arguments).out.partition(TITLE)[2].splitlines()
        lines = [line for line in coloured if "submit" in line]
        errors = [float(line.split()[-1]) for line in plain.partition(TITLE)[2].splitlines()[2:4]]
        assert errors[0] != errors[1]
        for line, error in zip(lines, errors, strict=True):
            bold = f"\x1b[1m{f'{error:.3f}'.removeprefix('0')}\x1b[0m" in line
            assert bold == (error == min(errors))

    def test_not_asked_for_it_is_not_there(self, premortem: Run, log: Path, tmp_path: Path) -> None:
        done = premortem("bench", str(log), *QUICK, "--model", "majority", "--html", "page.html")
        assert done.code == 0
        assert "submit majority" in done.out
        assert TITLE not in done.out
        assert TITLE not in (tmp_path / "page.html").read_text()

    def test_a_log_that_cannot_be_judged_has_no_table_of_strategies(
        self, premortem: Run, tmp_path: Path
    ) -> None:
        (tmp_path / "ten.txt").write_text(sacct_text(10))
        done = premortem("bench", "ten.txt", *QUICK, "--imbalance", "all")
        assert done.code == 1
        assert "too few jobs" in done.out
        assert TITLE not in done.out

    def test_other_engines(self, premortem: Run, log: Path) -> None:
        chosen = ("--model", "lightgbm", "--model", "catboost", "--json")
        done = premortem("bench", str(log), *QUICK, *chosen)
        assert done.code == 0, done.err
        first, second = done.json["logs"][0]["points"]
        assert (first["model"], second["model"]) == ("lightgbm", "catboost")
        for one in (first, second):
            assert one["message"] is None
            assert one["average_precision"] > one["failure_share"]
        assert first["average_precision"] != second["average_precision"]

    def test_a_tuned_model(self, premortem: Run, log: Path) -> None:
        arguments = ("bench", str(log), *QUICK, "--model", "tuned", "--trials", "3")
        done = premortem(*arguments, "--json")
        assert done.code == 0, done.err
        (one,) = done.json["logs"][0]["points"]
        assert (one["model"], one["message"]) == ("tuned", None)
        assert one["average_precision"] > one["failure_share"]
        assert one["threshold"] is not None
        assert done.json["manifest"]["settings"]["trials"] == 3

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--model", "oracle"), "no such model: oracle; there are xgboost, lightgbm"),
            (("--imbalance", "luck"), "no way to treat rare failures: luck; there are none, wei"),
            (("--imbalance", "smote", "--imbalance", "luck"), "no way to treat rare failures: lu"),
        ],
    )
    def test_names_that_mean_nothing(
        self, premortem: Run, log: Path, arguments: tuple[str, ...], says: str
    ) -> None:
        done = premortem("bench", str(log), *QUICK, *arguments)
        assert (done.code, done.out) == (1, "")
        (line,) = done.err.splitlines()
        assert line.startswith(f"premortem: {says}")


def test_a_name_that_means_nothing_beside_all(premortem: Run, log: Path) -> None:
    arguments = ("--model", "majority", "--imbalance", "all", "--imbalance", "luck")
    done = premortem("bench", str(log), *QUICK, *arguments)
    assert done.code == 1
    assert "no way to treat rare failures: luck" in done.err


def test_a_strategy_that_cannot_be_used_does_not_stop_the_others(
    premortem: Run, log: Path, tmp_path: Path
) -> None:
    jobs = pl.concat(SyntheticCluster(700, seed=5, users=15, days=30).frames())
    fails = pl.int_range(pl.len()) % 150 == 0
    few = jobs.with_columns(
        state=pl.when(fails).then(pl.lit("FAILED")).otherwise(pl.lit("COMPLETED"))
    )
    write_sacct([few], tmp_path / "few.txt")
    arguments = ("--model", "majority", "--imbalance", "weights", "--imbalance", "smote")
    done = premortem("bench", str(log), "few.txt", *QUICK, *arguments)
    assert done.code == 0, done.err
    lines = [line.split()[:2] for line in done.out.splitlines()]
    assert lines.count(["submit", "majority"]) == 2
    assert lines.count(["submit", "weights"]) == 2
    assert lines.count(["submit", "smote"]) == 1
    assert "SMOTE needs more than 5 jobs of each outcome" in done.out + done.err


def test_strategies_on_the_page_are_escaped() -> None:
    evil = "<script>x</script>"
    rows = [(Cell(evil), Cell(evil), *[Cell(evil, best=True)] * len(MEASURES))]
    seen = Tables()
    seen.feed(page([LogSection("log", [], [], [], {}, rows)], {}))
    assert seen.tables[0][1][1] == [evil] * len(COLUMNS)


def expected(told: dict[str, Any]) -> list[str]:
    """The cells of a row, from the JSON."""
    values = {**told, **{f"completed {name}": v for name, v in told["completed"].items()}}
    found = [values[name] for name in MEASURES.values()]
    return ["" if value is None else f"{value:.3f}".removeprefix("0") for value in found]


class Tables(HTMLParser):
    """The tables of a page: caption and rows; and what is bold in them, with its column."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[tuple[str, list[list[str]]]] = []
        self.bold: set[tuple[int, str]] = set()
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append(("", []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][1][-1].append("")
        if tag in ("caption", "td", "th") or (tag == "b" and self._inside):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            return
        caption, rows = self.tables[-1]
        if self._inside[0] == "caption":
            self.tables[-1] = (caption + data, rows)
            return
        rows[-1][-1] += data
        if "b" in self._inside:
            self.bold.add((len(rows[-1]) - 1, data))
