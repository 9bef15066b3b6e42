"""`premortem train`, `predict` and `threshold` as a user types them."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import Run
from command import premortem as run_in

import premortem as library
from premortem.apps.cli.render import share
from premortem.errors import Unavailable
from premortem.stores import open_store
from premortem.testing.synthetic import SyntheticCluster
from premortem.testing.writers import write_sacct
from premortem.training.train import Options
from premortem.training.tuning import Budget

TRAIN = ("train", "--points", "submit,start", "--trials", "1")


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    """A site's history; the last three jobs wait."""
    found = pl.concat(SyntheticCluster(2500, seed=5, users=25, days=40).frames())
    waits = pl.int_range(found.height) >= found.height - 3
    unknown = ["start_time", "end_time", "alloc_cpus", "alloc_nodes", "node_list", "elapsed_s"]
    return found.with_columns(
        pl.when(waits).then(pl.lit("PENDING")).otherwise("state").alias("state"),
        *(pl.when(~waits).then(name).alias(name) for name in unknown),
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, jobs: pl.DataFrame) -> Path:
    """A folder in which a model was trained once, to be copied."""
    folder = tmp_path_factory.mktemp("site")
    write_sacct([jobs], folder / "site.txt")
    assert run_in(folder, "load", "site.txt").code == 0
    done = run_in(folder, *TRAIN, "--html", "report.html", "--json")
    assert done.code == 0, done.err
    (folder / "told.json").write_text(done.out)
    return folder


@pytest.fixture
def site(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path


class TestTrain:
    def test_the_first_model_is_in_use_and_tells_what_it_is(self, site: Path) -> None:
        told = json.loads((site / "told.json").read_text())
        assert (told["version"], told["champion"]) == (1, True)
        manifest = told["manifest"]
        assert manifest["points"] == ["submit", "start"]
        assert set(manifest["metrics"]["submit"]) >= {"average_precision", "auc", "ece", "recall"}
        assert "report.html" in manifest["files"]
        page = (site / "report.html").read_text()
        assert "<html" in page
        assert "v1, registered 20" in page
        kept = (site / "data/premortem/models/v0001/files/report.html").read_text()
        assert "Trained on 20" in kept
        assert "registered 20" not in kept

    def test_another_like_it_is_compared_with_the_one_in_use(
        self, premortem: Run, site: Path
    ) -> None:
        done = premortem(*TRAIN)
        assert done.code == 0
        assert "v2, judged by the latest jobs" in done.out
        assert "average precision" in done.out
        (found, _) = premortem("models", "list", "--json").json
        assert found["version"] == 2
        # Beside its scores, the threshold they are of; what the model warns from is told apart.
        told = found["manifest"]["metrics"]["submit"]
        beside = "  ".join(share(told[name]) for name in ("judged_at", "precision", "recall", "f1"))
        assert beside in done.out
        warns_from = share(found["manifest"]["thresholds"]["submit"])
        assert f"it warns at submit from {warns_from}, at start from" in done.out

    def test_every_engine_is_tried_trials_are_kept_and_profiles_looked_at(
        self, premortem: Run, site: Path
    ) -> None:
        asked = (
            "train", "--points", "submit", "--model", "auto", "--trials", "3", "--profiles",
            "--journal", "trials.log", "--json",
        )  # fmt: skip
        manifest = premortem(*asked).json["manifest"]
        engines = manifest["engines"]["submit"]
        assert set(engines) <= {"xgboost", "lightgbm", "catboost"}
        assert list(manifest["parameters"]["submit"]) == engines
        assert manifest["profiles"]
        begun = '"op_code":4'
        assert (site / "trials.log").read_text().count(begun) == 3
        again = premortem(*asked).json["manifest"]
        assert again["parameters"] == manifest["parameters"]
        assert (site / "trials.log").read_text().count(begun) == 3

    @pytest.mark.parametrize(
        ("arguments", "budget"),
        [
            ((), Budget(20, None)),
            (("--trials", "5"), Budget(5, None)),
            (("--budget", "10m"), Budget(None, 600)),
            (("--budget", "10m", "--trials", "5"), Budget(5, 600)),
        ],
    )
    def test_trials_and_time_are_spent_as_told(
        self,
        premortem: Run,
        site: Path,
        monkeypatch: pytest.MonkeyPatch,
        arguments: tuple[str, ...],
        budget: Budget,
    ) -> None:
        spent = []

        def train(*_: Any, options: Options, **__: Any) -> None:
            spent.append(options.budget)
            raise Unavailable("it was only asked how long")

        monkeypatch.setattr("premortem.training.train.train", train)
        assert premortem("train", *arguments).code == 5
        assert spent == [budget]

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--journal", "site.txt"), "is not the journal of a search"),
            (("--journal", "trials.log", "--on", "ray"), "a search on Ray keeps no journal"),
            (("--points", "noon"), "not a prediction point"),
            (("--points", "posthoc"), "for comparison only"),
            (("--budget", "soon"), "not a length of time"),
            (("--threshold", "best"), "not a rule for a threshold"),
            (("--since", "2999-01-01"), "they are from 2024-"),
            (("--family", "swf", "--points", "submit,posthoc"), "for comparison only"),
        ],
    )
    def test_what_cannot_be_done_is_told(
        self, premortem: Run, site: Path, arguments: tuple[str, ...], says: str
    ) -> None:
        done = premortem(*TRAIN, *arguments)
        assert done.code == 1
        assert says in done.err
        assert "Traceback" not in done.err
        assert len(premortem("models", "list", "--json").json) == 1


