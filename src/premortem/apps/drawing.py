"""Curves, bars and maps as SVG that stands in a page, and needs nothing else.

Colours are classes, `c0` to `c5`: the page's style says what they are in light and in dark. All
text is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

Points = Sequence[tuple[float, float]]
Ticks = Sequence[tuple[float, str]]

COLOURS = 6
SHARES: Ticks = ((0.0, "0"), (0.5, "0.5"), (1.0, "1"))
_LEFT, _TOP, _RIGHT, _BELOW = 54, 30, 16, 36

STYLE = """
.c0 { --c: #0072b2; } .c1 { --c: #767676; } .c2 { --c: #c98500; }
.c3 { --c: #00875f; } .c4 { --c: #b85c94; } .c5 { --c: #d55e00; }
@media screen and (prefers-color-scheme: dark) {
.c0 { --c: #56b4e9; } .c1 { --c: #aaaaaa; } .c2 { --c: #f0b83c; }
.c3 { --c: #2fc79a; } .c4 { --c: #e59ac4; } .c5 { --c: #ff8c4b; } }
svg { max-width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
polyline { fill: none; stroke: var(--c); }
.mark { fill: var(--c); } .stem { stroke: var(--c); stroke-width: 1.4; }
.frame { fill: none; stroke: currentColor; stroke-opacity: .4; }
.halo { paint-order: stroke; stroke: Canvas; stroke-width: 3px; }
.rule { stroke: currentColor; stroke-opacity: .5; stroke-dasharray: 3 3; }
.key { display: flex; flex-wrap: wrap; gap: 0 1.2rem; } .key b { color: var(--c); }
svg, .key b { print-color-adjust: exact; }
"""


@dataclass(frozen=True, slots=True)
class Axes:
    """The frame of a drawing: what its edges stand for, and its size in pixels.

    Marks are made by the other methods and drawn by `drawn`, the last above the others. `told`
    says in words what is drawn, for those who cannot see it.
    """

    title: str
    told: str
    x_label: str = ""
    y_label: str = ""
    x: tuple[float, float] = (0.0, 1.0)
    y: tuple[float, float] = (0.0, 1.0)
    x_ticks: Ticks = SHARES
    y_ticks: Ticks = SHARES
    width: int = 240
    height: int = 240

    def drawn(self, marks: Iterable[str]) -> str:
        """The drawing as SVG."""
        wide, high = self.width + _LEFT + _RIGHT, self.height + _TOP + _BELOW
        far = _TOP + self.height
        along = "".join(
            f"<text x='{self._x(at):.1f}' y='{far + 14}' text-anchor='middle'>{escape(text)}</text>"
            for at, text in self.x_ticks
        )
        up = "".join(
            f"<text x='{_LEFT - 5}' y='{self._y(at) + 4:.1f}' text-anchor='end'>"
            f"{escape(text)}</text>"
            for at, text in self.y_ticks
        )
        return (
            f"<svg role='img' aria-label='{escape(self.told)}' width='{wide}' height='{high}' "
            f"viewBox='0 0 {wide} {high}'>"
            f"<text x='{_LEFT}' y='{_TOP - 10}'>{escape(self.title)}</text>"
            f"<rect class='frame' x='{_LEFT}' y='{_TOP}' width='{self.width}' "
            f"height='{self.height}'/>{along}{up}"
            f"<text x='{_LEFT + self.width}' y='{far + 29}' text-anchor='end'>"
            f"{escape(self.x_label)}</text>"
            f"<text x='{-_TOP}' y='11' text-anchor='end' transform='rotate(-90)'>"
            f"{escape(self.y_label)}</text>{''.join(marks)}</svg>"
        )

    def line(self, points: Points, colour: int, name: str, *, width: float = 1.3) -> str:
        """A line through points."""
        path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)
        return (
            f"<polyline class='{shade(colour)}' stroke-width='{width}' points='{path}'>"
            f"<title>{escape(name)}</title></polyline>"
        )

    def dot(self, x: float, y: float, colour: int, name: str, *, size: float = 3.5) -> str:
        """A dot that tells its name when pointed at."""
        return (
            f"<circle class='mark {shade(colour)}' cx='{self._x(x):.1f}' cy='{self._y(y):.1f}' "
            f"r='{size}'><title>{escape(name)}</title></circle>"
        )

    def bar(self, begin: float, end: float, y: float, colour: int, name: str) -> str:
        """A bar from the lower edge up to a value."""
        left, top = self._x(begin), self._y(y)
        return (
            f"<rect class='mark {shade(colour)}' x='{left:.1f}' y='{top:.1f}' "
            f"width='{self._x(end) - left:.1f}' height='{_TOP + self.height - top:.1f}'>"
            f"<title>{escape(name)}</title></rect>"
        )

    def stem(self, x: float, low: float, high: float, colour: int) -> str:
        """An upright line: the interval about a dot."""
        at = self._x(x)
        return (
            f"<line class='stem {shade(colour)}' x1='{at:.1f}' x2='{at:.1f}' "
            f"y1='{self._y(low):.1f}' y2='{self._y(high):.1f}'/>"
        )

    def rule(self, begin: tuple[float, float], end: tuple[float, float]) -> str:
        """A dashed line to compare with."""
        return (
            f"<line class='rule' x1='{self._x(begin[0]):.1f}' y1='{self._y(begin[1]):.1f}' "
            f"x2='{self._x(end[0]):.1f}' y2='{self._y(end[1]):.1f}'/>"
        )

    def note(self, x: float, y: float, text: str) -> str:
        """A word beside a place, on the side where there is room."""
        at, right = self._x(x), self._x(x) > _LEFT + self.width / 2
        left, top = at + (-7 if right else 7), max(self._y(y) - 6, _TOP + 10)
        return (
            f"<text class='halo' x='{left:.1f}' y='{top:.1f}' "
            f"text-anchor='{'end' if right else 'start'}'>{escape(text)}</text>"
        )

    def _x(self, value: float) -> float:
        return _LEFT + self.width * _place(value, self.x)

    def _y(self, value: float) -> float:
        return _TOP + self.height * (1 - _place(value, self.y))


def shade(colour: int) -> str:
    """The class of a colour; after the last the first comes again."""
    return f"c{colour % COLOURS}"


def key(names: Iterable[tuple[int, str]]) -> str:
    """Which colour stands for what."""
    told = "".join(
        f"<span><b class='{shade(colour)}'>━</b> {escape(name)}</span>" for colour, name in names
    )
    return f"<p class='key'>{told}</p>"


def meter(share: float, colour: int = 0) -> str:
    """A bar for a table's cell, whose number stands beside it."""
    return (
        "<svg width='90' height='10' viewBox='0 0 90 10' aria-hidden='true'>"
        f"<rect class='mark {shade(colour)}' width='{90 * min(max(share, 0.0), 1.0):.1f}' "
        "height='10'/></svg>"
    )


def heat_map(names: Sequence[str], rows: Sequence[Sequence[float | None]], told: str) -> str:
    """Values from -1 to 1 as squares, the stronger the fuller; columns have the rows' numbers."""
    size, left, top = 20, 230, 20
    wide, high = left + size * len(names) + 2, top + size * len(names) + 2
    squares = "".join(
        f"<rect class='mark {shade(5 if value > 0 else 0)}' fill-opacity='{abs(value):.2f}' "
        f"x='{left + size * column}' y='{top + size * row}' width='{size}' height='{size}'>"
        f"<title>{escape(names[row])}, {escape(names[column])}: {value:+.2f}</title></rect>"
        for row, values in enumerate(rows)
        for column, value in enumerate(values)
        if value is not None
    )
    labels = "".join(
        f"<text x='{left - 5}' y='{top + size * place + 14}' text-anchor='end'>"
        f"{escape(name)} {place + 1}</text>"
        f"<text x='{left + size * place + size / 2}' y='{top - 6}' text-anchor='middle'>"
        f"{place + 1}</text>"
        for place, name in enumerate(names)
    )
    return (
        f"<svg role='img' aria-label='{escape(told)}' width='{wide}' height='{high}' "
        f"viewBox='0 0 {wide} {high}'>{squares}{labels}</svg>"
    )


def steps(curve: Points) -> list[tuple[float, float]]:
    """A curve as steps: each value holds from the point before up to its own.

    >>> steps([(0, 1), (0.5, 0.8)])
    [(0, 0.8), (0.5, 0.8)]
    """
    return [corner for (begin, _), (end, y) in pairwise(curve) for corner in ((begin, y), (end, y))]


def held(curve: Points) -> list[tuple[float, float]]:
    """A curve as steps: each value holds from its own point up to the next.

    >>> held([(0, 1), (1, 3)])
    [(0, 1), (1, 1), (1, 3)]
    """
    corners = [corner for (x, y), (end, _) in pairwise(curve) for corner in ((x, y), (end, y))]
    return [*corners, *curve[-1:]]


def _place(value: float, edges: tuple[float, float]) -> float:
    low, high = edges
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
