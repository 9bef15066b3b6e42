"""`premortem jobs`: the jobs of the store, filtered."""

from __future__ import annotations

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
from premortem.jobs.outcomes import Cause, Outcome

HELP = """\
List jobs, the newest last, with what became of them and why.

    premortem jobs --user ada --cause out_of_memory --since 30d

    premortem jobs --state running --json
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("jobs", help=HELP)(jobs)


def jobs(
    context: typer.Context,
    user: Users = None,
    account: Accounts = None,
    partition: Partitions = None,
    cluster: Clusters = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="Only jobs of this name; repeatable."),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            "-s",
            metavar="STATE",
            help="Only in this Slurm state, any spelling; a list, or repeatable.",
        ),
    ] = None,
    outcome: Annotated[
        list[Outcome] | None, typer.Option("--outcome", help="Only with this outcome; repeatable.")
    ] = None,
    cause: Annotated[
        list[Cause] | None, typer.Option("--cause", help="Only failed in this way; repeatable.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="At most this many, the newest; 0 for all.")
    ] = 20,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print the jobs wanted as a table or as JSON."""
    from premortem.apps.cli import render
    from premortem.operations.lookup import labelled_jobs

    invocation: Invocation = context.obj
    wanted = query(
        clusters=cluster, users=user, accounts=account, partitions=partition, names=name,
        states=state, since=since, until=until, limit=limit or None,
    )  # fmt: skip
    policy = invocation.settings().values.labels.policy()
    with invocation.store(store) as source:
        found = labelled_jobs(
            source, wanted, policy, outcomes=tuple(outcome or ()), causes=tuple(cause or ())
        )
    if as_json:
        render.print_json(found.to_dicts())
        return
    output = render.console()
    if found.is_empty():
        output.print("No such jobs.")
        return
    rows = [
        (
            render.job_number(job),
            job["user"],
            job["job_name"] or job["executable"],
            job["partition"],
            job["submit_time"],
            render.duration(job["elapsed_s"]),
            job["alloc_cpus"] or job["req_cpus"],
            job["state"],
            render.outcome(job["outcome"], job["cause"]),
        )
        for job in found.iter_rows(named=True)
    ]
    columns = (
        "job",
        "user",
        "name",
        "partition",
        "submitted (UTC)",
        "ran",
        "cpus",
        "state",
        "outcome",
    )
    output.print(render.table(None, columns, rows, right=("job", "ran", "cpus")))
    if limit and found.height == limit:
        output.print(f"The newest {limit}; --limit 0 shows all.", style="dim")
