"""Proof by trial that no row of features knows the future: change the future, and look at the rows.

The rows of a log are made twice, once as it is and once with another story from a random instant
on. Rows made up to that instant must be the same to the bit; a feature that is not has seen what
nobody could know. Rows made after it should differ: where nothing does, nothing was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from premortem.errors import InvalidInput
from premortem.features.catalogue import CATALOGUE, Family, Feature, FeatureSet, feature_set
from premortem.features.points import DEFAULT_POINTS, Point
from premortem.features.replay import Replay, Rows
from premortem.jobs.fields import KnownAt
from premortem.jobs.labels import LabelPolicy
from premortem.models.port import Array
from premortem.training.futures import another_future, events

HONEST_POINTS = tuple(point for point in DEFAULT_POINTS if not point.leaks)
# The name of a leak that is not in a value: a later event decides which jobs have a row, or when.
POPULATION = "population"
# Instants are drawn from the middle of a log: at its ends there is little past or future.
_MIDDLE = (0.1, 0.9)
_ROWS_AT_ONCE = 16_384

MakeRows = Callable[[pl.DataFrame, Point], Rows]


@dataclass(frozen=True, slots=True)
class Trial:
    """One other future: how many rows before the instant were compared, and what it did to others.

    `later_rows` are those after the instant of jobs that are there in both stories.
    """

    point: str
    instant: datetime
    rows_compared: int
    values_compared: int
    later_rows: int
    later_rows_changed: int

    @property
    def idle(self) -> bool:
        """Whether nothing after the instant mattered to any later row, so that nothing is shown."""
        return self.later_rows > 0 and self.later_rows_changed == 0


@dataclass(frozen=True, slots=True)
class Leak:
    """A feature that knew what came after the instant, by the example of one job.

    `before` and `after` are its value in the log as it is and with another future, None where it
    is missing; for `population` the moment of the row in seconds since 1970, None for no row.
    """

    point: str
    feature: str
    job: int
    instant: datetime
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Audited:
    """A feature, and the points at which it was audited."""

    feature: Feature
    points: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        one = self.feature
        return {
            "name": one.name, "known": str(one.known), "inputs": list(one.inputs),
            "chapter": one.chapter, "points": list(self.points),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of all trials on one log. Each leaking feature is told once for each point."""

    jobs: int
    points: tuple[str, ...]
    trials: tuple[Trial, ...]
    leaks: tuple[Leak, ...]
    features: tuple[Audited, ...]

    @property
    def values_compared(self) -> int:
        """How many values were looked at twice."""
        return sum(trial.values_compared for trial in self.trials)

    @property
    def holds(self) -> bool:
        """Whether no row knew the future. Where nothing could be compared, nothing holds."""
        return not self.leaks and self.values_compared > 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return {
            "jobs": self.jobs,
            "holds": self.holds,
            "trials": [asdict(trial) for trial in self.trials],
            "leaks": [asdict(leak) for leak in self.leaks],
            "features": [audited.as_dict() for audited in self.features],
        }


