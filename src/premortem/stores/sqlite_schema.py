"""The tables of a SQLite store, derived from the table of fields, and how they came to be.

Fields are added by adding columns, which needs no migration: a store opened for writing gets the
columns it lacks. Any other change of shape is a new entry at the end of `MIGRATIONS`.
"""

from __future__ import annotations

from premortem.jobs.fields import BY_NAME, FIELDS, Kind

_TYPES = {
    Kind.INTEGER: "INTEGER",
    Kind.NUMBER: "REAL",
    Kind.TEXT: "TEXT",
    Kind.FLAG: "INTEGER",
    Kind.TIME: "INTEGER",
}

# A value of each kind as SQLite gives it back, for the driver to learn its type from.
SAMPLES = {
    Kind.INTEGER: "0",
    Kind.NUMBER: "0.0",
    Kind.TEXT: "''",
    Kind.FLAG: "0",
    Kind.TIME: "0",
}


def column(name: str) -> str:
    """The definition of a field's column."""
    return f'"{name}" {_TYPES[BY_NAME[name].kind]}'


MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        f"""
        CREATE TABLE job (
            {", ".join(column(field.name) for field in FIELDS)},
            PRIMARY KEY (cluster, submit_time, job_id)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX job_by_id ON job (job_id)",
        """
        CREATE TABLE reject (
            source TEXT, line INTEGER, reason TEXT, text TEXT, seen_at INTEGER,
            PRIMARY KEY (source, line, reason)
        ) WITHOUT ROWID
        """,
    ),
    (
        # Most jobs run a script that ran before: `job.script` holds its digest.
        "CREATE TABLE script (digest TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID",
        """
        CREATE TABLE sample (
            cluster TEXT, job_id INTEGER, at INTEGER, cpu_s REAL, rss_mb REAL, read_mb REAL,
            written_mb REAL, processes INTEGER,
            PRIMARY KEY (cluster, job_id, at)
        ) WITHOUT ROWID
        """,
        "CREATE TABLE note (name TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID",
    ),
)
VERSION = len(MIGRATIONS)

# The keys of a batch, to look its records up by.
SIGHTED_TABLE = """
    CREATE TEMP TABLE IF NOT EXISTS sighted (
        cluster TEXT, submit_time INTEGER, job_id INTEGER,
        PRIMARY KEY (cluster, submit_time, job_id)
    ) WITHOUT ROWID
"""

# Every cluster in the store, found by skipping from one to the next.
ALL_CLUSTERS = """
    WITH RECURSIVE named (name) AS (
        SELECT min(cluster) FROM job
        UNION ALL
        SELECT (SELECT min(cluster) FROM job WHERE cluster > name) FROM named
        WHERE name IS NOT NULL
    )
    SELECT name FROM named WHERE name IS NOT NULL
"""
