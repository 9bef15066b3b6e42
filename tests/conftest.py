"""Services and disks that tests of several folders share; each is there when first asked for."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import mlflow_server as server
import pytest
import slurm_lab
from requirements import require

from premortem.lab import Lab


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.MlflowServer]:
    """One MLflow server for all tests of a session."""
    require(
        importlib.util.find_spec("mlflow") is not None,
        "mlflow is not installed: pip install 'premortem[mlflow]'",
    )
    with server.running(tmp_path_factory.mktemp("mlflow")) as running:
        yield running


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One Slurm 24.11 of four nodes for all tests of a session."""
    with slurm_lab.running(tmp_path_factory.mktemp("slurm"), "24.11") as lab:
        yield lab


@pytest.fixture(scope="session")
def slurm_2205(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One Slurm 22.05 of two nodes for all tests of a session."""
    with slurm_lab.running(tmp_path_factory.mktemp("slurm_2205"), "22.05", nodes=2) as lab:
        yield lab


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
