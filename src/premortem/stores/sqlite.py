"""Job records in one SQLite file, for one machine.

In write-ahead mode others read while one writes, and a process killed in the middle of a write
leaves the last complete batch.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from premortem.errors import Conflict, InvalidInput, PremortemError
from premortem.jobs.fields import BY_NAME, KEY, Kind
from premortem.jobs.frame import SCHEMA, conform, require_fields
from premortem.jobs.samples import SAMPLE_SCHEMA, conform_samples, no_samples
from premortem.jobs.sightings import differ, fold, last_seen_later, tells_more, with_verdict
from premortem.stores import sqlite_schema as schema
from premortem.stores.port import Appended, JobQuery
from premortem.stores.sqlite_file import SqliteFile

_ORDER = ("cluster", "submit_time", "job_id")
# The schema from which on there are tables of samples and notes.
_SAMPLES_SINCE = 2
_REJECT_COLUMNS = ("source", "line", "reason", "text", "seen_at")


class SqliteStore:
    """A store in the SQLite file at `path`; see the port for what it does."""

    def __init__(
        self, path: str | os.PathLike[str], *, read_only: bool = False, patience_s: float = 30.0
    ) -> None:
        self.path = Path(path).expanduser()
        self._read_only = read_only
        self._file = SqliteFile(self.path, read_only=read_only, patience_s=patience_s)
        try:
            self._columns = self._prepared()
        except PremortemError:
            self.close()
            raise

    def append(self, jobs: pl.DataFrame) -> Appended:
        """Keep each job; see the port."""
        if jobs.is_empty():
            return Appended()
        sighted, scripts = _scripts_apart(_without_empty_columns(conform(jobs)))
        sighted = fold(sighted)
        with self._file.transaction():
            if not scripts.is_empty():
                self._file.execute_many("INSERT OR IGNORE INTO script VALUES (?, ?)", scripts)
            new = self._insert(sighted)
            changed = 0 if new == sighted.height else self._merge(sighted)
        return Appended(new, changed, jobs.height - new - changed)

    def jobs(
        self, query: JobQuery = JobQuery(), columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """The jobs wanted, ordered by submission; see the port."""
        wanted = list(SCHEMA) if columns is None else list(columns)
        require_fields(wanted)
        conditions, values = _conditions(query)
        if not query.clusters:
            # Naming all clusters lets SQLite walk its index by time within each.
            conditions.append(f"cluster IN ({schema.ALL_CLUSTERS})")
        where = " AND ".join(conditions)
        last = (
            f"ORDER BY submit_time DESC, job_id DESC LIMIT {query.limit:d}" if query.limit else ""
        )
        ordered = list(dict.fromkeys([*wanted, *_ORDER]))
        chosen = f"FROM job WHERE {where} {last}"
        frame = self._select(ordered, chosen, values)
        if "script" in wanted and self._has_scripts(frame):
            frame = self._with_scripts(frame, chosen, values)
        by_time = not query.job_ids and not query.array_job_ids
        return _in_order(frame, by_time=by_time, newest_first=bool(query.limit)).select(wanted)

    def add_samples(self, samples: pl.DataFrame) -> int:
        """Keep samples of running jobs; see the port."""
        if samples.is_empty():
            return 0
        rows = conform_samples(samples).with_columns(pl.col("at").dt.epoch("ms"))
        marks = ", ".join("?" * rows.width)
        with self._file.transaction():
            before = self._file.total_changes
            self._file.execute_many(f"INSERT OR IGNORE INTO sample VALUES ({marks})", rows)
            return self._file.total_changes - before

    def samples(self, job_ids: Sequence[int] = ()) -> pl.DataFrame:
        """The samples of these jobs, or of all; see the port."""
        if self._file.version < _SAMPLES_SINCE:
            return no_samples()
        names = ", ".join(SAMPLE_SCHEMA)
        where = f"WHERE job_id IN ({', '.join('?' * len(job_ids))})" if job_ids else ""
        typed = "'' AS cluster, 0 AS job_id, 0 AS at, 0.0 AS cpu_s, 0.0 AS rss_mb, 0.0 AS read_mb, "
        typed += "0.0 AS written_mb, 0 AS processes"
        frame = self._file.query(
            f"SELECT {typed} UNION ALL SELECT * FROM "
            f"(SELECT {names} FROM sample {where} ORDER BY cluster, job_id, at)",
            list(job_ids),
        ).slice(1)
        return conform_samples(frame.with_columns(_as_time(pl.col("at"), per_second=1000)))

    def set_aside(self, source: str, rejects: pl.DataFrame, *, afresh: bool = False) -> None:
        """Keep bad records of a source; see the port."""
        if rejects.is_empty() and not afresh:
            return
        now = int(datetime.now(UTC).timestamp())
        rows = rejects.with_columns(source=pl.lit(source), seen_at=pl.lit(now))
        marks = ", ".join("?" * len(_REJECT_COLUMNS))
        with self._file.transaction():
            if afresh:
                self._file.execute("DELETE FROM reject WHERE source = ?", [source])
            if not rows.is_empty():
                names = ", ".join(_REJECT_COLUMNS)
                self._file.execute_many(
                    f"INSERT OR REPLACE INTO reject ({names}) VALUES ({marks})",
                    rows.select(_REJECT_COLUMNS),
                )

    def rejects(self, source: str | None = None) -> pl.DataFrame:
        """Bad records set aside; see the port."""
        where, values = ("WHERE source = ?", [source]) if source else ("", [])
        sample = "'' AS source, 0 AS line, '' AS reason, '' AS text, 0 AS seen_at"
        names = ", ".join(_REJECT_COLUMNS)
        frame = self._file.query(
            f"SELECT {sample} UNION ALL SELECT {names} FROM reject {where}", values
        ).slice(1)
        return frame.with_columns(_as_time(pl.col("seen_at"))).sort("source", "line")

    def note(self, name: str) -> str | None:
        """What was noted under a name; see the port."""
        if self._file.version < _SAMPLES_SINCE:
            return None
        found = self._file.query(
            "SELECT '' AS text UNION ALL SELECT text FROM note WHERE name = ?", [name]
        ).slice(1)
        return None if found.is_empty() else str(found.item())

    def set_note(self, name: str, text: str) -> None:
        """Note something under a name; see the port."""
        self._file.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", [name, text])

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _insert(self, sighted: pl.DataFrame) -> int:
        """Add the jobs not yet known; returns how many those were."""
        before = self._file.total_changes
        marks = ", ".join("?" * sighted.width)
        names = ", ".join(map(_quoted, sighted.columns))
        self._file.execute_many(
            f"INSERT OR IGNORE INTO job ({names}) VALUES ({marks})", _encoded(sighted)
        )
        return self._file.total_changes - before

    def _merge(self, sighted: pl.DataFrame) -> int:
        """Fold the sightings into the records already there; returns how many that changed."""
        sighted = with_verdict(sighted)
        stored = self._stored(sighted)
        sighted = stored.select(KEY).join(sighted, on=KEY, how="left", maintain_order="left")
        sighted = sighted.select(stored.columns)
        news = tells_more(stored, sighted) | last_seen_later(stored, sighted)
        stored, sighted = stored.filter(news), sighted.filter(news)
        folded = fold(pl.concat([stored, sighted]))
        changed = differ(stored, folded)
        written = folded.filter(changed | last_seen_later(stored, folded))
        if not written.is_empty():
            values = [name for name in written.columns if name not in KEY]
            assignments = ", ".join(f"{_quoted(name)} = ?" for name in values)
            key = " AND ".join(f"{name} = ?" for name in KEY)
            self._file.execute_many(
                f"UPDATE job SET {assignments} WHERE {key}", _encoded(written.select(*values, *KEY))
            )
        return int(changed.sum())

    def _stored(self, sighted: pl.DataFrame) -> pl.DataFrame:
        """The records of the jobs sighted, in the columns sighted."""
        self._file.execute(schema.SIGHTED_TABLE)
        self._file.execute("DELETE FROM sighted")
        self._file.execute_many(
            "INSERT INTO sighted VALUES (?, ?, ?)", _encoded(sighted.select(_ORDER))
        )
        return self._select(
            sighted.columns, "FROM sighted CROSS JOIN job USING (cluster, submit_time, job_id)"
        )

    def _has_scripts(self, jobs: pl.DataFrame) -> bool:
        return jobs["script"].null_count() < jobs.height

    def _with_scripts(self, jobs: pl.DataFrame, chosen: str, values: Sequence[Any]) -> pl.DataFrame:
        """The jobs with the texts of their scripts; each text is read once."""
        wanted = f"SELECT script {chosen}"
        texts = self._file.query(
            "SELECT '' AS script, '' AS text UNION ALL "
            f"SELECT digest, text FROM script WHERE digest IN ({wanted})", values
        )  # fmt: skip
        found = jobs.join(texts, on="script", how="left", maintain_order="left")
        return found.with_columns(script="text").drop("text")

    def _select(
        self, columns: Sequence[str], rest: str, values: Sequence[Any] = ()
    ) -> pl.DataFrame:
        """A query over job columns as a frame in the table's types.

        The driver guesses types from the first rows, which may be empty, so the query begins with
        a row of samples that is dropped again.
        """
        kinds = {name: BY_NAME[name].kind for name in columns}
        samples = ", ".join(f"{schema.SAMPLES[k]} AS {_quoted(n)}" for n, k in kinds.items())
        names = ", ".join(_quoted(n) if n in self._columns else "NULL" for n in columns)
        frame = self._file.query(
            f"SELECT {samples} UNION ALL SELECT * FROM (SELECT {names} {rest})", values
        ).slice(1)
        return frame.select(_decoded(name, kind) for name, kind in kinds.items())

    def _prepared(self) -> set[str]:
        """Bring the file to the present schema, or refuse it; returns the columns there are."""
        version = self._file.version
        if version > schema.VERSION:
            raise Conflict(
                f"{self.path} was written by a newer premortem (schema {version}, this one knows "
                f"{schema.VERSION}): upgrade premortem, or use another store"
            )
        if self._read_only:
            if version == 0:
                raise InvalidInput(f"{self.path} is not a premortem store")
            return self._present_columns()
        self._require_no_other()
        self._file.write_ahead()
        if version < schema.VERSION or set(SCHEMA) - self._present_columns():
            with self._file.transaction():
                self._migrate()
        return set(SCHEMA)

    def _migrate(self) -> None:
        """Inside a transaction: another process may have done it while this one waited."""
        self._require_no_other()
        for statements in schema.MIGRATIONS[self._file.version :]:
            for statement in statements:
                self._file.execute(statement)
        for name in sorted(set(SCHEMA) - self._present_columns()):
            self._file.execute(f"ALTER TABLE job ADD COLUMN {schema.column(name)}")
        self._file.execute(f"PRAGMA user_version = {schema.VERSION}")

    def _require_no_other(self) -> None:
        """Raise if the file is another program's database, which is left as it is."""
        tables = self._file.query("SELECT count(*) AS n FROM sqlite_schema").item()
        # Asked in this order: both are made at once, perhaps by another process right now.
        if tables and self._file.version == 0:
            raise InvalidInput(f"{self.path} is not a premortem store")

    def _present_columns(self) -> set[str]:
        return set(self._file.query("SELECT name FROM pragma_table_info('job')")["name"])


