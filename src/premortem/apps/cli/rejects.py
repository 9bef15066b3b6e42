"""`premortem rejects`: the records that were set aside, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from premortem.apps.cli.options import AsJson, Invocation, StoreUrl

HELP = """\
Show the bad records that loading set aside: where each stood, what is wrong with it, how it begins.

Loading a file again replaces what was set aside of it before.
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rejects", help=HELP)(rejects)


def rejects(
    context: typer.Context,
    source: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Only those of this file; - for standard input."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="At most this many in the table; 0 for all.")
    ] = 20,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print rejects as a table with a summary by reason, or as JSON."""
    import polars as pl

    from premortem.apps.cli import render
    from premortem.operations.loading import source_name

    invocation: Invocation = context.obj
    with invocation.store(store) as kept:
        found = kept.rejects(source_name(source) if source else None)
    if as_json:
        render.print_json(found.to_dicts())
        return
    output = render.console()
    if found.is_empty():
        output.print("Nothing was set aside.")
        return
    shown = found.head(limit) if limit else found
    rows = [
        (row["source"].rsplit("/", 1)[-1], row["line"], row["reason"], row["text"][:60])
        for row in shown.iter_rows(named=True)
    ]
    output.print(render.table(None, ("source", "line", "reason", "begins"), rows, right=("line",)))
    if found.height > shown.height:
        output.print(f"{shown.height} of {found.height} shown; --limit 0 shows all.", style="dim")
        # What is quoted in a reason differs from record to record; the rest is its kind.
        kinds = found.select(pl.col("reason").str.replace_all("'[^']*'|[0-9]+", "…"))
        counted = kinds.group_by("reason").len().sort(["len", "reason"], descending=[True, False])
        output.print(
            render.table("By kind", ("reason", "records"), counted.rows(), right=("records",))
        )
