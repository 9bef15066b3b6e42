"""`premortem models`: the registered models, and which of them is in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from premortem.apps.cli.options import AsJson, Invocation

if TYPE_CHECKING:
    from premortem.registry import Registry, Version

HELP = """\
List, compare and promote trained models, and roll back to an earlier one.

VERSION is a number (7, v7) or an alias: champion, the model in use, or challenger, one on trial.
"""

RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        help="Registry to use: a folder, or mlflow+http://host:port/model.",
    ),
]
_WARNS_FROM = "warns_from"
VersionName = Annotated[
    str, typer.Argument(metavar="VERSION", help="Number of the version, or an alias.")
]


def add_to(app: typer.Typer) -> None:
    """Add the command with its own commands."""
    models = typer.Typer(name="models", help=HELP, no_args_is_help=True)
    models.command("list", help="List every version, newest first.")(list_versions)
    models.command("show", help="Show all that is told about a version.")(show)
    models.command("compare", help="Compare the metrics of two versions.")(compare)
    models.command("promote", help="Make a version that loads the champion, or the challenger.")(
        promote
    )
    models.command("rollback", help="Make the champion the one it was before.")(rollback)
    models.command("history", help="Show promotions, roll-backs and deletions.")(history)
    models.command("copy", help="Copy a version that loads into another registry.")(copy)
    models.command("delete", help="Delete a version for good.")(delete)
    app.add_typer(models)


@contextmanager
def open_registry(context: typer.Context, url: str | None) -> Iterator[Registry]:
    """The registry to use, closed at the end."""
    from premortem import registry

    invocation: Invocation = context.obj
    opened = registry.open_registry(url or invocation.settings().values.registry.url)
    try:
        yield opened
    finally:
        opened.close()


def list_versions(
    context: typer.Context, registry: RegistryUrl = None, as_json: AsJson = False
) -> None:
    """Print a row for each version."""
    from premortem.apps.cli import render

    with open_registry(context, registry) as opened:
        versions = opened.versions()
    if as_json:
        render.print_json([_as_dict(version) for version in versions])
    elif not versions:
        render.console().print("No model is registered yet.")
    else:
        render.console().print(_table(versions))
        for version in versions:
            if version.damage:
                told = f"{version} cannot be read: {render.shown(version.damage)}"
                render.console().print(told, markup=False, soft_wrap=True)


def show(
    context: typer.Context,
    version: VersionName,
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print the manifest of one version."""
    from rich.text import Text

    from premortem.apps.cli import render

    with open_registry(context, registry) as opened:
        found = opened.resolve(version)
    if as_json:
        render.print_json(_as_dict(found))
        return
    aliases = f", the {' and the '.join(found.aliases)}" if found.aliases else ""
    title = f"{found}{aliases}, registered {render.shown(found.created)} UTC"
    render.console().print(Text(title, style="bold"))
    rows = [
        (" ".join(path), "never" if _is_never(path, value) else _shown(value))
        for path, value in _leaves(found.manifest)
        if path[0] not in ("number", "created")
    ]
    render.console().print(render.table(None, ("field", "value"), rows))


def compare(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="A version or an alias.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The one to compare with it.")],
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print the metrics of both side by side, and how much B differs from A.

    Precision, recall and F1 are of warnings from `judged_at` on; the model itself warns from
    `warns_from`.
    """
    from premortem.apps.cli import render

    with open_registry(context, registry) as opened:
        versions = [opened.resolve(first), opened.resolve(second)]
    a, b = (dict(_metrics(version)) for version in versions)
    rows = [
        (path, a.get(path), b.get(path), b[path] - a[path] if path in a and path in b else None)
        for path in dict.fromkeys([*a, *b])
    ]
    if as_json:
        render.print_json(
            {
                "a": versions[0].number,
                "b": versions[1].number,
                "metrics": [
                    {"metric": list(path), "a": x, "b": y, "difference": d}
                    for path, x, y, d in rows
                ],
            }
        )
    elif not rows:
        render.console().print("Neither version tells any metrics.")
    else:
        names = (f"A: {versions[0]}", f"B: {versions[1]}", "B - A")
        shown = [
            (
                " ".join(path),
                *("never" if _is_never(path, value) else _number(value) for value in (x, y)),
                "" if _is_never(path, x) or _is_never(path, y) else _number(d, sign=True),
            )
            for path, x, y, d in rows
        ]
        render.console().print(render.table(None, ("metric", *names), shown, right=names))


def promote(
    context: typer.Context,
    version: VersionName,
    alias: Annotated[
        Literal["champion", "challenger"], typer.Option("--as", help="What to make it.")
    ] = "champion",
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Point an alias to a version that can be loaded."""
    from premortem.operations import promoting

    with open_registry(context, registry) as opened:
        found = opened.resolve(version)
        before = opened.aliases().get(alias)
        promoting.promote(opened, found, alias)
        now = opened.resolve(str(found.number))
    instead = f" instead of v{before}" if before not in (None, found.number) else ""
    _done(now, f"{now} is the {alias}{instead}.", as_json=as_json)


