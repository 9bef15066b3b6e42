"""The MLflow registry on a real server: what its users see there, and when it is out of reach."""

from __future__ import annotations

import http.server
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import premortem
from mlflow_server import MlflowServer, free_port
from model_folders import folder_of, loadable_model, trained

from premortem.errors import InvalidInput, NotFound, PremortemError, Unavailable
from premortem.registry import Overtaken, Registry, open_registry
from premortem.registry.mlflow import MlflowRegistry

# Registers a version, and is killed when all but the last step is done.
KILLED = """
import os, signal, sys
from pathlib import Path
from mlflow import MlflowClient
from premortem.registry import open_registry
MlflowClient.create_model_version = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
open_registry(sys.argv[1]).add(Path(sys.argv[2]), {}, alias="champion")
"""


@pytest.fixture
def url(mlflow_server: MlflowServer) -> str:
    return mlflow_server.new_registry()


@pytest.fixture
def name(url: str) -> str:
    return url.rpartition("/")[2]


@pytest.fixture
def registry(url: str) -> Iterator[Registry]:
    opened = open_registry(url)
    yield opened
    opened.close()


@pytest.fixture
def client(mlflow_server: MlflowServer) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=mlflow_server.address, registry_uri=mlflow_server.address)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "model", {"model.ubj": b"trees" * 1000, "submit/a.json": "[]"})


