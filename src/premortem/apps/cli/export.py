"""`premortem export`: jobs of the store as a file for others, and for premortem itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from premortem.apps.cli.options import (
    Accounts,
    AsJson,
    Clusters,
    Invocation,
    Partitions,
    Since,
    StoreUrl,
    Until,
    Users,
    query,
)

HELP = """\
Write jobs of the store to one Parquet file: every field, scripts and usage samples included.

`premortem load` and `premortem bench` read it again.

    premortem export jobs.parquet --since 90d
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", help=HELP)(export)


def export(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    user: Users = None,
    account: Accounts = None,
    partition: Partitions = None,
    cluster: Clusters = None,
    since: Since = None,
    until: Until = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write the jobs wanted, and say how many."""
    from premortem.apps.cli import render
    from premortem.operations.exporting import export_jobs

    invocation: Invocation = context.obj
    wanted = query(
        clusters=cluster, users=user, accounts=account, partitions=partition, since=since,
        until=until,
    )  # fmt: skip
    with invocation.store(store) as source:
        count = export_jobs(source, file, wanted)
    size = file.stat().st_size
    if as_json:
        render.print_json({"file": file, "jobs": count, "bytes": size})
        return
    typer.echo(render.printable(f"{count:,} jobs in {file} ({size / 1e6:,.1f} MB)."))
