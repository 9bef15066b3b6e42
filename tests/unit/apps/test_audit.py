"""`premortem audit` as a user types it: what holds, what leaks, and what it says of bad input."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from command import Run
from samples import sacct_text

from premortem.features.catalogue import CATALOGUE
from premortem.features.points import Point
from premortem.features.replay import Replay, Rows
from premortem.testing.synthetic import SyntheticCluster
from premortem.testing.writers import write_sacct, write_swf
from premortem.training import audit

QUICK = ("--points", "submit,start", "--trials", "2")
HOUR = next(place for place, one in enumerate(CATALOGUE) if one.name == "submit_hour")


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    return pl.concat(SyntheticCluster(600, seed=5, users=15, days=30).frames())


@pytest.fixture
def site(tmp_path: Path, jobs: pl.DataFrame) -> Path:
    write_sacct([jobs], tmp_path / "site.txt")
    return tmp_path / "site.txt"


class Peeking(Replay):
    """A replay that writes a job's final run time where the hour of its submission belongs."""

    columns = slice(HOUR, HOUR + 1)

    def rows(self, jobs: pl.DataFrame, point: Point) -> Rows:
        made = super().rows(jobs, point)
        elapsed = jobs["elapsed_s"].cast(pl.Float64).to_numpy()
        made.values[:, self.columns] = elapsed[made.jobs][:, None]
        return made


class PeekingEverywhere(Peeking):
    columns = slice(None)


class Blind(Replay):
    """A replay that sees nothing at all."""

    def rows(self, jobs: pl.DataFrame, point: Point) -> Rows:
        made = super().rows(jobs, point)
        made.values[:] = 0
        return made


@pytest.mark.usefixtures("site")
class TestItHolds:
    def test_a_table_by_point_and_a_verdict(self, premortem: Run) -> None:
        done = premortem("audit", "site.txt", "--trials", "2", "--trees", "3")
        assert done.code == 0
        assert "site.txt: 600 jobs" in done.out
        for point in ("submit", "start", "running@2min", "running@10min", "running@1h"):
            (line,) = [line for line in done.out.splitlines() if line.startswith(f"{point} ")]
            assert line.split()[2] == "2"
            assert line.rstrip().endswith("holds")
        assert "posthoc" not in done.out
        assert "Features by when they are known" in done.out
        assert "user_failure_rate" not in done.out
        assert "What fields known too late would have gained" in done.out
        assert "\nelapsed_s " in done.out
        assert "No row knew the future" in done.out

    def test_json_has_its_shape(self, premortem: Run) -> None:
        done = premortem("audit", "site.txt", "--json", "--trees", "3", *QUICK)
        assert done.code == 0
        (log,) = done.json["logs"]
        assert set(log) == {
            "log", "jobs", "holds", "trials", "leaks", "features", "gain", "gain_message",
        }  # fmt: skip
        assert (log["log"], log["jobs"], log["holds"]) == ("site.txt", 600, True)
        assert [trial["point"] for trial in log["trials"]] == ["submit"] * 2 + ["start"] * 2
        assert set(log["trials"][0]) == {
            "point", "instant", "rows_compared", "values_compared", "later_rows",
            "later_rows_changed",
        }  # fmt: skip
        assert log["trials"][0]["instant"].startswith("2024-")
        assert log["leaks"] == []
        assert log["features"][0] == {
            "name": "req_cpus", "known": "submit", "inputs": ["req_cpus"], "chapter": "request",
            "points": ["submit", "start"],
        }  # fmt: skip
        told = [row["fields"] for row in log["gain"]]
        assert (told[0], told[-1]) == ("none", "all")
        assert set(log["gain"][0]) == {"fields", "auc", "average_precision"}
        assert log["gain_message"] is None

    def test_every_feature_when_asked_for(self, premortem: Run) -> None:
        done = premortem("audit", "site.txt", "--features", "--no-gain", *QUICK)
        assert done.code == 0
        (line,) = [line for line in done.out.splitlines() if line.startswith("alloc_cpus ")]
        assert line.split() == ["alloc_cpus", "start", "run", "alloc_cpus", "start"]
        assert "\nlimit_left_s " not in done.out, "no point into the run was asked for"
        assert "gained" not in done.out

    def test_options_reach_the_audit(
        self, premortem: Run, tmp_path: Path, jobs: pl.DataFrame
    ) -> None:
        write_swf([jobs], tmp_path / "log.swf.gz")
        base = ("audit", "log.swf.gz", "--json", "--no-gain", *QUICK)
        (whole,) = premortem(*base).json["logs"]
        (head,) = premortem(*base, "--head", "300").json["logs"]
        assert (whole["jobs"], head["jobs"]) == (600, 300)
        (other,) = premortem(*base, "--seed", "1").json["logs"]
        assert other["trials"] != whole["trials"]
        (restricted,) = premortem(*base, "--family", "restricted").json["logs"]
        names = {feature["name"] for feature in restricted["features"]}
        assert "cluster_running" in names
        assert "user_running" not in names
        assert premortem(*base).json["logs"] == [whole]

    def test_trials_in_which_nothing_mattered_are_told(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit, "Replay", Blind)
        done = premortem("audit", "site.txt", "--no-gain", *QUICK)
        assert done.code == 0
        assert done.out.count("holds (2 idle)") == 2
        assert "In 4 of them nothing after the instant mattered" in " ".join(done.out.split())

    def test_a_log_that_cannot_be_judged_still_holds(
        self, premortem: Run, tmp_path: Path, jobs: pl.DataFrame
    ) -> None:
        write_sacct([jobs.with_columns(state=pl.lit("COMPLETED"))], tmp_path / "calm.txt")
        done = premortem("audit", "calm.txt", *QUICK)
        assert done.code == 0
        assert "cannot be told: none of the" in done.out


