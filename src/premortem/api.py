"""premortem in Python: what notebooks and scripts of a site begin with."""

from __future__ import annotations

from premortem.operations.estimator import Estimator
from premortem.operations.training import load_model as load
from premortem.registry import open_registry
from premortem.settings import load_settings


def load_model(name: str = "champion", *, registry: str | None = None) -> Estimator:
    """The registered model of that version or alias, ready to predict.

    `registry` is an address such as `folder:///srv/models`; the settings' own unless given.
    """
    opened = open_registry(registry or load_settings().values.registry.url)
    try:
        model, version = load(opened, name)
        model.prepare()
    finally:
        opened.close()
    return Estimator(model, version.number)
