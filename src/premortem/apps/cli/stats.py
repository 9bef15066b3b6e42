"""`premortem stats`: the store summed up as a report for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    import polars as pl

    from premortem.operations.statistics import Statistics

HELP = """\
Sum up the store: how jobs ended and why, over time, and the core-hours lost to failure.

Shares are of the jobs that completed or failed; what the label policy ignores does not count.
"""

_STEPS = {"1h": "hour", "1d": "day", "1w": "week of", "1mo": "month", "1q": "quarter from"}
_FORMATS = {"1h": "%Y-%m-%d %H:00", "1mo": "%Y-%m"}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("stats", help=HELP)(stats)


def stats(
    context: typer.Context,
    user: Users = None,
    account: Accounts = None,
    partition: Partitions = None,
    cluster: Clusters = None,
    since: Since = None,
    until: Until = None,
    top: Annotated[int, typer.Option(min=1, help="Rows in each list of the most failing.")] = 5,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print the report, or the numbers behind it as JSON."""
    from premortem.apps.cli import render
    from premortem.operations.statistics import statistics

    invocation: Invocation = context.obj
    wanted = query(
        clusters=cluster, users=user, accounts=account, partitions=partition,
        since=since, until=until,
    )  # fmt: skip
    policy = invocation.settings().values.labels.policy()
    with invocation.store(store) as source:
        summed = statistics(source, policy, wanted, top=top)
    if as_json:
        render.print_json(summed.as_dict())
    else:
        _report(summed)


def _report(summed: Statistics) -> None:
    from premortem.apps.cli import render

    output = render.console()
    if not summed.jobs:
        output.print("No jobs to sum up.")
        return
    output.print(_overview(summed), highlight=False, markup=False)
    output.print()
    output.print(_outcomes(summed))
    output.print()
    if summed.causes:
        output.print(_causes(summed))
        output.print()
    output.print(_over_time(summed))
    for title, rows in (
        ("Users", summed.top_users),
        ("Names", summed.top_names),
        ("Partitions", summed.top_partitions),
    ):
        if not rows.is_empty():
            output.print()
            several = len(summed.clusters) > 1
            output.print(_top(f"{title} with the most failures", rows, with_cluster=several))


def _overview(summed: Statistics) -> str:
    from premortem.apps.cli.render import count, percent, printable, shown

    clusters = ", ".join(map(printable, summed.clusters[:5]))
    more = f" and {len(summed.clusters) - 5} more" if len(summed.clusters) > 5 else ""
    lost = summed.core_hours_lost / summed.core_hours if summed.core_hours else None
    lines = [
        f"{count(summed.jobs)} jobs of {count(summed.users)} users on {clusters}{more}, "
        f"submitted {shown(summed.first)} to {shown(summed.last)} UTC."
    ]
    if lost is not None:
        lines.append(
            f"{count(summed.core_hours_lost)} of {count(summed.core_hours)} core-hours "
            f"({percent(lost)}) went to jobs that failed."
        )
    return "\n".join(lines)


def _outcomes(summed: Statistics) -> Any:
    from premortem.apps.cli import render

    rows = [
        (render.outcome(word), render.count(number), render.percent(number / summed.jobs),
         render.bar(number / summed.jobs, 40))
        for word, number in summed.outcomes.items()
    ]  # fmt: skip
    return render.table(
        "Outcomes", ("outcome", "jobs", "share", ""), rows, right=("jobs", "share"), cut=("",)
    )


def _causes(summed: Statistics) -> Any:
    from premortem.apps.cli import render

    failed = sum(summed.causes.values())
    lost = summed.core_hours_lost_by_cause
    rows = [
        (render.words(word), render.count(number), render.percent(number / failed),
         render.count(lost.get(word, 0)), render.bar(number / failed, 40))
        for word, number in summed.causes.items()
    ]  # fmt: skip
    columns = ("cause", "jobs", "share", "core-hours", "")
    return render.table(
        "Causes of failure", columns, rows, right=("jobs", "share", "core-hours"), cut=("",)
    )


def _over_time(summed: Statistics) -> Any:
    from premortem.apps.cli import render

    form = _FORMATS.get(summed.step, "%Y-%m-%d")
    rows = [
        (
            row["period"].strftime(form),
            *_numbers(row),
            _main_cause(row),
            render.bar(row["failure_share"], 40),
        )
        for row in summed.over_time.iter_rows(named=True)
    ]
    step = _STEPS[summed.step]
    return render.table(
        "Over time", (step, *_NUMBERS, "mostly", ""), rows, right=_NUMBERS, cut=("",)
    )


def _main_cause(row: dict[str, Any]) -> str:
    from premortem.apps.cli.render import words

    causes = {name: n for name, n in row.items() if name.startswith("cause:") and n}
    return words(max(causes, key=lambda name: causes[name]).partition(":")[2]) if causes else ""


_NUMBERS = ("jobs", "failed", "share", "core-hours lost")


def _numbers(row: dict[str, Any]) -> tuple[str, ...]:
    from premortem.apps.cli.render import count, percent

    return (
        count(row["jobs"]),
        count(row["failed"]),
        percent(row["failure_share"]),
        count(row["core_hours_lost"]),
    )


def _top(title: str, frame: pl.DataFrame, *, with_cluster: bool) -> Any:
    from premortem.apps.cli import render

    name = frame.columns[0]
    rows = [
        (
            row[name],
            *([row["cluster"]] if with_cluster else []),
            *_numbers(row),
            render.words(row["main_cause"]),
        )
        for row in frame.iter_rows(named=True)
    ]
    names = (name, *(["cluster"] if with_cluster else []))
    return render.table(title, (*names, *_NUMBERS, "mostly"), rows, right=_NUMBERS)
