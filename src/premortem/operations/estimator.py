"""Models for use in Python, with the conventions of scikit-learn where they fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, Self

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from premortem.errors import InvalidInput
from premortem.features.catalogue import Family
from premortem.features.points import parse_point
from premortem.jobs.fields import KEY, Kind
from premortem.jobs.labels import LabelPolicy
from premortem.jobs.spellings import require_zone
from premortem.models.port import Array
from premortem.operations.given import Jobs, among, as_history, jobs_from
from premortem.prediction.model import Model
from premortem.prediction.predict import Prediction, policy_of, predict
from premortem.training.imbalance import Imbalance
from premortem.training.train import Options, train
from premortem.training.tuning import Budget

_PREDICTED: dict[str, pl.DataType] = {
    "cluster": pl.String(), "job_id": pl.Int64(), "submit_time": Kind.TIME.dtype,
    "array_job_id": pl.Int64(), "array_task_id": pl.Int64(), "user": pl.String(),
    "point": pl.String(), "risk": pl.Float64(), "threshold": pl.Float64(),
    "prediction": pl.String(), "confidence": pl.Float64(), "cause": pl.String(),
    "cause_share": pl.Float64(), "reasons": pl.List(pl.String()), "note": pl.String(),
}  # fmt: skip


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Learns from a site's jobs which of them fail, and predicts; its parameters are `train`'s.

    Jobs are a Polars or pandas frame, or a list of dicts, with fields of
    `docs/reference/fields.md`; all but the key may be missing. Outcomes are read from the jobs
    themselves, by `labels`, so there is no `y`.

    Every prediction needs the past: what became of the jobs before. Unless `history` is given, it
    is what the estimator was fitted on; that of a loaded model is the store. A job that the past
    has too, by its key, gets from there the columns that are not given. `history=[]` says that
    there is none.

    `model_` is what was learned, `version_` its number in the registry if it has one, `left_out_`
    tells why a point could not be learned.
    """

    def __init__(
        self,
        *,
        points: Sequence[str] = ("submit", "start", "running@2min"),
        engine: str = "xgboost",
        trials: int = 20,
        imbalance: str = "none",
        profiles: bool = False,
        family: str = "auto",
        threshold: str = "f1",
        labels: LabelPolicy = LabelPolicy(),
        zone: str = "UTC",
        seed: int = 0,
    ) -> None:
        self.points = points
        self.engine = engine
        self.trials = trials
        self.imbalance = imbalance
        self.profiles = profiles
        self.family = family
        self.threshold = threshold
        self.labels = labels
        self.zone = zone
        self.seed = seed

    @classmethod
    def of(cls, model: Model, version: int, past: Callable[[], pl.DataFrame | None]) -> Self:
        """A model that was trained before; `past` is asked for at each prediction."""
        made = cls(
            points=tuple(model.points), family=str(model.family), labels=policy_of(model),
            zone=model.zone,
        )  # fmt: skip
        made._learned(model, version, past)
        return made

    def fit(self, jobs: Jobs, y: None = None) -> Self:
        """Learn from jobs that ended; `y` is there by convention, and not looked at."""
        known = as_history(jobs_from(jobs))
        named = [self.points] if isinstance(self.points, str) else self.points
        training = train(
            known, points=[parse_point(name) for name in named], policy=self.labels,
            options=self._options(), zone=require_zone(self.zone),
        )  # fmt: skip
        self.left_out_ = dict(training.left_out)
        for point, why in self.left_out_.items():
            warnings.warn(f"{point} is left out: {why}", stacklevel=2)
        self._learned(training.model, None, lambda: known)
        return self

    def predict(
        self,
        jobs: Jobs,
        history: Jobs = None,
        *,
        point: str | None = None,
        reasons: int = 3,
        voice: Literal["your", "their"] = "their",
    ) -> pl.DataFrame:
        """A row for each job that reached the point, in their order: risk, cause, reasons.

        Without a point, each job is judged at the latest it has reached.
        """
        found = self._predictions(jobs_from(jobs), history, point, reasons, voice)
        rows = [
            {**one.as_dict(), "reasons": [reason.text for reason in one.reasons]}
            for one in found
            if one
        ]
        return pl.DataFrame(
            [{name: row[name] for name in _PREDICTED} for row in rows], schema=_PREDICTED
        )

    def predict_proba(self, jobs: Jobs, history: Jobs = None, *, point: str | None = None) -> Array:
        """The probabilities of completing and of failing, two columns, in the order of the jobs.

        They are those of `predict`. Jobs that did not reach the point have NaN.
        """
        found = self._predictions(jobs_from(jobs), history, point, 0, "their")
        risk = np.array([one.risk if one else np.nan for one in found], dtype=float)
        return np.column_stack([1 - risk, risk])

    def _learned(
        self, model: Model, version: int | None, past: Callable[[], pl.DataFrame | None]
    ) -> None:
        self.model_ = model
        self.version_ = version
        self.classes_ = np.array(["completed", "failed"])
        self._past = past

    def _options(self) -> Options:
        try:
            imbalance = Imbalance(self.imbalance)
            family = None if self.family == "auto" else Family(self.family)
        except ValueError as error:
            raise InvalidInput(str(error)) from error
        return Options(
            engine=self.engine, budget=Budget(self.trials), imbalance=imbalance, family=family,
            rule=self.threshold, seed=self.seed,
            profiles=self.profiles,
        )  # fmt: skip

    def _predictions(
        self,
        jobs: pl.DataFrame,
        history: Jobs,
        point: str | None,
        reasons: int,
        voice: Literal["your", "their"],
    ) -> list[Prediction | None]:
        check_is_fitted(self, "model_")
        at = parse_point(point) if point else None
        if jobs.is_empty():
            return []
        past = self._past() if history is None else jobs_from(history)
        if past is None:
            warnings.warn(
                "there is no store with jobs, so every user is judged as a new one: give the jobs "
                "of the past as history, or history=[] if there are none",
                stacklevel=3,
            )
        everything, wanted = among(jobs, jobs.clear() if past is None else past)
        found = predict(
            self.model_, everything, wanted.to_numpy(), point=at, now=datetime.now(UTC),
            most_reasons=reasons, voice=voice,
        )  # fmt: skip
        by_key = {one.key: one for one in found}
        return [by_key.get(key) for key in jobs.select(KEY).rows()]
