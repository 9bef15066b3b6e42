"""`premortem bench`: how well failure can be predicted in a log, honestly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from premortem.apps.cli import bench_imbalance
from premortem.apps.cli import logs as given
from premortem.apps.cli.bench_imbalance import strategy_rows
from premortem.apps.cli.exits import exit_code
from premortem.apps.cli.files import require_place, write_page
from premortem.apps.cli.logs import parsed_points, read_logs, reading
from premortem.apps.cli.options import AsJson, Invocation
from premortem.apps.cli.progress import Status
from premortem.errors import PremortemError
from premortem.jobs.outcomes import Cause
from premortem.sources.formats import Format, SwfStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from premortem.apps.cli.bench_imbalance import Cell
    from premortem.features.points import Point
    from premortem.operations.reading import Log
    from premortem.training.benchmark import PointResult

HELP = """\
Measure how well failure can be predicted in a log: at submission, at start, and into the run.

A model is trained on the jobs that had ended before a cut in time and judged by those submitted
after it, beside rules it has to beat; nothing is used before it is known. The `posthoc` row breaks
that rule on purpose, to compare with published tables, and says so. Every format that
`premortem load` reads will do; nothing is stored.

    premortem bench CTC-SP2-1996-3.1-cln.swf.gz

    premortem bench site.txt --points submit,running@10min --ignore cancelled --html report.html

    premortem bench *.swf.gz --folds 12 --json > results.json

    premortem bench site.txt --points submit --imbalance all
"""

_LIBRARIES = ("premortem", "xgboost-cpu", "polars", "numpy", "numba", "scikit-learn")
_COLUMNS = (
    "point", "model", "jobs", "failed", "AUC", "AP", "ECE", "P", "R", "F1", "acc", "thr", "P ",
    "R ", "F1 ", "acc ", "fit s", "score s",
)  # fmt: skip
# As wide as the widest row, where no terminal sets the width.
_PAGE = 124
_EXPLAINED = (
    "AP: average precision. P, R, F1, acc: precision, recall, F1 and accuracy at a risk of 0.5, "
    "then at the threshold (thr) chosen on the last training jobs to end. ECE: calibration error."
)


@dataclass(frozen=True, slots=True)
class LogResults:
    """One log that was read, and how well its jobs' failures were predicted."""

    log: Log
    points: list[PointResult]

    @property
    def useful(self) -> bool:
        """Whether there is any number to show."""
        return any(result.message is None for result in self.points)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bench", help=HELP)(bench)


