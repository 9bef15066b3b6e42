"""`premortem lab work`: jobs of many users on a lab, which fail in every way that jobs fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from premortem.apps.cli.lab_folder import Folder, lab_folder
from premortem.apps.cli.options import AsJson

if TYPE_CHECKING:
    from pathlib import Path

    from premortem.lab import Lab
    from premortem.lab.workload import Progress, Report

HELP = """\
Run jobs of thirty users with habits of their own, and tell what became of them.

It starts the lab if it does not run, and leaves it running. How each job ends is Slurm's to say.
Interrupted, it stops submitting; run it again with another seed for more.
"""


def work(
    jobs: Annotated[int, typer.Option(min=1, help="How many; a task of an array is one.")] = 1000,
    seed: Annotated[int, typer.Option(help="Other seeds make other users and other jobs.")] = 0,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.1, help="How long to submit; by default 190 jobs in a minute."),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Keep samples of what running jobs use, too.")
    ] = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Run a workload and print its outcomes."""
    from premortem.apps.cli import render
    from premortem.apps.cli.exits import INTERRUPTED
    from premortem.apps.cli.progress import Status, say
    from premortem.lab import workload
    from premortem.lab.collecting import StoreSampler

    lab = _running_lab(lab_folder(folder))
    with Status() as status:

        def show(progress: Progress) -> None:
            status.tell(_words(progress, jobs))

        report = workload.work(
            lab, jobs=jobs, seed=seed, minutes=minutes, progress=show, tell=say,
            sampler=StoreSampler(lab) if record else None,
        )  # fmt: skip
    if as_json:
        render.print_json(_as_json(report, seed))
    else:
        _print_report(report)
    if report.interrupted:
        say(
            f"Interrupted: {report.submitted:,} of {jobs:,} jobs were submitted, and "
            f"{report.unfinished:,} of them had not ended. The lab goes on running."
        )
        raise typer.Exit(INTERRUPTED)


def _running_lab(folder: Path) -> Lab:
    """The lab in a folder, started if need be with as many nodes and users as a workload wants."""
    from premortem.apps.cli.progress import say
    from premortem.errors import Conflict
    from premortem.lab import Lab, records
    from premortem.lab.workload import NODES, USERS

    before = records.read(folder)
    plan = before.plan if before else None
    if before and plan and before.is_running:
        if plan.users < USERS:
            raise Conflict(
                f"the lab in {folder} has {plan.users} users, and a workload wants {USERS}: end it "
                "by `premortem lab down`, and this command starts it with more"
            )
        lab = Lab(folder, tell=say)
    else:
        nodes = max(NODES, plan.nodes) if plan else NODES
        users = max(USERS, plan.users) if plan else USERS
        lab = Lab(folder, nodes=nodes, users=users, tell=say)
    lab.up()
    return lab


def _words(progress: Progress, jobs: int) -> str:
    return (
        f"{progress.submitted:,} of {jobs:,} jobs submitted, {progress.per_minute:.0f} a minute; "
        f"{progress.waiting} wait, {progress.running} run, {progress.ended:,} have ended"
    )


def _print_report(report: Report) -> None:
    from premortem.apps.cli import render

    console = render.console()
    total = sum(report.states.values())
    rows = [
        (state, render.count(number), render.percent(number / total))
        for state, number in report.states.most_common()
    ]
    console.print(render.table(None, ("state", "jobs", "share"), rows, right=("jobs", "share")))
    if report.exit_codes:
        codes = ", ".join(f"{code} {number:,}" for code, number in report.exit_codes.most_common())
        typer.echo(f"\nFAILED by exit code and signal: {codes}.")
    for words, number in report.refused.most_common():
        typer.echo(f"Refused by sbatch, {number:,} times: {render.printable(words)}")
    minutes = report.seconds / 60
    typer.echo(
        f"\n{report.submitted:,} jobs in {minutes:.1f} minutes, "
        f"{report.submitted / max(minutes, 0.1):.0f} a minute."
    )


def _as_json(report: Report, seed: int) -> dict[str, object]:
    return {
        "seed": seed,
        "submitted": report.submitted,
        "unfinished": report.unfinished,
        "seconds": round(report.seconds, 1),
        "interrupted": report.interrupted,
        "states": dict(report.states.most_common()),
        "exit_codes": dict(report.exit_codes.most_common()),
        "refused": dict(report.refused.most_common()),
    }
