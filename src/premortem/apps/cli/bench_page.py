"""The benchmark as one page that needs nothing else: tables, and curves drawn in the page itself.

Names of logs and all else that comes from outside is escaped; the page forbids itself to load or
run anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from premortem.apps.cli.bench_imbalance import COLUMNS, EXPLAINED, TITLE, Cell
from premortem.apps.drawing import Axes, Points, key, steps
from premortem.apps.markup import Safe, paragraph, table
from premortem.apps.markup import page as whole_page


@dataclass(frozen=True, slots=True)
class LogSection:
    """What the page tells of one log; curves are by point and model, as (recall, precision).

    `strategies` are the rows of the ways to treat rare failures, if any were compared.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    messages: Sequence[str]
    curves: Mapping[str, Mapping[str, Points]]
    strategies: Sequence[Sequence[Cell]] = ()


def page(sections: Sequence[LogSection], manifest: Mapping[str, Any]) -> str:
    """The whole page."""
    models = dict.fromkeys(m for s in sections for curves in s.curves.values() for m in curves)
    colours = {model: colour for colour, model in enumerate(models)}
    body = "".join(_section(section, colours) for section in sections)
    settings = escape(json.dumps(manifest, indent=2, default=str, ensure_ascii=False))
    return whole_page(
        "premortem bench",
        "<h1>How well failure can be predicted</h1>"
        "<p>Models were trained on jobs that had ended before a cut in time and judged by jobs "
        "submitted after it. The first precision, recall, F1 and accuracy are at a risk of 0.5, "
        "the second at a threshold chosen on the last training jobs to end. Rows marked "
        "<em>leaks</em> use what only the end of a job tells, and compare with published tables "
        f"only.</p>{body}<h2>To repeat it</h2><pre>{settings}</pre>",
    )


def _section(section: LogSection, colours: Mapping[str, int]) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.rows:
        parts.append(table(section.columns, section.rows, text=2))
    parts += [paragraph(message) for message in section.messages]
    if section.strategies:
        rows = [[_cell(cell) for cell in row] for row in section.strategies]
        parts.append(table(COLUMNS, rows, text=2, caption=TITLE))
        parts.append(paragraph(EXPLAINED, note=True))
    if section.curves:
        used = dict.fromkeys(model for curves in section.curves.values() for model in curves)
        drawn = "".join(_figure(t, curves, colours) for t, curves in section.curves.items())
        parts.append(key((colours[model], model) for model in colours if model in used))
        parts.append(f"<div class='row'>{drawn}</div>")
    return "".join(parts)


def _cell(cell: Cell) -> str:
    return Safe(f"<b>{escape(cell.text)}</b>") if cell.best else cell.text


def _figure(title: str, curves: Mapping[str, Points], colours: Mapping[str, int]) -> str:
    axes = Axes(title, f"Precision and recall at {title}", "recall", "precision")
    lines = (
        axes.line(steps(curve), colours[model], model, width=1.3 if place else 1.9)
        for place, (model, curve) in enumerate(curves.items())
    )
    return f"<figure>{axes.drawn(lines)}</figure>"
