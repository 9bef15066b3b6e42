"""Predictions for jobs: risk, likely cause and reasons, each by what was known at its point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import numpy as np
import polars as pl

from premortem.features.catalogue import CATALOGUE
from premortem.features.facts import Facts, facts_of
from premortem.features.points import START, SUBMIT, Point
from premortem.features.replay import Replay
from premortem.jobs.fields import Kind
from premortem.jobs.labels import LabelPolicy
from premortem.jobs.numbers import NUMBERS
from premortem.jobs.states import STATES, Progress
from premortem.models.following import LAST, Ends, followed
from premortem.models.port import Array
from premortem.prediction.model import Model, PointModel
from premortem.prediction.reasons import Reason, reasons

_USER_ENDED = [feature.name for feature in CATALOGUE].index("user_ended")


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is foretold of one job at one point.

    A job is said to fail if its risk is the model's `threshold` or more. `cause_share` is the
    probability of the likely cause if the job fails. `note` tells what the reader should know of
    how it was made. The array's and the component's numbers are those of `jobs.fields`.
    """

    cluster: str
    job_id: int
    submit_time: datetime
    user: str | None
    start_time: datetime | None
    point: str
    risk: float
    threshold: float
    cause: str | None = None
    cause_share: float | None = None
    reasons: Sequence[Reason] = field(default=())
    note: str | None = None
    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None
    het_offset: int | None = None

    @property
    def key(self) -> tuple[str, int, datetime]:
        """What tells the job from every other."""
        return self.cluster, self.job_id, self.submit_time

    @property
    def fails(self) -> bool:
        """Whether it is said to fail."""
        return self.risk >= self.threshold

    @property
    def confidence(self) -> float:
        """The probability of what is foretold: below a half, where the threshold is below."""
        return self.risk if self.fails else 1 - self.risk

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return {
            "cluster": self.cluster, "job_id": self.job_id, "submit_time": self.submit_time,
            "array_job_id": self.array_job_id, "array_task_id": self.array_task_id,
            "het_job_id": self.het_job_id, "het_offset": self.het_offset,
            "user": self.user, "start_time": self.start_time, "point": self.point,
            "risk": self.risk, "threshold": self.threshold,
            "prediction": "failed" if self.fails else "completed",
            "confidence": self.confidence, "cause": self.cause, "cause_share": self.cause_share,
            "reasons": [reason.as_dict() for reason in self.reasons], "note": self.note,
        }  # fmt: skip


def policy_of(model: Model) -> LabelPolicy:
    """The policy the model's outcomes were read by, and so those of its history must be."""
    return LabelPolicy.from_dict(model.labels)


def point_for(job: Mapping[str, Any], model: Model, now: datetime) -> Point | None:
    """The latest point of the model that the job has reached by now, if any."""
    started = job.get("start_time")
    ended = STATES.get(job.get("state") or "") is Progress.ENDED
    known = [one.point for one in model.points.values()]
    if started is None:
        reached = [point for point in known if point == SUBMIT]
    else:
        until = job.get("end_time") if ended else now
        ran = (until - started).total_seconds() if until else 0.0
        reached = [
            point for point in known
            if point in (SUBMIT, START) or (point.after_start_s or 0.0) < ran
        ]  # fmt: skip
    return max(reached, key=lambda point: (point.known, point.after_start_s or 0.0), default=None)


def predict(
    model: Model,
    history: pl.DataFrame,
    wanted: Array,
    *,
    point: Point | None = None,
    now: datetime,
    most_reasons: int = 3,
    voice: Literal["your", "their"] = "your",
) -> list[Prediction]:
    """Predictions for the wanted jobs of a history, in its order.

    `history` is every job the site knows of, the wanted ones included; `wanted` a truth value for
    each. Without a `point`, each job gets the latest it has reached by `now`, and one that runs is
    judged as of when it was last seen running. Jobs that have not reached the point, or any of the
    model's, have no prediction.
    """
    labelled = policy_of(model).label(history)
    places = np.flatnonzero(wanted)
    records = {int(place): labelled.row(int(place), named=True) for place in places}
    points = {place: point or point_for(job, model, now) for place, job in records.items()}
    found: dict[int, Prediction] = {}
    facts = facts_of(labelled, zone=model.zone)
    as_of = _last_seen(labelled, now) if point is None else None
    for one in filter(None, dict.fromkeys(points.values())):
        asked = np.zeros(labelled.height, dtype=bool)
        asked[[place for place, its in points.items() if its == one]] = True
        lately = _ended_lately(facts, asked, model.learned_until)
        rows = Replay(model.zone).rows(labelled, one, only=asked | lately, as_of=as_of, facts=facts)
        mine = asked[rows.jobs]
        risk = risk_as_told(
            model.at(one).risk(rows.values), facts, rows.jobs, rows.moments, by=lately
        )
        told = predictions(
            model.at(one), rows.values[mine], [records[int(place)] for place in rows.jobs[mine]],
            risk=risk[mine], most_reasons=most_reasons, voice=voice,
        )  # fmt: skip
        found |= dict(zip(map(int, rows.jobs[mine]), told, strict=True))
    return [found[place] for place in map(int, places) if place in found]


