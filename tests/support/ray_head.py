"""The head of a real Ray cluster for tests, with a server for clients, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ports import free_port

_PATIENCE_S = 180
_STARTED = "Ray runtime started"


@contextmanager
def running(folder: Path, *, cpus: int = 2) -> Iterator[str]:
    """The `ray://` address of the head while it is needed; its log is in the folder."""
    port = free_port()
    command = [
        *(str(Path(sys.executable).parent / "ray"), "start", "--head", "--block"),
        *("--node-ip-address", "127.0.0.1", "--port", str(free_port())),
        *("--ray-client-server-port", str(port), "--num-cpus", str(cpus)),
        *("--include-dashboard", "false"),
    ]
    log = folder / "head.log"
    with log.open("wb") as output:
        head = subprocess.Popen(command, env=os.environ.copy(), stdout=output, stderr=output)
    try:
        _wait(head, log)
        yield f"ray://127.0.0.1:{port}"
    finally:
        head.terminate()
        head.wait(timeout=60)


def _wait(head: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if head.poll() is not None:
            raise AssertionError(f"the Ray head ended:\n{log.read_text()}")
        if _STARTED in log.read_text(errors="replace"):
            return
        time.sleep(0.2)
    raise AssertionError(f"the Ray head did not start:\n{log.read_text()}")
