"""What is written down about a lab, and what becomes of it when it cannot be read."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.lab import records
from premortem.lab.plans import Plan, choose_ports
from premortem.lab.processes import Process, boot, started
from premortem.lab.records import Record, Running


def record(**changes: object) -> Record:
    keeper = Process(os.getpid(), started(os.getpid()) or 0)
    running = Running(keeper, boot(), True, {"slurmctld": Process(12, 345)})
    return Record(Plan(), choose_ports(4), Path("/root"), replace(running, **changes))  # type: ignore[arg-type]


def test_a_record_survives_being_written_down(tmp_path: Path) -> None:
    written = record()
    records.write(tmp_path, written)
    assert records.require(tmp_path) == written
    records.write(tmp_path, replace(written, running=None))
    assert not records.require(tmp_path).is_running


def test_what_ran_before_the_machine_started_anew_does_not_run() -> None:
    assert record().is_running
    assert not record(boot="another").is_running
    assert not record(keeper=Process(os.getpid(), 1)).is_running


def test_a_folder_without_a_lab_is_told(tmp_path: Path) -> None:
    assert records.read(tmp_path) is None
    assert records.read(tmp_path / "no" / "where") is None
    with pytest.raises(NotFound, match="there is no lab in"):
        records.require(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1}', '{"format": 99}'])
def test_a_damaged_record_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / records.FILE).write_text(text)
    with pytest.raises(InvalidInput, match=r"lab\.json"):
        records.require(tmp_path)


def test_a_plan_that_cannot_be_is_told(tmp_path: Path) -> None:
    records.write(tmp_path, record())
    told = json.loads((tmp_path / records.FILE).read_text())
    told["plan"]["slurm"] = "19.05"
    (tmp_path / records.FILE).write_text(json.dumps(told))
    with pytest.raises(InvalidInput, match=r"not '19\.05'"):
        records.require(tmp_path)


def test_only_one_process_changes_a_lab(tmp_path: Path) -> None:
    with (
        records.changing(tmp_path),
        pytest.raises(Unavailable, match="another process"),
        records.changing(tmp_path),
    ):
        pass
    with records.changing(tmp_path):
        pass
