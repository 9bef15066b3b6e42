"""The folder of a lab, as the commands of `premortem lab` take it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="DIR", help="Folder of the lab; each has its own."),
]


def lab_folder(given: Path | None) -> Path:
    """The folder that was given, or the usual one."""
    import platformdirs

    return given or platformdirs.user_state_path("premortem") / "lab"
