"""Options that several commands share, and what they resolve to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from premortem.errors import InvalidInput

if TYPE_CHECKING:
    from premortem.settings import LoadedSettings
    from premortem.stores import JobQuery, Store

StoreUrl = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="Store to use, such as sqlite:///jobs.db."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Clusters = Annotated[
    list[str] | None,
    typer.Option("--cluster", metavar="NAME", help="Only this cluster; a list, or repeatable."),
]
Users = Annotated[
    list[str] | None,
    typer.Option("--user", "-u", metavar="NAME", help="Only this user; a list, or repeatable."),
]
Accounts = Annotated[
    list[str] | None,
    typer.Option("--account", metavar="NAME", help="Only this account; a list, or repeatable."),
]
Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partition", "-p", metavar="NAME", help="Only this partition; a list, or repeatable."
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN", help="Submitted then or later: 2026-01-05, 2026-01-05T08:00, 7d, 12h."
    ),
]
Until = Annotated[str | None, typer.Option(metavar="WHEN", help="Submitted before then.")]

_LENGTHS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Invocation:
    """What every command of one call shares; the settings are read when first asked for."""

    settings_file: str | None

    def settings(self) -> LoadedSettings:
        """The settings in force."""
        from premortem.settings import load_settings

        return load_settings(self.settings_file)

    @contextmanager
    def store(self, url: str | None, *, read_only: bool = True) -> Iterator[Store]:
        """The store to use, closed at the end."""
        from premortem.stores import open_store

        values = self.settings().values.store
        store = open_store(url or values.url, read_only=read_only, patience_s=values.patience_s)
        try:
            yield store
        finally:
            store.close()


def query(
    *,
    clusters: list[str] | None = None,
    users: list[str] | None = None,
    accounts: list[str] | None = None,
    partitions: list[str] | None = None,
    names: list[str] | None = None,
    states: list[str] | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int | None = None,
) -> JobQuery:
    """The query that the shared filters describe."""
    from premortem.jobs.states import normal_state
    from premortem.stores import JobQuery

    meant = {spelling: normal_state(spelling) for spelling in _listed(states)}
    unknown = [spelling for spelling, state in meant.items() if state is None]
    if unknown:
        raise InvalidInput(f"not a job state of Slurm's: {', '.join(unknown)}")
    return JobQuery(
        clusters=_listed(clusters),
        users=_listed(users),
        accounts=_listed(accounts),
        partitions=_listed(partitions),
        job_names=tuple(names or ()),
        states=tuple(state for state in meant.values() if state),
        since=instant(since) if since else None,
        until=instant(until) if until else None,
        limit=limit,
    )


def instant(text: str, *, now: datetime | None = None) -> datetime:
    """The moment meant by a date, a time, or an age; without a zone they are UTC.

    >>> instant("36h", now=datetime(2026, 1, 3, tzinfo=UTC)).isoformat()
    '2026-01-01T12:00:00+00:00'
    """
    ages = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    age = re.fullmatch(r"([0-9]{1,5})([mhdw])", text)
    if age:
        return (now or datetime.now(UTC)) - timedelta(**{ages[age[2]]: int(age[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"'{text}' is not a time; expected 2026-01-05, 2026-01-05T08:00, or an age such as 7d"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def seconds(text: str) -> float:
    """The seconds in a length of time such as ``10s``, ``5min`` or ``2h``; none are too few.

    >>> seconds("1.5m"), seconds("10")
    (90.0, 10.0)
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)(s|min|m|h|d)?", text.strip())
    length = float(found[1]) * _LENGTHS[found[2] or "s"] if found else 0.0
    if not length:
        raise InvalidInput(f"'{text}' is not a length of time; expected such as 10s, 5min or 2h")
    return length


def _listed(values: list[str] | None) -> tuple[str, ...]:
    """Values given one by one or, as Slurm's own commands take them, with commas."""
    return tuple(part for value in values or () for part in value.split(",") if part)