class TestPredict:
    def test_a_waiting_job_has_a_risk_and_reasons(
        self, premortem: Run, site: Path, jobs: pl.DataFrame
    ) -> None:
        number = str(jobs["job_id"].tail(1).item())
        done = premortem("predict", number, "--json")
        assert done.code == 0
        (told,) = done.json["predictions"]
        assert done.json["model"] == 1
        assert told["point"] == "submit"
        assert 0 <= told["risk"] <= 1
        assert told["prediction"] in ("failed", "completed")
        assert told["reasons"]
        assert told["reasons"][0]["text"]
        shown = premortem("predict", number)
        assert told["reasons"][0]["text"] in shown.out

    def test_everything_that_waits_the_riskiest_first(self, premortem: Run, site: Path) -> None:
        told = premortem("predict", "--all-pending", "--json").json["predictions"]
        risks = [one["risk"] for one in told]
        assert len(risks) == 3
        assert risks == sorted(risks, reverse=True)

    def test_a_job_that_started_is_judged_at_its_start(
        self, premortem: Run, site: Path, jobs: pl.DataFrame
    ) -> None:
        number = str(jobs.filter(pl.col("start_time").is_not_null())["job_id"].tail(1).item())
        (told,) = premortem("predict", number, "--json").json["predictions"]
        assert told["point"] == "start"
        (told,) = premortem("predict", number, "--point", "submit", "--json").json["predictions"]
        assert told["point"] == "submit"

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            ((), 1, "name the jobs to predict, or say --all-pending"),
            (("1", "--all-pending"), 1, "name the jobs to predict, or say --all-pending"),
            (("999999999",), 3, "no job 999999999"),
            (("--all-pending", "--model", "v9"), 3, "v9"),
        ],
    )
    def test_what_cannot_be_done_is_told(
        self, premortem: Run, site: Path, arguments: tuple[str, ...], code: int, says: str
    ) -> None:
        done = premortem("predict", *arguments)
        assert done.code == code
        assert says in done.err

    def test_without_a_model_it_says_how_to_get_one(
        self, premortem: Run, tmp_path: Path, jobs: pl.DataFrame
    ) -> None:
        write_sacct([jobs.head(5)], tmp_path / "few.txt")
        premortem("load", "few.txt")
        done = premortem("predict", "--all-pending")
        assert done.code == 3
        assert "'premortem train' makes one" in done.err