def bench(
    context: typer.Context,
    logs: given.Logs,
    points: given.Points = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Only this model or baseline; repeatable. xgboost, lightgbm, catboost, untuned, "
            "tuned, auto, majority, user_last_outcome, user_name_rate, xgboost_request.",
        ),
    ] = None,
    imbalance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WAY",
            help="Also judge this way to treat rare failures; repeatable. none, weights, "
            "oversample, smote, active, or all of them.",
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(min=0, max=10_000, metavar="N", help="Trials of the tuned model.")
    ] = 20,
    family: given.FamilyName = "generic",
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Leave out features of this chapter, or made of this field, such as script or "
            "usage; repeatable.",
        ),
    ] = None,
    label_policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Settings file whose labels are used here, as in docs/labels.md.",
        ),
    ] = None,
    ignore: Annotated[
        list[Cause] | None,
        typer.Option(help="Leave out jobs that failed in this way; repeatable."),
    ] = None,
    folds: Annotated[
        int, typer.Option(min=1, max=1000, help="Cuts in time, the model trained anew at each.")
    ] = 1,
    quantile: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.99,
            help="Share of the jobs submitted before the cut; 0.8, or 0.5 with folds.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="Another seed, another model.")
    ] = 0,
    trees: given.Trees = 400,
    head: given.Head = None,
    format: given.FileFormat = Format.AUTO,
    columns: given.SacctColumns = None,
    delimiter: given.Delimiter = None,
    mapping: given.Mapping = None,
    cluster: given.ClusterName = None,
    zone: given.Zone = None,
    swf_status: given.StatusColumn = SwfStatus.AUTO,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a page with curves, to be kept.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure and print; the exit code is not 0 only if no log gave any number."""
    from premortem.apps.cli import render
    from premortem.features.catalogue import Family
    from premortem.features.points import DEFAULT_POINTS
    from premortem.settings import load_settings
    from premortem.training.benchmark import benchmark_log
    from premortem.training.imbalance import parsed_strategies

    invocation: Invocation = context.obj
    settings = invocation.settings().values
    how = reading(
        settings, format=format, columns=columns, delimiter=delimiter, mapping=mapping,
        cluster=cluster, zone=zone, swf_status=swf_status,
    )  # fmt: skip
    chosen = load_settings(label_policy, environment={}).values if label_policy else settings
    policy = chosen.labels.policy()
    policy = replace(policy, ignored=policy.ignored | frozenset(ignore or ()))
    if html:
        require_place(html)
    wanted = parsed_points(points, DEFAULT_POINTS)
    strategies = parsed_strategies(imbalance or ())
    results: list[LogResults] = []
    problems: list[PremortemError] = []
    with Status() as status:
        for path, log in read_logs(logs, how, status, problems, head=head):
            found = benchmark_log(
                log.jobs,
                points=wanted, policy=policy, seed=seed, folds=folds, family=Family(family),
                without=tuple(without or ()),
                zone=how.context.zone, quantile=quantile, trees=trees, models=models,
                imbalance=strategies, trials=trials,
                progress=status.under(path),
            )  # fmt: skip
            results.append(LogResults(log, found))
    manifest = {
        "logs": [{"log": r.log.name, "sha256": r.log.sha256} for r in results],
        "versions": _versions(),
        "seed": seed,
        "settings": {
            "points": _names(wanted), "family": family, "without": list(without or ()),
            "folds": folds, "quantile": quantile,
            "trees": trees, "models": models, "imbalance": [str(s) for s in strategies],
            "trials": trials, "head": head, "format": str(format),
            "columns": columns, "delimiter": delimiter, "mapping": mapping,
            "cluster": cluster, "zone": how.context.zone, "swf_status": str(swf_status),
            "labels": policy.as_dict(),
        },
    }  # fmt: skip
    if as_json:
        render.print_json({"manifest": manifest, "logs": [_as_dict(one) for one in results]})
    else:
        _print_tables(results)
    if html:
        _write_results(html, results, manifest)
    if not any(one.useful for one in results):
        raise typer.Exit(exit_code(problems[0]) if problems and not results else 1)


def _names(points: Sequence[Point]) -> list[str]:
    return [point.name for point in points]


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    found = {name.removesuffix("-cpu"): version(name) for name in _LIBRARIES}
    return {"python": platform.python_version(), **found}


def _as_dict(one: LogResults) -> dict[str, Any]:
    return {
        "log": one.log.name,
        "jobs": one.log.jobs.height,
        "rejected": one.log.rejected,
        "points": [result.as_dict() for result in one.points],
    }


def _print_tables(results: Sequence[LogResults]) -> None:
    from premortem.apps.cli.render import console, count, printable, table

    output = console()
    if not output.is_terminal:
        output.width = _PAGE
    strategies = [strategy_rows(one.points) for one in results]
    for number, (one, compared) in enumerate(zip(results, strategies, strict=True)):
        if number:
            output.print()
        title = f"{printable(one.log.name)}: {count(one.log.jobs.height)} jobs"
        rows = [cells(result) for result in one.points if result.message is None]
        if rows:
            made = table(title, _COLUMNS, rows, right=_COLUMNS[2:])
            made.collapse_padding = True
            output.print(made)
        else:
            output.print(title, style="bold", markup=False)
        for result in one.points:
            if result.message:
                output.print(f"{place(result)}: {result.message}", markup=False)
        if compared:
            output.print()
            output.print(_strategy_table(compared))
    if any(one.useful for one in results):
        output.print(_EXPLAINED, style="dim")
    if any(strategies):
        output.print(bench_imbalance.EXPLAINED, style="dim")


def _strategy_table(rows: Sequence[Sequence[Cell]]) -> Table:
    from rich.text import Text

    from premortem.apps.cli.render import table

    columns = bench_imbalance.COLUMNS
    shown = [[Text(cell.text, style="bold" if cell.best else "") for cell in row] for row in rows]
    made = table(bench_imbalance.TITLE, columns, shown, right=columns[2:])
    made.collapse_padding = True
    return made


def place(result: PointResult) -> str:
    """The point, and the fold if it is one of several."""
    return result.point + (f" fold {result.fold}" if result.fold else "")


def cells(result: PointResult) -> tuple[str, ...]:
    """A result as the cells of a table's row."""
    from premortem.apps.cli.render import count, share

    def seconds(value: float | None) -> str:
        return "" if value is None else f"{value:.1f}"

    chosen = result.at_threshold
    failed = "" if result.failure_share is None else f"{result.failure_share * 100:.1f}%"
    return (
        place(result),
        result.model + (" (leaks)" if result.leaks else ""),
        count(result.jobs),
        failed,
        *map(share, (result.auc, result.average_precision, result.ece)),
        *map(share, (result.precision, result.recall, result.f1, result.accuracy)),
        *map(share, (result.threshold, chosen.precision, chosen.recall, chosen.f1)),
        share(chosen.accuracy),
        seconds(result.fit_seconds),
        seconds(result.score_seconds),
    )


def _write_results(path: str, results: Sequence[LogResults], manifest: dict[str, Any]) -> None:
    from premortem.apps.cli.bench_page import LogSection, page

    sections = [
        LogSection(
            title=f"{one.log.name}: {one.log.jobs.height:,} jobs",
            columns=_COLUMNS,
            rows=[cells(result) for result in one.points if result.message is None],
            messages=[f"{place(r)}: {r.message}" for r in one.points if r.message],
            curves=_curves(one.points),
            strategies=strategy_rows(one.points),
        )
        for one in results
    ]
    write_page(path, page(sections, manifest))


def _curves(
    results: Sequence[PointResult],
) -> dict[str, dict[str, Sequence[tuple[float, float]]]]:
    found: dict[str, dict[str, Sequence[tuple[float, float]]]] = {}
    for result in results:
        if result.curve and not result.fold:
            title = result.point + (" (leaks)" if result.leaks else "")
            found.setdefault(title, {})[result.model] = result.curve
    return found
