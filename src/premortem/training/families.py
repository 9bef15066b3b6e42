"""Which family of features a site's records can fill, and what of it stays empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from premortem.errors import InvalidInput
from premortem.features.catalogue import Family, Feature, feature_set
from premortem.features.facts import INPUTS
from premortem.features.points import Point
from premortem.jobs.samples import has_samples

# From the least to the most: the first that holds all there is to fill is enough.
_BY_SIZE = (Family.SWF, Family.RESTRICTED, Family.GENERIC)
# Every job has these, and they tell no job from another.
_OF_ANY_JOB = {"cluster", "job_id", "submit_time", "start_time", "end_time", "elapsed_s"}
_TELLING = ("request", "history")


@dataclass(frozen=True, slots=True)
class Fitting:
    """A family of features for jobs; `empty` are its chapters without a value, and what they lack.

    `chosen` tells whether it was chosen here, or asked for.
    """

    family: Family
    empty: dict[str, str]
    chosen: bool

    def notes(self) -> Iterable[str]:
        """What a user should know of it."""
        if self.chosen and self.family is not Family.GENERIC:
            yield f"the features are those of {self.family}, which hold all that the jobs tell"
        if self.empty:
            lacking = ", ".join(f"{chapter} (no {what})" for chapter, what in self.empty.items())
            yield f"nothing is told by the features of {lacking}"


def fitting_family(
    jobs: pl.DataFrame, points: Sequence[Point], wanted: Family | None = None
) -> Fitting:
    """The family wanted, or the smallest that has every feature which these jobs can fill.

    Where nothing is known of what jobs ask for, nor of whose or what they are, nothing can be
    learned: that is an error which names the fields.
    """
    filled = {n for n in INPUTS if n in jobs.columns and jobs[n].null_count() < jobs.height}
    if filled & {"account", "group"}:
        filled |= {"account", "group"}
    sampled = has_samples(jobs)

    def has(feature: Feature) -> bool:
        return sampled if feature.chapter == "usage" else set(feature.inputs) <= filled

    at_hand = _features(points, wanted or Family.GENERIC)
    telling = [f for f in at_hand if f.chapter in _TELLING and set(f.inputs) - _OF_ANY_JOB]
    if not any(map(has, telling)):
        raise InvalidInput(
            f"the jobs cannot fill the features of {wanted or 'any family'}: load records with "
            f"some of {_lacking(telling, filled)}"
            + (", or leave the family to be chosen" if wanted else "")
        )
    there = {feature for feature in at_hand if has(feature)}
    family = wanted or next(one for one in _BY_SIZE if there <= set(_features(points, one)))
    empty = {}
    for chapter in dict.fromkeys(feature.chapter for feature in at_hand):
        its = [feature for feature in at_hand if feature.chapter == chapter]
        if not there & set(its):
            lacks = "samples of running jobs" if chapter == "usage" else _lacking(its, filled)
            empty[chapter] = lacks
    return Fitting(family, empty, wanted is None)


def _features(points: Sequence[Point], family: Family) -> list[Feature]:
    """The features of a family at any of these points."""
    return list(dict.fromkeys(f for point in points for f in feature_set(point, family).features))


def _lacking(features: Iterable[Feature], filled: set[str]) -> str:
    fields = dict.fromkeys(name for feature in features for name in feature.inputs)
    return ", ".join(name for name in fields if name not in filled | _OF_ANY_JOB)
