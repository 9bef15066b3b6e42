"""`premortem threshold`: from which risk on to warn, and what that trades for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from premortem.apps.cli.models import RegistryUrl, open_registry
from premortem.apps.cli.options import AsJson

if TYPE_CHECKING:
    from premortem.prediction.model import PointModel
    from premortem.registry import Version
    from premortem.training.thresholds import Trade

HELP = """\
Show what each threshold would catch and cost, and set another one.

A job is warned of if its risk is the threshold or more. The numbers are those of jobs the model
had not seen when it was trained: how many it would warn of, how many warnings would be right
(precision), how many failures would be caught (recall), and what that costs: the core-hours of the
failures missed, and a set amount for each false alarm.

RULE is a risk such as 0.5, or what to choose one by: f1 (the best F1), precision=0.8 (the lowest
threshold that has it), recall=0.6 (the highest), cost=5 (the cheapest, where a false alarm is
worth 5 core-hours; it may be never to warn), cost (where it is worth 1).
Setting a threshold makes a new version of the model with the same trees, its scores and its report
told for that threshold; `premortem models rollback` undoes it.

    premortem threshold

    premortem threshold --point submit --set precision=0.8

    premortem threshold --set cost=5
"""
_ROWS = 12


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("threshold", help=HELP)(threshold)


def threshold(
    context: typer.Context,
    rule: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="RULE",
            help="f1, precision=0.8, recall=0.6, cost=5, or a risk like 0.5.",
        ),
    ] = None,
    point: Annotated[
        str | None, typer.Option(metavar="POINT", help="Only this point; all by default.")
    ] = None,
    model: Annotated[
        str, typer.Option(metavar="VERSION", help="Version of the model, or an alias.")
    ] = "champion",
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show the trade; with a rule, register the model with the threshold it gives."""
    from premortem.apps.cli import render
    from premortem.apps.report_page import report_page
    from premortem.features.points import parse_point
    from premortem.operations.thresholds import set_thresholds
    from premortem.operations.training import load_model

    with open_registry(context, registry) as models:
        loaded, version = load_model(models, model)
        wanted = [loaded.at(parse_point(point))] if point else list(loaded.points.values())
        if rule is not None:
            names = [one.point.name for one in wanted]
            version = set_thresholds(
                models, version, names, rule,
                pages=lambda report: {"report.html": report_page(report)},
            )  # fmt: skip
            loaded, _ = load_model(models, str(version.number))
            wanted = [loaded.points[name] for name in names]
    if as_json:
        told = {one.point.name: _as_dict(one, version) for one in wanted}
        render.print_json({"model": version.number, "points": told})
        return
    for one in wanted:
        _print(one, version)
    if rule is not None:
        render.console().print(_registered(version))


def _as_dict(one: PointModel, version: Version) -> dict[str, Any]:
    return {
        "threshold": one.threshold,
        "rule": one.rule,
        "judged": version.manifest.get("metrics", {}).get(one.point.name),
        "trade": _rows(one),
    }


def _print(one: PointModel, version: Version) -> None:
    from premortem.apps.cli.render import console
    from premortem.apps.cli.render import threshold as risk

    title = f"{version} at {one.point}: warns {risk(one.threshold, 'from ')} ({one.rule})"
    console().print(_table(title, _rows(one)))


def _registered(version: Version) -> str:
    told = f"Registered as {version}"
    if "champion" in version.aliases:
        return f"{told}, in use now; 'premortem models rollback' undoes it."
    return f"{told}, not in use; 'premortem models promote {version}' changes that."


def _rows(one: PointModel) -> list[dict[str, Any]]:
    from premortem.training.thresholds import Trade, false_alarm_cost

    trade, false_alarm = Trade.from_dict(one.trade), false_alarm_cost(one.rule)
    in_use = trade.place(one.threshold)
    return [
        {
            "threshold": value, "precision": trade.precision(at), "recall": trade.recall(at),
            "f1": trade.f1(at), "warned_share": _warned(trade, at),
            "false_alarms": trade.false_alarms[at],
            "missed_core_hours": trade.missed_core_hours[at],
            "cost_core_hours": trade.cost(at, false_alarm), "in_use": at == in_use,
        }
        for at, value in enumerate(trade.thresholds)
    ]  # fmt: skip


def _warned(trade: Trade, at: int) -> float:
    return (trade.caught[at] + trade.false_alarms[at]) / trade.jobs if trade.jobs else 0.0


def _table(title: str, rows: list[dict[str, Any]]) -> Any:
    from premortem.apps.cli.render import count, percent, table
    from premortem.apps.cli.render import threshold as risk
    from premortem.apps.markup import core_hours

    step = max(1, len(rows) // _ROWS)
    shown = [
        row for at, row in enumerate(rows) if at % step == 0 or at == len(rows) - 1 or row["in_use"]
    ]
    columns = (
        "threshold", "warned", "precision", "recall", "F1", "false alarms", "missed (core-hours)",
        "cost", "",
    )  # fmt: skip
    cells = [
        (
            risk(row["threshold"]), percent(row["warned_share"]), percent(row["precision"]),
            percent(row["recall"]), percent(row["f1"]), count(row["false_alarms"]),
            core_hours(row["missed_core_hours"]), core_hours(row["cost_core_hours"]),
            "<" if row["in_use"] else "",
        )
        for row in shown
    ]  # fmt: skip
    return table(title, columns, cells, right=columns[:-1])