class TestWhatMlflowShows:
    def test_a_run_with_params_metrics_and_artifacts(
        self, registry: Registry, client: Any, name: str, model: Path
    ) -> None:
        registry.add(model, trained(), alias="challenger")
        record = client.get_model_version_by_alias(name, "challenger")
        run = client.get_run(record.run_id)
        assert run.info.status == "FINISHED"
        assert run.data.params["data.jobs"] == "1000"
        assert run.data.params["features.submit"] == "abc123"
        assert run.data.metrics["submit/average_precision"] == 0.5
        assert run.data.tags["premortem.points"] == '["submit", "start"]'
        listed = client.list_artifacts(record.run_id, "files")
        assert {artifact.path for artifact in listed} == {"files/model.ubj", "files/submit"}

    def test_a_manifest_with_many_values_and_metrics(
        self, registry: Registry, client: Any, name: str, model: Path
    ) -> None:
        numbers = {f"metric_{n}": n / 7 for n in range(1500)}
        told = {f"value_{n}": n for n in range(250)} | {"metrics": numbers}
        added = registry.add(model, told)
        assert added.manifest["metrics"] == numbers
        data = client.get_run(client.get_model_version(name, "1").run_id).data
        assert (len(data.params), len(data.metrics)) == (250, 1500)

    def test_nothing_is_printed(
        self, registry: Registry, model: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        registry.fetch(registry.add(model, trained(), alias="champion"))
        registry.set_alias("challenger", registry.resolve("champion"))
        assert capfd.readouterr() == ("", "")


class TestOthersOnTheServer:
    def test_one_that_took_the_place_while_files_were_sent(
        self, url: str, registry: Registry, model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent = MlflowRegistry._run

        def slowly(self: MlflowRegistry, *given: Any) -> Any:
            monkeypatch.setattr(MlflowRegistry, "_run", sent)
            open_registry(url).add(model, {"n": 1}, alias="champion")
            return sent(self, *given)

        monkeypatch.setattr(MlflowRegistry, "_run", slowly)
        with pytest.raises(Overtaken):
            registry.add(model, {"n": 2}, alias="champion", instead_of=0)
        assert [version.manifest["n"] for version in registry.versions()] == [1]
        assert registry.aliases() == {"champion": 1}

    def test_an_alias_moved_there_counts_here(
        self, registry: Registry, client: Any, name: str, model: Path
    ) -> None:
        for _ in range(3):
            registry.add(model, {}, alias="champion")
        client.set_registered_model_alias(name, "champion", "1")
        assert registry.resolve("champion").number == 1
        assert registry.rollback().number == 3

    def test_versions_that_premortem_did_not_make_are_left_alone(
        self, registry: Registry, client: Any, name: str, model: Path
    ) -> None:
        registry.add(model, {}, alias="champion")
        run = client.get_run(client.get_model_version(name, "1").run_id)
        client.create_model_version(name, run.info.artifact_uri, run.info.run_id)
        assert [version.number for version in registry.versions()] == [1]
        with pytest.raises(NotFound, match="v2 is not in"):
            registry.resolve("2")
        assert registry.add(model, {}).number == 3

    def test_a_damaged_manifest_is_told(
        self, registry: Registry, client: Any, name: str, model: Path
    ) -> None:
        registry.add(model, {})
        client.set_model_version_tag(name, "1", "premortem.manifest.000", "{")
        good = registry.add(model, {})
        with pytest.raises(InvalidInput, match=r"the manifest of v1 on .* is not a manifest"):
            registry.resolve("1")
        found, damaged = registry.versions()
        assert found == good
        assert "is not a manifest" in str(damaged.damage)
        registry.delete(damaged)
        assert registry.versions() == [good]

    def test_a_damaged_history_is_told(
        self, registry: Registry, client: Any, name: str, model: Path
    ) -> None:
        registry.add(model, {}, alias="champion")
        client.set_registered_model_tag(name, "premortem.event.x", "{")
        with pytest.raises(InvalidInput, match=r"premortem\.event\.x .* remove it"):
            registry.rollback()


def test_killed_before_the_last_step_nothing_is_registered(
    registry: Registry, client: Any, url: str, name: str, model: Path
) -> None:
    command = [sys.executable, "-c", KILLED, url, str(model)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    experiment = client.get_experiment_by_name(name)
    assert len(client.search_runs([experiment.experiment_id])) == 1, "it did begin"
    assert registry.versions() == []
    assert registry.aliases() == {}
    assert registry.add(model, {}).number == 1


def test_an_upload_that_fails_leaves_no_run(
    registry: Registry, client: Any, name: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    def fail(*_: object) -> None:
        raise MlflowException("the artifact store is full")

    monkeypatch.setattr(MlflowClient, "log_artifacts", fail)
    with pytest.raises(Unavailable, match="the artifact store is full"):
        registry.add(model, trained(), alias="champion")
    assert registry.versions() == []
    experiment = client.get_experiment_by_name(name)
    assert list(client.search_runs([experiment.experiment_id])) == []


def test_more_versions_than_one_answer_holds(
    registry: Registry, client: Any, name: str, model: Path
) -> None:
    first = registry.add(model, {}, alias="champion")
    record = client.get_model_version(name, "1")
    for _ in range(204):
        client.create_model_version(
            name, record.source, record.run_id, tags=record.tags, await_creation_for=0
        )
    assert [version.number for version in registry.versions()] == list(range(205, 0, -1))
    assert registry.resolve("champion") == first


@pytest.mark.usefixtures("mlflow_server")  # Not for its own sake: it tells whether there is MLflow.
class TestOutOfReach:
    def told_in_s(self, url: str, within_s: float, match: str) -> None:
        registry = open_registry(url)
        for attempt in (registry.versions, lambda: registry.resolve("champion")):
            began = time.monotonic()
            with pytest.raises(PremortemError, match=match) as caught:
                attempt()
            assert time.monotonic() - began < within_s
            assert isinstance(caught.value, Unavailable)

    def test_nobody_listens(self) -> None:
        url = f"mlflow+http://127.0.0.1:{free_port()}/model"
        self.told_in_s(url, 5, "no MLflow server answers .*Connection refused")

    def test_a_host_that_drops_what_it_is_sent(self) -> None:
        with socket.socket() as deaf, socket.socket() as first, socket.socket() as second:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            for filler in (first, second):  # The queue is full, further callers hear nothing.
                filler.setblocking(False)
                filler.connect_ex(deaf.getsockname())
            url = f"mlflow+http://127.0.0.1:{deaf.getsockname()[1]}/model"
            self.told_in_s(url, 6, "no MLflow server answers .*timed out")

    def test_a_server_of_another_kind(self, tmp_path: Path) -> None:
        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as other:
            threading.Thread(target=other.serve_forever).start()
            url = f"mlflow+http://127.0.0.1:{other.server_port}/model"
            self.told_in_s(url, 10, "could not do this: .*404")
            other.shutdown()


def test_the_commands_work_with_it(url: str, tmp_path: Path) -> None:
    registry, model = open_registry(url), loadable_model(tmp_path / "loadable")
    registry.add(model, trained(), alias="champion")
    registry.add(model, trained(auc=0.9))
    registry.close()
    promoted = premortem(tmp_path, "models", "promote", "2", "--registry", url, "--json")
    assert (promoted.code, promoted.err) == (0, "")
    assert promoted.json["aliases"] == ["champion"]
    listed = premortem(tmp_path, "models", "list", "--json", PREMORTEM_REGISTRY_URL=url)
    assert [row["version"] for row in listed.json] == [2, 1]
    absent = f"mlflow+http://127.0.0.1:{free_port()}/model"
    gone = premortem(tmp_path, "models", "list", "--registry", absent)
    assert (gone.code, gone.out) == (5, "")
    assert "no MLflow server answers" in gone.err
