"""Which address means which registry."""

from __future__ import annotations

import sys

import pytest

from premortem.errors import InvalidInput, MissingExtra
from premortem.registry import open_registry
from premortem.registry.folder import FolderRegistry
from premortem.registry.mlflow_server import parts


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("folder:///srv/models", "/srv/models"),
        ("folder:////srv/models", "/srv/models"),
        ("/srv/models", "/srv/models"),
        ("models", "models"),
        ("~/models", "/home/ada/models"),
    ],
)
def test_folders(url: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    opened = open_registry(url)
    assert isinstance(opened, FolderRegistry)
    assert str(opened.path) == path


@pytest.mark.parametrize(
    "url", ["", "folder://models", "s3://bucket/x", "http://host/model", "://"]
)
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(InvalidInput, match="folder:///path"):
        open_registry(url)


def test_a_password_is_not_repeated() -> None:
    for url in ("mongodb://ada:secret@host/x", "mlflow+http://ada:secret@host/model"):
        with pytest.raises(InvalidInput) as caught:
            open_registry(url)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://host:5000/failures", ("http://host:5000", "failures")),
        ("https://host/mlflow/failures", ("https://host/mlflow", "failures")),
        ("http://[::1]:5000/a.b-c_d", ("http://[::1]:5000", "a.b-c_d")),
    ],
)
def test_a_model_on_a_server(address: str, expected: tuple[str, str]) -> None:
    assert parts(address) == expected


@pytest.mark.parametrize(
    "address",
    [
        "http://host:5000",
        "http://host:5000/",
        "http:///failures",
        "http://host:port/failures",
        "http://host:99999/failures",
        "http://host/fail'ures",
        "http://host/failures?x=1",
        "http://[::1/failures",
    ],
)
def test_an_address_without_server_or_model_is_told(address: str) -> None:
    with pytest.raises(InvalidInput, match="address"):
        parts(address)


def test_without_mlflow_the_way_to_install_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'premortem\[mlflow\]'"):
        open_registry("mlflow+http://127.0.0.1:1/model")
