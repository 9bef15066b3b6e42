"""Runs the command line as a user would: in a process of its own, or quickly in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREMORTEM = (sys.executable, "-m", "premortem")


Run = Callable[..., "Finished"]


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which only what lies in `folder` is found and used."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PREMORTEM_")}
    return {
        **clean,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_DATA_HOME": str(folder / "data"),
        "PREMORTEM_STORE_URL": f"sqlite:///{folder / 'jobs.db'}",
        "PREMORTEM_ZONE": "UTC",
        **more,
    }


def premortem(
    folder: Path, *arguments: str | Path, stdin: str | None = None, **more: str
) -> Finished:
    """Run `premortem` with its store in `folder`, which is also the working directory."""
    done = subprocess.run(
        [*PREMORTEM, *map(str, arguments)],
        cwd=folder,
        env=environment(folder, **more),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)
