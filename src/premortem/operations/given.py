"""Jobs as they are handed over in Python: frames of two libraries, or plain dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from premortem.errors import InvalidInput
from premortem.jobs.fields import KEY, Kind
from premortem.jobs.frame import SCHEMA
from premortem.jobs.samples import SAMPLES, SAMPLES_DTYPE

# A Polars frame, a pandas frame (which need not be installed), or a list of dicts.
Jobs = Any
_ORDER = ("submit_time", "cluster", "job_id")
_COLUMNS: dict[str, pl.DataType] = {**SCHEMA, SAMPLES: SAMPLES_DTYPE}


def jobs_from(given: Jobs) -> pl.DataFrame:
    """The jobs with the fields that were given, in the types of the table of fields.

    Columns that are no fields are left out. Times may be text; without a zone they are UTC. Each
    job needs its key.
    """
    frame = _frame(given)
    if frame.is_empty():
        return pl.DataFrame(schema=_COLUMNS)
    lacking = [
        name
        for name in KEY
        if name not in frame.columns or frame[name].null_count() == frame.height
    ]
    if lacking:
        raise InvalidInput(f"each job needs {', '.join(KEY)}; there is no {', '.join(lacking)}")
    jobs = pl.DataFrame([_typed(frame[name]) for name in _COLUMNS if name in frame.columns])
    for name in KEY:
        if count := jobs[name].null_count():
            raise InvalidInput(f"each job needs {', '.join(KEY)}; {count:,} have no {name}")
    return jobs


def completed(jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs with every field, in the order of the table of fields."""
    return jobs.select(
        name if name in jobs.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in _COLUMNS.items()
    )


def as_history(jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs with every field, each once, ordered as a store has them."""
    return completed(jobs).unique(KEY, keep="last", maintain_order=True).sort(*_ORDER)


def among(jobs: pl.DataFrame, past: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """The past with these jobs in it, ordered as a store has it, and which of them they are.

    Of a job that the past knows too, the columns that are there are believed, and those that are
    not come from the past.
    """
    lacking = [name for name in _COLUMNS if name not in jobs.columns]
    known = completed(past)
    own = jobs.unique(KEY, keep="first", maintain_order=True).join(
        known.select(*KEY, *lacking).unique(KEY, keep="last"), on=KEY, how="left"
    )
    others = known.join(own, on=KEY, how="anti")
    marked = [
        others.with_columns(wanted=pl.lit(False)),
        completed(own).with_columns(wanted=pl.lit(True)),
    ]
    both = pl.concat(marked).sort(*_ORDER)
    return both.drop("wanted"), both["wanted"]


def _frame(given: Jobs) -> pl.DataFrame:
    if isinstance(given, pl.DataFrame):
        return given
    kind = type(given)
    if (kind.__module__.partition(".")[0], kind.__name__) == ("pandas", "DataFrame"):
        return pl.from_pandas(given)
    if isinstance(given, Sequence) and all(isinstance(one, Mapping) for one in given):
        fields = [{name: job.get(name) for name in _COLUMNS if name in job} for job in given]
        return _from_dicts(fields)
    raise InvalidInput(
        "jobs are a Polars or pandas frame, or a list of dicts, one for each job; this is a "
        f"{type(given).__qualname__}"
    )


def _from_dicts(fields: list[dict[str, Any]]) -> pl.DataFrame:
    try:
        return pl.DataFrame(fields, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError) as error:
        told = str(error).partition("\n")[0]
        raise InvalidInput(
            f"the jobs' fields cannot be read: {told}; is each of the same type in every job?"
        ) from error


def _typed(column: pl.Series) -> pl.Series:
    """The column in the type of its field."""
    wanted, is_time = _COLUMNS[column.name], _COLUMNS[column.name] == Kind.TIME.dtype
    if is_time and column.dtype.is_numeric():
        # Seconds or milliseconds: a number does not tell.
        raise InvalidInput(
            f"{column.name} holds numbers; expected times, or text such as 2026-01-05T08:00"
        )
    try:
        if is_time and column.dtype == pl.String:
            return column.str.to_datetime(time_unit="us", time_zone="UTC")
        return column.cast(wanted)
    except pl.exceptions.PolarsError as error:
        told = str(error).partition("\n")[0]
        raise InvalidInput(
            f"{column.name} cannot be read: {told} (docs/reference/fields.md tells its type)"
        ) from error
