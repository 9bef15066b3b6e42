"""How values look on a terminal, and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_STYLES = {
    "completed": "green",
    "failed": "red",
    "ignored": "dim",
    "unfinished": "cyan",
}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the command line deal with it, as with every other end."""
        raise BrokenPipeError


def share(value: float | None) -> str:
    """Three places, as tables in the literature have them: .484, and 1.000 for certainty.

    >>> share(0.4836), share(1.0), share(None)
    ('.484', '1.000', '')
    """
    return "" if value is None else f"{value:.3f}".removeprefix("0")


def threshold(value: float | None, before: str = "") -> str:
    """A risk to warn from, with a word before it; none is above one.

    >>> threshold(0.25), threshold(0.25, "from "), threshold(1.01, "from ")
    ('.250', 'from .250', 'never')
    """
    return "never" if value is not None and value > 1 else f"{before}{share(value)}"


def console(*, error: bool = False) -> Console:
    """A console on standard output or error; as wide as a page where that is no terminal."""
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() else 110
    return _Console(file=stream, width=width, highlight=False, soft_wrap=False)


def print_json(value: Any) -> None:
    """One JSON value on standard output; times as ISO 8601 in UTC."""
    sys.stdout.write(json.dumps(value, default=_plain, indent=2, ensure_ascii=False) + "\n")


def table(
    title: str | None,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    cut: Sequence[str] = (),
) -> Table:
    """A plain table; cells are text, never markup.

    Columns named in `right` are aligned there; those in `cut` lose their end where the terminal is
    narrow, the others fold.
    """
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    for name in columns:
        made.add_column(
            name,
            justify="right" if name in right else "left",
            overflow="crop" if name in cut else "fold",
            no_wrap=name in cut,
        )
    for row in rows:
        made.add_row(*[cell if isinstance(cell, Text) else Text(shown(cell)) for cell in row])
    return made


def outcome(word: str | None, cause: str | None = None) -> Text:
    """An outcome in its colour, with its cause."""
    text = f"{word}: {words(cause)}" if cause else f"{word or ''}"
    return Text(text, style=_STYLES.get(word or "", ""))


def shown(value: Any) -> str:
    """A value as people write it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case float():
            return f"{value:,.1f}" if value != int(value) else f"{int(value):,}"
        case _:
            return printable(str(value))


def printable(text: str) -> str:
    """The text without characters that would move a terminal's cursor."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def words(name: str | None) -> str:
    """A name from the code as words."""
    return (name or "").replace("_", " ")


def duration(seconds: float | None) -> str:
    """A length of time in Slurm's own spelling."""
    if seconds is None:
        return ""
    minutes, secs = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (
        f"{days}-{hours:02}:{minutes:02}:{secs:02}"
        if days
        else f"{hours:02}:{minutes:02}:{secs:02}"
    )


def count(number: float) -> str:
    """A number with thousands apart."""
    return f"{number:,.0f}"


def percent(part: float | None) -> str:
    """A share of one as a percentage."""
    return "" if part is None else f"{part * 100:.1f} %"


def bar(part: float | None, width: int = 20) -> str:
    """A share of one as a bar."""
    return "" if part is None else "█" * round(part * width)


def job_number(job: dict[str, Any]) -> str:
    """A job's number as Slurm shows it to users."""
    if job.get("array_task_id") is not None:
        return f"{job['array_job_id']}_{job['array_task_id']}"
    if job.get("het_offset") is not None:
        return f"{job['het_job_id']}+{job['het_offset']}"
    return str(job["job_id"])


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)
