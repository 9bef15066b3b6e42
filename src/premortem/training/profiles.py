"""Profiles of jobs: groups of alike requests and habits, found in the rows and then described.

Fitted on training rows alone, by a mixture of Gaussians; how many there are is decided by the BIC.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from premortem.errors import InvalidInput
from premortem.features.catalogue import Family, feature_set
from premortem.features.points import Point
from premortem.jobs.frame import SCHEMA
from premortem.jobs.names import name_stem
from premortem.jobs.outcomes import Outcome
from premortem.jobs.usage import core_hours
from premortem.models.mixture import Mixture, Scale, places_of
from premortem.models.port import Array
from premortem.training import profile_words as words
from premortem.training.profile_words import Part, Profile, Quartiles

# With fewer jobs, groups among them are chance.
FEWEST_JOBS = 50
# A profile has at least this share of the jobs it was fitted on: one with less is given up, and its
# jobs go to the others.
LEAST_SHARE = 0.005
# No profile is narrower, in any column, than this part of the spread of all jobs. People ask for
# round numbers: without, a profile would shrink to "exactly 18 hours".
NARROWEST = 0.2

_ROUNDS = 200
# Columns that tell the same but for the unit would count twice.
_SAME = 0.99

# What jobs are told apart by, as far as it is known at the point: the request and the habits of its
# user. Total memory and core-hours are products of others here, and would count those twice.
_LOGGED = (
    "req_cpus", "req_nodes", "req_gpus", "memory_per_cpu_mb", "time_limit_s", "alloc_cpus",
    "wait_s", "user_usual_limit_share", "user_ended",
)  # fmt: skip
# These are logarithms or shares already.
_AS_IT_IS = ("user_usual_elapsed", "shape_usual_elapsed", "user_failure_rate")
# A record that tells no GPUs asked for none; of anything else, the usual is the best guess.
_NONE_IF_MISSING = ("req_gpus",)


@dataclass(frozen=True, slots=True)
class Tried:
    """One number of profiles that was tried.

    `profiles` are those left of the `number` begun with. The lower `bic`, the better. `inertia` is
    that of K-Means with as many clusters, and `agreement` the adjusted Rand index between the two:
    1 for the same groups, 0 for as much in common as by chance.
    """

    number: int
    profiles: int
    bic: float
    inertia: float
    agreement: float
    converged: bool


@dataclass(frozen=True, slots=True)
class ProfileFit:
    """A fitted mixture, which reads rows like those it was fitted on, and how it was chosen.

    `jobs` were given, `sampled` of them were looked at. `left_out` says why a column that could
    have been used was not.
    """

    mixture: Mixture
    point: str
    chosen: Tried
    curve: tuple[Tried, ...]
    jobs: int
    sampled: int
    left_out: dict[str, str]

    @property
    def still_falling(self) -> bool:
        """Whether the last number tried was the best, so that the BIC set no limit of its own."""
        return len(self.curve) > 1 and self.chosen is self.curve[-1]

    @property
    def elbow(self) -> int | None:
        """The number after which K-Means gains little: where its curve bends most, if it does."""
        inertia = np.array([tried.inertia for tried in self.curve])
        if len(inertia) < 3 or inertia[0] <= inertia[-1]:
            return None
        fallen = (inertia[0] - inertia) / (inertia[0] - inertia[-1])
        return self.curve[int(np.argmax(fallen - np.linspace(0, 1, len(inertia))))].number

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON; `Mixture.from_dict` takes what is under `mixture`."""
        return {
            "point": self.point,
            "profiles": self.mixture.profiles,
            "chosen": self.chosen.number,
            "still_falling": self.still_falling,
            "elbow": self.elbow,
            "curve": [asdict(tried) for tried in self.curve],
            "jobs": self.jobs,
            "sampled": self.sampled,
            "left_out": self.left_out,
            "mixture": self.mixture.as_dict(),
        }


