"""Pages that need nothing else: their frame, their tables, and numbers as people read them.

Whatever is handed in is escaped, but for what was made here or in `drawing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from html import escape

from premortem.apps import drawing

_DAYS_ONLY = timedelta(days=7)
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .3rem 0 1rem; }
caption { text-align: left; font-weight: 600; padding: .15rem .55rem; }
th, td { padding: .15rem .55rem; text-align: right; white-space: nowrap; }
td.text, th.text { text-align: left; } td.long { white-space: normal; min-width: 18rem; }
thead th { border-bottom: 1px solid; font-weight: 600; white-space: normal; }
th { vertical-align: bottom; }
tbody tr:hover, tr.chosen { background: color-mix(in srgb, currentColor 8%, transparent); }
tr.chosen { font-weight: 600; }
.row { display: flex; flex-wrap: wrap; gap: 1rem 1.6rem; align-items: flex-start; }
.row > * { min-width: 0; max-width: 100%; }
figure, .row > figure { margin: 0 0 .8rem; max-width: 25rem; }
figcaption, .note { color: color-mix(in srgb, currentColor 75%, transparent); max-width: 46rem; }
figcaption { font-size: 13px; } td small { display: block; opacity: .75; }
td { vertical-align: top; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12px; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
h2 { border-top: 1px solid; padding-top: .6rem; margin-top: 2.2rem; }
@media (max-width: 40rem) {
td.text { white-space: normal; }
td.text { min-width: 6rem; } td.long { min-width: 14rem; } }
@media print {
:root { color-scheme: only light; } body { max-width: none; margin: 0; }
body, figcaption { font-size: 11px; }
nav { display: none; } .wide { overflow: visible; } figure, tr { break-inside: avoid; }
h2, h3, h4, caption { break-after: avoid; } td.long { min-width: 0; } }
"""


class Safe(str):
    """Text that is markup already, made of escaped parts."""

    __slots__ = ()


def page(title: str, body: str) -> str:
    """A whole page around a body; it forbids itself to load or run anything."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{drawing.STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    text: int = 1,
    long: int | None = None,
    caption: str = "",
    chosen: int | None = None,
) -> str:
    """A table whose first `text` columns read from the left, `long` being one of sentences.

    `chosen` is a row that stands out.
    """
    kinds = [_kind(place, text, long) for place in range(len(columns))]
    head = "".join(
        f"<th scope='col'{kind}>{_cell(name)}</th>"
        for kind, name in zip(kinds, columns, strict=True)
    )
    body = "".join(
        f"<tr{' class=chosen' if number == chosen else ''}>"
        + "".join(f"<td{kind}>{_cell(cell)}</td>" for kind, cell in zip(kinds, cells, strict=True))
        + "</tr>"
        for number, cells in enumerate(rows)
    )
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f"<div class='wide'><table>{named}<thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def figure(drawn: str, caption: str) -> str:
    """A drawing with a sentence that explains it."""
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def paragraph(text: str, *, note: bool = False) -> str:
    """A paragraph; a note is set back."""
    return f"<p{' class=note' if note else ''}>{escape(text)}</p>"


def row(*parts: str) -> str:
    """Things side by side where there is room."""
    return f"<div class='row'>{''.join(parts)}</div>"


def count(number: int | None) -> str:
    """A whole number with its thousands apart."""
    return "" if number is None else f"{number:,}"


def score(value: float | None) -> str:
    """Three places, nothing where it is not defined."""
    return "" if value is None else f"{value:.3f}"


def threshold(value: float) -> str:
    """A risk to warn from; none is above one.

    >>> threshold(0.25), threshold(1.01)
    ('0.250', 'never')
    """
    return "never" if value > 1 else score(value)


def core_hours(value: float) -> str:
    """Core-hours to three digits, but never less than whole ones.

    >>> core_hours(0.6149), core_hours(12.04), core_hours(6930.4)
    ('0.61', '12.0', '6,930')
    """
    return f"{value:,.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def period(first: str, last: str) -> str:
    """From one minute to another; of a week and more only the days.

    >>> period("2026-11-16 05:57", "2026-11-16 06:54")
    '2026-11-16 05:57 to 06:54'
    >>> period("2026-01-05 10:00", "2026-03-01 09:30")
    '2026-01-05 to 2026-03-01'
    """
    if datetime.fromisoformat(last) - datetime.fromisoformat(first) >= _DAYS_ONLY:
        return f"{first[:10]} to {last[:10]}"
    return f"{first} to {last[11:] if first[:10] == last[:10] else last}"


def ranged(value: float | None, low: float | None, high: float | None) -> Safe:
    """A score above the range that chance leaves open."""
    if value is None or low is None or high is None:
        return Safe(score(value))
    return above_range(score(value), score(low), score(high))


def above_range(value: str, low: str, high: str) -> Safe:
    """A value above a range; the range is left out where it is none."""
    if low == high:
        return Safe(escape(value))
    return Safe(f"{escape(value)}<small>{escape(low)} to {escape(high)}</small>")


def percent(value: float | None) -> str:
    """A share in percent: one place below ten, so that small shares can be told apart."""
    if value is None:
        return ""
    return f"{value * 100:.{1 if 0 < value < 0.0995 else 0}f}\u00a0%"


def _kind(place: int, text: int, long: int | None) -> str:
    if place == long:
        return " class='text long'"
    return " class='text'" if place < text else ""


def _cell(text: str) -> str:
    return text if isinstance(text, Safe) else escape(text)
