"""`premortem show`: everything known about one job."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from premortem.apps.cli.options import AsJson, Invocation, StoreUrl

HELP = """\
Show everything the store knows about one job, and when each thing became known.

JOB is written as Slurm writes it: 436277, 436277_4 for an array task, 436277+1 for a component.
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show", help=HELP)(show)


def show(
    context: typer.Context,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Number of the job.")],
    cluster: Annotated[str | None, typer.Option(metavar="NAME", help="Cluster it ran on.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every record of that number, not only the newest.")
    ] = False,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print one job by chapters of the field table."""
    from premortem.apps.cli import render
    from premortem.operations.lookup import find_job

    invocation: Invocation = context.obj
    policy = invocation.settings().values.labels.policy()
    with invocation.store(store) as source:
        found = find_job(source, job, policy, cluster=cluster)
    records = found.to_dicts() if every else found.tail(1).to_dicts()
    if as_json:
        render.print_json(records if every else records[0])
        return
    output = render.console()
    for record in records:
        output.print(_headline(record))
        output.print(_details(record))
        if record["script"] is not None:
            output.print(_script(record["script"]))
    if found.height > len(records):
        output.print(
            f"{found.height - len(records)} older record(s) of this number; --all shows them.",
            style="dim",
        )


def _headline(record: dict[str, Any]) -> Any:
    from rich.text import Text

    from premortem.apps.cli import render

    title = f"Job {render.job_number(record)} on {render.printable(record['cluster'])}  "
    return Text(title, style="bold") + render.outcome(record["outcome"], record["cause"])


def _details(record: dict[str, Any]) -> Any:
    from premortem.apps.cli import render
    from premortem.jobs.fields import FIELDS

    rows: list[tuple[str, ...]] = []
    chapter = None
    for field in FIELDS:
        value = record[field.name]
        if value is None or field.name == "script":
            continue
        shown = render.duration(value) if field.unit == "s" else render.shown(value)
        if field.unit not in ("", "s"):
            shown = f"{shown} {field.unit}"
        rows.append(
            (field.group if field.group != chapter else "", field.name, shown, str(field.known))
        )
        chapter = field.group
    return render.table(None, ("", "field", "value", "known at"), rows)


def _script(text: str) -> Any:
    """The script as it is written, below the table."""
    from rich.padding import Padding
    from rich.text import Text

    from premortem.apps.cli import render

    return Padding(Text(render.printable_lines(text.expandtabs().rstrip("\n"))), (1, 0, 1, 4))
