"""The drawings of a report's page: of one point's numbers, and of the profiles'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from premortem.apps.drawing import Axes, Ticks, held, key, steps
from premortem.apps.markup import count, percent, score, threshold

Told = Mapping[str, Any]

_COLOURS = {"model": 0, "majority": 1, "user_last_outcome": 2, "user_name_rate": 3}
_COMPLETED, _FAILED = 0, 5
_MOST_LABELS = 6


def rivals_key(names: Sequence[tuple[str, str]]) -> str:
    """Which line is whose."""
    return key((_colour(name), spoken) for name, spoken in names)


def precision_recall(told: Told) -> str:
    """Precision against recall, as steps: the area below is the average precision."""
    axes = Axes("Precision and recall", _said("Precision and recall", told), "recall", "precision")
    at = told["scores"]["model"]["at_threshold"]
    marks = [_curve(axes, name, steps(curve)) for name, curve in _others_first(told, _PR)]
    if at["precision"]["value"] is not None:
        marks += _threshold(axes, at["recall"]["value"], at["precision"]["value"], told)
    return axes.drawn(marks)


def roc(told: Told) -> str:
    """Failures caught against false alarms."""
    axes = Axes("ROC", _said("ROC", told), "completed jobs warned of", "failures caught")
    made = told["confusion"]
    false = made["false_alarms"] / (made["false_alarms"] + made["left_alone"])
    caught = made["caught"] / (made["caught"] + made["missed"])
    marks = [axes.rule((0, 0), (1, 1))]
    marks += [_curve(axes, name, curve) for name, curve in _others_first(told, "roc")]
    return axes.drawn([*marks, *_threshold(axes, false, caught, told)])


def histogram(told: Told) -> str:
    """The risks of failed and of completed jobs, side by side."""
    found = told["histogram"]
    shares = {
        name: [jobs / max(sum(found[name]), 1) for jobs in found[name]]
        for name in ("completed", "failed")
    }
    top = max(map(max, shares.values()))
    top = top if top > 0 else 1.0
    axes = Axes(
        "Risk of either outcome", _said("Risk of failed and completed jobs", told), "risk",
        "share of jobs", y=(0.0, top * 1.05), y_ticks=((0.0, "0"), (top, percent(top))), width=300,
    )  # fmt: skip
    marks = []
    for place, begin in enumerate(found["edges"][:-1]):
        width = found["edges"][place + 1] - begin
        for nth, (name, colour) in enumerate((("completed", _COMPLETED), ("failed", _FAILED))):
            left = begin + width * (0.08 + 0.43 * nth)
            text = f"{name}, {begin:.2f} to {begin + width:.2f}: {count(found[name][place])} jobs"
            if found[name][place]:
                bar = axes.bar(left, left + width * 0.41, shares[name][place], colour, text)
                marks.append(bar)
    if told["threshold"] <= 1:
        marks.append(axes.rule((told["threshold"], 0), (told["threshold"], top * 1.05)))
    return key([(_COMPLETED, "completed"), (_FAILED, "failed")]) + axes.drawn(marks)


def calibration(told: Told) -> str:
    """The share that failed against the risk told."""
    bins: Sequence[Told] = told["calibration"]
    top = max([0.1, *(max(one["risk"], one["high"]) for one in bins)])
    ticks: Ticks = ((0.0, "0"), (top / 2, f"{top / 2:.2f}"), (top, f"{top:.2f}"))
    axes = Axes(
        "Calibration", _said("Share failed by risk", told), "risk", "share failed",
        x=(0.0, top), y=(0.0, top), x_ticks=ticks, y_ticks=ticks,
    )  # fmt: skip
    marks = [axes.rule((0, 0), (top, top))]
    marks.append(axes.line([(one["risk"], one["failed"]) for one in bins], 0, "model"))
    for one in bins:
        text = f"risk {score(one['risk'])}, failed {score(one['failed'])}: {count(one['jobs'])}"
        marks.append(axes.stem(one["risk"], one["low"], one["high"], 0))
        marks.append(axes.dot(one["risk"], one["failed"], 0, f"{text} jobs"))
    return axes.drawn(marks)


def over_time(told: Told) -> str:
    """Average precision and the share of failures, one period after the other."""
    parts: Sequence[Told] = told["slices"]["time"]
    last = len(parts) - 1
    every = -(-len(parts) // _MOST_LABELS)
    ticks = [(float(k), parts[k]["name"][-5:]) for k in range(0, len(parts), every)]
    axes = Axes(
        "Over time", _said("Average precision over time", told), told["time_unit"], "",
        x=(-0.3, last + 0.3), x_ticks=ticks, width=320, height=180,
    )  # fmt: skip
    failed = [(float(k), one["failures"] / one["jobs"]) for k, one in enumerate(parts)]
    scored = [
        (float(k), one["scores"]["average_precision"])
        for k, one in enumerate(parts)
        if one["scores"]
    ]
    marks = [axes.line(failed, 1, "share failed"), axes.line(scored, 0, "average precision")]
    marks += [
        axes.dot(x, y, 1, f"{parts[int(x)]['name']}: {score(y)}", size=2.5) for x, y in failed
    ]
    marks += [axes.dot(x, y, 0, f"{parts[int(x)]['name']}: {score(y)}") for x, y in scored]
    return key([(0, "average precision"), (1, "share failed")]) + axes.drawn(marks)


def search(told: Told) -> str:
    """The score of each trial, and the best so far."""
    trials = [(k, one) for k, one in enumerate(told["search"]["trials"])]
    scored = [(float(k), one["score"]) for k, one in trials if one["score"] is not None]
    best = [(float(k), one["best"]) for k, one in trials if one["best"] is not None]
    low, high = min(y for _, y in scored), max(y for _, y in scored)
    room = max((high - low) * 0.1, 0.001)
    edges = (low - room, high + room)
    last = len(trials) - 1
    axes = Axes(
        "Trials", _said("Score of each trial", told), "trial", "average precision",
        x=(-0.5, last + 0.5), y=edges, x_ticks=((0.0, "0"), (float(last), str(last))),
        y_ticks=[(y, score(y)) for y in dict.fromkeys((low, high))], width=300, height=180,
    )  # fmt: skip
    marks = [axes.line(held(best), 0, "best so far")]
    marks += [axes.dot(x, y, 2, f"trial {x:.0f}: {score(y)}", size=3) for x, y in scored]
    return axes.drawn(marks)


def numbers_tried(
    curve: Sequence[Told], measure: str, title: str, marked: int | None, word: str
) -> str:
    """What each number of profiles tried came to, one of them marked with a word."""
    found = {one["number"]: one[measure] for one in curve}
    low, high = min(found.values()), max(found.values())
    room = max((high - low) * 0.1, 1e-9)
    axes = Axes(
        title, f"{title} by number of profiles", "number of profiles", "",
        x=(min(found) - 0.3, max(found) + 0.3), y=(low - room, high + room),
        x_ticks=[(float(number), str(number)) for number in found],
        y_ticks=[(y, _short(y)) for y in dict.fromkeys((low, high))], height=170,
    )  # fmt: skip
    marks = [axes.line([(float(x), y) for x, y in found.items()], 0, title)]
    marks += [axes.dot(x, y, 0, f"{x}: {y:,.0f}", size=3) for x, y in found.items()]
    if marked is not None:
        text = f"{word}: {marked}"
        marks.append(axes.dot(marked, found[marked], 5, text, size=4.5))
        marks.append(axes.note(marked, found[marked] + room, text))
    return axes.drawn(marks)


def _short(number: float) -> str:
    """A large number in few letters.

    >>> _short(227_924), _short(-1_234_567), _short(12)
    ('228 k', '-1.23 M', '12')
    """
    units = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
    size, unit = next((one for one in units if abs(number) >= one[0]), (1.0, ""))
    return f"{number / size:.3g} {unit}".strip()


_PR = "precision_recall"


def _others_first(told: Told, figure: str) -> list[tuple[str, Any]]:
    """The curves of a figure, the model's last, so that it lies above the others."""
    return sorted(told[figure].items(), key=lambda pair: pair[0] == "model")


def _curve(axes: Axes, name: str, curve: Any) -> str:
    return axes.line(curve, _colour(name), name, width=2.2 if name == "model" else 1.2)


def _colour(name: str) -> int:
    return _COLOURS.get(name, 4)


def _threshold(axes: Axes, x: float, y: float, told: Told) -> list[str]:
    text = f"judged at {threshold(told['threshold'])}"
    return [axes.dot(x, y, 5, text, size=4.5), axes.note(x, y, text)]


def _said(what: str, told: Told) -> str:
    return f"{what}, of {count(told['judged']['jobs'])} judged jobs"
