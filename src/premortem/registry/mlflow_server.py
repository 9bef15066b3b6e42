"""Talking to an MLflow server: its address, its library's manners, and its errors as ours."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from premortem.errors import InvalidInput, MissingExtra, Unavailable

# What a site has set itself stays. MLflow would otherwise report its use to its makers, draw bars
# over our output, and try an absent server for minutes.
_MANNERS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
_REACHED_IN_S = 3.0
_ATTEMPTS = 5
_DENIED = ("PERMISSION_DENIED", "UNAUTHENTICATED", "CUSTOMER_UNAUTHORIZED")


def parts(address: str) -> tuple[str, str]:
    """The server's own address, and the model's name at its end."""
    try:
        url = urlsplit(address)
        host, _ = url.hostname, url.port
    except ValueError as error:
        raise InvalidInput(f"a registry's address cannot be read: {error}") from error
    if url.username or url.password:
        raise InvalidInput(
            "a registry's address takes no user and password: set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD instead"
        )
    prefix, _, model = url.path.rpartition("/")
    if not host or url.query or url.fragment or not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", model):
        raise InvalidInput(
            "the address of a model on an MLflow server is mlflow+http://host:port/model, the "
            f"model named by letters, digits and ._- only; this one ends '{url.path}'"
        )
    return f"{url.scheme}://{url.netloc}{prefix}", model


def client(server: str) -> Any:
    """A client of MLflow's library; making one asks the server nothing."""
    for name, value in _MANNERS.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow import MlflowClient
    except ImportError as error:
        raise MissingExtra("mlflow", extra="mlflow") from error
    return MlflowClient(tracking_uri=server, registry_uri=server)


@contextmanager
def asking(server: str) -> Iterator[None]:
    """Turn MLflow's errors into ours, and tell an absent server without MLflow's patience."""
    from mlflow.exceptions import MlflowException
    from requests import RequestException

    _require_reachable(server)
    try:
        yield
    except MlflowException as error:
        if error.error_code in _DENIED:
            raise Unavailable(
                f"{server} refuses: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "
                f"MLFLOW_TRACKING_TOKEN ({error.message})"
            ) from error
        if error.error_code == "INVALID_PARAMETER_VALUE":
            raise InvalidInput(f"{server} does not take this: {error.message}") from error
        raise Unavailable(f"{server} could not do this: {error.message}") from error
    except RequestException as error:
        raise Unavailable(f"{server} could not do this: {error}") from error


def change(what: Callable[[], object]) -> None:
    """Make a change; again where another makes the same one at that moment.

    MLflow looks for a row, finds none and adds it, and so does the other: its database takes one.
    """
    from mlflow.exceptions import MlflowException

    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            what()
        except MlflowException as error:
            if "IntegrityError" not in error.message or not attempts_left:
                raise
        else:
            return


@contextmanager
def unless(code: str) -> Iterator[None]:
    """Go on after this error of MLflow's, and no other."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if error.error_code != code:
            raise


def _require_reachable(server: str) -> None:
    url = urlsplit(server)
    host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
    if getproxies().get(url.scheme) and not proxy_bypass(host):
        return  # Only the proxy can tell.
    try:
        socket.create_connection((host, port), timeout=_REACHED_IN_S).close()
    except OSError as error:
        raise Unavailable(
            f"no MLflow server answers at {server} ({error.strerror or error}): check the address, "
            "or try again later"
        ) from error
