"""The part of a report's page on one moment of a job's life."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from premortem.apps import report_drawings as drawings
from premortem.apps.drawing import meter
from premortem.apps.markup import (
    Safe,
    core_hours,
    count,
    figure,
    paragraph,
    percent,
    period,
    ranged,
    row,
    score,
    table,
    threshold,
)

Told = Mapping[str, Any]

_RIVALS = {
    "majority": "the same risk for all",
    "user_last_outcome": "as the user's last job ended",
    "user_name_rate": "how often the user's jobs of that name failed",
}
_SLICES = {
    "activity": ("By user", "New users have fewer than 5 ended jobs by then, infrequent ones fewer "
                 "than 100: a model that knows users does better on those it knows."),
    "partition": ("By partition", "Partitions with the most judged jobs."),
    "size": ("By size", "CPUs asked for, or given where the log does not tell."),
    "time": ("Over time", "By submission: a score that falls says that the model ages."),
}  # fmt: skip
_SLICE_COLUMNS = (
    "", "jobs", "failed", "expected", "warnings", "caught", "average precision", "AUC", "ECE",
    "precision", "recall", "F1",
)  # fmt: skip


def point_section(name: str, told: Told) -> str:
    """Everything the report tells of one point."""
    return "".join(
        (
            f"<h2 id='{anchor(name)}'>{escape(title_of(name))}</h2>",
            paragraph(summary(told)),
            _scores(told),
            _curves(told),
            _risk(told),
            _trade(told),
            "<h3>Parts of the judged jobs</h3>",
            paragraph(
                "Decisions are at the threshold the model was judged at; expected is the sum of "
                "the risks told. Parts with fewer than 20 jobs, or of one outcome only, have "
                "counts and no scores.",
                note=True,
            ),
            *(_slice(kind, told) for kind in _SLICES),
            _causes(told),
            _importance(told),
            _search(told),
        )
    )


def title_of(point: str) -> str:
    """A point in words.

    >>> title_of("running@2min"), title_of("running@45s")
    ('After 2 min of running', 'After 45 s of running')
    """
    known = {"submit": "At submission", "start": "At the start"}
    found = re.fullmatch(r"running@([\d.]+)([a-z]+)", point)
    return f"After {found[1]} {found[2]} of running" if found else known.get(point, point)


def anchor(point: str) -> str:
    """Where in the page a point is told of."""
    return "point-" + re.sub(r"[^A-Za-z0-9]+", "-", point)


def with_interval(told: Mapping[str, float | None]) -> Safe:
    """A score and the range chance leaves open."""
    return ranged(told["value"], told["low"], told["high"])


def summary(told: Told) -> str:
    """What the model did, in sentences."""
    judged, made = told["judged"], told["confusion"]
    share = judged["failures"] / judged["jobs"] if judged["jobs"] else None
    sentences = [
        f"Learned from {count(told['learned_from'])} jobs, judged by {count(judged['jobs'])} "
        f"submitted from {period(judged['from'], judged['until'])} by {count(judged['users'])} "
        "users, "
        f"of which {count(judged['failures'])} failed ({percent(share)})."
    ]
    warnings = made["caught"] + made["false_alarms"]
    told_of = f"The model judged {_warns(told['threshold'])}: it"
    if not warnings:
        sentences.append(f"{told_of} would have warned of none.")
    elif judged["failures"]:
        sentences.append(
            f"{told_of} would have warned of {count(made['caught'])} of them "
            f"({percent(made['caught'] / judged['failures'])}), and {count(made['caught'])} of its "
            f"{count(warnings)} warnings ({percent(made['caught'] / warnings)}) would have been "
            "right."
        )
    else:
        sentences.append(f"{told_of} would have raised {count(warnings)} alarms, all false.")
    if not 0 < judged["failures"] < judged["jobs"]:
        sentences.append("As all of them ended alike, little can be said of the model by them.")
    use = _warns(told["final_threshold"])
    sentences.append(f"The model to be used {use}, by the rule '{told['rule']}'.")
    return " ".join(sentences)


def _warns(value: float) -> str:
    return "never warns" if value > 1 else f"warns from a risk of {threshold(value)} on"


def _scores(told: Told) -> str:
    everyone = {"model": told["scores"]["model"], **told["scores"]["baselines"]}
    ranking = [
        (
            _RIVALS.get(who, who), with_interval(one["average_precision"]),
            with_interval(one["ahead"]) if "ahead" in one else "", with_interval(one["auc"]),
            with_interval(one["ece"]),
        )
        for who, one in everyone.items()
    ]  # fmt: skip
    decisions = [("model", threshold(told["threshold"]), everyone["model"]["at_threshold"])]
    decisions += [(_RIVALS.get(w, w), "0.5", one["at_half"]) for w, one in everyone.items()]
    measures = ("precision", "recall", "f1", "accuracy")
    decided = [
        (who, warn_from, *(with_interval(at[name]) for name in measures))
        for who, warn_from, at in decisions
    ]
    drawn = told["intervals"]
    return "".join(
        (
            "<h3>Scores</h3>",
            paragraph(
                "The model beside simple rules it has to beat. ECE is how far risks and shares of "
                "failures are apart on average. Precision is the share of warnings that were "
                "right, recall the share of failures warned of, F1 a mean of both, accuracy the "
                f"share of right decisions. Below each score, the range that chance leaves open "
                f"(95 %): the judged jobs were drawn anew {drawn['draws']} times, each "
                f"{drawn['drawn_by']} as a whole.",
                note=True,
            ),
            row(
                table(("", "average precision", "model ahead by", "AUC", "ECE"), ranking),
                table(("", "warn from", "precision", "recall", "F1", "accuracy"), decided),
            ),
        )
    )


def _curves(told: Told) -> str:
    if not told["roc"]["model"]:
        return ""
    names = ["model", *(name for name in told["roc"] if name != "model")]
    key = drawings.rivals_key([(name, _RIVALS.get(name, name)) for name in names])
    return (
        "<h3>Curves</h3>"
        + key
        + row(
            figure(
                drawings.precision_recall(told),
                "Of the failures, the share warned of (recall), and how many of those warnings "
                "were right (precision), as the threshold falls; the dot is the one the model was "
                "judged at. The area below is the average precision.",
            ),
            figure(
                drawings.roc(told),
                "Of the completed jobs, the share warned of in vain, against the share of failures "
                "caught; the dashed line is chance, and the area below is the AUC.",
            ),
        )
    )


def _risk(told: Told) -> str:
    made = told["confusion"]
    confusion = table(
        ("", "failed", "completed"),
        [
            ("warned", count(made["caught"]), count(made["false_alarms"])),
            ("not warned", count(made["missed"]), count(made["left_alone"])),
        ],
        caption=f"Decisions, warn from: {threshold(told['threshold'])}",
    )
    return "<h3>Risk and outcome</h3>" + row(
        figure(
            drawings.histogram(told),
            "Which risks failed and completed jobs were given, as shares of each; the further "
            "apart, the better. The dashed line is the threshold the model was judged at.",
        ),
        figure(
            drawings.calibration(told),
            "What was foretold and what came: on the dashed line, of jobs with a risk of 0.3, "
            "three in ten fail. Each dot is a tenth of the jobs or more, with the range that "
            "chance leaves open.",
        ),
        f"<div>{confusion}{_bins(told)}</div>",
    )


def _bins(told: Told) -> str:
    rows = [(count(b["jobs"]), score(b["risk"]), score(b["failed"])) for b in told["calibration"]]
    return table(("jobs", "mean risk", "failed"), rows, text=0, caption="The dots as numbers")


def _trade(told: Told) -> str:
    trade = told["trade"]
    rows = [
        (
            threshold(one["threshold"]), count(one["warnings"]), percent(one["precision"]),
            percent(one["recall"]), score(one["f1"]), count(one["false_alarms"]),
            core_hours(one["missed_core_hours"]),
        )
        for one in trade["rows"]
    ]  # fmt: skip
    chosen = next(place for place, one in enumerate(trade["rows"]) if one["in_use"])
    columns = ("warn from", "warnings", "right", "failures caught", "F1", "false alarms",
               "core-hours lost unwarned")  # fmt: skip
    return "".join(
        (
            "<h3>What another threshold would do</h3>",
            paragraph(
                f"On {count(trade['jobs'])} jobs the trees had not seen when they were "
                f"calibrated, of which {count(trade['failed'])} failed; the row in bold stands for "
                f"the threshold of the model to be used, {threshold(told['final_threshold'])}, "
                f"chosen by the rule '{told['rule']}'.",
                note=True,
            ),
            table(columns, rows, text=0, chosen=chosen),
        )
    )


def _slice(kind: str, told: Told) -> str:
    parts: Sequence[Told] = told["slices"][kind]
    title, note = _SLICES[kind]
    if not parts:
        return ""
    rows = [_slice_cells(one) for one in parts]
    columns = (told["time_unit"] if kind == "time" else "", *_SLICE_COLUMNS[1:])
    drawn = ""
    if kind == "time" and len(parts) > 1:
        drawn = figure(
            drawings.over_time(told),
            f"Average precision by the {told['time_unit']} in which jobs were submitted, beside "
            "the share of them that failed.",
        )
    return f"<h4>{escape(title)}</h4>{paragraph(note, note=True)}{drawn}{table(columns, rows)}"


def _slice_cells(one: Told) -> tuple[str, ...]:
    names = ("average_precision", "auc", "ece", "precision", "recall", "f1")
    scores = [""] * len(names)
    if one["scores"]:
        scores = [score(one["scores"][name]) for name in names]
    expected = "" if one["mean_risk"] is None else f"{one['mean_risk'] * one['jobs']:,.0f}"
    return (
        one["name"], count(one["jobs"]), count(one["failures"]), expected, count(one["warnings"]),
        count(one["caught"]), *scores,
    )  # fmt: skip


def _causes(told: Told) -> str:
    if not told["causes"]:
        return ""
    causes: Sequence[Told] = told["causes"]
    named = causes[0]["right"] is not None
    rows = [
        (
            one["cause"].replace("_", " "), count(one["jobs"]), count(one["caught"]),
            percent(one["recall"]), Safe(meter(one["recall"], 3)), score(one["mean_risk"]),
            *((percent(one["right"] / one["jobs"]),) if named else ()),
        )
        for one in causes
    ]  # fmt: skip
    note = "Of the jobs that failed in each way, how many were warned of when it was judged."
    if named:
        failures = sum(one["jobs"] for one in causes)
        note += (
            f" Of all {count(failures)} the likely cause was the true one in "
            f"{percent(sum(one['right'] for one in causes) / failures)}; naming the most frequent "
            f"would have been right in {percent(causes[0]['jobs'] / failures)}."
        )
    columns = ("cause", "failures", "caught", "share", "", "mean risk", *["named"] * named)
    return f"<h3>Which failures are caught</h3>{paragraph(note, note=True)}{table(columns, rows)}"


def _importance(told: Told) -> str:
    found = told["importance"]
    if not found["features"]:
        return ""
    most = found["features"][0]["share"]
    features = [
        (one["feature"], one["meaning"], percent(one["share"]), Safe(meter(one["share"] / most)))
        for one in found["features"]
    ]
    most = found["groups"][0]["share"]
    groups = [
        (one["group"], percent(one["share"]), Safe(meter(one["share"] / most)))
        for one in found["groups"]
    ]
    note = (
        f"How much each of {count(found['columns'])} features lets the trees tell jobs apart, as "
        "shares of the whole. It says what the model looks at, not what makes jobs fail."
    )
    return "".join(
        (
            f"<h3>What the model looks at</h3>{paragraph(note, note=True)}",
            row(
                table(("feature", "meaning", "share", ""), features, text=2, long=1),
                table(("about", "share", ""), groups, caption="All features by what they tell"),
            ),
        )
    )


def _search(told: Told) -> str:
    trials: Sequence[Told] = told["search"]["trials"]
    if not trials:
        return ""
    given_up = sum(one["score"] is None for one in trials)
    seconds = sum(one["seconds"] for one in trials)
    ended = " It was interrupted." if told["search"]["interrupted"] else ""
    note = (
        f"{_sets(len(trials))} tried in {seconds:,.0f} s, {given_up} of them given up early; each "
        f"is scored by its average precision on later jobs.{ended}"
    )
    best: Mapping[str, Told] = told["search"]["best"]
    names = list(next(iter(best.values()), {}))
    used = [
        (name.replace("_", " "), *(f"{one[name]:.4g}" for one in best.values())) for name in names
    ]
    drawn = ""
    if any(one["score"] is not None for one in trials):
        drawn = figure(
            drawings.search(told), "Each dot is a trial, the line the best score so far."
        )
    return f"<h3>The search for parameters</h3>{paragraph(note, note=True)}" + row(
        drawn, table(("parameter", *best), used)
    )


def _sets(number: int) -> str:
    return "1 set of parameters was" if number == 1 else f"{number:,} sets of parameters were"