def fit_profiles(
    values: Array,
    names: Sequence[str],
    *,
    point: Point,
    seed: int,
    family: Family = Family.GENERIC,
    most: int = 12,
    sample: int = 50_000,
    progress: Callable[[str], None] = lambda _: None,
) -> ProfileFit:
    """Profiles of these rows, whose columns have these names; the same seed, the same profiles.

    Give training rows only, made at the point: nothing here knows the time of a row. Of more than
    `sample` rows, so many are drawn at random. From 1 to `most` profiles are tried, and those with
    the lowest BIC taken, the largest first. Jobs come in series of near copies, and so the BIC of
    a real log often falls to the end; then `most` decides, and `still_falling` says so.
    """
    if values.ndim != 2 or values.shape[1] != len(names):
        raise InvalidInput(f"{len(names)} names cannot be those of the columns of {values.shape}")
    if most < 1 or sample < FEWEST_JOBS:
        raise InvalidInput(f"expected most >= 1 and sample >= {FEWEST_JOBS}, not {most}, {sample}")
    if len(values) < FEWEST_JOBS:
        raise InvalidInput(f"profiles need at least {FEWEST_JOBS} jobs, not {len(values)}")
    drawn = _drawn(len(values), sample, seed)
    rows = values if drawn is None else values[drawn]
    known = set(feature_set(point, family).names)
    wanted = [name for name in (*_LOGGED, *_AS_IT_IS) if name in known and name in names]
    scale, left_out = _scale(rows[:, places_of(wanted, names)], wanted)
    if not scale.names:
        raise InvalidInput(
            f"profiles need at least 1 column in which jobs differ: at {point}, of "
            f"{', '.join(wanted) or 'those they are made by'}, there is none"
        )
    places = places_of(scale.names, names)
    points = scale.scaled(rows[:, places])
    # More groups than different jobs there cannot be.
    most = min(most, len(np.unique(points, axis=0)))
    found = []
    # With several threads, sums depend on which is done first, and the seed would not decide.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for number in range(1, most + 1):
            progress(f"profiles: {number} of up to {most}")
            found.append(_tried(points, number, seed))
    chosen, best = min(found, key=lambda pair: pair[0].bic)
    order = np.argsort(-best.weights_, kind="stable")
    mixture = Mixture(
        scale, best.weights_[order], best.means_[order], best.precisions_cholesky_[order],
        places, len(names),
    )  # fmt: skip
    curve = tuple(tried for tried, _ in found)
    return ProfileFit(mixture, point.name, chosen, curve, len(values), len(rows), left_out)


def _drawn(rows: int, sample: int, seed: int) -> Array | None:
    """The places of a random sample in their order; None for all."""
    if rows <= sample:
        return None
    return np.sort(np.random.default_rng(seed).choice(rows, sample, replace=False))


def _scale(rows: Array, names: Sequence[str]) -> tuple[Scale, dict[str, str]]:
    """How the columns are made comparable that tell anything, and why the others do not."""
    logged = np.array([name in _LOGGED for name in names], dtype=bool)
    fillers = np.array([_filler(name, rows[:, place]) for place, name in enumerate(names)])
    told = Scale(tuple(names), logged, fillers, fillers, fillers).filled(rows)
    used: list[int] = []
    left_out: dict[str, str] = {}
    for place, name in enumerate(names):
        reason = _useless(told[:, place], {names[other]: told[:, other] for other in used})
        if reason:
            left_out[name] = reason
        else:
            used.append(place)
    told = told[:, used]
    kept = tuple(names[place] for place in used)
    scale = Scale(kept, logged[used], fillers[used], told.mean(axis=0), told.std(axis=0))
    return scale, left_out


def _filler(name: str, column: Array) -> float:
    known = column[np.isfinite(column)]
    if not len(known):
        return float("nan")
    return 0.0 if name in _NONE_IF_MISSING else float(np.median(known))


def _useless(column: Array, others: dict[str, Array]) -> str | None:
    """Why a column tells nothing beside the others, if so."""
    if np.isnan(column).any():
        return "missing in all jobs"
    if column.std() < 1e-6:
        return "the same in all jobs"
    twins = (n for n, other in others.items() if abs(np.corrcoef(column, other)[0, 1]) > _SAME)
    twin = next(twins, None)
    return f"says the same as {twin}" if twin else None


