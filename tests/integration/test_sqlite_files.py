"""The SQLite store as a file among processes: killed, shared, locked, full, foreign, outdated."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer

import polars as pl
import pytest
from command import PREMORTEM, environment, premortem
from samples import sacct_text, swf_text

from premortem.errors import Conflict, InvalidInput, Unavailable
from premortem.jobs.frame import SCHEMA
from premortem.stores import open_store

BIG = 300_000


@pytest.fixture(scope="module")
def big_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "big.swf"
    path.write_text(swf_text(BIG))
    return path


def start_load(folder: Path, log: Path | str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PREMORTEM, "load", str(log)],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def ask(folder: Path, question: str) -> str:
    """What another process sees in the store; empty while there is none."""
    code = (
        "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, folder / "jobs.db", question],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def stored(folder: Path) -> int:
    return int(ask(folder, "SELECT count(*) FROM job") or 0)


def wait_for_some(folder: Path, load: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        seen = stored(folder)
        if seen:
            return seen
        assert load.poll() is None, load.stderr
    raise AssertionError("nothing was stored in a minute")


def test_a_killed_load_leaves_whole_batches_and_a_second_completes_it(
    tmp_path: Path, big_log: Path
) -> None:
    load = start_load(tmp_path, big_log)
    wait_for_some(tmp_path, load)
    load.kill()
    load.communicate()
    assert load.returncode == -signal.SIGKILL
    before = stored(tmp_path)
    assert 0 < before < BIG
    assert ask(tmp_path, "PRAGMA integrity_check") == "ok"
    again = premortem(tmp_path, "load", big_log, "--json").json
    assert (again["new"], again["unchanged"], again["rejected"]) == (BIG - before, before, 0)
    assert stored(tmp_path) == BIG


def test_an_interrupted_load_says_so_and_keeps_what_it_stored(
    tmp_path: Path, big_log: Path
) -> None:
    load = start_load(tmp_path, big_log)
    wait_for_some(tmp_path, load)
    load.send_signal(signal.SIGINT)
    _, err = load.communicate(timeout=60)
    assert load.returncode == 130
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert stored(tmp_path) > 0


def test_others_read_while_one_writes(tmp_path: Path, big_log: Path) -> None:
    whole = big_log.read_bytes()
    half = whole.rindex(b"\n", 0, len(whole) // 2) + 1
    load = start_load(tmp_path, "-")
    assert load.stdin
    load.stdin.write(whole[:half])
    load.stdin.flush()
    wait_for_some(tmp_path, load)
    seen = premortem(tmp_path, "stats", "--json")
    assert load.poll() is None
    load.communicate(whole[half:])
    assert seen.code == load.returncode == 0
    assert 0 < seen.json["jobs"] < BIG == stored(tmp_path)


def test_a_locked_store_is_told_after_waiting(tmp_path: Path) -> None:
    (tmp_path / "jobs.txt").write_text(sacct_text())
    premortem(tmp_path, "load", "jobs.txt")
    holder = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    done = premortem(tmp_path, "load", "jobs.txt", PREMORTEM_STORE_PATIENCE_S="0.2")
    holder.close()
    assert done.code == 5
    assert "another process" in done.err
    assert "Traceback" not in done.err


def test_a_store_can_be_used_after_an_interruption(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    jobs = pl.DataFrame(
        {"cluster": ["alpha"], "job_id": [1], "submit_time": [datetime(2026, 1, 5, tzinfo=UTC)]}
    )
    code = (
        "import sqlite3, sys, time; held = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "held.execute('BEGIN IMMEDIATE'); print(flush=True); time.sleep(2)"
    )
    with closing(open_store(f"sqlite:///{path}")) as store:
        holds = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
        with holds:
            assert holds.stdout is not None
            holds.stdout.readline()
            # Interrupted while it waits for the other one, which then lets it begin.
            Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
            with pytest.raises(KeyboardInterrupt):
                store.append(jobs)
        assert store.append(jobs).new == 1


def test_a_full_disk_loses_nothing_already_stored(small_disk: Path, big_log: Path) -> None:
    (small_disk / "jobs.txt").write_text(sacct_text(50))
    assert premortem(small_disk, "load", "jobs.txt").code == 0
    done = premortem(small_disk, "load", big_log)
    assert done.code == 5
    assert "no space left" in done.err
    assert premortem(small_disk, "stats", "--cluster", "alpha", "--json").json["jobs"] == 50


def test_a_read_only_store_is_read_but_not_written(small_disk: Path) -> None:
    (small_disk / "jobs.txt").write_text(sacct_text())
    premortem(small_disk, "load", "jobs.txt")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = premortem(small_disk, "load", "jobs.txt")
    assert done.code == 5
    assert "cannot be written to" in done.err
    assert premortem(small_disk, "stats", "--json").json["jobs"] == 3


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(b"not a database at all, " * 100)
    for read_only in (True, False):
        with pytest.raises(InvalidInput, match="not a premortem store"):
            open_store(f"sqlite:///{path}", read_only=read_only)
    assert path.read_bytes().startswith(b"not a database")


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE job (title TEXT)")
    other.commit()
    other.close()
    for read_only in (True, False):
        with pytest.raises((InvalidInput, Conflict), match="not a premortem store"):
            open_store(f"sqlite:///{path}", read_only=read_only)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",), "left as it was"


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    open_store(f"sqlite:///{path}").close()
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(Conflict, match="newer premortem"):
        open_store(f"sqlite:///{path}")


def test_fields_added_since_are_added_to_an_old_store(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = open_store(f"sqlite:///{path}")
    store.append(pl.DataFrame([_job(1)], schema_overrides=SCHEMA))
    store.close()
    old = sqlite3.connect(path)
    old.execute("ALTER TABLE job DROP COLUMN energy_j")
    old.commit()
    old.close()
    reading = open_store(f"sqlite:///{path}", read_only=True)
    assert reading.jobs(columns=["job_id", "energy_j"]).rows() == [(1, None)]
    reading.close()
    writing = open_store(f"sqlite:///{path}")
    writing.append(pl.DataFrame([_job(2) | {"energy_j": 5.0}], schema_overrides=SCHEMA))
    assert writing.jobs(columns=["energy_j"]).rows() == [(None,), (5.0,)]
    writing.close()


def test_a_directory_and_an_unreachable_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a directory"):
        open_store(f"sqlite:///{tmp_path}")
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot make the folder"):
        open_store(f"sqlite:///{tmp_path / 'file' / 'jobs.db'}")


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(InvalidInput, match="sqlite:///"):
        open_store("jobs.db")


def _job(job_id: int) -> dict[str, object]:
    from datetime import UTC, datetime

    return {"cluster": "a", "job_id": job_id, "submit_time": datetime(2026, 1, 1, tzinfo=UTC)}


def test_several_loads_at_once_into_a_fresh_store(tmp_path: Path) -> None:
    logs = []
    for n in range(4):
        log = tmp_path / f"log{n}.swf"
        log.write_text(swf_text(2000))
        logs.append(log)
    loads = [start_load(tmp_path, log) for log in logs]
    for load in loads:
        _, err = load.communicate(timeout=120)
        assert load.returncode == 0, err
    assert stored(tmp_path) == 4 * 2000


def test_an_interruption_does_not_wait_for_a_silent_pipe(tmp_path: Path) -> None:
    load = subprocess.Popen(
        [*PREMORTEM, "load", "-"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert load.stdin is not None
    load.stdin.write(swf_text(20_000).encode())
    load.stdin.flush()
    time.sleep(3)
    load.send_signal(signal.SIGINT)
    assert load.wait(timeout=20) == 130
    load.stdin.close()


def test_a_reader_that_leaves_early_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(swf_text(5000))
    premortem(tmp_path, "load", "log.swf")
    command = f"{' '.join(PREMORTEM)} jobs --limit 0 | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
