"""Profiles for the trees to look at, fitted on what is learned from and on nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from premortem.features.catalogue import CATALOGUE, Family
from premortem.features.points import Point
from premortem.models.mixture import Mixture
from premortem.models.port import Array
from premortem.prediction.kinds import Kind, Kinds
from premortem.training.profiles import describe, fit_profiles

# More kinds than a reader can keep apart help nobody, whatever the likelihood says.
MOST_PROFILES = 6
_SAMPLE = 20_000
_NO_JOBS = Kind("jobs of a kind not seen often", None)


def kinds_of(
    values: Array,
    names: Sequence[str],
    learned: Array,
    jobs: pl.DataFrame,
    *,
    point: Point,
    family: Family,
    seed: int,
) -> tuple[Array, Kinds]:
    """How likely each row is of each profile, and the profiles for rows of the whole catalogue.

    `names` are those of the columns. Only rows that are `learned` from make profiles; `jobs` are
    their records, labelled.
    """
    rows = values[learned]
    fit = fit_profiles(
        rows, names, point=point, seed=seed, family=family, most=MOST_PROFILES, sample=_SAMPLE
    )
    profiles, _ = fit.mixture.assign(rows)
    told = {one.number: Kind(one.title, one.failure_share) for one in describe(jobs, profiles)}
    kinds = tuple(told.get(number, _NO_JOBS) for number in range(fit.mixture.profiles))
    columns = [feature.name for feature in CATALOGUE]
    mixture = Mixture.from_dict(fit.mixture.as_dict(), columns)
    return fit.mixture.memberships(values).astype(np.float32), Kinds(mixture, kinds)
