"""The libraries that grow boosted trees, behind one small port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from premortem.errors import InvalidInput, MissingExtra
from premortem.models.flat import FlatTrees
from premortem.models.parameters import TreeParameters
from premortem.models.port import Array

# Stop when so many rounds in a row brought nothing.
PATIENCE = 50


class Engine(Protocol):
    """One library. Data and boosters are its own objects, and only it looks into them."""

    # What a saved model's file is called, in the library's own format.
    file: str

    def data(self, values: Array, outcomes: Array, weights: Array | None, like: Any = None) -> Any:
        """Rows made ready for training, once for many trainings; `like` is what they go with."""

    def train(
        self,
        data: Any,
        parameters: TreeParameters,
        *,
        seed: int,
        threads: int,
        watch: Any = None,
    ) -> tuple[Any, int]:
        """A booster and its number of rounds; with `watch`, those that were best for its rows.

        Best by the likelihood of their outcomes, which changes smoothly from round to round.
        """

    def risk(self, booster: Any, values: Array, threads: int) -> Array:
        """The probability of failure of each row."""

    def dump(self, booster: Any) -> bytes:
        """The booster in the library's own format."""

    def load(self, dumped: bytes) -> Any:
        """The booster that was dumped; raises `InvalidInput` if it is not one."""

    def flat(self, booster: Any) -> FlatTrees:
        """Its trees as arrays."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an engine is, and what has to be installed for it."""

    module: str
    library: str
    extra: str | None


_ENGINES = {
    "xgboost": _Place("premortem.models.engine_xgboost", "xgboost", None),
    "lightgbm": _Place("premortem.models.engine_lightgbm", "lightgbm", "lightgbm"),
    "catboost": _Place("premortem.models.engine_catboost", "catboost", "catboost"),
}
ENGINES = tuple(_ENGINES)
DEFAULT = "xgboost"


def installed() -> tuple[str, ...]:
    """The engines whose libraries are here."""
    return tuple(name for name, place in _ENGINES.items() if find_spec(place.library))


def engine(name: str) -> Engine:
    """The engine of that name; raises `MissingExtra` if its library is not installed."""
    place = _ENGINES.get(name)
    if place is None:
        raise InvalidInput(f"no such model: {name}; there are {', '.join(ENGINES)}")
    try:
        found: Engine = import_module(place.module).ENGINE
    except ModuleNotFoundError as error:
        if error.name != place.library:
            raise
        raise MissingExtra(place.library, extra=place.extra or place.library) from error
    return found


@contextmanager
def reading(library: str, *errors: type[Exception]) -> Iterator[None]:
    """Say that this is not a model, instead of what the library raises: that is often a stack."""
    raised: tuple[type[Exception], ...] = (ValueError, *errors)
    try:
        yield
    except raised as error:
        raise InvalidInput(
            f"this is not a model that {library} can read: train it anew, or restore its files "
            "from a backup"
        ) from error
