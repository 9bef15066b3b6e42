"""The report of a training as one page for a support engineer, that needs nothing else.

It works offline, in light and dark, on a phone and on paper. Everything from outside is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from premortem.apps.drawing import meter
from premortem.apps.markup import (
    Safe,
    count,
    page,
    paragraph,
    percent,
    period,
    row,
    score,
    table,
    threshold,
)
from premortem.apps.report_correlation import correlation_section
from premortem.apps.report_point import anchor, point_section, title_of, with_interval
from premortem.apps.report_profiles import profiles_section


def report_page(report: Mapping[str, Any], version: str | None = None) -> str:
    """The whole page of a report by `training.report.report_of`, or of its JSON.

    `version` says which this is and when it was registered, where that is known: a page that is
    kept with a version was made before.
    """
    points: Mapping[str, Any] = report["points"]
    sections = [
        "<h1>How well this model foretells which jobs fail</h1>",
        paragraph(_which(report, version)),
        _contents(report),
        _at_a_glance(report),
        _data(report["data"]),
        *(point_section(name, told) for name, told in points.items()),
    ]
    if report.get("profiles"):
        sections.append(profiles_section(report["profiles"]))
    if report.get("correlation"):
        sections.append(correlation_section(report["correlation"]))
    sections.append(_to_repeat(report["data"]))
    return page("premortem: report of a model", "".join(sections))


def _which(report: Mapping[str, Any], version: str | None) -> str:
    """The model this is about."""
    data = report["data"]
    told = [f"{version}."] if version else []
    made = f"on {report['made']} " if report["made"] else ""
    told.append(
        f"Trained {made}by premortem {data['versions'].get('premortem', '')}, from "
        f"{count(data['jobs'])} jobs submitted from {period(data['from'], data['until'])}."
    )
    if not version:
        told.append("Its version is the one this file is kept with.")
    return " ".join(told)


def _contents(report: Mapping[str, Any]) -> str:
    links = [("glance", "At a glance"), ("data", "The data")]
    links += [(anchor(name), title_of(name)) for name in report["points"]]
    links += [("profiles", "Profiles")] if report.get("profiles") else []
    links += [("correlation", "Correlations")] if report.get("correlation") else []
    told = "".join(f"<a href='#{place}'>{escape(name)}</a>" for place, name in links)
    return f"<nav>{told}</nav>"


def _at_a_glance(report: Mapping[str, Any]) -> str:
    parts = [
        "<h2 id='glance'>At a glance</h2>",
        paragraph(
            "Each row is a moment in a job's life at which its risk is told. The model was judged "
            "by the latest jobs, none of which it had learned from; the model to be used was then "
            "trained in the same way on all jobs."
        ),
    ]
    rows = []
    for name, told in report["points"].items():
        own, judged = told["scores"]["model"], told["judged"]
        at = own["at_threshold"]
        rows.append(
            (
                title_of(name), count(judged["jobs"]), percent(_share(judged)),
                with_interval(own["average_precision"]), with_interval(own["auc"]),
                threshold(told["threshold"]), percent(at["recall"]["value"]),
                percent(at["precision"]["value"]), threshold(told["final_threshold"]),
                _best_rule(told),
            )
        )  # fmt: skip
    columns = (
        "moment", "jobs judged", "failed", "average precision", "AUC", "judged at",
        "failures caught", "warnings right", "warns from", "best simple rule",
    )  # fmt: skip
    parts.append(table(columns, rows))
    parts.append(
        paragraph(
            "Average precision: how right warnings are on average, over all thresholds; a model "
            "that knows nothing has the share of failures. AUC: how often a failed job had a "
            "higher risk than a completed one; one half is chance. Below each, the range that "
            "chance leaves open (95 %). The best simple rule is told by its average precision.",
            note=True,
        )
    )
    parts.append(
        paragraph(
            "Judged at: the threshold chosen before the judged jobs came; failures caught and "
            "warnings right are of warnings from it on. The model to be used has learned from all "
            "jobs; what it warns from is chosen by the same rule, and may be another risk.",
            note=True,
        )
    )
    parts += [
        paragraph(f"{title_of(name)}: no model. {why[:1].upper()}{why[1:]}.")
        for name, why in report["left_out"].items()
    ]
    if report["interrupted"]:
        parts.append(paragraph("The training was interrupted; what it had found by then is used."))
    return "".join(parts)


def _best_rule(told: Mapping[str, Any]) -> str:
    found = {
        name: one["average_precision"]["value"]
        for name, one in told["scores"]["baselines"].items()
        if one["average_precision"]["value"] is not None
    }
    return score(max(found.values())) if found else ""


def _data(data: Mapping[str, Any]) -> str:
    counted = data["outcomes"]["completed"] + data["outcomes"]["failed"]
    facts = [
        ("submitted", period(data["from"], data["until"])),
        ("jobs", count(data["jobs"])),
        ("users", count(data["users"])),
        ("clusters", count(data["clusters"])),
        ("feature family", data["family"]),
        ("time zone", data["zone"]),
        ("trees grown by", ", ".join(data["engines"])),
    ]
    outcomes = _shares(data["outcomes"], data["jobs"])
    causes = _shares(data["causes"], data["outcomes"]["failed"])
    return "".join(
        (
            "<h2 id='data'>The data</h2>",
            paragraph(
                f"All jobs the training was given; of {count(counted)} the outcome counts.",
                note=True,
            ),
            row(
                table(("", ""), facts, caption="What was given", text=2),
                table(("outcome", "jobs", "share", ""), outcomes, caption="What became of them"),
                table(("cause", "jobs", "share", ""), causes, caption="How they failed"),
            ),
            paragraph(_labels(data["labels"]), note=True),
        )
    )


def _labels(labels: Mapping[str, Any]) -> str:
    """The policy in a sentence."""
    told = ["Every job that ended without completing counts as failed"]
    if labels.get("ignored"):
        told.append(f"left out: {_spoken(labels['ignored'])}")
    if labels.get("completed"):
        told.append(f"counted as completed: {_spoken(labels['completed'])}")
    if labels.get("exit_codes"):
        codes = [f"{code} ({_words(cause)})" for code, cause in labels["exit_codes"].items()]
        told.append(f"exit codes with a meaning of their own: {', '.join(codes)}")
    return "; ".join(told) + "."


def _to_repeat(data: Mapping[str, Any]) -> str:
    told = {"versions": data["versions"], "labels": data["labels"]}
    text = escape(json.dumps(told, indent=2, ensure_ascii=False))
    note = "The versions in use, and how the ends of jobs were read as outcomes."
    return f"<h2>To repeat it</h2>{paragraph(note, note=True)}<pre>{text}</pre>"


def _shares(counts: Mapping[str, int], whole: int) -> list[tuple[str, ...]]:
    return [
        (_words(name), count(jobs), percent(jobs / whole), Safe(meter(jobs / whole)))
        for name, jobs in counts.items()
        if jobs
    ]


def _share(judged: Mapping[str, int]) -> float | None:
    return judged["failures"] / judged["jobs"] if judged["jobs"] else None


def _spoken(words: list[str]) -> str:
    return ", ".join(map(_words, words))


def _words(name: str) -> str:
    return name.replace("_", " ")
