"""`premortem threshold`: from which risk on to warn, and what that trades for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from premortem.apps.cli.models import RegistryUrl, open_registry
from premortem.apps.cli.options import AsJson

if TYPE_CHECKING:
    from premortem.training.thresholds import Trade

HELP = """\
Show what each threshold would catch and cost, and set another one.

The numbers are those of jobs the model had not seen when it was trained. Setting a threshold makes
a new version of the model with the same trees, so that `premortem models rollback` undoes it.

    premortem threshold

    premortem threshold --point submit --set precision=0.8

    premortem threshold --set cost --false-alarm-cost 5
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
            "--set", metavar="RULE", help="f1, cost, precision=0.8, recall=0.6, or a risk like 0.5."
        ),
    ] = None,
    point: Annotated[
        str | None, typer.Option(metavar="POINT", help="Only this point; all by default.")
    ] = None,
    false_alarm_cost: Annotated[
        float,
        typer.Option(min=0, metavar="HOURS", help="Core-hours a false alarm is worth."),
    ] = 1.0,
    model: Annotated[
        str, typer.Option(metavar="VERSION", help="Version of the model, or an alias.")
    ] = "champion",
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show the trade; with a rule, register the model with the threshold it gives."""
    from premortem.apps.cli import render
    from premortem.features.points import parse_point
    from premortem.operations.thresholds import set_thresholds
    from premortem.operations.training import load_model
    from premortem.training.thresholds import Trade

    with open_registry(context, registry) as models:
        loaded, version = load_model(models, model)
        wanted = [loaded.at(parse_point(point))] if point else list(loaded.points.values())
        changed = None
        if rule is not None:
            names = [one.point.name for one in wanted]
            changed = set_thresholds(models, version, names, rule, false_alarm=false_alarm_cost)
            loaded, version = load_model(models, str(changed.number))
            wanted = [loaded.points[name] for name in names]
    trades = {one.point.name: Trade.from_dict(one.trade) for one in wanted}
    if as_json:
        told = {
            one.point.name: {
                "threshold": one.threshold, "rule": one.rule,
                "trade": _rows(trades[one.point.name], false_alarm_cost),
            }
            for one in wanted
        }  # fmt: skip
        render.print_json({"model": version.number, "points": told})
        return
    output = render.console()
    for one in wanted:
        trade = trades[one.point.name]
        title = f"{version} at {one.point}: threshold {one.threshold:.3f} ({one.rule})"
        output.print(_table(title, _rows(trade, false_alarm_cost), one.threshold))
    if changed is not None:
        output.print(f"Registered as {changed}; 'premortem models rollback' undoes it.")


def _rows(trade: Trade, false_alarm: float) -> list[dict[str, Any]]:
    return [
        {
            "threshold": value, "precision": trade.precision(at), "recall": trade.recall(at),
            "f1": trade.f1(at), "warned_share": _warned(trade, at),
            "cost_core_hours": trade.cost(at, false_alarm),
        }
        for at, value in enumerate(trade.thresholds)
    ]  # fmt: skip


def _warned(trade: Trade, at: int) -> float:
    return (trade.caught[at] + trade.false_alarms[at]) / trade.jobs if trade.jobs else 0.0


def _table(title: str, rows: list[dict[str, Any]], current: float) -> Any:
    from premortem.apps.cli.render import count, percent, table

    nearest = min(range(len(rows)), key=lambda at: abs(rows[at]["threshold"] - current))
    step = max(1, len(rows) // _ROWS)
    chosen = sorted({*range(0, len(rows), step), len(rows) - 1, nearest})
    columns = ("threshold", "warned", "precision", "recall", "F1", "cost (core-hours)", "")
    cells = [
        (
            f"{rows[at]['threshold']:.3f}", percent(rows[at]["warned_share"]),
            percent(rows[at]["precision"]), percent(rows[at]["recall"]), percent(rows[at]["f1"]),
            count(round(rows[at]["cost_core_hours"])), "<" if at == nearest else "",
        )
        for at in chosen
    ]  # fmt: skip
    return table(title, columns, cells, right=columns[:-1])
