"""A process is known by more than its number."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from premortem.lab.processes import Process, started


def test_a_process_is_itself_until_it_ends() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = Process(child.pid, started(child.pid) or 0)
    assert process.is_running()
    assert Process.from_dict(process.as_dict()) == process
    assert abs(process.since - datetime.now(UTC)) < timedelta(minutes=1)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not process.is_running(), "a corpse does not run"
    child.communicate()
    assert not process.is_running()


def test_another_with_its_number_is_not_it() -> None:
    ticks = started(os.getpid())
    assert ticks
    assert Process(os.getpid(), ticks).is_running()
    assert not Process(os.getpid(), ticks + 1).is_running()


def test_a_name_may_hold_anything(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    rest = " ".join(map(str, range(4, 40)))
    (tmp_path / "7" / "stat").write_text(f"7 (a) Z (b) 1) S {rest}")
    assert started(7, tmp_path) == 22
    assert started(8, tmp_path) is None
