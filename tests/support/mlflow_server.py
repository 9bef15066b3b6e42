"""A real MLflow server for tests: on loopback, on a free port, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ports import free_port

# The first start makes the tables of its database, which a busy machine does slowly.
_PATIENCE_S = 180


@dataclass(frozen=True)
class MlflowServer:
    address: str
    artifacts: Path

    def new_registry(self) -> str:
        """The URL of a registry that nobody has used."""
        return f"mlflow+{self.address}/model-{uuid.uuid4().hex[:12]}"


@contextmanager
def running(folder: Path) -> Iterator[MlflowServer]:
    """The server while it is needed; its log is in the folder."""
    port = free_port()
    artifacts = folder / "artifacts"
    command = [
        *(sys.executable, "-m", "mlflow", "server"),
        *("--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
        *("--artifacts-destination", str(artifacts)),
    ]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    log = folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, cwd=folder, env=os.environ | quiet, stdout=output, stderr=output
        )
    try:
        _wait(server, f"http://127.0.0.1:{port}", log)
        yield MlflowServer(f"http://127.0.0.1:{port}", artifacts)
    finally:
        server.terminate()
        server.wait(timeout=60)


def _wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise AssertionError(f"the MLflow server ended:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.2)
    raise AssertionError(f"the MLflow server did not answer:\n{log.read_text()}")
