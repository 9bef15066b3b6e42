"""`premortem predict`: will this job fail, why, and how sure is that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from premortem.apps.cli.models import RegistryUrl, open_registry
from premortem.apps.cli.options import AsJson, Invocation, StoreUrl
from premortem.apps.cli.slurm import SlurmUrl, open_cluster, sstat
from premortem.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.text import Text

    from premortem.features.points import Point
    from premortem.operations.predicting import Answer
    from premortem.prediction.model import Model
    from premortem.prediction.predict import Prediction

_POINT, _CAUSE = "point", "likely cause"
# So many jobs are named in a message; of the others the number is told.
_NAMED = 10

HELP = """\
Predict whether jobs of the store will fail, with the likely cause and the reasons.

Each job is judged by what was known at its point: a waiting job as of its submission, a running one
as of its start or the latest moment into the run that the model knows. One that has reached none of
the model's moments is left out, and named. A reason with + raises the risk, one with - lowers it.

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
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only jobs of this cluster, of the store.")
    ] = None,
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
    if cluster and (slurm or url):
        raise InvalidInput("--slurm asks the cluster that it reaches: leave --cluster out")
    invocation: Invocation = context.obj
    at = None if point == "auto" else parse_point(point)
    with open_registry(context, registry) as models, invocation.store(store) as source:
        loaded, version = load_model(models, model)
        if all_pending:
            answer = predict_pending(
                source, loaded, cluster=cluster, point=at, most_reasons=reasons
            )
        elif slurm or url:
            settings = invocation.settings().values
            with open_cluster(settings, url) as asked:
                answer = predict_live(
                    source, loaded, asked, jobs or [], sampler=sstat(settings), point=at,
                    most_reasons=reasons,
                )  # fmt: skip
        else:
            answer = predict_jobs(
                source, loaded, jobs or [], cluster=cluster, point=at, most_reasons=reasons
            )
    if answer.unreached:
        _tell_of_unreached(answer, loaded, at)
    if as_json:
        told = [one.as_dict() for one in answer.predictions]
        render.print_json(
            {"model": version.number, "predictions": told, "unreached": answer.unreached}
        )
    elif answer.predictions:
        _print(answer.predictions)
    else:
        render.console().print("No job is waiting.")


def _tell_of_unreached(answer: Answer, model: Model, at: Point | None) -> None:
    """Name the jobs that cannot be judged yet; if that is all of them, it is an error."""
    from premortem.apps.cli.progress import say
    from premortem.apps.cli.render import job_number

    names = [job_number(job) for job in answer.unreached[:_NAMED]]
    more = f" and {left:,} more" if (left := len(answer.unreached) - len(names)) else ""
    point = at or f"any point of the model ({', '.join(model.points)})"
    one = len(answer.unreached) == 1
    text = (
        f"{len(answer.unreached):,} {'job has' if one else 'jobs have'} not reached {point}: "
        f"{', '.join(names)}{more}"
    )
    if not answer.predictions:
        raise InvalidInput(text)
    say(f"note: left out: {text}")


def _print(found: Sequence[Prediction]) -> None:
    """A row for each job with the reasons below it; then what the risks are compared with."""
    from rich.measure import Measurement
    from rich.segment import Segment, Segments
    from rich.table import Table

    from premortem.apps.cli.render import console, percent, table

    output = console()
    thresholds = {one.point: one.threshold for one in found}
    several = len({one.cluster for one in found}) > 1
    rows = [
        _row(
            one,
            point=one.point if len(thresholds) > 1 else None,
            cluster=one.cluster if several else None,
        )
        for one in found
    ]
    unlimited = output.options.update(width=10_000)

    def made(*without: str) -> Table:
        columns = [name for name in rows[0] if name not in without]
        cells = [[row[name] for name in columns] for row in rows]
        return table(None, columns, cells, right=("job", "risk", "confidence"))

    # What makes the rows too long for the terminal is said below them.
    for below in ((), (_CAUSE,), (_POINT, _CAUSE)):
        drawn = made(*below)
        if Measurement.get(output, unlimited, drawn).maximum <= output.width:
            break
    header, *lines = output.render_lines(drawn, unlimited, pad=False)
    output.print(Segments([*header, Segment.line()]), crop=False)
    for place, (line, row, one) in enumerate(zip(lines, rows, found, strict=True)):
        details = Table.grid(padding=(0, 1))
        for sign, text in _details(one, {name: row[name] for name in below if name in row}):
            details.add_row(f"  {sign}", text)
        if place and details.row_count:
            output.print()
        output.print(Segments([*line, Segment.line()]), crop=False)
        if details.row_count:
            output.print(details)
    for point, threshold in thresholds.items():
        told = f"At {point}, a risk of {percent(threshold)} or more foretells failure."
        if threshold > 1:
            told = f"At {point}, the model never foretells failure: that is its threshold."
        output.print(told, style="dim", markup=False)


def _row(one: Prediction, *, point: str | None, cluster: str | None) -> dict[str, str | Text]:
    """The cells of a job by column; point and cluster only where they differ."""
    from rich.text import Text

    from premortem.apps.cli.render import job_number, percent, printable, shown, words

    cause = f"{words(one.cause)} ({percent(one.cause_share)})"
    foretold = Text("fails", "red") if one.fails else Text("completes", "green")
    return {
        **({"cluster": printable(cluster)} if cluster else {}),
        "job": job_number(one.as_dict()),
        "user": printable(one.user or ""),
        "start (UTC)": shown(one.start_time),
        **({_POINT: point} if point else {}),
        "prediction": foretold,
        "risk": percent(one.risk),
        "confidence": percent(one.confidence),
        _CAUSE: f"{cause}{'' if one.fails else ' if it fails'}" if one.cause else "",
    }


def _details(one: Prediction, below: Mapping[str, str | Text]) -> Iterator[tuple[str, str]]:
    """What is said below a job's row, each with a sign."""
    for name, cell in below.items():
        if cell:
            yield " ", f"{name}: {cell}"
    for reason in one.reasons:
        yield "+" if reason.effect > 0 else "-", reason.text
    if one.note:
        yield " ", f"note: {one.note}"
