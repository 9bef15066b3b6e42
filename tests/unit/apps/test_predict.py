"""`premortem predict` as a user types it, and the same in Python."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from command import Run

import premortem as library
from premortem.apps.cli.predict import _print
from premortem.features.points import START, SUBMIT
from premortem.jobs.fields import KEY
from premortem.prediction.predict import Prediction
from premortem.prediction.reasons import Reason
from premortem.registry import open_registry
from premortem.stores import open_store
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.train import Options, train
from premortem.training.tuning import Budget

MODELS = "data/premortem/models"


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    """A site's history; the last three jobs wait, two of them as tasks of an array."""
    found = pl.concat(SyntheticCluster(700, seed=5, users=10, days=30).frames())
    place = pl.int_range(found.height) - found.height
    unknown = ["start_time", "end_time", "alloc_cpus", "alloc_nodes", "node_list", "elapsed_s"]
    task = pl.when(place >= -2).then(place + 8)
    return found.with_columns(
        pl.when(place >= -3).then(pl.lit("PENDING")).otherwise("state").alias("state"),
        *(pl.when(place < -3).then(name).alias(name) for name in unknown),
        array_task_id=task,
        array_job_id=pl.when(task.is_not_null()).then(pl.lit(900_000)),
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, jobs: pl.DataFrame) -> Path:
    """A folder with a store, and two models: v1, in use, and v2, which only knows starts."""
    folder = tmp_path_factory.mktemp("site")
    with closing(open_store(f"sqlite:///{folder / 'jobs.db'}")) as store:
        store.append(jobs)
    options = Options(budget=Budget(trials=0))
    model = train(jobs, points=(SUBMIT, START), options=options).model
    with closing(open_registry(str(folder / MODELS))) as registry:
        for points in (["submit", "start"], ["start"]):
            files = folder / "-".join(points)
            files.mkdir()
            replace(model, points={name: model.points[name] for name in points}).save(files)
            registry.add(files, {}, alias="champion" if "submit" in points else None)
    return folder


