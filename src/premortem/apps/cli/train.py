"""`premortem train`: from the store's history to a registered model with its report."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from premortem.apps.cli.files import require_place, write_page
from premortem.apps.cli.logs import parsed_points
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
from premortem.apps.cli.stopping import in_background, stoppable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from premortem.features.points import Point
    from premortem.operations.training import Registered
    from premortem.training.train import Options, Training
    from premortem.training.tuning import Trial

HELP = """\
Train a model on the jobs of the store, judge it by the latest of them, and register it.

For each moment of prediction, parameters are searched for by jobs that came later than those
learned from, the risk is calibrated, and a threshold chosen. The new model is used by `premortem
predict` only if it is better than the one in use.

Ctrl-C ends the search and keeps what it found: moments not yet begun are left out, and the others
registered. A second one ends it at once, with nothing registered.

    premortem train

    premortem train --points submit,start --budget 10m --threshold precision=0.8

    premortem train --model lightgbm --trials 50 --since 365d
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train", help=HELP)(train)


def _ray_address(on: str | None) -> str | None:
    if on in (None, "ray") or re.fullmatch(r"ray://[^/\s]+", on or ""):
        return on
    raise typer.BadParameter(
        f"'{on}' is neither ray, for this machine, nor an address such as ray://host:10001."
    )


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
        int | None,
        typer.Option(
            min=0,
            max=100_000,
            metavar="N",
            help="Trials of the search, per point; 20, or with --budget all it has time for.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time for the search, per point: 90s, 10m, 2h; or until --trials are done.",
        ),
    ] = None,
    imbalance: Annotated[
        Literal["none", "weights", "oversample", "smote", "active"],
        typer.Option(help="What to do about failures being rare, in the search and after it."),
    ] = "none",
    profiles: Annotated[
        bool, typer.Option("--profiles", help="Let the trees look at a job's profile, too.")
    ] = False,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="RAY",
            help="Search on Ray: ray for this machine, or ray://host:10001.",
            callback=_ray_address,
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the trials there: run again, an interrupted search goes on from them.",
        ),
    ] = None,
    family: Annotated[
        Literal["auto", "generic", "restricted", "swf"],
        typer.Option(
            help="Features to use: what the jobs can fill, all, none about the user, or what SWF "
            "logs carry."
        ),
    ] = "auto",
    threshold: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="From which risk on to warn: f1, precision=0.8, recall=0.6, cost=5 (core-hours a "
            "false alarm is worth), or a risk like 0.5; the nearest to it there is.",
        ),
    ] = "f1",
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
    from premortem.training.tuning import USUAL_TRIALS, Budget

    invocation: Invocation = context.obj
    settings = invocation.settings().values
    if html:
        require_place(html)
    wanted = parsed_points(points, TRAINED_POINTS)
    options = Options(
        engine=model,
        budget=Budget(
            USUAL_TRIALS if trials is None and budget is None else trials,
            seconds(budget) if budget else None,
        ),
        imbalance=Imbalance(imbalance),
        family=None if family == "auto" else Family(family),
        rule=threshold,
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
    with (
        Status() as status, open_registry(context, registry) as models,
        stoppable(_say_it_ends) as stopped,
    ):  # fmt: skip
        told = _Told(status)
        # A registry that is of no use is better told of now than after the training.
        models.require_writable()
        training = in_background(
            lambda: train_on(
                jobs, points=wanted, policy=settings.labels.policy(), options=options,
                zone=settings.zone, journal=journal, progress=told.step, tried=told.trial,
                stopped=stopped,
            )
        )  # fmt: skip
        status.tell("report")
        described, correlation = portrait(training, seed=seed)
        report = report_of(
            training, seed=seed, profiles=described, correlation=correlation,
            made=datetime.now(UTC),
        )  # fmt: skip
        pages = {"report.html": report_page(report)}
        registered = register(models, training, options, report, pages)
    for note in _notes(training, options, journal):
        say(f"note: {note}")
    if as_json:
        render.print_json(_as_dict(registered))
    else:
        _print(training, registered)
    for warning in registered.version.manifest["warnings"]:
        say(f"warning: {warning}")
    if html:
        created = render.shown(registered.version.created)
        version = f"{registered.version}, registered {created} UTC"
        write_page(html, report_page(report, version))


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


def _say_it_ends() -> None:
    say("interrupted: what is finished will be registered; once more ends it without")


def _notes(training: Training, options: Options, journal: Path | None) -> Iterator[str]:
    """What a training is not, though it might have been expected."""
    from premortem.training.active import chooses_among

    for point, why in training.left_out.items():
        yield f"{point} is left out: {why}"
    yield from training.notes
    for point, one in training.points.items():
        if one.search.interrupted:
            tried = len(one.search.trials)
            yield f"{point}: the search was interrupted; the best of {tried} tried is used"
        if options.imbalance == "active" and not chooses_among(one.learned_from):
            yield (
                f"{point}: {one.learned_from:,} jobs are too few to choose among: all were learned "
                "from, as without --imbalance active"
            )
    if training.interrupted:
        goes_on = f": the search goes on from the trials in {journal}" if journal else ""
        yield f"run it again for the rest{goes_on}"


def _as_dict(registered: Registered) -> dict[str, Any]:
    return {
        "version": registered.version.number,
        "champion": registered.champion,
        "why": registered.why,
        "warnings": registered.version.manifest["warnings"],
        "manifest": dict(registered.version.manifest),
    }


def _print(training: Training, registered: Registered) -> None:
    from premortem.apps.cli.render import console, count, percent, share, table, threshold

    columns = ("point", "jobs", "failed", "AP", "AUC", "ECE", "judged at", "P", "R", "F1", "causes")
    rows = []
    for point, one in training.points.items():
        told = registered.version.manifest["metrics"][point]
        rows.append(
            (
                point, count(told["jobs"]), percent(told["failure_share"]),
                *(share(told[name]) for name in ("average_precision", "auc", "ece")),
                threshold(told["judged_at"]),
                *(share(told[name]) for name in ("precision", "recall", "f1")),
                str(len(one.model.causes) or ""),
            )
        )  # fmt: skip
    output = console()
    title = f"{registered.version}, judged by the latest jobs, which it had not seen"
    output.print(table(title, columns, rows, right=columns[1:]))
    own = [
        f"at {point} {threshold(one.model.threshold, 'from ')}"
        for point, one in training.points.items()
    ]
    output.print(f"Having learned from all jobs, it warns {', '.join(own)}.", markup=False)
    use = "It is in use now" if registered.champion else "It is not in use"
    output.print(f"{use}: {registered.why}.", markup=False)
