"""Which of several profiles a row of features belongs to, by a mixture of Gaussians.

The mixture is fitted elsewhere; here it is used, saved and loaded, with NumPy alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from premortem.errors import InvalidInput
from premortem.models.port import Array

_FORMAT = "gaussian mixture, diagonal"
# Beyond so many deviations a value says nothing more: one typing error must not make a profile.
_FARTHEST = 6.0
# Small enough for the processor's cache, large enough that calls cost nothing beside the work.
_ROWS_AT_ONCE = 2_048


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """How columns of features become comparable: one entry for each column in every array.

    `fillers` stand in for missing values, before anything else is done; of columns that are
    `logged` the logarithm of one more is taken, what is below zero counting as zero. `centres` and
    `spreads` are the mean and the deviation after that, in training.
    """

    names: tuple[str, ...]
    logged: Array
    fillers: Array
    centres: Array
    spreads: Array

    def filled(self, values: Array) -> Array:
        """The values of these columns, in this order, as numbers whose differences compare.

        Values that are not finite count as missing.
        """
        told: Array = values.astype(np.float64)
        told = np.where(np.isfinite(told), told, self.fillers)
        np.maximum(told, 0.0, out=told, where=self.logged)
        np.log1p(told, out=told, where=self.logged)
        return told

    def scaled(self, values: Array) -> Array:
        """The same as deviations from the usual."""
        told = self.filled(values)
        told -= self.centres
        told /= self.spreads
        # Not np.clip: for a single row it takes longer than all the rest.
        np.minimum(told, _FARTHEST, out=told)
        return np.maximum(told, -_FARTHEST, out=told)


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Profiles as Gaussians that share no covariance between columns; profile 0 comes first.

    One row of `means` and of `precisions_cholesky` (one over the deviation) for each profile, in
    the scaled columns. `places` are where the columns stand in the rows to come, which have `width`
    columns; without, rows hold the columns of the scale and nothing else.
    """

    scale: Scale
    weights: Array
    means: Array
    precisions_cholesky: Array
    places: tuple[int, ...] | None = None
    width: int | None = None
    _heights: Array = field(init=False, repr=False)
    _columns: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Work out what every row needs: the logarithm of each Gaussian's height, but for 2π."""
        heights = np.log(self.weights) + np.log(self.precisions_cholesky).sum(axis=1)
        columns = range(len(self.scale.names)) if self.places is None else self.places
        object.__setattr__(self, "_heights", heights)
        object.__setattr__(self, "_columns", np.array(columns, dtype=np.intp))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that profiles are told apart by."""
        return self.scale.names

    @property
    def profiles(self) -> int:
        """How many there are."""
        return len(self.weights)

    def assign(self, values: Array) -> tuple[Array, Array]:
        """The profile of each row, and how sure that is: its probability among the profiles.

        A row unlike all profiles still has a nearest one, often with a closeness near 1: it tells
        profiles apart, not usual rows from unusual ones. A row gets the same answer alone or among
        any others; memory in use does not grow with their number, but for the answer.
        """
        self._check(values)
        profiles = np.empty(len(values), dtype=np.intp)
        closeness = np.empty(len(values))
        for begin in range(0, len(values), _ROWS_AT_ONCE):
            some = slice(begin, begin + _ROWS_AT_ONCE)
            likelihood = self._log_likelihood(values[some])
            profiles[some] = likelihood.argmax(axis=1)
            likelihood -= likelihood.max(axis=1, keepdims=True)
            closeness[some] = 1.0 / np.exp(likelihood).sum(axis=1)
        return profiles, closeness

    def memberships(self, values: Array) -> Array:
        """How likely each row is of each profile: a column a profile, a row's sum being 1."""
        self._check(values)
        found = np.empty((len(values), self.profiles))
        for begin in range(0, len(values), _ROWS_AT_ONCE):
            some = slice(begin, begin + _ROWS_AT_ONCE)
            likelihood = self._log_likelihood(values[some])
            likelihood -= likelihood.max(axis=1, keepdims=True)
            found[some] = np.exp(likelihood)
        found /= found.sum(axis=1, keepdims=True)
        return found

    def _check(self, values: Array) -> None:
        width = len(self._columns) if self.width is None else self.width
        if values.ndim != 2 or values.shape[1] != width:
            raise InvalidInput(f"expected rows of {width} columns, not {values.shape}")

    def _log_likelihood(self, values: Array) -> Array:
        """Of each row in each profile, but for what is the same in all."""
        scaled = self.scale.scaled(values.take(self._columns, axis=1))
        apart = (scaled[:, np.newaxis, :] - self.means) * self.precisions_cholesky
        found: Array = self._heights - 0.5 * np.einsum("npc,npc->np", apart, apart)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON; where the columns stand in a row is not among them."""
        scale = self.scale
        columns = zip(
            scale.names, scale.logged.tolist(), scale.fillers.tolist(), scale.centres.tolist(),
            scale.spreads.tolist(), strict=True,
        )  # fmt: skip
        profiles = zip(
            self.weights.tolist(), self.means.tolist(), self.precisions_cholesky.tolist(),
            strict=True,
        )  # fmt: skip
        return {
            "format": _FORMAT,
            "columns": [dict(zip(_COLUMN, told, strict=True)) for told in columns],
            "profiles": [dict(zip(_PROFILE, told, strict=True)) for told in profiles],
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], columns: Sequence[str] | None = None) -> Mixture:
        """The mixture that was written so; what cannot be one is refused.

        `columns` are the names of all columns of the rows to come, as in the catalogue; without,
        rows hold `names` and nothing else. Columns are found by name, so that rows which have
        changed since are read rightly or not at all.
        """
        try:
            if saved["format"] != _FORMAT:
                raise ValueError(saved["format"])  # noqa: TRY301
            names, logged, *told = zip(*_entries(saved["columns"], _COLUMN), strict=True)
            weights, means, precisions = map(
                _numbers, zip(*_entries(saved["profiles"], _PROFILE), strict=True)
            )
            scale = Scale(tuple(map(str, names)), np.array(logged, bool), *map(_numbers, told))
            _require_mixture(scale, weights, means, precisions)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"these are not saved profiles: {error!r}") from error
        if columns is None:
            return cls(scale, weights, means, precisions)
        places = places_of(scale.names, columns)
        return cls(scale, weights, means, precisions, places, len(columns))


_COLUMN = ("name", "logged", "filler", "centre", "spread")
_PROFILE = ("weight", "means", "precisions_cholesky")


def places_of(names: Sequence[str], columns: Sequence[str]) -> tuple[int, ...]:
    """Where the names stand among the columns; one that does not is an error."""
    known = {name: place for place, name in enumerate(columns)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidInput(
            f"the profiles were made with {', '.join(unknown)}, which these rows do not have: "
            "make the profiles anew"
        )
    return tuple(known[name] for name in names)


def _entries(saved: Any, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [tuple(entry[name] for name in names) for entry in saved]


def _numbers(told: Any) -> Array:
    numbers: Array = np.array(told, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a number is missing")
    return numbers


def _require_mixture(scale: Scale, weights: Array, means: Array, precisions: Array) -> None:
    shape = (len(weights), len(scale.names))
    if weights.ndim != 1 or means.shape != shape or precisions.shape != shape:
        raise ValueError("the profiles do not fit the columns")
    if abs(weights.sum() - 1) > 1e-6 or (weights <= 0).any():
        raise ValueError("the weights are not shares of one")
    if (precisions <= 0).any() or (scale.spreads <= 0).any():
        raise ValueError("a deviation is not above zero")
