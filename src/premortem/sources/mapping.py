"""Mapping files: which columns of a table hold which job fields, and in what units.

cluster = "eagle"                       # optional
zone = "America/Denver"                 # of clock times without one; optional
time_format = "%Y-%m-%d %H:%M:%S"       # optional; ISO 8601 by default

[columns]
job_id = "id"
submit_time = "submitted"
time_limit_s = { column = "walltime", unit = "h" }

[states]                                # only where they are not Slurm's; optional
done = "COMPLETED"
"""

from __future__ import annotations

import tomllib
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Literal

import polars as pl
from polars.exceptions import PolarsError
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from premortem.errors import InvalidInput, NotFound
from premortem.jobs import spellings
from premortem.jobs.fields import BY_NAME, Field, Kind
from premortem.jobs.states import normal_state
from premortem.sources.columns import Expression, Reading, as_text

_DURATIONS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"B": 2.0**-20, "KiB": 2.0**-10, "MiB": 1.0, "GiB": 2.0**10, "TiB": 2.0**20}
_ENERGIES = {"J": 1.0, "kJ": 1e3, "kWh": 3.6e6}
_UNITS = {"s": _DURATIONS, "MiB": _SIZES, "J": _ENERGIES}
_SLURM = "slurm"


class Column(BaseModel):
    """One column of the table; `absent` is a text that stands for no value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    column: str
    unit: str | None = None
    absent: str | None = None


class Mapping(BaseModel):
    """A whole mapping file. `repeated_ids` says what rows with one job's key are.

    They are `sightings` of that job, to be merged; or `array-tasks`, each a job of its own, where
    the table writes the array's number on every task. Tasks are then numbered as they come.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: dict[str, Column]
    cluster: str | None = None
    zone: str | None = None
    time_format: str | None = None
    delimiter: str = ","
    states: dict[str, str] = {}
    repeated_ids: Literal["sightings", "array-tasks"] = "sightings"

    @field_validator("columns", mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {n: {"column": c} if isinstance(c, str) else c for n, c in value.items()}

    @field_validator("columns")
    @classmethod
    def _known_fields(cls, value: dict[str, Column]) -> dict[str, Column]:
        problems = [f"{name} is not a job field" for name in value if name not in BY_NAME]
        problems += [
            f"{name}: unit '{column.unit}' is not one of {', '.join(_units_of(BY_NAME[name]))}"
            for name, column in value.items()
            if name in BY_NAME and column.unit and column.unit not in _units_of(BY_NAME[name])
        ]
        problems += [
            f"{name} is missing" for name in ("job_id", "submit_time") if name not in value
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return value

    @field_validator("states")
    @classmethod
    def _known_states(cls, value: dict[str, str]) -> dict[str, str]:
        unknown = [state for state in value.values() if normal_state(state) is None]
        if unknown:
            raise ValueError(f"not a job state of Slurm's: {', '.join(unknown)}")
        return value

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, value: str | None) -> str | None:
        try:
            return value and spellings.require_zone(value)
        except InvalidInput as error:
            raise ValueError(str(error)) from error

    @field_validator("time_format")
    @classmethod
    def _readable_format(cls, value: str | None) -> str | None:
        try:
            pl.select(spellings.timestamp(pl.lit("2026-01-05"), "UTC", value or "%Y-%m-%d"))
        except PolarsError as error:
            told = str(error).partition("\n")[0]
            raise ValueError(f"no time can be read by '{value}': {told}") from error
        return value

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, value: str) -> str:
        if len(value) != 1 or value in '"\r\n':
            raise ValueError("expected one character, and neither a quote nor a line's end")
        return value

    def readings(self, zone: str) -> list[Reading]:
        """How each field is read; `zone` counts where the mapping names none."""
        return [
            Reading(name, column.column, *self._reading(name, column, self.zone or zone))
            for name, column in self.columns.items()
        ]

    def _reading(self, name: str, column: Column, zone: str) -> tuple[Expression, str, Expression]:
        field = BY_NAME[name]
        read, expected = self._read_as(field, column, zone)
        return read, expected, lambda text: text.is_not_null() & (text != (column.absent or ""))

    def _read_as(self, field: Field, column: Column, zone: str) -> tuple[Expression, str]:
        unit = column.unit or field.unit
        if field.name == "job_id":
            return as_text, "a job number"
        if field.name == "state":
            return self._state, "one of Slurm's job states, or one under [states]"
        if field.kind is Kind.TIME:
            if self.time_format is None:
                return partial(spellings.iso_timestamp, zone=zone), "a time as in ISO 8601"
            read = partial(spellings.timestamp, zone=zone, format=self.time_format)
            return read, f"a time as in {self.time_format}"
        if field.kind is Kind.FLAG:
            return _flag, "true or false"
        if unit == _SLURM:
            duration = field.unit == "s"
            return (
                (spellings.duration_s, "a duration such as 1-12:00:00")
                if duration
                else (partial(spellings.size_mb, plain="M"), "a size such as 48000M")
            )
        if unit:
            return partial(_scaled, factor=_UNITS[field.unit][unit]), f"a number of {unit}"
        if field.kind is Kind.INTEGER:
            return spellings.integer, "a whole number"
        return (as_text, "text") if field.kind is Kind.TEXT else (spellings.quantity, "a number")

    def _state(self, text: pl.Expr) -> pl.Expr:
        return spellings.state(text.replace(self.states) if self.states else text)


def load_mapping(name: str) -> Mapping:
    """A mapping from a file, or the preset of that name."""
    if name in preset_names():
        return _parsed(_preset_text(name), f"preset {name}")
    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFound(
            f"{name}: no such mapping file, and no such preset ({', '.join(preset_names())})"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name}: this mapping file cannot be read: {error}") from error
    return _parsed(text, name)


def preset_for(header: list[str]) -> str | None:
    """The preset whose columns are all in a table's header, if there is one."""
    for name in preset_names():
        mapping = load_mapping(name)
        if {column.column for column in mapping.columns.values()} <= set(header):
            return name
    return None


def preset_names() -> list[str]:
    """The names of the mappings that come with premortem."""
    folder = resources.files("premortem.sources.presets")
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def _preset_text(name: str) -> str:
    return resources.files("premortem.sources.presets").joinpath(f"{name}.toml").read_text("utf-8")


def _parsed(text: str, name: str) -> Mapping:
    try:
        return Mapping.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{name}: not TOML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'mapping'}: {problem['msg']}"
            for problem in error.errors()
        )
        raise InvalidInput(f"{name}: {problems}") from error


def _units_of(field: Field) -> list[str]:
    units = list(_UNITS.get(field.unit, {}))
    return [*units, _SLURM] if field.unit in ("s", "MiB") else units


def _scaled(text: pl.Expr, factor: float) -> pl.Expr:
    value = text.cast(pl.Float64, strict=False) * factor
    return pl.when(value.is_finite()).then(value.round(6))


def _flag(text: pl.Expr) -> pl.Expr:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    return text.str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean)
