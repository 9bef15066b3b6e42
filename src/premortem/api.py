"""premortem in Python: what notebooks and scripts of a site begin with."""

from __future__ import annotations

from contextlib import closing

import polars as pl

from premortem.errors import NotFound
from premortem.operations.estimator import Estimator
from premortem.operations.training import history
from premortem.operations.training import load_model as load
from premortem.registry import open_registry
from premortem.settings import load_settings
from premortem.stores import JobQuery, open_store

__all__ = ["Estimator", "load_model"]


def load_model(
    name: str = "champion", *, registry: str | None = None, store: str | None = None
) -> Estimator:
    """The registered model of that version or alias, ready to predict.

    `registry` is an address such as `folder:///srv/models`, and `store` that of the jobs its
    predictions go by, such as `sqlite:////srv/jobs.db`; those of the settings unless given. The
    store is read at each prediction that is not given a `history`.
    """
    settings = load_settings().values
    opened = open_registry(registry or settings.registry.url)
    try:
        model, version = load(opened, name)
        model.prepare()
    finally:
        opened.close()
    url, patience_s = store or settings.store.url, settings.store.patience_s
    return Estimator.of(model, version.number, lambda: _stored(url, patience_s))


def _stored(url: str, patience_s: float) -> pl.DataFrame | None:
    """The jobs of a store as its models were trained on them; None where there are none."""
    try:
        opened = open_store(url, read_only=True, patience_s=patience_s)
    except NotFound:
        return None
    with closing(opened) as store:
        return None if store.jobs(JobQuery(limit=1), ["job_id"]).is_empty() else history(store)
