"""`premortem predict`: will this job fail, why, and how sure is that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from premortem.apps.cli.models import RegistryUrl, open_registry
from premortem.apps.cli.options import AsJson, Invocation, StoreUrl
from premortem.apps.cli.slurm import SlurmUrl, open_cluster, sstat
from premortem.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from premortem.prediction.predict import Prediction

HELP = """\
Predict whether jobs of the store will fail, with the likely cause and the reasons.

Each job is judged by what was known at its point: a waiting job as of its submission, a running one
as of its start or the latest moment into the run that the model knows.

    premortem predict 436277

    premortem predict 436277_4 436280 --point submit --json

    premortem predict --all-pending

    premortem predict 436277 --slurm
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict", help=HELP)(predict)


def predict(
    context: typer.Context,
    jobs: Annotated[
        list[str] | None, typer.Argument(metavar="JOB...", help="Numbers of jobs.")
    ] = None,
    all_pending: Annotated[
        bool, typer.Option("--all-pending", help="Every job that waits, the riskiest first.")
    ] = False,
    slurm: Annotated[
        bool,
        typer.Option("--slurm", help="Ask Slurm how the jobs are now; the store is their history."),
    ] = False,
    url: SlurmUrl = None,
    point: Annotated[
        str, typer.Option(metavar="POINT", help="submit, start, running@2min, or auto.")
    ] = "auto",
    cluster: Annotated[str | None, typer.Option(metavar="NAME", help="Cluster it ran on.")] = None,
    model: Annotated[
        str, typer.Option(metavar="VERSION", help="Version of the model, or an alias.")
    ] = "champion",
    reasons: Annotated[
        int, typer.Option(min=0, max=20, metavar="N", help="Reasons to give for each job.")
    ] = 3,
    store: StoreUrl = None,
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Predict and print."""
    from premortem.apps.cli import render
    from premortem.features.points import parse_point
    from premortem.operations.predicting import predict_jobs, predict_live, predict_pending
    from premortem.operations.training import load_model

    if bool(jobs) == all_pending:
        raise InvalidInput("name the jobs to predict, or say --all-pending")
    if all_pending and (slurm or url):
        raise InvalidInput("--slurm is for jobs by number: name them, or leave it out")
    invocation: Invocation = context.obj
    at = None if point == "auto" else parse_point(point)
    with open_registry(context, registry) as models, invocation.store(store) as source:
        loaded, version = load_model(models, model)
        if all_pending:
            found = predict_pending(source, loaded, most_reasons=reasons)
        elif slurm or url:
            settings = invocation.settings().values
            with open_cluster(settings, url) as asked:
                found = predict_live(
                    source, loaded, asked, jobs or [], sampler=sstat(settings), point=at,
                    most_reasons=reasons,
                )  # fmt: skip
        else:
            found = predict_jobs(
                source, loaded, jobs or [], cluster=cluster, point=at, most_reasons=reasons
            )
    if as_json:
        told = [one.as_dict() for one in found]
        render.print_json({"model": version.number, "predictions": told})
    elif not found:
        what = "No job is waiting." if all_pending else "No such job reached that point."
        render.console().print(what)
    else:
        _print(found)


def _print(found: Sequence[Prediction]) -> None:
    from premortem.apps.cli.render import console, percent, printable, shown, table, words

    columns = ("job", "user", "start", "point", "prediction", "confidence", "likely cause")
    rows = [
        (
            str(one.job_id), printable(one.user or ""), shown(one.start_time), one.point,
            "fails" if one.fails else "completes", percent(one.confidence),
            f"{words(one.cause)} ({percent(one.cause_share)})" if one.cause else "",
        )
        for one in found
    ]  # fmt: skip
    output = console()
    output.print(table(None, columns, rows, right=("job", "confidence")))
    for one in found:
        if one.reasons or one.note:
            told = f"risk {percent(one.risk)} (warned from {percent(one.threshold)})"
            output.print(f"\n{one.job_id}: {told}", style="bold", markup=False)
        for reason in one.reasons:
            sign = "+" if reason.effect > 0 else "-"
            output.print(f"  {sign} {reason.text}", markup=False)
        if one.note:
            output.print(f"  note: {one.note}", style="dim", markup=False)
