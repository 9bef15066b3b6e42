"""`premortem train` and Ctrl-C: what is finished is registered, and nothing is torn."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import polars as pl
import pytest
from command import PREMORTEM, Run, environment

from premortem.apps.cli.progress import Status
from premortem.apps.cli.stopping import stoppable
from premortem.registry.folder import FolderRegistry
from premortem.stores import open_store
from premortem.testing.synthetic import SyntheticCluster

TRAIN = ("train", "--points", "submit,start", "--registry", "models", "--json")
LONG = (*TRAIN, "--trials", "1000")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a store that is fit to train on."""
    with closing(open_store(f"sqlite:///{tmp_path / 'jobs.db'}")) as store:
        store.append(pl.concat(SyntheticCluster(700, seed=5, users=15, days=30).frames()))
    return tmp_path


@pytest.mark.usefixtures("site")
class TestPhases:
    """A signal that comes as a phase begins; the first one is only heard, so no test is ended."""

    @pytest.fixture
    def signalled(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
        """What to send, and when: the beginning of what is told then."""
        sends: list[tuple[str, int]] = []
        usual = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}

        def tell(_: Status, text: str) -> None:
            if sends and text.startswith(sends[0][0]):
                _, number = sends.pop()
                os.kill(os.getpid(), number)
                # It is heard by the main thread, which may be another.
                while signal.getsignal(number) is not usual[signal.Signals(number)]:
                    threading.Event().wait(0.01)

        monkeypatch.setattr(Status, "tell", tell)
        yield sends
        assert {name: signal.getsignal(name) for name in usual} == usual

    @pytest.mark.parametrize(
        ("phase", "number", "points", "notes"),
        [
            (
                "submit: search, 1 tried", signal.SIGINT, ["submit"],
                ["start is left out: the training was interrupted before its search",
                 "submit: the search was interrupted; the best of 1 tried is used",
                 "run it again for the rest"],
            ),
            (
                "submit: final", signal.SIGTERM, ["submit"],
                ["start is left out: the training was interrupted before its search",
                 "run it again for the rest"],
            ),
            (
                "start: search, 1 tried", signal.SIGINT, ["submit", "start"],
                ["start: the search was interrupted; the best of 1 tried is used",
                 "run it again for the rest"],
            ),
            ("report", signal.SIGINT, ["submit", "start"], []),
        ],
    )  # fmt: skip
    def test_what_is_finished_is_registered(
        self,
        premortem: Run,
        signalled: list[tuple[str, int]],
        phase: str,
        number: int,
        points: list[str],
        notes: list[str],
    ) -> None:
        signalled.append((phase, number))
        done = premortem(*TRAIN, "--trials", "2")
        assert done.code == 0, done.err
        assert done.json["manifest"]["points"] == points
        told = done.err.splitlines()
        assert (
            told.count(
                "interrupted: what is finished will be registered; once more ends it without"
            )
            == 1
        )
        assert [note for note in notes if f"note: {note}" not in told] == []
        assert ("run it again" in done.err) == bool(notes)

    def test_one_point_alone_is_told_of_too(
        self, premortem: Run, signalled: list[tuple[str, int]], site: Path
    ) -> None:
        arguments = ("--points", "submit", "--trials", "2", "--journal", "trials.log")
        signalled.append(("submit: search, 1", signal.SIGINT))
        done = premortem(*TRAIN, *arguments)
        assert "submit: the search was interrupted; the best of 1 tried is used" in done.err
        assert "again for the rest: the search goes on from the trials in trials.log" in done.err
        report = FolderRegistry(site / "models").path / "v0001" / "files" / "report.json"
        assert json.loads(report.read_text())["interrupted"]
        assert "interrupted" not in premortem(*TRAIN, *arguments).err


class TestProcess:
    """A process of its own, signalled when it has said something on its terminal."""

    def test_the_first_ends_it_in_order(self, site: Path) -> None:
        with begun(site, *LONG) as process:
            process.wait_for(r"submit: search, \d+ tried")
            process.signal()
            process.wait_for("interrupted: what is finished will be registered")
            out = process.out()
        assert process.code == 0
        assert json.loads(out)["manifest"]["points"] == ["submit"]
        assert "Traceback" not in process.heard

    def test_before_anything_is_finished(self, site: Path) -> None:
        with begun(site, *LONG) as process:
            process.wait_for("submit: features|submit: search")
            process.signal()
            out = process.out()
        # The search may have begun by then, and what it has found is registered in that case.
        assert process.code in (0, 130)
        assert bool(out) == (process.code == 0)
        assert "Traceback" not in process.heard

    def test_the_second_ends_it_at_once(self, site: Path) -> None:
        models = site / "models"
        models.mkdir()
        # Nothing can be registered before the second signal has come.
        with (models / "lock").open("ab") as held, begun(site, *LONG) as process:
            process.wait_for(r"submit: search, \d+ tried")
            fcntl.flock(held, fcntl.LOCK_EX)
            process.signal()
            process.wait_for("interrupted: what is finished will be registered")
            process.signal()
            assert process.out() == ""
        assert process.code == 130
        assert "what was stored is safe" in process.heard
        assert "Traceback" not in process.heard
        # The cursor, hidden while there was a status, is shown again.
        assert process.heard.rindex("\x1b[?25h") > process.heard.rindex("\x1b[?25l")
        assert FolderRegistry(models).versions() == []


class Process:
    """`premortem` with its standard error on a terminal that is listened to."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._terminal, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [*PREMORTEM, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=theirs, text=True,
            env=environment(folder, TERM="xterm", COLUMNS="200"),
        )  # fmt: skip
        os.close(theirs)
        self.heard = ""

    @property
    def code(self) -> int:
        return self._process.wait(60)

    def signal(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def wait_for(self, pattern: str) -> None:
        """Listen until it says this; a status that stands for less than a frame is not said."""
        while not re.search(pattern, self.heard):
            assert self._hear(), self.heard

    def out(self) -> str:
        """What it printed as its result, when it has ended."""
        while self._hear():
            pass
        assert self._process.stdout
        return self._process.stdout.read()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)
        if self._process.stdout:
            self._process.stdout.close()

    def _hear(self) -> bool:
        try:
            said = os.read(self._terminal, 65_536)
        except OSError:  # That is how a terminal says that the other side has left.
            return False
        self.heard += said.decode(errors="replace")
        return True


@contextmanager
def begun(folder: Path, *arguments: str) -> Iterator[Process]:
    process = Process(folder, *arguments)
    try:
        yield process
        assert process.code is not None
    finally:
        process.close()


def test_another_thread_changes_no_handlers() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[bool] = []

    def work() -> None:
        with stoppable(lambda: None) as stopped:
            seen.append(stopped() or signal.getsignal(signal.SIGINT) is not before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]
