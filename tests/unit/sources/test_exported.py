"""Jobs written by `premortem export` come back as they were, samples and scripts included."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from command import premortem
from job_strategies import frame
from polars.testing import assert_frame_equal

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.jobs.samples import conform_samples
from premortem.operations.exporting import export_jobs
from premortem.operations.loading import load_file
from premortem.operations.reading import read_log
from premortem.sources.detection import ReadOptions
from premortem.sources.port import Context
from premortem.stores import JobQuery, open_store

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
JOBS = [
    {"cluster": "alpha", "job_id": n, "submit_time": NOON, "start_time": NOON,
     "end_time": NOON + timedelta(seconds=60 * n), "user": "ada", "state": "COMPLETED",
     "script": "#!/bin/sh\n./relax\n", "seen_at": NOON}
    for n in (1, 2, 3)
]  # fmt: skip
SAMPLES = conform_samples(
    pl.DataFrame(
        [
            {"cluster": "alpha", "job_id": n, "at": NOON + timedelta(seconds=s), "cpu_s": s * 0.5}
            for n in (1, 3)
            for s in (1, 7.5)
        ]
    )
)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    store.append(frame(JOBS))
    store.add_samples(SAMPLES)
    assert export_jobs(store, tmp_path / "jobs.parquet") == 3
    store.close()
    return tmp_path / "jobs.parquet"


def test_a_store_filled_with_it_is_the_same_store(exported: Path, tmp_path: Path) -> None:
    copy = open_store(f"sqlite:///{tmp_path / 'copy.db'}")
    report = load_file(
        str(exported), copy, options=ReadOptions(), context=Context(), progress=lambda *_: None
    )
    assert (report.new, report.rejected, report.problem) == (3, 0, None)
    original = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    assert_frame_equal(copy.jobs(), original.jobs())
    assert_frame_equal(copy.samples(), original.samples())
    copy.close()
    original.close()


def test_a_log_read_from_it_has_samples(exported: Path) -> None:
    log = read_log(str(exported), options=ReadOptions(), context=Context())
    assert log.jobs["samples"].list.len().to_list() == [2, None, 2]
    assert log.jobs["script"].unique().to_list() == ["#!/bin/sh\n./relax\n"]


def test_secrets_go_wherever_the_file_comes_from(exported: Path) -> None:
    scripts = ["API_KEY=hunter2 run\n", "API_KEY=[redacted] run\n", None]
    lines = ["sbatch --export=ALL,API_KEY=hunter2 x.sh", "sbatch x.sh", None]
    jobs = pl.read_parquet(exported).with_columns(
        script=pl.Series(scripts), submit_line=pl.Series(lines)
    )
    jobs.write_parquet(exported)
    log = read_log(str(exported), options=ReadOptions(), context=Context())
    assert log.jobs["script"].to_list() == [scripts[1], scripts[1], None]
    safe = "sbatch --export=ALL,API_KEY=[redacted] x.sh"
    assert log.jobs["submit_line"].to_list() == [safe, *lines[1:]]


def test_bad_rows_are_set_aside(exported: Path) -> None:
    jobs = pl.read_parquet(exported).with_columns(
        end_time=pl.Series([NOON - timedelta(days=900), NOON, NOON], dtype=pl.Datetime("us", "UTC"))
    )
    jobs.write_parquet(exported)
    log = read_log(str(exported), options=ReadOptions(), context=Context())
    assert (log.jobs.height, log.rejected) == (2, 1)


def test_states_are_read_and_what_cannot_be_known_yet_is_dropped(exported: Path) -> None:
    states = pl.Series("state", ["CANCELLED by 1000", "PENDING", "NONSENSE"])
    pl.read_parquet(exported).with_columns(states).write_parquet(exported)
    log = read_log(str(exported), options=ReadOptions(), context=Context())
    assert log.jobs["state"].to_list() == ["CANCELLED", "PENDING"]
    assert log.jobs["end_time"].is_null().to_list() == [False, True]
    assert log.rejected == 1


def test_a_table_of_text_with_its_columns_is_no_export(exported: Path, tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    pl.read_parquet(exported, columns=["cluster", "job_id", "submit_time"]).write_csv(table)
    with pytest.raises(InvalidInput, match="--mapping"):
        read_log(str(table), options=ReadOptions(), context=Context())


def test_a_folder_is_no_file_to_write(exported: Path, tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    with pytest.raises(InvalidInput, match="name a file in it"):
        export_jobs(store, ".")
    store.close()


def test_a_broken_file_is_told(exported: Path) -> None:
    exported.write_bytes(exported.read_bytes()[:200] + b"PAR1")
    with pytest.raises(InvalidInput, match="Parquet"):
        read_log(str(exported), options=ReadOptions(), context=Context())


def test_a_full_disk_is_told_and_leaves_what_was_there(exported: Path, tmp_path: Path) -> None:
    before = exported.read_bytes()
    (tmp_path / "jobs.parquet.part").symlink_to("/dev/full")
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    with pytest.raises(Unavailable, match=r"jobs\.parquet cannot be written: .*No space left"):
        export_jobs(store, exported)
    store.close()
    assert exported.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.db", "jobs.parquet"]


@pytest.mark.parametrize("place", ["none/x.parquet", "jobs.parquet/x.parquet", "folder"])
def test_a_place_that_cannot_be_written_to_is_told(
    exported: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "folder").mkdir()
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    with pytest.raises(Unavailable, match="cannot be written"):
        export_jobs(store, tmp_path / place)
    store.close()
    assert not [*tmp_path.glob("**/*.part")]


def test_nothing_to_write_is_told(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    store.append(frame(JOBS))
    with pytest.raises(NotFound):
        export_jobs(store, tmp_path / "no.parquet", JobQuery(users=["eve"]))
    store.close()
    assert not (tmp_path / "no.parquet").exists()


def test_the_command_tells_what_it_wrote(exported: Path, tmp_path: Path) -> None:
    done = premortem(tmp_path, "export", "again.parquet", "--user", "ada")
    assert done.code == 0, done.err
    assert "3 jobs in again.parquet" in done.out
    assert premortem(tmp_path, "export", "x.parquet", "--user", "eve").code == 3
