"""The command line for tests of what it prints and returns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command import Finished, Run, environment

from premortem.apps.cli.main import run


@pytest.fixture
def premortem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """The command line in this process, with its store in the test's folder."""
    for name in os.environ:
        if name.startswith("PREMORTEM_"):
            monkeypatch.delenv(name)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Finished:
        monkeypatch.setattr("sys.argv", ["premortem", *arguments])
        with pytest.raises(SystemExit) as stop:
            run()
        printed = capsys.readouterr()
        return Finished(int(stop.value.code or 0), printed.out, printed.err)

    return call
