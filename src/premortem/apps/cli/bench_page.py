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

_COLOURS = ("#0072b2", "#999999", "#e69f00", "#009e73", "#cc79a7")
_SIZE, _MARGIN = 240, 34

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .55rem; text-align: right; white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
thead th { border-bottom: 1px solid; font-weight: 600; }
tbody tr:hover { background: color-mix(in srgb, currentColor 8%, transparent); }
.curves { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
.key span { margin-right: 1.2rem; white-space: nowrap; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12px; }
"""


@dataclass(frozen=True, slots=True)
class LogSection:
    """What the page tells of one log; curves are by point and model, as (recall, precision)."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    messages: Sequence[str]
    curves: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]


def page(sections: Sequence[LogSection], manifest: Mapping[str, Any]) -> str:
    """The whole page."""
    models = list(
        dict.fromkeys(m for s in sections for curves in s.curves.values() for m in curves)
    )
    colours = {model: _COLOURS[k % len(_COLOURS)] for k, model in enumerate(models)}
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    body = "".join(_section(section, colours) for section in sections)
    settings = escape(json.dumps(manifest, indent=2, default=str, ensure_ascii=False))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>premortem bench</title><style>{_STYLE}</style></head><body>"
        "<h1>How well failure can be predicted</h1>"
        "<p>Models were trained on jobs that had ended before a cut in time and judged by jobs "
        "submitted after it. The first precision, recall, F1 and accuracy are at a risk of 0.5, "
        "the second at a threshold chosen on the last training jobs to end. Rows marked "
        "<em>leaks</em> use what only the end of a job tells, and compare with published tables "
        "only.</p>"
        f"{body}<h2>To repeat it</h2><pre>{settings}</pre></body></html>\n"
    )


def _section(section: LogSection, colours: Mapping[str, str]) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.rows:
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in section.columns)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in section.rows
        )
        parts.append(
            f"<div class='wide'><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )
    parts += [f"<p>{escape(message)}</p>" for message in section.messages]
    if section.curves:
        used = [m for m in colours if any(m in curves for curves in section.curves.values())]
        key = "".join(f"<span><b style='color:{colours[m]}'>━</b> {escape(m)}</span>" for m in used)
        drawn = "".join(_figure(t, curves, colours) for t, curves in section.curves.items())
        parts.append(f"<p class='key'>{key}</p><div class='curves'>{drawn}</div>")
    return "".join(parts)


def _figure(
    title: str, curves: Mapping[str, Sequence[tuple[float, float]]], colours: Mapping[str, str]
) -> str:
    whole, far = _SIZE + 2 * _MARGIN, _MARGIN + _SIZE
    lines = "".join(
        f"<polyline fill='none' stroke='{colours[model]}' stroke-width='{1.8 if not k else 1.2}' "
        f"points='{_path(curve)}'><title>{escape(model)}</title></polyline>"
        for k, (model, curve) in enumerate(curves.items())
    )
    ticks = "".join(
        f"<text x='{_MARGIN + share * _SIZE}' y='{far + 14}' text-anchor='middle'>{share:g}</text>"
        f"<text x='{_MARGIN - 5}' y='{far - share * _SIZE + 4}' text-anchor='end'>{share:g}</text>"
        for share in (0, 0.5, 1)
    )
    return (
        f"<figure><svg role='img' aria-label='Precision and recall at {escape(title)}' "
        f"width='{whole}' height='{whole}' viewBox='0 0 {whole} {whole}'>"
        f"<text x='{_MARGIN}' y='{_MARGIN - 10}'>{escape(title)}</text>"
        f"<rect x='{_MARGIN}' y='{_MARGIN}' width='{_SIZE}' height='{_SIZE}' fill='none' "
        f"stroke='currentColor' stroke-opacity='.4'/>{ticks}"
        f"<text x='{far}' y='{far + 28}' text-anchor='end'>recall</text>"
        f"<text x='{-_MARGIN}' y='11' text-anchor='end' transform='rotate(-90)'>precision</text>"
        f"{lines}</svg></figure>"
    )


def _path(curve: Sequence[tuple[float, float]]) -> str:
    return " ".join(
        f"{_MARGIN + recall * _SIZE:.1f},{_MARGIN + (1 - precision) * _SIZE:.1f}"
        for recall, precision in curve
    )