def _conditions(query: JobQuery) -> tuple[list[str], list[Any]]:
    filters: dict[str, Sequence[Any]] = {
        "cluster": query.clusters,
        "job_id": query.job_ids,
        "array_job_id": query.array_job_ids,
        "user": query.users,
        "account": query.accounts,
        "job_name": query.job_names,
        "state": query.states,
    }
    conditions, values = ["1"], []
    for name, wanted in filters.items():
        if wanted:
            conditions.append(f"{_quoted(name)} IN ({', '.join('?' * len(wanted))})")
            values += list(wanted)
    if query.partitions:
        # A job that waits may have named several.
        named = "instr(',' || coalesce(alloc_partition, partition) || ',', ?)"
        conditions.append(f"({' OR '.join([named] * len(query.partitions))})")
        values += [f",{name}," for name in query.partitions]
    for instant, comparison in ((query.since, ">="), (query.until, "<")):
        if instant is not None:
            conditions.append(f"submit_time {comparison} ?")
            values.append(int(instant.timestamp()))
    if query.lacking is not None:
        require_fields([query.lacking])
        conditions.append(f"{_quoted(query.lacking)} IS NULL")
    return conditions, values


def _in_order(jobs: pl.DataFrame, *, by_time: bool, newest_first: bool) -> pl.DataFrame:
    """The jobs by submission.

    Asked for `by_time`, those of one cluster come in that order, or its reverse, already.
    """
    if not by_time or jobs["cluster"].n_unique() > 1:
        return jobs.sort("submit_time", "cluster", "job_id")
    return jobs.reverse() if newest_first else jobs