@pytest.fixture
def site(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def waiting(jobs: pl.DataFrame) -> str:
    return str(jobs["job_id"][-3])


@pytest.fixture
def started(jobs: pl.DataFrame) -> str:
    return str(jobs.filter(pl.col("start_time").is_not_null())["job_id"][-1])


class TestWhatIsListed:
    def test_jobs_as_slurm_writes_them_in_the_order_asked(
        self, premortem: Run, site: Path, started: str, waiting: str
    ) -> None:
        asked = ("900000_7", started, "900000_6", waiting, started)
        told = premortem("predict", *asked, "--json").json["predictions"]
        assert [one["array_task_id"] for one in told] == [7, None, 6, None]
        assert [one["array_job_id"] for one in told] == [900_000, None, 900_000, None]
        shown = premortem("predict", *asked, "--reasons", "0").out
        numbers = re.findall(r"^ *(\d\S*)", shown, re.MULTILINE)
        assert numbers == ["900000_7", started, "900000_6", waiting]

    def test_an_array_is_its_tasks_in_their_order(self, premortem: Run, site: Path) -> None:
        told = premortem("predict", "900000", "--json").json["predictions"]
        assert [one["array_task_id"] for one in told] == [6, 7]


class TestSeveralClusters:
    @pytest.fixture(autouse=True)
    def twice(self, site: Path, jobs: pl.DataFrame) -> None:
        """The same numbers on another cluster, too."""
        with closing(open_store(f"sqlite:///{site / 'jobs.db'}")) as store:
            store.append(jobs.tail(3).with_columns(cluster=pl.lit("other")))

    def test_a_number_is_that_of_each(self, premortem: Run, waiting: str) -> None:
        told = premortem("predict", waiting, "--json").json["predictions"]
        assert len({one["cluster"] for one in told}) == len(told) == 2
        heading, *_ = premortem("predict", waiting, "--reasons", "0").out.splitlines()
        assert heading.split()[:2] == ["cluster", "job"]

    def test_one_alone_can_be_asked_for(self, premortem: Run, waiting: str) -> None:
        for asked in ((waiting,), ("--all-pending",)):
            done = premortem("predict", *asked, "--cluster", "other", "--json")
            assert {one["cluster"] for one in done.json["predictions"]} == {"other"}
        done = premortem("predict", waiting, "--cluster", "other", "--slurm")
        assert done.code == 1
        assert "leave --cluster out" in done.err


class TestNotReached:
    def test_such_jobs_are_left_out_and_named(
        self, premortem: Run, site: Path, started: str, waiting: str
    ) -> None:
        done = premortem("predict", "900000_7", started, waiting, "--model", "2", "--json")
        assert done.code == 0
        assert [one["point"] for one in done.json["predictions"]] == ["start"]
        assert [one["array_task_id"] for one in done.json["unreached"]] == [7, None]
        assert done.err.strip() == (
            "note: left out: 2 jobs have not reached any point of the model (start): "
            f"900000_7, {waiting}"
        )

    @pytest.mark.parametrize("asked", [("--model", "2"), ("--point", "start")])
    def test_nothing_but_such_jobs_is_an_error(
        self, premortem: Run, site: Path, waiting: str, asked: tuple[str, str]
    ) -> None:
        done = premortem("predict", "--all-pending", *asked)
        assert done.code == 1
        assert "3 jobs have not reached" in done.err
        assert f"{waiting}, 900000_6, 900000_7" in done.err
        assert not done.out


LONG = Reason("so it is " * 20 + "said", 0.5, "user.outcomes", {})
FAILS = Prediction(
    "c", 12_556, datetime(2026, 1, 5, tzinfo=UTC), "ada", None,
    "running@2h", 0.208, 0.14, "out_of_memory", 0.8, (LONG, replace(LONG, effect=-0.5)), "new",
    array_job_id=12_547, array_task_id=4,
)  # fmt: skip
COMPLETES = replace(FAILS, point="submit", risk=0.1, cause="application", threshold=0.3)


class TestLooks:
    @pytest.fixture(params=[70, 80, 160])
    def lines(
        self,
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> list[str]:
        """What is printed on a terminal of that width."""
        monkeypatch.setenv("COLUMNS", str(request.param))
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        _print([FAILS, COMPLETES])
        lines = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out).splitlines()
        assert max(map(len, lines)) <= request.param
        return lines

    def test_the_risk_stands_beside_the_prediction_and_its_threshold_below(
        self, lines: list[str]
    ) -> None:
        (header, first), last = lines[:2], lines[-2:]
        assert {"risk", "confidence"} <= set(header.split())
        assert first.split()[:2] == ["12547_4", "ada"]
        assert " fails " in first
        assert "20.8 %" in first
        assert last == [
            "At running@2h, a risk of 14.0 % or more foretells failure.",
            "At submit, a risk of 30.0 % or more foretells failure.",
        ]

    def test_reasons_follow_their_row_and_keep_their_indent(self, lines: list[str]) -> None:
        second = next(place for place, line in enumerate(lines) if "completes" in line)
        below = lines[2 : second - 1]
        assert sum(line.startswith("  + so it is") for line in below) == 1
        assert sum(line.startswith("  - so it is") for line in below) == 1
        assert all(line.startswith(("  + ", "  - ", "    ")) for line in below)
        assert below[-1].strip() == "note: new"

    def test_a_cause_of_what_completes_is_one_if_it_fails(self, lines: list[str]) -> None:
        text = "\n".join(lines)
        assert "out of memory (80.0 %)" in text
        assert "out of memory (80.0 %) if it fails" not in text
        assert "application (80.0 %) if it fails" in text


class TestInPython:
    def test_without_a_history_the_store_is_the_past(
        self, premortem: Run, site: Path, jobs: pl.DataFrame
    ) -> None:
        some = jobs.tail(6)
        asked = [str(number) for number in some["job_id"]]
        by_command = premortem("predict", *asked, "--json").json["predictions"]
        risk = [one["risk"] for one in by_command]
        model = library.load_model("champion")
        assert model.version_ == 1
        assert model.predict(some)["risk"].to_list() == risk
        assert model.predict(some.select(KEY))["risk"].to_list() == risk
        assert model.predict_proba(some)[:, 1].tolist() == risk
        assert model.predict(some, history=jobs)["risk"].to_list() == pytest.approx(risk)

    def test_without_a_store_it_warns_that_every_user_looks_new(
        self, premortem: Run, site: Path, jobs: pl.DataFrame
    ) -> None:
        model = library.load_model(store=f"sqlite:///{site / 'none.db'}")
        with pytest.warns(UserWarning, match="every user is judged as a new one"):
            found = model.predict(jobs.tail(2))
        assert found["risk"].to_list() == model.predict(jobs.tail(2), history=[])["risk"].to_list()
        with closing(open_store(f"sqlite:///{site / 'none.db'}")):
            pass
        with pytest.warns(UserWarning, match="no store with jobs"):
            model.predict_proba(jobs.tail(2))
