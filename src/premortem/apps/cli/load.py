"""`premortem load`: job history from files into the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from premortem.apps.cli import logs as given
from premortem.apps.cli.exits import exit_code
from premortem.apps.cli.logs import reading
from premortem.apps.cli.options import AsJson, Invocation, StoreUrl
from premortem.sources.formats import Format, SwfStatus

if TYPE_CHECKING:
    from premortem.operations.loading import LoadReport

_COUNTS = ("read", "new", "updated", "unchanged", "rejected")

HELP = """\
Load job history into the store, once or every hour.

Reads Standard Workload Format logs, the text of `sacct --parsable2`, the JSON of `sacct --json` and
slurmrestd, and CSV or Parquet tables; plain or compressed; `-` is standard input. Loading the same
file again changes nothing, and an interrupted load is completed by running it again. Bad records
are set aside with their reason: see `premortem rejects`.

    premortem load LLNL-Atlas-2006-2.1-cln.swf.gz

    sacct -aXP -S 2026-01-01 --format="$(premortem columns)" | premortem load -

    premortem load old.txt --columns JobID,JobIDRaw,User,Submit,Start,End,State,ReqMem

    premortem load jobs.parquet --mapping our-columns.toml
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("load", help=HELP)(load)


def load(
    context: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files to load, or - .")],
    format: given.FileFormat = Format.AUTO,
    columns: given.SacctColumns = None,
    delimiter: given.Delimiter = None,
    mapping: given.Mapping = None,
    cluster: given.ClusterName = None,
    zone: given.Zone = None,
    swf_status: given.StatusColumn = SwfStatus.AUTO,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Load files and report; the exit code is not 0 only if nothing useful could be done."""
    from premortem.operations.loading import load_file

    invocation: Invocation = context.obj
    how = reading(
        invocation.settings().values, format=format, columns=columns, delimiter=delimiter,
        mapping=mapping, cluster=cluster, zone=zone, swf_status=swf_status,
    )  # fmt: skip
    reports: list[LoadReport] = []
    with invocation.store(store, read_only=False) as target, _Progress() as progress:
        for path in paths:
            progress.start(path)
            report = load_file(
                path, target, options=how.options, context=how.context, progress=progress.advance
            )
            reports.append(report)
    _tell(reports, as_json=as_json)
    problems = [report.problem for report in reports if report.problem]
    if not any(report.useful for report in reports):
        raise typer.Exit(exit_code(problems[0]) if problems else 1)


class _Progress:
    """A bar on standard error, where that is a terminal."""

    def __enter__(self) -> _Progress:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        from premortem.apps.cli.render import console

        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=console(error=True),
            transient=True,
            disable=not console(error=True).is_terminal,
        )
        self._bars.start()
        return self

    def start(self, path: str) -> None:
        self._task = self._bars.add_task(path.rsplit("/", 1)[-1], total=None)

    def advance(self, position: int, size: int | None) -> None:
        self._bars.update(self._task, completed=position, total=size)

    def __exit__(self, *error: object) -> None:
        self._bars.stop()


def _tell(reports: list[LoadReport], *, as_json: bool) -> None:
    from premortem.apps.cli.render import (
        console,
        count,
        print_json,
        printable,
        printable_lines,
        table,
    )

    for report in reports:
        if report.problem:
            typer.echo(f"premortem: {printable_lines(str(report.problem))}", err=True)
    if as_json:
        totals: dict[str, Any] = {name: sum(getattr(r, name) for r in reports) for name in _COUNTS}
        print_json({**totals, "files": [_as_dict(report) for report in reports]})
        return
    rows = [
        (report.path, *[count(getattr(report, name)) for name in _COUNTS])
        for report in reports
        if not report.problem or report.read
    ]
    output = console()
    if rows:
        output.print(table(None, ("file", *_COUNTS), rows, right=_COUNTS))
    for report in reports:
        if not report.read and not report.problem:
            output.print(f"{printable(report.path)}: no jobs in it", markup=False)
        for note in report.notes:
            output.print(f"note: {printable(report.path)}: {printable(note)}", markup=False)
    if any(report.rejected for report in reports):
        output.print("Some records were set aside; 'premortem rejects' shows which and why.")


def _as_dict(report: LoadReport) -> dict[str, Any]:
    return {
        "path": report.path,
        **{name: getattr(report, name) for name in _COUNTS},
        "notes": report.notes,
        "problem": str(report.problem) if report.problem else None,
    }