def _without_empty_columns(jobs: pl.DataFrame) -> pl.DataFrame:
    empty = jobs.select(pl.all().null_count()).row(0)
    return jobs.select(
        name for name, nulls in zip(jobs.columns, empty, strict=True) if nulls < jobs.height
    )


def _scripts_apart(jobs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The jobs with digests in the place of scripts, and the texts by digest."""
    if "script" not in jobs.columns:
        return jobs, pl.DataFrame()
    texts = jobs.select(text="script").drop_nulls().unique()
    digests = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts["text"]]
    texts = texts.select(digest=pl.Series(digests, dtype=pl.String), text="text")
    digest = pl.col("script").replace_strict(
        texts["text"], texts["digest"], default=None, return_dtype=pl.String
    )
    return jobs.with_columns(script=digest), texts


def _encoded(jobs: pl.DataFrame) -> pl.DataFrame:
    """Times as whole seconds since 1970 and flags as 0 or 1."""
    return jobs.with_columns(
        *[pl.col(n).dt.epoch("s") for n, t in jobs.schema.items() if isinstance(t, pl.Datetime)],
        *[pl.col(n).cast(pl.Int64) for n, t in jobs.schema.items() if t == pl.Boolean],
    )


def _decoded(name: str, kind: Kind) -> pl.Expr:
    return _as_time(pl.col(name)) if kind is Kind.TIME else pl.col(name).cast(kind.dtype)


def _as_time(count: pl.Expr, per_second: int = 1) -> pl.Expr:
    return (count * (1_000_000 // per_second)).cast(Kind.TIME.dtype)


def _quoted(name: str) -> str:
    return f'"{name}"'
