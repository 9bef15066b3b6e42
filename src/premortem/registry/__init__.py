"""Where trained models are kept: immutable versions, and which of them is in use.

A registry knows nothing of what its files mean; `open_registry` is the one place that chooses one.
"""

from __future__ import annotations

from premortem.errors import InvalidInput
from premortem.registry.history import Action, Event
from premortem.registry.naming import ALIASES, CHALLENGER, CHAMPION
from premortem.registry.port import Overtaken, Registry, Version

__all__ = [
    "ALIASES",
    "CHALLENGER",
    "CHAMPION",
    "Action",
    "Event",
    "Overtaken",
    "Registry",
    "Version",
    "open_registry",
]


def open_registry(url: str, *, patience_s: float = 30.0) -> Registry:
    """The registry at `url`: a folder, or a model on an MLflow server.

    ``folder:///path`` is absolute, as in ``file:///path``; a plain path may be relative, and a
    folder is made when first written to. ``mlflow+http://host:5000/name`` and ``mlflow+https://…``
    name a registered model on a server. `patience_s` is how long to wait for another process that
    is writing to the folder.
    """
    scheme, separator, rest = url.partition("://")
    if url and not separator:
        return _folder(url, patience_s)
    if scheme == "folder" and rest.startswith("/"):
        return _folder(f"/{rest.lstrip('/')}", patience_s)
    if scheme in ("mlflow+http", "mlflow+https"):
        from premortem.registry.mlflow import MlflowRegistry

        return MlflowRegistry(url.removeprefix("mlflow+"))
    # The address itself may hold a password, and is not repeated.
    raise InvalidInput(
        "a registry's address is a path, folder:///path, mlflow+http://host:port/model or "
        f"mlflow+https://host/model; this one begins '{scheme[:20]}'"
    )


def _folder(path: str, patience_s: float) -> Registry:
    from premortem.registry.folder import FolderRegistry

    return FolderRegistry(path, patience_s=patience_s)
