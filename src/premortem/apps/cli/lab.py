"""`premortem lab`: a real Slurm on this machine, for trying things out."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from premortem.apps.cli import lab_collect, lab_work
from premortem.apps.cli.lab_folder import Folder, lab_folder
from premortem.apps.cli.options import AsJson

if TYPE_CHECKING:
    from premortem.lab import Lab
    from premortem.lab.status import Status

HELP = """\
Run a real Slurm on this machine: controller, accounting, nodes, REST; all on loopback.

It needs root, and Debian, whose packages it fetches once; nothing is installed on the machine.
"""
UP = """\
Start a lab, or what has ended of one that runs; wait until it takes jobs, and tell how to reach it.

Without options a lab is what it was before: accounting survives from one start to the next.
"""
STATUS = """\
Show which daemons run, the states of the nodes, and how many jobs there are of each state.

The exit code is 5 if the lab does not run, or a part of it.
"""
RUN = """\
Run a command in the lab's world, such as `premortem lab run -- sinfo`.

Input, output and exit code are the command's own. It starts in the user's home, with a clean
environment: a script of yours reaches sbatch by its input, `premortem lab run -- sbatch < job.sh`.
"""


def add_to(app: typer.Typer) -> None:
    """Add the command with its own commands."""
    lab = typer.Typer(name="lab", help=HELP, no_args_is_help=True)
    lab.command("up", help=UP)(up)
    lab.command("down", help="End a lab, and nothing else.")(down)
    lab.command("status", help=STATUS)(status)
    # What follows the command is the command's, also without the two dashes.
    lab.command("run", help=RUN, context_settings={"allow_interspersed_args": False})(run)
    lab.command("work", help=lab_work.HELP)(lab_work.work)
    lab.command("collect", help=lab_collect.HELP)(lab_collect.collect)
    app.add_typer(lab)


def up(
    folder: Folder = None,
    slurm: Annotated[
        str | None, typer.Option(metavar="24.11|22.05", help="Release of Slurm; 24.11 at first.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="How many nodes; 4 at first.")] = None,
    users: Annotated[int | None, typer.Option(help="How many users; 3 at first.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the cluster; lab at first.")
    ] = None,
    oom: Annotated[
        bool | None,
        typer.Option(
            "--oom/--no-oom",
            help="Whether the kernel kills jobs for their memory; if it can, where not said.",
        ),
    ] = None,
    rest_port: Annotated[
        int | None, typer.Option(metavar="PORT", min=1, max=65535, help="Port of slurmrestd.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where packages are kept; or PREMORTEM_LAB_CACHE."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a lab and tell about it."""
    from premortem.apps.cli.progress import say
    from premortem.lab import Lab

    began = time.monotonic()
    lab = Lab(
        lab_folder(folder),
        slurm=slurm,
        cluster=cluster,
        nodes=nodes,
        users=users,
        oom=oom,
        rest_port=rest_port,
        cache=cache,
        tell=say,
    )
    started = lab.up()
    seconds = time.monotonic() - began
    now = lab.status()
    if as_json:
        _print_json(now, started=started, seconds=round(seconds, 1))
        return
    _print_reach(now)
    if len(started) == len(now.daemons):
        words = f"It started in {seconds:.1f} s."
    elif started:
        words = f"It was running; {', '.join(started)} had ended, and runs again."
    else:
        words = "It was running already."
    _print(words)


def down(
    folder: Folder = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Remove its folder too, with all that it has seen.")
    ] = False,
) -> None:
    """End a lab."""
    lab = _lab(folder)
    ended = lab.down(purge=purge)
    words = "has ended" if ended else "was not running"
    _print(f"The lab in {lab.folder} {words}{'; the folder is removed' if purge else ''}.")


def status(folder: Folder = None, as_json: AsJson = False) -> None:
    """Print what runs."""
    from premortem.apps.cli import render
    from premortem.apps.cli.exits import EXIT_CODES
    from premortem.errors import Unavailable

    now = _lab(folder).status()
    if as_json:
        _print_json(now)
    elif not now.runs:
        _print(f"The lab in {now.folder} is not running.")
    else:
        rows = [
            (one.name, "runs" if one.runs else "has ended", one.since, one.port)
            for one in now.daemons
        ]
        console = render.console()
        columns = ("daemon", "", "since (UTC)", "port")
        ports = [(name, word, since, port and str(port)) for name, word, since, port in rows]
        console.print(render.table(None, columns, ports, right=("port",)))
        if now.nodes:
            console.print()
            console.print(render.table(None, ("node", "state"), list(now.nodes.items())))
        console.print()
        jobs = ", ".join(f"{count:,} {state}" for state, count in now.jobs.items())
        _print(f"Jobs so far: {jobs or 'none known'}.")
    if not now.runs or now.ended:
        raise typer.Exit(EXIT_CODES[Unavailable])


def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND…", help="What to run.")],
    folder: Folder = None,
    user: Annotated[str, typer.Option("--user", "-u", metavar="NAME", help="As whom.")] = "root",
) -> None:
    """Become the command, in the lab's world."""
    line = _lab(folder).command(*command, user=user)
    sys.stdout.flush()
    os.execvp(line[0], line)


def _lab(folder: Path | None) -> Lab:
    from premortem.apps.cli.progress import say
    from premortem.lab import Lab

    return Lab(lab_folder(folder), tell=say)


def _print(words: str) -> None:
    from premortem.apps.cli.render import printable

    typer.echo(printable(words))


def _token_command(now: Status) -> str:
    where = [] if now.folder == lab_folder(None).absolute() else ["--folder", str(now.folder)]
    inner = ["scontrol", "token", f"username={now.plan.user_names[0]}", "lifespan=3600"]
    return shlex.join(["premortem", "lab", "run", *where, "--", *inner])


def _print_reach(now: Status) -> None:
    plan = now.plan
    accounts = dict.fromkeys(account for account, _ in plan.memberships)
    rows = {
        "folder": str(now.folder),
        "cluster": f"{plan.cluster}: {_span(plan.node_names)}",
        "REST": f"{now.rest_url}, up to {plan.release.rest_version}",
        "token": _token_command(now),
        "users": f"{_span(plan.user_names)}; accounts {', '.join(accounts)}",
        "memory": "the kernel kills jobs that take more than they asked for"
        if now.oom
        else f"no job ends OUT_OF_MEMORY: {now.no_oom}",
        "versions": ", ".join(f"{name} {version}" for name, version in now.versions.items()),
    }
    for name, value in rows.items():
        _print(f"{name:<10}{value}")


def _span(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} to {names[-1]}"


def _print_json(now: Status, **more: Any) -> None:
    from premortem.apps.cli.render import print_json

    plan = now.plan
    print_json(
        {
            "folder": now.folder,
            "runs": now.runs and not now.ended,
            **more,
            "cluster": plan.cluster,
            "versions": now.versions,
            "rest_url": now.rest_url,
            "rest_version": plan.release.rest_version,
            "token_command": _token_command(now),
            "oom": now.oom,
            "no_oom": now.no_oom,
            "users": plan.user_names,
            "daemons": [
                {
                    "name": one.name,
                    "runs": one.runs,
                    "pid": one.pid,
                    "since": one.since,
                    "port": one.port,
                }
                for one in now.daemons
            ],
            "nodes": now.nodes,
            "jobs": now.jobs,
        }
    )