def _tried(points: Array, number: int, seed: int) -> tuple[Tried, GaussianMixture]:
    """A mixture that began with so many clusters of K-Means, and what is to be told of both."""
    clusters = KMeans(number, n_init=1, random_state=seed).fit(points)
    labels, counts = np.unique(clusters.labels_, return_counts=True)
    groups = [points[clusters.labels_ == label] for label in labels]
    mixture = _mixture(
        points,
        counts / len(points),
        np.array([group.mean(axis=0) for group in groups]),
        np.array([group.var(axis=0) for group in groups]) + NARROWEST**2,
        seed,
    )
    tried = Tried(
        number=number,
        profiles=len(mixture.weights_),
        bic=float(mixture.bic(points)),
        inertia=float(clusters.inertia_),
        agreement=float(adjusted_rand_score(clusters.labels_, mixture.predict(points))),
        converged=bool(mixture.converged_),
    )
    return tried, mixture


def _mixture(
    points: Array, weights: Array, means: Array, variances: Array, seed: int
) -> GaussianMixture:
    """The mixture from there on, without profiles that have next to no jobs."""
    mixture = GaussianMixture(
        len(weights), covariance_type="diag", reg_covar=NARROWEST**2, max_iter=_ROUNDS,
        weights_init=weights, means_init=means, precisions_init=1 / variances, random_state=seed,
    ).fit(points)  # fmt: skip
    smallest = int(np.argmin(mixture.weights_))
    if len(weights) == 1 or mixture.weights_[smallest] >= LEAST_SHARE:
        return mixture
    weights = np.delete(mixture.weights_, smallest)
    return _mixture(
        points,
        weights / weights.sum(),
        np.delete(mixture.means_, smallest, axis=0),
        np.delete(mixture.covariances_, smallest, axis=0),
        seed,
    )


def describe(
    jobs: pl.DataFrame, profiles: Array, user_ended: Array | None = None, *, top: int = 3
) -> list[Profile]:
    """What each profile's jobs are like and how they end, with a sentence each, by their number.

    `jobs` are labelled, and `profiles` and `user_ended` have an entry for each, in their order:
    take `jobs[rows.jobs]` where a point has no row for some. `user_ended` is how many of the user's
    jobs had ended by then, as the replay tells; without it nothing is said of users' activity.
    Profiles that none of the jobs is in are not there.

    What is short, frequent or heavy on memory is said in `profile_words`.
    """
    if not {"outcome", "cause"} <= set(jobs.columns):
        raise InvalidInput("jobs need an outcome and a cause: label them first")
    ended = np.full(jobs.height, np.nan) if user_ended is None else user_ended
    if not jobs.height == len(profiles) == len(ended):
        raise InvalidInput(
            f"{jobs.height} jobs need as many profiles and activities, not {len(profiles)} and "
            f"{len(ended)}"
        )
    told = _told(jobs, np.asarray(profiles, np.int64), np.asarray(ended, np.float64))
    sums = told.group_by("profile", maintain_order=True).agg(_sums()).sort("profile")
    site_mb = told.select(pl.col("memory_per_cpu_mb").median()).item()
    parts = {name: _parts(told, name) for name in _PARTS}
    found = []
    for row in sums.iter_rows(named=True):
        number = row["profile"]
        resources = {name: _quartiles(row, name) for name in _RESOURCES}
        first = {name: parts[name].get(number, ()) for name in _PARTS}
        found.append(
            Profile(
                number=number,
                jobs=row["jobs"],
                share=row["jobs"] / jobs.height,
                users=row["users"],
                kind=words.kind_word(row["memory_per_cpu_mb"], site_mb),
                resources={name: found for name, found in resources.items() if found},
                run_s=_quartiles(row, "run_s"),
                wait_s=_quartiles(row, "wait_s"),
                durations=first["duration"],
                activity=first["activity"],
                outcomes=first["outcome"],
                causes=first["cause"],
                failure_share=row["failed"] / row["counted"] if row["counted"] else None,
                core_hours=round(row["core_hours"], 1),
                core_hours_lost=round(row["core_hours_lost"], 1),
                partitions=first["partition"][:top],
                names=first["name"][:top],
            )
        )
    return words.in_words(found)


