"""JSON from Slurm: `sacct --json`, `squeue --json`, and slurmrestd's lists of jobs.

Accounting (`/slurmdb/*/jobs`) and the controller (`/slurm/*/jobs`) describe a job differently, and
every API version from v0.0.37 on a little differently again. The shape of each record decides how
it is read; the version named in the document is only noted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from premortem.errors import InvalidInput
from premortem.jobs.fields import KEY, Kind
from premortem.jobs.frame import SCHEMA
from premortem.jobs.normal import normalise
from premortem.jobs.tres import with_tres_counts
from premortem.sources.content import Content
from premortem.sources.json_stream import JsonStream
from premortem.sources.port import Batch, Context, checked, reject, shortened
from premortem.sources.slurm_records import fields_of
from premortem.sources.slurm_values import BadRecord, text

_BATCH = 2000
# Columns every batch has, so that no record is read differently for the company it is in.
_ALWAYS = (*KEY, "state", "start_time", "end_time", "node_list")
# Behind the name of the plugin: a version in some job's text is hardly written so.
_VERSION = re.compile(rb"(?:data_parser\\?/|openapi\\?/(?:db)?)(v0\.0\.\d+)")


@dataclass(slots=True)
class SlurmJsonSource:
    """Reads one JSON document; `line` in rejects is the number of the record in it, from 1.

    `damage` tells afterwards what ended the document early, if anything did.
    """

    file: Content
    context: Context
    notes: list[str] = field(default_factory=list)
    damage: str | None = None

    def batches(self) -> Iterator[Batch]:
        """The document's jobs in batches. Errors that Slurm put into its answer become notes."""
        stream = JsonStream(self.file)
        # Newer releases name the version behind the jobs, at the end of the document.
        version = version_in(self.file.head()) or version_in(self.file.tail())
        pending: list[tuple[int, Any]] = []
        number = 0
        for number, record in enumerate(stream.items("jobs"), start=1):
            pending.append((number, record))
            if len(pending) == _BATCH:
                yield self._batch(pending, stream, version)
                pending = []
        if pending:
            yield self._batch(pending, stream, version)
        self.damage = stream.damage
        if stream.damage:
            if number == 0 and not stream.found:
                raise InvalidInput(f"{self.file.path}: {stream.damage}")
            damage = reject(number + 1, stream.damage)
            yield Batch(pl.DataFrame(), damage, self.file.position)
        self._report(stream, jobs=number)

    def _batch(
        self, numbered: list[tuple[int, Any]], stream: JsonStream, version: str | None
    ) -> Batch:
        return batch_of(
            numbered,
            context=self.context,
            cluster=_cluster_of(stream),
            version=version,
            position=self.file.position,
        )

    def _report(self, stream: JsonStream, *, jobs: int) -> None:
        """Tell what Slurm itself said was wrong; an answer of nothing else is an error."""
        errors = stream.others.get("errors")
        told = [worded(error) for error in errors] if isinstance(errors, list) else []
        if told and not jobs:
            raise InvalidInput(f"{self.file.path}: Slurm reported an error: {'; '.join(told)}")
        self.notes += [f"Slurm reported an error: {error}" for error in told]
        if not stream.found:
            held = ", ".join(name for name in stream.others if name not in ("meta", "errors"))
            raise InvalidInput(
                f"{self.file.path}: the document has no list of jobs; it holds {held or 'nothing'}"
            )


def batch_of(
    numbered: list[tuple[int, Any]],
    *,
    context: Context,
    cluster: str | None = None,
    version: str | None = None,
    position: int = 0,
) -> Batch:
    """Parsed records, each with its number, as jobs; what cannot be read is set aside.

    `cluster` is theirs where they do not name one, `version` the API's.
    """
    rows, reasons = [], []
    for _, record in numbered:
        reason = None
        try:
            row = fields_of(record)
        except BadRecord as error:
            row, reason = {}, str(error)
        rows.append(row)
        reasons.append(reason)
    told = set(_ALWAYS).union(*rows)
    schema = {name: dtype for name, dtype in SCHEMA.items() if name in told}
    records = pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in schema}, schema=_plain(schema)
    )
    records = records.with_columns(
        *[(pl.col(n) * 1_000_000).cast(t) for n, t in schema.items() if t == Kind.TIME.dtype],
        api_version=pl.lit(version),
    )
    records = with_tres_counts(context.stamped(records, cluster=cluster))
    batch = checked(
        normalise(records),
        pl.repeat("", records.height, dtype=pl.String, eager=True),
        pl.Series([number for number, _ in numbered], dtype=pl.Int64),
        pl.Series(reasons, dtype=pl.String),
        context=context,
        position=position,
    )
    return Batch(batch.jobs, _with_texts(batch.rejects, numbered), batch.position)


def worded(error: Any) -> str:
    """What Slurm says in an entry of an answer's `errors`."""
    if isinstance(error, dict):
        parts = (error.get("description"), error.get("error"))
        error = ": ".join(str(part) for part in parts if part)
    return text(error) or "unnamed"


def version_in(data: bytes) -> str | None:
    """The version of the API that a document names among these bytes, if it does."""
    found = _VERSION.search(data)
    return found[1].decode() if found else None


def _cluster_of(stream: JsonStream) -> str | None:
    meta = stream.others.get("meta")
    for slurm in (meta.get("slurm"), meta.get("Slurm")) if isinstance(meta, dict) else ():
        if isinstance(slurm, dict) and isinstance(slurm.get("cluster"), str):
            return text(slurm["cluster"])
    return None


def _plain(schema: dict[str, pl.DataType]) -> dict[str, pl.DataType]:
    """The schema with times as seconds since 1970, as Slurm's JSON has them."""
    return {n: pl.Int64() if t == Kind.TIME.dtype else t for n, t in schema.items()}


def _with_texts(rejects: pl.DataFrame, numbered: list[tuple[int, Any]]) -> pl.DataFrame:
    if rejects.is_empty():
        return rejects
    records = dict(numbered)
    texts = [json.dumps(_number_first(records[line])) for line in rejects["line"]]
    return shortened(rejects.with_columns(text=pl.Series(texts, dtype=pl.String)))


def _number_first(record: Any) -> Any:
    """The record with what tells it from others at its beginning, where an excerpt shows it."""
    if not isinstance(record, dict):
        return record
    return {name: record[name] for name in ("job_id", "time") if name in record} | record
