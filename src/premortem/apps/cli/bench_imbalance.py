"""The ways to treat rare failures side by side, as published comparisons of them have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from premortem.training.benchmark import PointResult

TITLE = "Ways to treat rare failures"
EXPLAINED = (
    "For each way to treat rare failures: P, R and F1 of the jobs that failed and of those that "
    "completed, and accuracy, all at a risk of 0.5. Risks are calibrated in training, not here."
)
_MEASURES = {
    "P failed": "precision",
    "R failed": "recall",
    "F1 failed": "f1",
    "P completed": "completed.precision",
    "R completed": "completed.recall",
    "F1 completed": "completed.f1",
    "acc": "accuracy",
    "AP": "average_precision",
    "ECE": "ece",
}
_LOWEST_IS_BEST = "ECE"
COLUMNS = ("point", "strategy", *_MEASURES)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the table, and whether no strategy has a better value at that point."""

    text: str
    best: bool = False


def strategy_rows(results: Sequence[PointResult]) -> list[tuple[Cell, ...]]:
    """A row for each strategy at each point; none where no strategy was judged.

    Of several folds only all of them together are shown.
    """
    from premortem.training.benchmark import MODEL

    prefix = f"{MODEL}+"
    by_point: dict[str, list[PointResult]] = {}
    for result in results:
        if result.model.startswith(prefix) and result.fold is None and result.message is None:
            by_point.setdefault(result.point, []).append(result)
    rows: list[tuple[Cell, ...]] = []
    for point, judged in by_point.items():
        names = [Cell(result.model.removeprefix(prefix)) for result in judged]
        measured = [_measured(judged, column) for column in _MEASURES]
        rows += zip([Cell(point)] * len(judged), names, *measured, strict=True)
    return rows


def _measured(judged: Sequence[PointResult], column: str) -> list[Cell]:
    """One column of a point; values that look the same are equally good, and one alone is not."""
    from premortem.apps.cli.render import share

    values: list[float | None] = list(map(attrgetter(_MEASURES[column]), judged))
    known = [round(value, 3) for value in values if value is not None]
    best = (min if column == _LOWEST_IS_BEST else max)(known, default=None)
    compared = len(judged) > 1
    return [
        Cell(share(value), compared and value is not None and round(value, 3) == best)
        for value in values
    ]
