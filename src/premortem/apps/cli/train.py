"""`premortem train`: from the store's history to a registered model with its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from premortem.apps.cli.files import write_page
from premortem.apps.cli.logs import FamilyName, parsed_points
from premortem.apps.cli.models import RegistryUrl, open_registry
from premortem.apps.cli.options import (
    AsJson,
    Invocation,
    Since,
    StoreUrl,
    Until,
    instant,
    seconds,
)
from premortem.apps.cli.progress import Status, say

if TYPE_CHECKING:
    from premortem.features.points import Point
    from premortem.operations.training import Registered
    from premortem.training.train import Training
    from premortem.training.tuning import Trial

HELP = """\
Train a model on the jobs of the store, judge it by the latest of them, and register it.

For each moment of prediction, parameters are searched for by jobs that came later than those
learned from, the risk is calibrated, and a threshold chosen. The new model is used by `premortem
predict` only if it is better than the one in use. Ctrl-C ends the search and keeps what it found.

    premortem train

    premortem train --points submit,start --budget 10m --threshold precision=0.8

    premortem train --model lightgbm --trials 50 --since 365d
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train", help=HELP)(train)


def train(
    context: typer.Context,
    points: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Moments to predict at; submit,start,running@2min."),
    ] = None,
    model: Annotated[
        Literal["xgboost", "lightgbm", "catboost", "auto"],
        typer.Option(help="What grows the trees; auto is the best of those installed."),
    ] = "xgboost",
    trials: Annotated[
        int, typer.Option(min=0, max=100_000, metavar="N", help="Trials of the search, per point.")
    ] = 20,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time for the search, per point: 90s, 10m, 2h."),
    ] = None,
    imbalance: Annotated[
        Literal["none", "weights", "oversample", "smote", "active"],
        typer.Option(help="What to do about failures being rare."),
    ] = "none",
    profiles: Annotated[
        bool, typer.Option("--profiles", help="Let the trees look at a job's profile, too.")
    ] = False,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="RAY", help="Search on Ray: ray for this machine, or ray://host:10001."
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the trials there: run again, an interrupted search goes on from them.",
        ),
    ] = None,
    family: FamilyName = "generic",
    threshold: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="From which risk on to warn: f1, cost, precision=0.8, recall=0.6, or 0.5.",
        ),
    ] = "f1",
    false_alarm_cost: Annotated[
        float,
        typer.Option(min=0, metavar="HOURS", help="Core-hours a false alarm is worth, for cost."),
    ] = 1.0,
    since: Since = None,
    until: Until = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Another seed.")] = 0,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the report there, too.")
    ] = None,
    store: StoreUrl = None,
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Train, register and report."""
    from premortem.apps.cli import render
    from premortem.apps.report_page import report_page
    from premortem.features.catalogue import Family
    from premortem.operations.training import history, register
    from premortem.training.imbalance import Imbalance
    from premortem.training.portrait import portrait
    from premortem.training.report import report_of
    from premortem.training.train import TRAINED_POINTS, Options
    from premortem.training.train import train as train_on
    from premortem.training.tuning import Budget

    invocation: Invocation = context.obj
    settings = invocation.settings().values
    wanted = parsed_points(points, TRAINED_POINTS)
    options = Options(
        engine=model,
        budget=Budget(trials, seconds(budget) if budget else None),
        imbalance=Imbalance(imbalance),
        family=Family(family),
        rule=threshold,
        false_alarm_cost=false_alarm_cost,
        seed=seed,
        on=on,
        profiles=profiles,
    )
    with invocation.store(store) as source:
        jobs = history(
            source,
            since=instant(since) if since else None,
            until=instant(until) if until else None,
        )
    with Status() as status, open_registry(context, registry) as models:
        told = _Told(status)
        # A registry that is of no use is better told of now than after the training.
        models.versions()
        training = train_on(
            jobs, points=wanted, policy=settings.labels.policy(), options=options,
            zone=settings.zone, journal=journal, progress=told.step, tried=told.trial,
        )  # fmt: skip
        status.tell("report")
        described, correlation = portrait(training, seed=seed)
        report = report_of(training, seed=seed, profiles=described, correlation=correlation)
        page = report_page(report)
        registered = register(models, training, options, report, {"report.html": page})
    for point, why in training.left_out.items():
        say(f"note: {point} is left out: {why}")
    if as_json:
        render.print_json(_as_dict(registered))
    else:
        _print(training, registered)
    if html:
        write_page(html, page)


class _Told:
    """What the search has come to, on standard error."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._tried = 0
        self._best = 0.0

    def step(self, text: str) -> None:
        self._tried, self._best = 0, 0.0
        self._status.tell(text)

    def trial(self, point: Point, trial: Trial) -> None:
        self._tried += 1
        self._best = max(self._best, trial.score or 0.0)
        self._status.tell(
            f"{point}: search, {self._tried} tried, best average precision {self._best:.3f}"
        )


def _as_dict(registered: Registered) -> dict[str, Any]:
    return {
        "version": registered.version.number,
        "champion": registered.champion,
        "why": registered.why,
        "manifest": dict(registered.version.manifest),
    }


def _print(training: Training, registered: Registered) -> None:
    from premortem.apps.cli.render import console, count, percent, share, table

    columns = ("point", "jobs", "failed", "AP", "AUC", "ECE", "threshold", "P", "R", "F1", "causes")
    rows = []
    for point, one in training.points.items():
        told = registered.version.manifest["metrics"][point]

        rows.append(
            (
                point, count(told["jobs"]), percent(told["failure_share"]),
                *(share(told[name]) for name in ("average_precision", "auc", "ece")),
                share(one.model.threshold),
                *(share(told[name]) for name in ("precision", "recall", "f1")),
                str(len(one.model.causes) or ""),
            )
        )  # fmt: skip
    output = console()
    title = f"{registered.version}, judged by the latest jobs, which it had not seen"
    output.print(table(title, columns, rows, right=columns[1:]))
    use = "It is in use now" if registered.champion else "It is not in use"
    output.print(f"{use}: {registered.why}.", markup=False)
