"""`premortem train` in trouble: one line that says what is wrong, and nothing half-registered."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import PREMORTEM, Finished, Run, environment
from command import premortem as run_in

from premortem.errors import Unavailable
from premortem.registry.folder import FolderRegistry
from premortem.stores import open_store
from premortem.testing.synthetic import SyntheticCluster

TRAIN = ("train", "--points", "submit", "--trials", "0")
# What is only known of jobs that started.
OF_THE_RUN = ["start_time", "elapsed_s", "alloc_cpus", "alloc_nodes", "node_list"]


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    return pl.concat(SyntheticCluster(700, seed=5, users=15, days=30).frames())


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, jobs: pl.DataFrame) -> Path:
    """A folder with a store that is fit to train on, to be copied."""
    folder = tmp_path_factory.mktemp("loaded")
    stored(folder, jobs)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, loaded: Path) -> Path:
    """A registry with one version, the champion, to be copied."""
    folder = tmp_path_factory.mktemp("trained")
    done = run_in(loaded, *TRAIN, "--registry", folder / "models")
    assert done.code == 0, done.err
    return folder / "models"


@pytest.fixture
def site(loaded: Path, tmp_path: Path) -> Path:
    shutil.copy(loaded / "jobs.db", tmp_path)
    return tmp_path


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Where the registry is unless another is named."""
    return tmp_path / "data" / "premortem" / "models"


def stored(folder: Path, jobs: pl.DataFrame) -> None:
    with closing(open_store(f"sqlite:///{folder / 'jobs.db'}")) as store:
        store.append(jobs)


def ended(jobs: pl.DataFrame, state: str, others: str = "", every: int = 1) -> pl.DataFrame:
    """The jobs, every so many ended in one way and the rest in the other."""
    chosen = pl.int_range(pl.len()) % every == 0
    return jobs.with_columns(
        state=pl.when(chosen).then(pl.lit(state)).otherwise(pl.lit(others)),
        exit_code=pl.lit(None, dtype=jobs.schema["exit_code"]),
    )