_RESOURCES = ("cpus", "nodes", "memory_mb", "time_limit_s", "gpus")
_PARTS = ("duration", "activity", "outcome", "cause", "partition", "name")
_INPUTS = (
    "cluster", "user", "submit_time", "start_time", "elapsed_s", "req_cpus", "alloc_cpus",
    "req_nodes", "alloc_nodes", "req_memory_mb", "alloc_memory_mb", "req_memory_per_cpu_mb",
    "time_limit_s", "req_gpus", "alloc_gpus", "partition", "alloc_partition", "job_name",
    "executable",
)  # fmt: skip


def _told(jobs: pl.DataFrame, profiles: Array, user_ended: Array) -> pl.DataFrame:
    """Of each job what the description is made of."""
    missing = [pl.lit(None, SCHEMA[name]).alias(name) for name in _INPUTS if name not in jobs]
    elapsed, cpus = pl.col("elapsed_s"), pl.col("cpus")
    # In logs without wait times, an allocation is all there is to tell of a start.
    started = pl.any_horizontal(pl.col("start_time", "alloc_cpus").is_not_null(), elapsed > 0)
    over = pl.col("outcome") != str(Outcome.UNFINISHED)
    gpus = pl.coalesce("req_gpus", "alloc_gpus")
    return (
        jobs.lazy()
        .with_columns(missing)
        .with_columns(
            profile=pl.Series(profiles),
            user_ended=pl.Series(user_ended).fill_nan(None),
            run_s=pl.when(started & over).then(elapsed),
            wait_s=(pl.col("start_time") - pl.col("submit_time")).dt.total_seconds().clip(0),
            cpus=pl.coalesce("req_cpus", "alloc_cpus"),
            nodes=pl.coalesce("req_nodes", "alloc_nodes"),
            memory_mb=pl.coalesce("req_memory_mb", "alloc_memory_mb"),
            # Records name GPUs where there are some: no word of them in one job means none.
            gpus=pl.when(gpus.is_not_null().any()).then(gpus.fill_null(0)),
            partition=pl.coalesce("alloc_partition", "partition"),
            name=pl.coalesce(name_stem(pl.col("job_name")), "executable"),
            core_hours=core_hours(),
        )
        .with_columns(
            memory_per_cpu_mb=pl.coalesce(
                "req_memory_per_cpu_mb", pl.when(cpus > 0).then(pl.col("memory_mb") / cpus)
            ),
            duration=words.duration_word(pl.col("run_s")),
            activity=words.activity_word(pl.col("user_ended")),
        )
        .collect()
    )


def _sums() -> list[pl.Expr]:
    failed = pl.col("outcome") == str(Outcome.FAILED)
    owner = pl.struct("cluster", "user").filter(pl.col("user").is_not_null())
    return [
        pl.len().alias("jobs"),
        owner.n_unique().alias("users"),
        failed.sum().alias("failed"),
        (failed | (pl.col("outcome") == str(Outcome.COMPLETED))).sum().alias("counted"),
        pl.col("core_hours").sum(),
        pl.col("core_hours").filter(failed).sum().alias("core_hours_lost"),
        pl.col("memory_per_cpu_mb").median(),
        *[
            pl.col(name).quantile(quantile, "nearest").alias(f"{name}:{place}")
            for name in (*_RESOURCES, "run_s", "wait_s")
            for place, quantile in (("low", 0.25), ("median", 0.5), ("high", 0.75))
        ],
    ]


def _quartiles(row: dict[str, Any], name: str) -> Quartiles | None:
    low, median, high = (row[f"{name}:{place}"] for place in ("low", "median", "high"))
    return None if median is None else Quartiles(low, median, high)


def _parts(told: pl.DataFrame, column: str) -> dict[int, tuple[Part, ...]]:
    """How many of each profile's jobs have each word, most first; ties in the order of words."""
    counts = (
        told.drop_nulls(column)
        .group_by("profile", column)
        .agg(jobs=pl.len())
        .sort("profile", "jobs", column, descending=[False, True, False])
        .with_columns(share=pl.col("jobs") / pl.col("jobs").sum().over("profile"))
    )
    found: dict[int, list[Part]] = {}
    for profile, name, jobs, share in counts.iter_rows():
        found.setdefault(profile, []).append(Part(name, jobs, share))
    return {profile: tuple(parts) for profile, parts in found.items()}
