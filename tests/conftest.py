"""Services that tests of several folders share; each starts when first asked for."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

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
