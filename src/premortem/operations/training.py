"""From the store's history to a registered model, in use only if it is better than the last."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from premortem import __version__
from premortem.errors import InvalidInput, MissingExtra, NotFound, PremortemError, Unavailable
from premortem.features.facts import INPUTS, Facts, facts_of
from premortem.features.replay import Replay
from premortem.jobs.fields import KEY
from premortem.jobs.labels import LABEL_INPUTS
from premortem.jobs.numbers import NUMBERS
from premortem.jobs.samples import with_samples
from premortem.prediction.model import Model
from premortem.prediction.predict import risk_as_told
from premortem.registry import CHALLENGER, CHAMPION, open_registry
from premortem.registry.disk import disk_errors_told
from premortem.registry.port import Overtaken, Registry, Version
from premortem.stores.port import JobQuery, Store
from premortem.training import metrics
from premortem.training.doubts import doubts
from premortem.training.train import Judged, Options, Training

REPORT = "report.json"
# The fields that training and prediction read.
HISTORY = tuple(dict.fromkeys((*KEY, *NUMBERS, *INPUTS, *LABEL_INPUTS, "seen_at")))


@dataclass(frozen=True, slots=True)
class Registered:
    """The version a training became; `why` tells in a sentence why it is in use, or not."""

    version: Version
    champion: bool
    why: str


def history(
    store: Store, *, since: datetime | None = None, until: datetime | None = None
) -> pl.DataFrame:
    """The jobs of the store with the fields that training and prediction read."""
    jobs = store.jobs(JobQuery(since=since, until=until), list(HISTORY))
    if jobs.is_empty():
        raise _no_jobs(store, since, until)
    return with_samples(jobs, store.samples())


def _no_jobs(store: Store, since: datetime | None, until: datetime | None) -> InvalidInput:
    """Why there is nothing to learn from: an empty store, or a window beside its jobs."""
    submitted = store.jobs(columns=["submit_time"])["submit_time"]
    if submitted.is_empty():
        return InvalidInput("the store has no jobs: 'premortem load' brings some")
    bounds = [f"{word} {_told(at)}" for word, at in (("since", since), ("before", until)) if at]
    return InvalidInput(
        f"none of the {len(submitted):,} jobs of the store was submitted {' and '.join(bounds)}: "
        f"they are from {_told(submitted.min())} to {_told(submitted.max())}"
    )


def register(
    registry: Registry,
    training: Training,
    options: Options,
    report: Mapping[str, Any],
    pages: Mapping[str, str] | None = None,
) -> Registered:
    """Add a trained model to the registry, as champion if there is none or it is better.

    `pages` are further files to keep with it, by name. Where the registry does not take it, the
    error names a registry of its own, in a temporary folder, that has it.
    """
    with disk_errors_told(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        training.model.save(files)
        (files / REPORT).write_text(json.dumps(report, allow_nan=False), encoding="utf-8")
        for name, text in (pages or {}).items():
            (files / name).write_text(text, encoding="utf-8", errors="replace")
        manifest = manifest_of(training, options) | {"warnings": doubts(report)}
        try:
            return _added(registry, training, files, manifest)
        except PremortemError as error:
            if place := _kept_apart(files, manifest):
                error.args = (
                    f"{error}; the model is not lost: it is kept in a registry of its own, "
                    f"--registry {place}; 'premortem models copy' brings it elsewhere",
                )
            raise


def _added(
    registry: Registry, training: Training, files: Path, manifest: Mapping[str, Any]
) -> Registered:
    while True:
        standing = registry.aliases().get(CHAMPION, 0)
        better, why = _is_better(registry, training)
        try:
            version = registry.add(
                files, manifest, alias=CHAMPION if better else CHALLENGER,
                instead_of=standing if better else None,
            )  # fmt: skip
        except Overtaken:
            continue
        return Registered(version, better, why)


def _kept_apart(files: Path, manifest: Mapping[str, Any]) -> str | None:
    """A new registry with this one version; None where there is no room for it either."""
    place = tempfile.mkdtemp(prefix="premortem-models-")
    try:
        open_registry(place).add(files, manifest, alias=CHAMPION)
    except PremortemError:
        shutil.rmtree(place, ignore_errors=True)
        return None
    return place


def manifest_of(training: Training, options: Options) -> dict[str, Any]:
    """What there is to know of a training without opening its files."""
    submitted = training.labelled["submit_time"]
    return {
        "premortem": __version__,
        "points": list(training.points),
        "left_out": dict(training.left_out),
        "notes": list(training.notes),
        "features": {name: one.model.fingerprint for name, one in training.points.items()},
        "family": str(training.model.family),
        "data": {
            "jobs": training.labelled.height,
            "since": _told(submitted.min()),
            "until": _told(submitted.max()),
            "judged_since": {
                name: _told(submitted.gather(one.judged.jobs).min())
                for name, one in training.points.items()
                if len(one.judged.jobs)
            },
        },
        "labels": dict(training.model.labels),
        "engines": {name: list(one.model.trees.engines) for name, one in training.points.items()},
        "imbalance": str(options.imbalance),
        "profiles": options.profiles,
        "seed": options.seed,
        "parameters": {n: dict(one.model.parameters) for n, one in training.points.items()},
        "thresholds": {name: one.model.threshold for name, one in training.points.items()},
        "metrics": {name: _metrics(one.judged) for name, one in training.points.items()},
    }


def load_model(registry: Registry, name: str = CHAMPION) -> tuple[Model, Version]:
    """The model of a version or alias, its files checked."""
    try:
        version = registry.resolve(name)
    except NotFound as error:
        if name == CHAMPION and not registry.versions():
            raise NotFound("there is no model yet: 'premortem train' makes one") from error
        raise
    return Model.load(registry.fetch(version)), version


def _is_better(registry: Registry, training: Training) -> tuple[bool, str]:
    """Whether the new model should be in use, by the latest jobs, at the points both have."""
    try:
        version = registry.resolve(CHAMPION)
        missing = [p for p in version.manifest.get("points", ()) if p not in training.points]
        if missing:
            return False, f"it does not predict at {', '.join(missing)}, as {version} does"
        champion = Model.load(registry.fetch(version))
        champion.prepare()
    except NotFound:
        return True, "it is the first"
    except (Unavailable, MissingExtra) as error:
        return False, f"the one in use cannot be loaded now, and so not be compared: {error}"
    except PremortemError as error:
        return True, f"the one in use cannot be loaded any more: {error}"
    seen_until = str(version.manifest.get("data", {}).get("until"))
    facts = facts_of(training.labelled, zone=champion.zone)
    now, before = [], []
    for name in (name for name in training.points if name in champion.points):
        judged = training.points[name].judged
        mine = metrics.average_precision(judged.outcomes, judged.risk)
        since = _told(training.labelled["submit_time"].gather(judged.jobs).min())
        if since and seen_until < since:
            theirs = _score(champion, name, training, facts)
        else:
            theirs = version.manifest.get("metrics", {}).get(name, {}).get("average_precision")
        if mine is not None and theirs is not None:
            now.append(mine)
            before.append(float(theirs))
    if not now:
        return False, "the latest jobs cannot tell which is better"
    mine, theirs = float(np.mean(now)), float(np.mean(before))
    told = f"average precision {mine:.3f}, that of {version} {theirs:.3f}"
    return mine >= theirs, told


def _score(champion: Model, name: str, training: Training, facts: Facts) -> float | None:
    """How well the model in use would have done on the jobs that judged the new one."""
    point = champion.points[name]
    only = np.zeros(training.labelled.height, dtype=bool)
    only[training.points[name].judged.jobs] = True
    rows = Replay(champion.zone).rows(training.labelled, point.point, only=only, facts=facts)
    risk = risk_as_told(point.risk(rows.values), facts, rows.jobs, rows.moments)
    return metrics.average_precision(facts.outcomes[rows.jobs], risk)


def _metrics(judged: Judged) -> dict[str, float | int | None]:
    at_threshold = metrics.decided(judged.outcomes, judged.risk >= judged.threshold)
    return {
        "jobs": len(judged.outcomes),
        "failure_share": float(judged.outcomes.mean()) if len(judged.outcomes) else None,
        "average_precision": metrics.average_precision(judged.outcomes, judged.risk),
        "auc": metrics.auc(judged.outcomes, judged.risk),
        "ece": metrics.calibration_error(judged.outcomes, judged.risk),
        "judged_at": judged.threshold,
        "precision": at_threshold.precision,
        "recall": at_threshold.recall,
        "f1": at_threshold.f1,
    }


def _told(moment: Any) -> str | None:
    if moment is None:
        return None
    found: datetime = moment
    return found.astimezone(UTC).isoformat()