def audit_log(
    jobs: pl.DataFrame,
    *,
    points: Sequence[Point] = HONEST_POINTS,
    family: Family = Family.GENERIC,
    trials: int = 3,
    seed: int = 0,
    policy: LabelPolicy = LabelPolicy(),
    zone: str = "UTC",
    catalogue: Sequence[Feature] = CATALOGUE,
    make_rows: MakeRows | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Try so many other futures at each point on a log's unlabelled jobs, whatever their order.

    `make_rows` gives the rows of labelled jobs with the columns of the catalogue; the replay's,
    unless given. Points that leak on purpose are refused; one that no job reaches has no trials.
    """
    require_honest(points)
    make_rows = make_rows or (lambda labelled, point: Replay(zone).rows(labelled, point))
    points = list(dict.fromkeys(points))
    sets = [feature_set(point, family, catalogue=catalogue) for point in points]
    rng = np.random.default_rng(seed)
    labelled = policy.label(jobs)
    ended = events(jobs)["ended"].dt.epoch("s").cast(pl.Float64).to_numpy()
    done: list[Trial] = []
    leaks: dict[tuple[str, str], Leak] = {}
    for point, features in zip(points, sets, strict=True):
        progress(f"{point}: the log as it is")
        rows = make_rows(labelled, point)
        for number in range(1, trials + 1 if len(rows.jobs) else 1):
            progress(f"{point}: another future, {number} of {trials}")
            instant = _instant(rows, ended, rng)
            future = another_future(jobs, instant, rng)
            others = make_rows(policy.label(future.drop("place", "known")), point)
            both = _Both(features, rows, others, future, instant, jobs["job_id"])
            done.append(both.trial())
            for leak in both.leaks():
                leaks.setdefault((leak.point, leak.feature), leak)
    return Audit(
        jobs=jobs.height,
        points=tuple(point.name for point in points),
        trials=tuple(done),
        leaks=tuple(leaks.values()),
        features=tuple(_audited(sets, catalogue)),
    )


def require_honest(points: Sequence[Point]) -> None:
    """Raise `InvalidInput` if one of the points leaks on purpose: there is nothing to prove."""
    for point in points:
        if point.leaks:
            raise InvalidInput(
                f"{point} leaks on purpose and is not audited; leave it out of the points"
            )


def _audited(sets: Sequence[FeatureSet], catalogue: Sequence[Feature]) -> Iterator[Audited]:
    for place, feature in enumerate(catalogue):
        points = tuple(one.point.name for one in sets if place in one.places)
        if points:
            yield Audited(feature, points)


def _instant(rows: Rows, ended: Array, rng: np.random.Generator) -> datetime:
    """A second from a random row's own to that of its job's end, so that there is a future to see.

    Often just one of the two: what happens in one second is where order is easily mistaken.
    """
    begin, end = np.quantile(rows.moments, _MIDDLE)
    inside = np.flatnonzero((rows.moments >= begin) & (rows.moments <= end))
    row = rng.choice(inside if len(inside) else len(rows.moments))
    made = rows.moments[row]
    over = max(made, min(np.nan_to_num(ended[rows.jobs[row]], nan=end), end))
    second = made + np.floor((over - made) * rng.choice([0.0, rng.random(), 1.0]))
    return datetime.fromtimestamp(int(second), UTC)


class _Both:
    """The rows of a log as it is, and those with another future, side by side."""

    def __init__(
        self,
        features: FeatureSet,
        rows: Rows,
        others: Rows,
        future: pl.DataFrame,
        instant: datetime,
        job_ids: pl.Series,
    ) -> None:
        self._features, self._rows, self._others = features, rows, others
        self._instant, self._job_ids = instant, job_ids
        size, places = len(job_ids), future["place"].to_numpy()
        self._row, self._moment = _by_job(rows, rows.jobs, size)
        self._other_row, self._other_moment = _by_job(others, places[others.jobs], size)
        self._known = np.full(size, -1)
        self._known[places] = future["known"].fill_null(-1).to_numpy()

    def trial(self) -> Trial:
        """How much was compared, and what became of later rows."""
        compared = int(self._comparable().sum())
        there = ~np.isnan(self._other_moment)
        later = np.flatnonzero((self._moment > self._instant.timestamp()) & there)
        changed = sum(int(differs.any(axis=1).sum()) for _, differs in self._differing(later))
        return Trial(
            point=self._features.point.name,
            instant=self._instant,
            rows_compared=compared,
            values_compared=compared * len(self._features.places),
            later_rows=len(later),
            later_rows_changed=changed,
        )

    def leaks(self) -> Iterator[Leak]:
        """Every feature that differs in a row made up to the instant, with an example."""
        second = self._instant.timestamp()
        early = (self._moment < second) | (self._other_moment < second)
        for job in np.flatnonzero(early & (self._moment != self._other_moment))[:1]:
            yield self._leak(POPULATION, job, self._moment[job], self._other_moment[job])
        found: set[int] = set()
        for jobs, differs in self._differing(np.flatnonzero(self._comparable())):
            for column in set(np.flatnonzero(differs.any(axis=0)).tolist()) - found:
                found.add(column)
                job = jobs[differs[:, column].argmax()]
                place = self._features.places[column]
                before = self._rows.values[self._row[job], place]
                after = self._others.values[self._other_row[job], place]
                yield self._leak(self._features.features[column].name, job, before, after)

    def _comparable(self) -> Array:
        """Which jobs' own event stayed, and made a row up to the instant in both stories."""
        made = (self._moment <= self._instant.timestamp()) & (self._moment == self._other_moment)
        own_event = min(self._features.point.known, KnownAt.START)
        comparable: Array = made & (self._known >= int(own_event))
        return comparable

    def _differing(self, jobs: Array) -> Iterator[tuple[Array, Array]]:
        """Jobs, some at a time, and in which of the set's columns their two rows differ."""
        columns = list(self._features.places)
        for begin in range(0, len(jobs), _ROWS_AT_ONCE):
            some = jobs[begin : begin + _ROWS_AT_ONCE]
            before = self._rows.values[self._row[some]][:, columns]
            after = self._others.values[self._other_row[some]][:, columns]
            bits = f"u{before.itemsize}"
            same = before.view(bits) == after.view(bits)
            yield some, ~(same | (np.isnan(before) & np.isnan(after)))

    def _leak(self, feature: str, job: int, before: float, after: float) -> Leak:
        return Leak(
            point=self._features.point.name,
            feature=feature,
            job=int(self._job_ids[int(job)]),
            instant=self._instant,
            before=None if np.isnan(before) else float(before),
            after=None if np.isnan(after) else float(after),
        )


def _by_job(rows: Rows, jobs: Array, size: int) -> tuple[Array, Array]:
    """Where each job's row is, and its moment: NaN for jobs without."""
    places, moments = np.full(size, -1), np.full(size, np.nan)
    places[jobs], moments[jobs] = np.arange(len(jobs)), rows.moments
    return places, moments
