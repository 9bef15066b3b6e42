"""`premortem`: the commands put together, and the one place where errors become messages."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from premortem import __version__
from premortem.apps.cli import (
    audit,
    bench,
    collect,
    columns,
    export,
    jobs,
    lab,
    load,
    models,
    predict,
    rejects,
    sample,
    settings,
    show,
    stats,
    threshold,
    train,
)
from premortem.apps.cli.exits import INTERNAL, INTERRUPTED, MEANINGS, exit_code
from premortem.apps.cli.options import Invocation
from premortem.errors import PremortemError

app = typer.Typer(
    name="premortem",
    help="Which Slurm jobs will fail, why, and what to change, before they run.",
    epilog=MEANINGS,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
_COMMANDS = (
    load, collect, sample, jobs, show, stats, train, predict, threshold, models, bench, audit,
    export, rejects, columns, settings, lab,
)  # fmt: skip
for command in _COMMANDS:
    command.add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"premortem {__version__}")
        raise typer.Exit


@app.callback()
def _start(
    context: typer.Context,
    settings_file: Annotated[
        str | None,
        typer.Option(
            "--settings", metavar="FILE", help="Settings file to use instead of the usual ones."
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    context.obj = Invocation(settings_file)


def run() -> NoReturn:
    """Run the command line; the only traceback a user sees is one asked for."""
    code = _code()
    if code == INTERRUPTED:
        typer.echo(
            "premortem: interrupted; what was stored is safe, run it again to go on", err=True
        )
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has left; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if code == INTERRUPTED:
        # Leave at once: a thread may still be waiting for a pipe that says nothing.
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _code() -> int:
    try:
        app()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except PremortemError as error:
        from premortem.apps.cli.render import printable_lines

        typer.echo(f"premortem: {printable_lines(str(error))}", err=True)
        return exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except Exception as error:
        if os.environ.get("PREMORTEM_DEBUG"):
            raise
        typer.echo(
            f"premortem: internal fault: {type(error).__name__}: {error}\n"
            "This should not happen; PREMORTEM_DEBUG=1 shows where it did.",
            err=True,
        )
        return INTERNAL
    return 0
