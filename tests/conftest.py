"""Services and disks that tests of several folders share; each is there when first asked for."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import mlflow_server as server
import pytest
from requirements import require


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.MlflowServer]:
    """One MLflow server for all tests of a session."""
    require(
        importlib.util.find_spec("mlflow") is not None,
        "mlflow is not installed: pip install 'premortem[mlflow]'",
    )
    with server.running(tmp_path_factory.mktemp("mlflow")) as running:
        yield running


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=False
        ).returncode
    )
    require(mounted, "mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)