def without(jobs: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The jobs, these fields unknown."""
    return jobs.with_columns(pl.lit(None, dtype=jobs.schema[name]).alias(name) for name in names)


def told(done: Finished, code: int) -> str:
    """The one line by which a command says why it did nothing."""
    assert done.code == code, done.err
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("premortem: ")
    return line.removeprefix("premortem: ")


def registered(folder: Path) -> list[int]:
    """The versions in a registry's folder, which holds nothing unfinished."""
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    numbers = [int(name[1:]) for name in names if re.fullmatch(r"v[0-9]{4}", name)]
    odd = {name for name in names if not re.fullmatch(r"v[0-9]{4}", name)}
    assert odd <= {"lock", "aliases.json"}
    listed = FolderRegistry(folder).versions()
    assert sorted(version.number for version in listed) == numbers
    assert ("aliases.json" in odd) == bool(numbers)
    return numbers


class TestJobs:
    """Stores that hold nothing, or not enough."""

    @pytest.mark.parametrize(
        ("state", "others", "every", "says"),
        [
            ("FAILED", "COMPLETED", 80, r"submit: \d failed jobs to learn .* 20 are needed: .*"),
            ("COMPLETED", "FAILED", 80, r"submit: \d completed jobs to .* 20 are needed: .*"),
            ("COMPLETED", "", 1, "submit: 0 failed jobs to learn .* 20 are needed: .*"),
            ("FAILED", "", 1, "submit: 0 completed jobs to learn .* 20 are needed: .*"),
        ],
    )
    def test_too_few_of_an_outcome(
        self,
        premortem: Run,
        tmp_path: Path,
        models: Path,
        jobs: pl.DataFrame,
        state: str,
        others: str,
        every: int,
        says: str,
    ) -> None:
        stored(tmp_path, ended(jobs, state, others, every))
        assert re.fullmatch(f"nothing can be trained: {says}", told(premortem(*TRAIN), 1))
        assert registered(models) == []

    def test_too_few_jobs(
        self, premortem: Run, tmp_path: Path, models: Path, jobs: pl.DataFrame
    ) -> None:
        stored(tmp_path, jobs.head(100))
        line = told(premortem(*TRAIN), 1)
        assert re.fullmatch(
            r"nothing can be trained: submit: (\d\d) jobs to learn from, and 250 are needed: of "
            r"100 jobs, \d+ completed or failed, and \1 of these had ended before the latest 15 %, "
            r"which judge, were submitted",
            line,
        )
        assert registered(models) == []

    def test_a_point_with_too_few_jobs_is_left_out_with_a_note(
        self, premortem: Run, site: Path, models: Path
    ) -> None:
        done = premortem("train", "--points", "submit,running@12h", "--trials", "0", "--json")
        assert done.code == 0, done.err
        note, empty = done.err.splitlines()
        assert re.match(r"note: running@12h is left out: .* 250 are needed: of 700 jobs", note)
        assert empty.endswith("the features of usage (no samples of running jobs)")
        assert done.json["manifest"]["points"] == ["submit"]
        assert list(done.json["manifest"]["left_out"]) == ["running@12h"]
        assert registered(models) == [1]

    def test_too_few_jobs_to_choose_among_are_told_of(self, premortem: Run, site: Path) -> None:
        done = premortem(*TRAIN, "--imbalance", "active")
        assert done.code == 0
        assert re.search(
            r"note: submit: \d\d\d jobs are too few to choose among: all were learned from, as "
            "without --imbalance active",
            done.err,
        )
        assert "too few to choose" not in premortem(*TRAIN).err

    def test_nothing_has_ended(
        self, premortem: Run, tmp_path: Path, models: Path, jobs: pl.DataFrame
    ) -> None:
        stored(tmp_path, without(ended(jobs, "PENDING"), ["end_time", *OF_THE_RUN]))
        assert "nothing can be trained" in told(premortem(*TRAIN), 1)
        assert registered(models) == []

    def test_nothing_has_ended_is_what_is_told(
        self, premortem: Run, tmp_path: Path, jobs: pl.DataFrame
    ) -> None:
        stored(tmp_path, without(ended(jobs, "PENDING"), ["end_time", *OF_THE_RUN]))
        assert "ended" in told(premortem(*TRAIN), 1)

    def test_no_job_is_known_to_have_started(
        self, premortem: Run, tmp_path: Path, models: Path, jobs: pl.DataFrame
    ) -> None:
        stored(tmp_path, without(jobs, OF_THE_RUN))
        line = told(premortem("train", "--points", "start", "--trials", "0"), 1)
        assert line.startswith("nothing can be trained: start: ")
        assert registered(models) == []
        done = premortem("train", "--trials", "0", "--json")
        assert done.code == 0, done.err
        notes = [line.split(":")[1] for line in done.err.splitlines()]
        assert notes[:2] == [" start is left out", " running@2min is left out"]
        assert done.json["manifest"]["points"] == ["submit"]
        assert registered(models) == [1]

    def test_no_start_is_what_is_told(
        self, premortem: Run, tmp_path: Path, jobs: pl.DataFrame
    ) -> None:
        stored(tmp_path, without(jobs, OF_THE_RUN))
        assert "started" in told(premortem("train", "--points", "start", "--trials", "0"), 1)

    def test_a_store_without_jobs(self, premortem: Run, tmp_path: Path, models: Path) -> None:
        open_store(f"sqlite:///{tmp_path / 'jobs.db'}").close()
        line = told(premortem(*TRAIN), 1)
        assert line == "the store has no jobs: 'premortem load' brings some"
        assert registered(models) == []

    def test_no_store(self, premortem: Run, tmp_path: Path, models: Path) -> None:
        line = told(premortem(*TRAIN), 3)
        assert (
            line == f"there is no store at {tmp_path / 'jobs.db'} yet: 'premortem load' makes one"
        )
        assert not (tmp_path / "jobs.db").exists()
        assert registered(models) == []

    def test_something_else_instead_of_a_store(
        self, premortem: Run, tmp_path: Path, models: Path
    ) -> None:
        (tmp_path / "jobs.db").write_text("Dear all,\n")
        assert "is not a premortem store" in told(premortem(*TRAIN), 1)
        assert (tmp_path / "jobs.db").read_text() == "Dear all,\n"
        assert registered(models) == []


@pytest.mark.usefixtures("site")
class TestOptions:
    """What is wrong with the options is told before anything is searched for."""

    def test_a_place_to_search_on_that_is_none(self, premortem: Run) -> None:
        done = premortem(*TRAIN, "--on", "foo")
        assert done.code == 2
        assert "ray://host:10001" in done.err

    def test_a_rule_that_is_none(self, premortem: Run, tmp_path: Path, models: Path) -> None:
        line = told(premortem(*TRAIN, "--threshold", "banana", "--journal", "trials.log"), 1)
        assert line.startswith("'banana' is not a rule for a threshold")
        assert not (tmp_path / "trials.log").exists()
        assert registered(models) == []

    @pytest.mark.parametrize(
        ("option", "value", "library", "extra"),
        [
            ("--model", "lightgbm", "lightgbm", "lightgbm"),
            ("--imbalance", "smote", "imblearn", "smote"),
            ("--on", "ray", "ray", "ray"),
        ],
    )
    def test_an_extra_that_is_not_installed(
        self, premortem: Run, monkeypatch: pytest.MonkeyPatch,
        option: str, value: str, library: str, extra: str,
    ) -> None:  # fmt: skip
        def search(*_: object) -> None:
            raise AssertionError("it went on without what it needs")

        monkeypatch.setitem(sys.modules, library, None)
        monkeypatch.delitem(sys.modules, f"premortem.models.engine_{value}", raising=False)
        monkeypatch.setattr("premortem.training.train.facts_of", search)
        line = told(premortem(*TRAIN, option, value), 6)
        assert line.endswith(f"pip install 'premortem[{extra}]'")

    def test_features_that_the_store_cannot_fill(
        self, premortem: Run, tmp_path: Path, models: Path, jobs: pl.DataFrame
    ) -> None:
        (tmp_path / "jobs.db").unlink()
        kept = ["cluster", "job_id", "submit_time", "start_time", "end_time", "state", "user"]
        stored(tmp_path, jobs.select(kept))
        assert "cannot fill the features of restricted: load records with some of" in told(
            premortem(*TRAIN, "--family", "restricted"), 1
        )
        done = premortem(*TRAIN, "--json")
        assert done.json["manifest"]["family"] == "swf"
        assert done.json["manifest"]["notes"][1].startswith("nothing is told by the features of")
        assert done.json["warnings"] == done.json["manifest"]["warnings"]
        assert registered(models) == [1]

    def test_a_rule_out_of_reach_gives_way_to_the_nearest(
        self, premortem: Run, tmp_path: Path, jobs: pl.DataFrame
    ) -> None:
        (tmp_path / "jobs.db").unlink()
        stored(tmp_path, ended(jobs, "FAILED", "COMPLETED", every=5))
        done = premortem(*TRAIN, "--threshold", "precision=0.9999", "--json")
        note = done.json["manifest"]["notes"][-1]
        found = re.fullmatch(
            r"submit: no threshold has a precision of 0.9999; the best is 0.\d+: (.*) was taken",
            note,
        )
        assert found, note
        shown = premortem("threshold", "--json").json["points"]["submit"]
        assert shown["rule"] == found[1]
        assert shown["threshold"] == done.json["manifest"]["thresholds"]["submit"]


@pytest.mark.usefixtures("site")
class TestRegistry:
    """Registries that cannot take the model."""

    def test_a_file_instead_of_the_folder(self, premortem: Run, tmp_path: Path) -> None:
        (tmp_path / "models").write_text("mine")
        line = told(premortem(*TRAIN, "--registry", "models"), 1)
        assert line == "models is not a folder: a registry is one"
        assert (tmp_path / "models").read_text() == "mine"
        assert "models/below" in told(premortem(*TRAIN, "--registry", "models/below"), 5)

    @pytest.mark.parametrize("with_champion", [False, True])
    def test_a_read_only_folder(
        self, premortem: Run, small_disk: Path, trained: Path, with_champion: bool
    ) -> None:
        folder = small_disk / "models"
        if with_champion:
            shutil.copytree(trained, folder)
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
        line = told(premortem(*TRAIN, "--registry", str(folder)), 5)
        assert "Read-only file system: check the permissions of" in line
        assert registered(folder) == [1] * with_champion

    @pytest.mark.parametrize("with_champion", [False, True])
    def test_a_full_disk(
        self, premortem: Run, small_disk: Path, trained: Path, with_champion: bool
    ) -> None:
        folder = small_disk / "models"
        if with_champion:
            shutil.copytree(trained, folder)
        fill(small_disk, leaving=100_000)
        line = told(premortem(*TRAIN, "--registry", str(folder)), 5)
        assert line.startswith(f"no space left in {folder}: free some and try again")
        assert registered(folder) == [1] * with_champion
        (small_disk / "filler").unlink()
        assert premortem(*TRAIN, "--registry", str(folder)).code == 0
        assert registered(folder) == [1, 2][: 1 + with_champion]

    def test_a_full_temporary_folder(
        self, premortem: Run, small_disk: Path, models: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill(small_disk, leaving=60_000)
        monkeypatch.setattr("tempfile.tempdir", str(small_disk))
        done = premortem(*TRAIN)
        assert [path.name for path in small_disk.iterdir()] == ["filler"]
        assert registered(models) == []
        assert "no space left" in told(done, 5)

    def test_a_server_that_does_not_answer(self, site: Path, models: Path) -> None:
        done = run_in(site, *TRAIN, "--registry", "mlflow+http://127.0.0.1:1/name")
        line = told(done, 5)
        assert line.startswith("no MLflow server answers at http://127.0.0.1:1 (")
        assert line.endswith("check the address, or try again later")
        assert registered(models) == []

    @pytest.mark.parametrize("url", ["mlflow+http://127.0.0.1:1/name", "file", "disk/models"])
    @pytest.mark.filterwarnings("ignore")
    def test_a_registry_of_no_use_is_told_before_the_training(
        self,
        premortem: Run,
        tmp_path: Path,
        small_disk: Path,
        monkeypatch: pytest.MonkeyPatch,
        url: str,
    ) -> None:
        (tmp_path / "file").write_text("mine")
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
        begun = []

        def train(*_: Any, **__: Any) -> None:
            begun.append(True)
            raise Unavailable("the training began")

        monkeypatch.setattr("premortem.training.train.train", train)
        assert premortem(*TRAIN, "--registry", url).code in (1, 5)
        assert not begun

    def test_a_champion_out_of_reach_is_not_replaced(
        self, premortem: Run, models: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copytree(trained, models)

        def fetch(*_: Any) -> Path:
            raise Unavailable("the disk does not answer")

        monkeypatch.setattr(FolderRegistry, "fetch", fetch)
        done = premortem(*TRAIN)
        assert FolderRegistry(models).aliases()["champion"] == 1
        assert "the disk does not answer" in done.out + done.err

    def test_a_lock_that_another_holds_is_waited_for(
        self, premortem: Run, models: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        impatient = FolderRegistry(models, patience_s=0.1)
        monkeypatch.setattr("premortem.registry.open_registry", lambda _: impatient)
        models.mkdir(parents=True)
        with (models / "lock").open("ab") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            line = told(premortem(*TRAIN), 5)
        assert line.startswith(f"another process is changing {models}")
        assert registered(models) == []


@pytest.mark.usefixtures("site")
def test_a_page_that_cannot_be_written_is_told_before_the_training(
    premortem: Run, models: Path
) -> None:
    done = premortem(*TRAIN, "--html", "no/such/folder.html")
    assert done.code == 5
    assert done.err.startswith("premortem: no/such/folder.html cannot be written")
    assert done.out == ""
    assert registered(models) == []


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry that two trainings use at once."""
    folder = tmp_path_factory.mktemp("shared") / "models"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def both(loaded: Path, shared: Path) -> list[Finished]:
    """Two trainings, both of which came to register before either could."""
    command = [*PREMORTEM, *TRAIN, "--registry", str(shared), "--json"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    lock = shared / "lock"
    with lock.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        processes = [
            subprocess.Popen(command, cwd=loaded, env=environment(loaded), **pipes)
            for _ in range(2)
        ]

        def wait_until(at_the_lock: bool) -> None:
            deadline = time.monotonic() + 120
            while any(has_open(process.pid, lock) != at_the_lock for process in processes):
                assert all(process.poll() is None for process in processes)
                assert time.monotonic() < deadline
                time.sleep(0.05)

        try:
            # Before the training each sees whether it could register, and then again to do so.
            wait_until(True)
            fcntl.flock(held, fcntl.LOCK_UN)
            wait_until(False)
            fcntl.flock(held, fcntl.LOCK_EX)
            wait_until(True)
        except AssertionError:
            for process in processes:
                process.kill()
            raise
    printed = [process.communicate(timeout=60) for process in processes]
    return [Finished(p.returncode, *texts) for p, texts in zip(processes, printed, strict=True)]


class TestTwoAtOnce:
    def test_both_are_registered_and_one_is_in_use(
        self, both: list[Finished], shared: Path
    ) -> None:
        assert [done.code for done in both] == [0, 0]
        assert sorted(done.json["version"] for done in both) == [1, 2]
        assert registered(shared) == [1, 2]
        registry = FolderRegistry(shared)
        for version in registry.versions():
            assert json.loads((registry.fetch(version) / "report.json").read_text())
        champions = [v.number for v in registry.versions() if "champion" in v.aliases]
        assert champions == [registry.aliases()["champion"]]

    def test_the_second_is_compared_with_the_first(self, both: list[Finished]) -> None:
        assert [done.code for done in both] == [0, 0]
        assert sorted(done.json["why"] == "it is the first" for done in both) == [False, True]


def has_open(process: int, path: Path) -> bool:
    """Whether a process holds a file open."""
    folder = Path(f"/proc/{process}/fd")
    try:
        return any(os.readlink(link) == str(path) for link in folder.iterdir())
    except OSError:
        return False


def fill(disk: Path, *, leaving: int) -> None:
    free = shutil.disk_usage(disk).free
    (disk / "filler").write_bytes(b"x" * (free - leaving))