class TestThreshold:
    def test_it_shows_the_trade_and_sets_another(self, premortem: Run, site: Path) -> None:
        assert "threshold" in premortem("threshold").out
        done = premortem("threshold", "--point", "submit", "--set", "0.25", "--json")
        assert done.code == 0
        assert done.json["model"] == 2
        assert done.json["points"]["submit"]["threshold"] == 0.25
        versions = premortem("models", "list", "--json").json
        assert versions[0]["aliases"] == ["champion"]
        assert premortem("models", "rollback").code == 0
        told = premortem("threshold", "--point", "submit", "--json").json
        assert told["model"] == 1

    def test_scores_and_report_are_those_of_the_threshold_beside_them(
        self, premortem: Run, site: Path
    ) -> None:
        told = premortem("threshold", "--set", "0.9", "--json").json["points"]["submit"]
        (in_use,) = [row for row in told["trade"] if row["in_use"]]
        assert in_use["threshold"] >= 0.9
        assert told["judged"]["judged_at"] == 0.9
        compared = premortem("models", "compare", "1", "champion", "--json").json["metrics"]
        apart = {tuple(one["metric"]): one["difference"] for one in compared}
        assert apart["submit", "average_precision"] == 0
        assert apart["submit", "recall"] < 0
        one, other = (
            json.loads((site / "data/premortem/models" / version / "files/report.json").read_text())
            for version in ("v0001", "v0002")
        )
        old, new = (told["points"]["submit"] for told in (one, other))
        assert apart["submit", "judged_at"] == pytest.approx(0.9 - old["threshold"])
        assert apart["submit", "warns_from"] == pytest.approx(0.9 - old["final_threshold"])
        assert (new["threshold"], new["final_threshold"], new["rule"]) == (0.9, 0.9, "0.9")
        page = (site / "data/premortem/models/v0002/files/report.html").read_text()
        assert "The model to be used warns from a risk of 0.900 on" in page

    def test_a_model_that_never_warns(self, premortem: Run, site: Path) -> None:
        done = premortem("threshold", "--set", "recall=0")
        assert "warns never (recall=0)" in done.out
        assert "premortem models rollback' undoes it" in done.out
        told = premortem("threshold", "--json").json["points"]
        assert all(one["threshold"] > 1 for one in told.values())
        assert all(one["judged"]["precision"] is None for one in told.values())
        assert "the model never foretells failure" in premortem("predict", "--all-pending").out
        found = premortem("predict", "--all-pending", "--json").json["predictions"]
        assert {one["prediction"] for one in found} == {"completed"}
        for command in (("models", "show", "champion"), ("models", "compare", "1", "2")):
            assert "never" in premortem(*command).out
        page = (site / "data/premortem/models/v0002/files/report.html").read_text()
        assert "The model to be used never warns, by the rule &#x27;recall=0&#x27;." in page

    def test_a_model_on_trial_stays_so(self, premortem: Run, site: Path) -> None:
        premortem("threshold", "--set", "0.5")
        done = premortem("threshold", "--model", "1", "--set", "0.4")
        assert "Registered as v3, not in use; 'premortem models promote v3' changes" in done.out

    def test_a_rule_that_is_none(self, premortem: Run, site: Path) -> None:
        done = premortem("threshold", "--set", "best")
        assert done.code == 1
        assert "not a rule" in done.err


def test_the_same_from_python(premortem: Run, site: Path) -> None:
    model = library.load_model("champion")
    with closing(open_store(f"sqlite:///{site / 'jobs.db'}")) as store:
        stored = store.jobs()
    waiting = stored.filter(pl.col("state") == "PENDING")
    found = model.predict(waiting, history=stored)
    assert found.height == 3
    chances = model.predict_proba(waiting, stored)
    assert chances.sum(axis=1) == pytest.approx([1, 1, 1])
    assert chances[:, 1] == pytest.approx(found["risk"].to_numpy())
    by_command = premortem("predict", "--all-pending", "--json").json["predictions"]
    assert sorted(found["risk"]) == pytest.approx(sorted(one["risk"] for one in by_command))
