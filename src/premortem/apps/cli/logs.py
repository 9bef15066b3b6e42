"""Options of the commands that read job logs, and the logs themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from premortem.apps.cli.progress import say
from premortem.errors import PremortemError
from premortem.sources.formats import Format, SwfStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from premortem.apps.cli.progress import Status
    from premortem.features.points import Point
    from premortem.operations.reading import Log
    from premortem.settings import Settings
    from premortem.sources.detection import ReadOptions
    from premortem.sources.port import Context

Logs = Annotated[list[str], typer.Argument(metavar="LOG...", help="Job logs, or - .")]
FileFormat = Annotated[
    Format, typer.Option("--format", help="What the files are; told by their content.")
]
SacctColumns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="LIST",
        help="What was given to sacct's --format, for text without header.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What was given to sacct's --delimiter, if anything was."),
]
Mapping = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Mapping of a table's columns, or the name of a preset (nrel)."
    ),
]
ClusterName = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="NAME", help="Cluster the jobs ran on, whatever the file says."
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(metavar="ZONE", help="Time zone of the site's clock, such as Europe/Berlin."),
]
StatusColumn = Annotated[
    SwfStatus, typer.Option("--swf-status", help="What an SWF log's status column holds.")
]
Head = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Only the first N jobs of each log.")
]
Points = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Moments, with commas; submit,start,running@2min,running@10min,running@1h by default.",
    ),
]
FamilyName = Annotated[
    Literal["generic", "restricted", "swf"],
    typer.Option(
        "--family", help="Features to use: all, none about the user, or what SWF logs carry."
    ),
]
Trees = Annotated[int, typer.Option(min=1, max=100_000, help="Trees in a model.")]


@dataclass(frozen=True, slots=True)
class Reading:
    """How logs are to be read."""

    options: ReadOptions
    context: Context


def reading(
    settings: Settings,
    *,
    format: Format,
    columns: str | None,
    delimiter: str | None,
    mapping: str | None,
    cluster: str | None,
    zone: str | None,
    swf_status: SwfStatus,
) -> Reading:
    """What the options and the settings come to."""
    from premortem.jobs.spellings import require_zone
    from premortem.sources.detection import ReadOptions
    from premortem.sources.port import Context

    return Reading(
        ReadOptions(
            format=format,
            columns=[name for name in columns.split(",") if name.strip()] if columns else None,
            mapping=mapping,
            delimiter=delimiter,
            swf_status=swf_status,
        ),
        Context(
            cluster=cluster,
            fallback_cluster=settings.cluster,
            zone=require_zone(zone) if zone else settings.zone,
        ),
    )


def read_logs(
    paths: Sequence[str],
    how: Reading,
    status: Status,
    problems: list[PremortemError],
    *,
    head: int | None = None,
) -> Iterator[tuple[str, Log]]:
    """Each log in turn, with its path; of one that cannot be read, the problem is told and kept."""
    from premortem.operations.reading import read_log

    for path in paths:
        try:
            status.tell(f"{path}: reading")
            log = read_log(path, options=how.options, context=how.context)
        except PremortemError as error:
            problems.append(error)
            say(f"premortem: {error}")
            continue
        _tell_of_reading(log, path)
        yield path, replace(log, jobs=log.jobs.head(head)) if head else log


def parsed_points(text: str | None, default: Sequence[Point]) -> Sequence[Point]:
    """The points named in a list, or those used when none is given."""
    from premortem.features.points import parse_point

    return [parse_point(name.strip()) for name in text.split(",")] if text else default


def _tell_of_reading(log: Log, path: str) -> None:
    for note in log.notes:
        say(f"note: {path}: {note}")
    if log.problem:
        say(f"premortem: {log.problem}; what came before it is used")
    if log.rejected:
        say(
            f"note: {path}: {log.rejected} records were set aside; load the log, and "
            "'premortem rejects' shows which and why"
        )
