"""`premortem lab collect`: what a lab's jobs were, in its store and as a file."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from premortem.apps.cli.lab_folder import Folder, lab_folder

HELP = """\
Collect a lab's jobs with scripts, steps and usage samples into its own store, and write them down.

With --follow it goes on beside a workload until interrupted: jobs are first seen as they were
asked for. With a FILE it asks until nothing is open any more, and then writes all to that.
"""


def collect(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Parquet file to write.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until interrupted; write nothing.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Collect, and export."""
    from premortem.apps.cli.collect import run_until_signal, teller
    from premortem.apps.cli.progress import say
    from premortem.apps.cli.render import printable
    from premortem.errors import InvalidInput
    from premortem.lab import Lab
    from premortem.lab.collecting import collect_all, collector_of, store_of
    from premortem.operations.exporting import export_jobs
    from premortem.stores import open_store

    if (file is None) != follow:
        raise InvalidInput("name a file to write, or say --follow")
    lab = Lab(lab_folder(folder), tell=say)
    store = open_store(store_of(lab.folder))
    try:
        if file is None:
            stopped = threading.Event()
            with collector_of(lab, store, tell=teller(False), sleep=stopped.wait) as collector:
                run_until_signal(collector, stopped)
            return
        collect_all(lab, store)
        count = export_jobs(store, file)
    finally:
        store.close()
    size = file.stat().st_size / 1e6
    typer.echo(printable(f"{count:,} jobs in {file} ({size:,.1f} MB)."))