@pytest.mark.usefixtures("site")
class TestItLeaks:
    def test_the_feature_is_named_with_an_example(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit, "Replay", Peeking)
        done = premortem("audit", "site.txt", "--no-gain", *QUICK)
        assert done.code == 1
        assert "LEAKS: one feature" in done.out
        assert "submit_hour at submit knows the future: for job 4" in done.out
        assert "The future leaks into earlier rows: submit_hour." in done.out
        assert "No row knew the future" not in done.out
        (log,) = premortem("audit", "site.txt", "--no-gain", "--json", *QUICK).json["logs"]
        assert log["holds"] is False
        leak = log["leaks"][0]
        assert (leak["point"], leak["feature"]) == ("submit", "submit_hour")
        assert set(leak) == {"point", "feature", "job", "instant", "before", "after"}

    def test_only_some_of_many_are_told(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit, "Replay", PeekingEverywhere)
        done = premortem("audit", "site.txt", "--no-gain", *QUICK)
        assert done.code == 1
        assert done.out.count("knows the future") == 10
        assert "more; --json tells all" in done.out

    def test_one_leaking_log_is_enough(
        self, premortem: Run, site: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class SometimesPeeking(Peeking):
            def rows(self, jobs: pl.DataFrame, point: Point) -> Rows:
                peeks = jobs["cluster"][0] == "beta"
                return (Peeking if peeks else Replay).rows(self, jobs, point)

        text = site.read_text()
        (site.parent / "beta.txt").write_text(text.replace("|synthetic|", "|beta|"))
        monkeypatch.setattr(audit, "Replay", SometimesPeeking)
        done = premortem("audit", "site.txt", "beta.txt", "--no-gain", "--json", *QUICK)
        assert [log["holds"] for log in done.json["logs"]] == [True, False]
        assert done.code == 1


class TestBadInput:
    def test_an_empty_past_proves_nothing(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "none.txt").write_text(sacct_text(2, State="PENDING", Start="Unknown"))
        done = premortem("audit", "none.txt", "--no-gain", "--points", "start")
        assert done.code == 1
        assert "Nothing is proved" in done.out

    def test_a_log_that_cannot_be_read_does_not_stop_the_others(
        self, premortem: Run, site: Path
    ) -> None:
        (site.parent / "prose").write_text("Dear all,\n")
        arguments = ("audit", "missing", "prose", "--no-gain", "--json", *QUICK)
        done = premortem(*arguments, "site.txt")
        assert done.code == 3, "it was not shown for all"
        assert "no such file" in done.err
        assert "none of the formats" in done.err
        assert [log["log"] for log in done.json["logs"]] == ["site.txt"]

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (("--points", "submit,posthoc"), 1, "posthoc leaks on purpose"),
            (("--points", "tomorrow"), 1, "not a prediction point"),
            (("--family", "royal"), 2, "royal"),
            (("--trials", "0"), 2, "trials"),
            (("--zone", "Mars/North"), 1, "Mars/North"),
        ],
    )
    def test_wrong_options(
        self, premortem: Run, tmp_path: Path, arguments: Iterable[str], code: int, says: str
    ) -> None:
        (tmp_path / "ten.txt").write_text(sacct_text(10))
        done = premortem("audit", "ten.txt", *arguments)
        assert done.code == code
        assert says in done.err
        assert "Traceback" not in done.err
