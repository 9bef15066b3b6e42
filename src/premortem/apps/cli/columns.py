"""`premortem columns`: what to ask sacct for."""

from __future__ import annotations

import typer

from premortem.apps.cli.options import AsJson

HELP = """\
Print the columns of sacct that premortem reads, for its --format.

    sacct -aXP -S 2026-01-01 --format="$(premortem columns)" | premortem load -

What users write themselves comes last, where a separator in it does no harm. sacct refuses columns
that its release does not have: take those out.
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("columns", help=HELP)(columns)


def columns(as_json: AsJson = False) -> None:
    """Print the columns as a list with commas, or as JSON."""
    from premortem.apps.cli import render
    from premortem.sources.sacct_columns import WANTED_COLUMNS

    if as_json:
        render.print_json(list(WANTED_COLUMNS))
    else:
        typer.echo(",".join(WANTED_COLUMNS))
