"""`premortem settings`: the settings in force, and where each came from."""

from __future__ import annotations

import typer

from premortem.apps.cli.options import AsJson, Invocation

HELP = """\
Show every setting: its value, where that came from, and what it means.

Settings come from one TOML file (--settings, PREMORTEM_SETTINGS, ./premortem.toml, or settings.toml
in your configuration folder) and from variables such as PREMORTEM_STORE_URL, which win over it.
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("settings", help=HELP)(settings)


def settings(context: typer.Context, as_json: AsJson = False) -> None:
    """Print the settings as a table or as JSON."""
    from premortem.apps.cli import render

    invocation: Invocation = context.obj
    explained = invocation.settings().explained()
    if as_json:
        render.print_json({s.key: {"value": s.value, "origin": s.origin} for s in explained})
        return
    rows = [(s.key, _shown(s.value), s.origin, s.meaning) for s in explained]
    render.console().print(render.table(None, ("setting", "value", "from", "meaning"), rows))


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}={meant}" for name, meant in value.items()) or "none"
    return str(value)
