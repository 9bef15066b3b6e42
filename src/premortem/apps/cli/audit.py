"""`premortem audit`: proof that no row of features knows the future, and what leaks would gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from premortem.apps.cli import logs as given
from premortem.apps.cli.exits import exit_code
from premortem.apps.cli.logs import parsed_points, read_logs, reading
from premortem.apps.cli.options import AsJson, Invocation
from premortem.apps.cli.progress import Status
from premortem.errors import PremortemError
from premortem.sources.formats import Format, SwfStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from premortem.training.audit import Audit, Leak, Trial
    from premortem.training.gain import Gain

HELP = """\
Prove for a log that no row of features knows the future, and tell what leaking would have gained.

Everything after a random instant is changed: other outcomes, other run times, other jobs. No row
made before it may change with that, not by a bit. A feature that does is named, with an example,
and the exit code is 1. Then a model is shown the fields that are known too late, one by one, so
that published numbers can be judged. Every format that `premortem load` reads will do; nothing is
stored.

    premortem audit CTC-SP2-1996-3.1-cln.swf.gz

    premortem audit site.txt --points submit,running@10min --trials 20 --no-gain

    premortem audit *.swf.gz --json > audit.json
"""

_COLUMNS = ("point", "features", "trials", "rows compared", "later rows changed", "verdict")
# What a screen holds; after that, more examples help nobody.
_MOST_LEAKS = 10


@dataclass(frozen=True, slots=True)
class LogAudit:
    """One log that was read, what its audit found, and the gain if that was asked for."""

    name: str
    audit: Audit
    gain: Gain | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return {
            "log": self.name,
            **self.audit.as_dict(),
            "gain": self.gain.as_dicts() if self.gain else [],
            "gain_message": self.gain.message if self.gain else None,
        }


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit", help=HELP)(audit)


def audit(
    context: typer.Context,
    logs: given.Logs,
    points: given.Points = None,
    family: given.FamilyName = "generic",
    trials: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="Other futures to try at each.")
    ] = 3,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="Another seed, other instants and futures.")
    ] = 0,
    head: given.Head = None,
    features: Annotated[
        bool, typer.Option("--features", help="List every feature and when it is known.")
    ] = False,
    no_gain: Annotated[
        bool, typer.Option("--no-gain", help="Do not train models to tell what leaks would gain.")
    ] = False,
    trees: given.Trees = 400,
    format: given.FileFormat = Format.AUTO,
    columns: given.SacctColumns = None,
    delimiter: given.Delimiter = None,
    mapping: given.Mapping = None,
    cluster: given.ClusterName = None,
    zone: given.Zone = None,
    swf_status: given.StatusColumn = SwfStatus.AUTO,
    as_json: AsJson = False,
) -> None:
    """Audit and print; the exit code is 0 only if it holds for all logs."""
    from premortem.apps.cli import render
    from premortem.features.catalogue import Family
    from premortem.training.audit import HONEST_POINTS, audit_log, require_honest
    from premortem.training.gain import gain_of_hindsight

    invocation: Invocation = context.obj
    settings = invocation.settings().values
    how = reading(
        settings, format=format, columns=columns, delimiter=delimiter, mapping=mapping,
        cluster=cluster, zone=zone, swf_status=swf_status,
    )  # fmt: skip
    policy = settings.labels.policy()
    wanted = parsed_points(points, HONEST_POINTS)
    require_honest(wanted)
    done: list[LogAudit] = []
    problems: list[PremortemError] = []
    with Status() as status:
        for path, log in read_logs(logs, how, status, problems, head=head):
            found = audit_log(
                log.jobs, points=wanted, family=Family(family), trials=trials, seed=seed,
                policy=policy, zone=how.context.zone, progress=status.under(path),
            )  # fmt: skip
            gain = None
            if not no_gain:
                gain = gain_of_hindsight(
                    log.jobs, policy=policy, family=Family(family), seed=seed,
                    zone=how.context.zone, trees=trees, progress=status.under(path),
                )  # fmt: skip
            done.append(LogAudit(log.name, found, gain))
    if as_json:
        render.print_json({"logs": [one.as_dict() for one in done]})
    else:
        _print(done, every_feature=features)
    if not all(one.audit.holds for one in done):
        raise typer.Exit(1)
    if problems:
        raise typer.Exit(exit_code(problems[0]))


def _print(done: Sequence[LogAudit], *, every_feature: bool) -> None:
    from premortem.apps.cli.render import console, count, printable, table

    output = console()
    for number, one in enumerate(done):
        if number:
            output.print()
        title = f"{printable(one.name)}: {count(one.audit.jobs)} jobs"
        rows = [_cells(one.audit, point) for point in one.audit.points]
        output.print(table(title, _COLUMNS, rows, right=_COLUMNS[1:5]))
        for leak in one.audit.leaks[:_MOST_LEAKS]:
            output.print(_told(leak), markup=False)
        if len(one.audit.leaks) > _MOST_LEAKS:
            output.print(f"and {len(one.audit.leaks) - _MOST_LEAKS} more; --json tells all")
        output.print()
        _print_features(output, one.audit, every_feature=every_feature)
        if one.gain:
            output.print()
            _print_gain(output, one.gain)
        output.print()
        output.print(_verdict(one.audit), style="bold", markup=False)


def _cells(audit: Audit, point: str) -> tuple[str, ...]:
    from premortem.apps.cli.render import count

    trials = [trial for trial in audit.trials if trial.point == point]
    later = sum(trial.later_rows for trial in trials)
    changed = sum(trial.later_rows_changed for trial in trials)
    return (
        point,
        count(sum(point in audited.points for audited in audit.features)),
        count(len(trials)),
        count(sum(trial.rows_compared for trial in trials)),
        f"{count(changed)} of {count(later)}",
        _point_verdict(trials, [leak for leak in audit.leaks if leak.point == point]),
    )


def _point_verdict(trials: Sequence[Trial], leaks: Sequence[Leak]) -> str:
    idle = sum(trial.idle for trial in trials)
    if leaks:
        return f"LEAKS: {len(leaks)} of its features" if len(leaks) > 1 else "LEAKS: one feature"
    if not sum(trial.rows_compared for trial in trials):
        return "no rows to compare"
    return f"holds ({idle} idle)" if idle else "holds"


def _told(leak: Leak) -> str:
    from datetime import UTC, datetime

    from premortem.apps.cli.render import shown
    from premortem.training.audit import POPULATION

    def value(number: float | None) -> str:
        if leak.feature == POPULATION:
            return "no row" if number is None else f"{datetime.fromtimestamp(number, UTC):%F %T}"
        return "missing" if number is None else f"{number:.9g}"

    what = "a row" if leak.feature == POPULATION else leak.feature
    return (
        f"{what} at {leak.point} knows the future: for job {leak.job} it is {value(leak.before)}, "
        f"but {value(leak.after)} with another story after {shown(leak.instant)}"
    )


def _print_features(output: Console, audit: Audit, *, every_feature: bool) -> None:
    from collections import Counter

    from premortem.apps.cli.render import table

    rows: list[tuple[Any, ...]]
    if every_feature:
        titles = ["feature", "known at", "chapter", "made of", "used at"]
        rows = [
            (one.name, one.known, one.chapter, ", ".join(one.inputs), ", ".join(audited.points))
            for audited in audit.features
            for one in [audited.feature]
        ]
        output.print(table("Features", titles, rows))
        return
    counts = Counter((one.feature.chapter, one.feature.known) for one in audit.features)
    chapters = list(dict.fromkeys(chapter for chapter, _ in counts))
    moments = sorted({known for _, known in counts})
    titles = ["chapter", *(f"known at {known}" for known in moments)]
    rows = [(chapter, *(counts[chapter, known] for known in moments)) for chapter in chapters]
    output.print(table("Features by when they are known", titles, rows, right=titles[1:]))


def _print_gain(output: Console, gain: Gain) -> None:
    from premortem.apps.cli.render import table

    title = "What fields known too late would have gained at submission"
    if gain.message:
        output.print(f"{title} cannot be told: {gain.message}", markup=False)
        return

    def share(value: float | None) -> str:
        return "" if value is None else f"{value:.3f}"

    titles = ("fields", "AUC", "average precision")
    rows = [(row.fields, share(row.auc), share(row.average_precision)) for row in gain.rows]
    output.print(title, style="bold")
    output.print(table(None, titles, rows, right=titles[1:]))


def _verdict(audit: Audit) -> str:
    from premortem.apps.cli.render import count

    if audit.leaks:
        names = ", ".join(dict.fromkeys(leak.feature for leak in audit.leaks))
        return f"The future leaks into earlier rows: {names}."
    if not audit.holds:
        return "Nothing is proved: no row could be compared."
    compared = f"{count(audit.values_compared)} values in {count(len(audit.trials))} trials"
    idle = sum(trial.idle for trial in audit.trials)
    reserve = f" In {idle} of them nothing after the instant mattered: those show nothing."
    found = f"No row knew the future: of {compared}, none changed with what came after."
    return found + (reserve if idle else "")
