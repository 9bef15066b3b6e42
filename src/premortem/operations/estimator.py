"""A registered model for use in Python, with the conventions of scikit-learn where they fit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import polars as pl

from premortem.features.points import Point, parse_point
from premortem.jobs.fields import KEY
from premortem.jobs.frame import SCHEMA
from premortem.models.port import Array
from premortem.prediction.model import Model
from premortem.prediction.predict import Prediction, predict


@dataclass(frozen=True, slots=True)
class Estimator:
    """A trained model; `version` is its number in the registry.

    Jobs are frames with the fields of `docs/reference/fields.md`, missing ones allowed. Their past
    is `history`, which may hold the jobs themselves; without it they are each other's past.
    """

    model: Model
    version: int

    def predict(
        self,
        jobs: pl.DataFrame,
        history: pl.DataFrame | None = None,
        *,
        point: str | None = None,
        reasons: int = 3,
        voice: Literal["your", "their"] = "their",
    ) -> pl.DataFrame:
        """A row for each job that reached the point: risk, prediction, cause, reasons.

        Without a point, each job is judged at the latest it has reached.
        """
        found = self._predictions(jobs, history, point, reasons, voice)
        return pl.DataFrame(
            [
                {
                    "cluster": one.cluster, "job_id": one.job_id, "submit_time": one.submit_time,
                    "user": one.user, "point": one.point, "risk": one.risk,
                    "threshold": one.threshold,
                    "prediction": "failed" if one.fails else "completed",
                    "confidence": one.confidence, "cause": one.cause,
                    "cause_share": one.cause_share,
                    "reasons": [reason.text for reason in one.reasons], "note": one.note,
                }
                for one in found
            ],
            schema_overrides={"cause": pl.String, "cause_share": pl.Float64, "note": pl.String},
        )  # fmt: skip

    def predict_proba(
        self, jobs: pl.DataFrame, history: pl.DataFrame | None = None, *, point: str = "submit"
    ) -> Array:
        """The probabilities of completing and of failing, two columns, in the order of the jobs.

        Jobs that did not reach the point have NaN.
        """
        found = self._predictions(jobs, history, point, 0, "their")
        risks = {(one.cluster, one.job_id, one.submit_time): one.risk for one in found}
        risk = np.array([risks.get(key, np.nan) for key in jobs.select(KEY).rows()])
        return np.column_stack([1 - risk, risk])

    def _predictions(
        self,
        jobs: pl.DataFrame,
        history: pl.DataFrame | None,
        point: str | None,
        reasons: int,
        voice: Literal["your", "their"],
    ) -> list[Prediction]:
        at: Point | None = parse_point(point) if point else None
        everything = _complete(jobs)
        if history is not None:
            older = _complete(history).join(everything, on=KEY, how="anti")
            everything = pl.concat([older, everything])
        wanted = np.zeros(everything.height, dtype=bool)
        wanted[everything.height - jobs.height :] = True
        return predict(
            self.model, everything, wanted, point=at, now=datetime.now(UTC), most_reasons=reasons,
            voice=voice,
        )  # fmt: skip


def _complete(jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs with every field, in the order of the table of fields."""
    return jobs.select(
        pl.col(name).cast(dtype) if name in jobs.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in SCHEMA.items()
    )