def rollback(context: typer.Context, registry: RegistryUrl = None, as_json: AsJson = False) -> None:
    """Undo the last promotion of a champion."""
    from premortem.operations import promoting

    with open_registry(context, registry) as opened:
        before = opened.aliases().get("champion")
        now = promoting.roll_back(opened)
    _done(now, f"{now} is the champion again instead of v{before}.", as_json=as_json)


def history(context: typer.Context, registry: RegistryUrl = None, as_json: AsJson = False) -> None:
    """Print what happened, oldest first."""
    from premortem.apps.cli import render

    with open_registry(context, registry) as opened:
        events = opened.history()
    if as_json:
        render.print_json([event.as_dict() for event in events])
        return
    rows = [
        (event.at, f"v{event.version}", render.words(event.action), event.alias) for event in events
    ]
    columns = ("when (UTC)", "version", "what happened", "as")
    render.console().print(render.table(None, columns, rows))


def copy(
    context: typer.Context,
    version: VersionName,
    target: Annotated[
        str, typer.Argument(metavar="REGISTRY", help="Where to: a folder, or mlflow+http://…")
    ],
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Register a version elsewhere, where it gets a number of its own and no alias."""
    from premortem.operations.copying import copy_version

    with open_registry(context, registry) as source, open_registry(context, target) as other:
        found = source.resolve(version)
        now = copy_version(found, source, other)
    _done(now, f"{found} is {now} there, and not in use yet.", as_json=as_json)


def delete(
    context: typer.Context,
    version: VersionName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete a version, after asking; also one whose manifest cannot be read."""
    with open_registry(context, registry) as opened:
        found = opened.resolve(version, damaged=True)
        if not yes and not found.aliases:
            typer.confirm(f"Delete {found} for good?", abort=True, err=True)
        opened.delete(found)
    _done(found, f"{found} is deleted.", as_json=as_json)


def _done(version: Version, words: str, *, as_json: bool) -> None:
    from premortem.apps.cli import render

    if as_json:
        render.print_json(_as_dict(version))
    else:
        render.console().print(words)


def _as_dict(version: Version) -> dict[str, Any]:
    return {
        "version": version.number,
        "created": version.created,
        "aliases": list(version.aliases),
        "manifest": version.manifest,
        "damage": version.damage,
    }


def _table(versions: list[Version]) -> Any:
    from premortem.apps.cli import render

    precision = [dict(_metrics(version)) for version in versions]
    points = list(
        dict.fromkeys(
            path[0] for found in precision for path in found if path[1:] == ("average_precision",)
        )
    )
    columns = tuple(f"AP {point}" for point in points)
    rows = [
        (
            str(version),
            ", ".join(version.aliases),
            version.created,
            _shown(version.manifest.get("points")),
            *(_number(found.get((point, "average_precision"))) for point in points),
        )
        for version, found in zip(versions, precision, strict=True)
    ]
    names = ("version", "aliases", "registered (UTC)", "points", *columns)
    return render.table(None, names, rows, right=columns)


def _metrics(version: Version) -> Iterator[tuple[tuple[str, ...], float]]:
    """The numbers under `metrics`, such as ("submit", "auc"), in the manifest's order.

    Behind those of a point there is the threshold it has, as `warns_from`.
    """
    told = {**_table_of(version, "metrics")}
    for point, threshold in _table_of(version, "thresholds").items():
        told[point] = {**told.get(point, {}), _WARNS_FROM: threshold}
    for path, value in _leaves(told):
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield path, value


def _table_of(version: Version, name: str) -> Mapping[str, Any]:
    told = version.manifest.get(name)
    return told if isinstance(told, Mapping) else {}


def _is_never(path: tuple[str, ...], value: Any) -> bool:
    """Whether this is a threshold that no risk reaches."""
    is_threshold = path[0] == "thresholds" or path[-1] in (_WARNS_FROM, "judged_at")
    return is_threshold and isinstance(value, float) and value > 1


def _leaves(
    value: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, below in value.items():
        if isinstance(below, Mapping) and below:
            yield from _leaves(below, (*above, name))
        else:
            yield (*above, name), below


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:+,}" if sign else f"{value:,}"
    return f"{value:+.4f}" if sign else f"{value:.4f}"


def _shown(value: Any) -> str:
    from premortem.apps.cli.render import shown

    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value == {} else shown(value)