def risk_as_told(
    risk: Array, facts: Facts, jobs: Array, moments: Array, *, by: Array | None = None
) -> Array:
    """The model's risk of these jobs, places among the facts, as it is told at these moments.

    It follows the cluster by those among them that had ended; with `by`, a truth value for each of
    the facts, only by those of which it is true. None may be one that the model learned from.
    """
    outcomes = facts.outcomes if by is None else np.where(by, facts.outcomes, np.nan)
    ends = Ends(outcomes[jobs], facts.ended[jobs], facts.users[jobs], facts.clusters[jobs])
    return followed(risk, ends, moments)


def _last_seen(jobs: pl.DataFrame, now: datetime) -> Array | None:
    if "seen_at" not in jobs.columns:
        return None
    seen = jobs.select(pl.min_horizontal("seen_at", pl.lit(now).cast(Kind.TIME.dtype)))
    return seen.to_series().dt.epoch("s").cast(pl.Float64).fill_null(np.nan).to_numpy()


def _ended_lately(facts: Facts, asked: Array, learned_until: float) -> Array:
    """The jobs that the risk of those asked for follows: of their clusters, new to the model.

    They are the last that had ended when the first of those was submitted, and all since.
    """
    found = np.zeros(len(asked), dtype=bool)
    new = ~np.isnan(facts.outcomes) & (facts.submitted > learned_until)
    clusters = facts.clusters
    for cluster in np.unique(clusters[asked]):
        here = clusters == cluster
        ended = np.where(new & here, facts.ended, np.nan)
        earlier = np.sort(ended[ended < facts.submitted[asked & here].min()])
        found |= ended >= (earlier[-LAST] if len(earlier) >= LAST else -np.inf)
    return found


def predictions(
    model: PointModel,
    rows: Array,
    jobs: Sequence[Mapping[str, Any]],
    *,
    risk: Array | None = None,
    most_reasons: int = 3,
    voice: Literal["your", "their"] = "your",
) -> list[Prediction]:
    """Predictions for rows of the replay, `jobs` being the records they are of.

    `risk` is the model's own unless given, as one that follows the cluster.
    """
    seen = model.seen(rows)
    risk = model.trees.risk(seen) if risk is None else risk
    shares = model.cause_shares(seen)
    causes = list(model.causes)
    shown = model.trees.shown(seen)
    effects = model.trees.flat.contributions(shown) if most_reasons else None
    found = []
    for at, job in enumerate(jobs):
        likely = int(np.argmax(shares[at])) if causes else None
        why: list[Reason] = []
        if effects is not None:
            why = reasons(
                rows[at], model.trees.columns, effects[at, :-1], job, most=most_reasons,
                voice=voice, kind=model.kinds.sentence(seen[at]) if model.kinds else None,
            )  # fmt: skip
        found.append(
            Prediction(
                cluster=job["cluster"],
                job_id=job["job_id"],
                submit_time=job["submit_time"],
                user=job.get("user"),
                start_time=job.get("start_time"),
                point=model.point.name,
                risk=float(risk[at]),
                threshold=model.threshold,
                cause=None if likely is None else causes[likely],
                cause_share=None if likely is None else float(shares[at, likely]),
                reasons=why,
                note=_note(rows[at], job),
                **{name: job.get(name) for name in NUMBERS},
            )
        )
    return found


def _note(row: Array, job: Mapping[str, Any]) -> str | None:
    if job.get("user") is None:
        return "the user is not known: judged by the request and the cluster"
    if not row[_USER_ENDED] > 0:
        return "no job of this user has ended yet: judged by the account and the cluster"
    return None
