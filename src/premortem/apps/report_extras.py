"""The parts of a report's page that a report may have: profiles of jobs, and correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from premortem.apps.drawing import heat_map, meter
from premortem.apps.markup import Safe, count, paragraph, percent, row, table

Told = Mapping[str, Any]

_MOST_CORRELATED = 20


def profiles_section(told: Told) -> str:
    """The profiles as `describe` has them, and how their number was chosen."""
    described: Sequence[Told] = told.get("described", ())
    rows = [
        (
            str(one["number"]), one["sentence"], count(one["jobs"]), percent(one["share"]),
            percent(one["failure_share"]), count(one["users"]), f"{one['core_hours']:,.0f}",
            f"{one['core_hours_lost']:,.0f}",
        )
        for one in described
    ]  # fmt: skip
    columns = ("", "profile", "jobs", "share", "failed", "users", "core-hours", "lost to failures")
    parts = [
        "<h2 id='profiles'>Profiles of jobs</h2>",
        paragraph(
            "Groups of jobs that ask alike and belong to alike users, found without looking at how "
            "they end; where one fails far more than the others, it is worth a look.",
            note=True,
        ),
    ]
    if rows:
        parts.append(table(columns, rows, text=2, long=1))
    if told.get("curve"):
        parts.append(_numbers_tried(told))
    return "".join(parts)


def _numbers_tried(told: Told) -> str:
    rows = [
        (
            str(one["number"]), str(one["profiles"]), f"{one['bic']:,.0f}",
            f"{one['inertia']:,.0f}", f"{one['agreement']:.2f}",
        )
        for one in told["curve"]
    ]  # fmt: skip
    note = "The number with the lowest BIC was chosen; K-Means is there to compare with."
    if told.get("still_falling"):
        note += " The BIC still fell at the last number tried, so that was the limit."
    columns = ("tried", "profiles", "BIC", "K-Means inertia", "agreement")
    return paragraph(note, note=True) + table(columns, rows, text=0)


def correlation_section(told: Told) -> str:
    """Which features rise and fall with failure, and with each other."""
    rows = [
        (
            one["feature"], f"{one['correlation']:+.3f}",
            Safe(meter(abs(one["correlation"]), 5 if one["correlation"] > 0 else 0)),
            percent(one["known"]),
        )
        for one in told["with_failure"][:_MOST_CORRELATED]
    ]  # fmt: skip
    drawn = heat_map(
        told["strongest"], told["map"], "Correlations among the features strongest in failure"
    )
    return "".join(
        (
            "<h2 id='correlation'>Correlations</h2>",
            paragraph(
                f"Rank correlations over {count(told['sampled'])} jobs: above zero, the higher the "
                "feature, the more jobs fail. What goes together need not be a cause.",
                note=True,
            ),
            row(
                table(("feature", "with failure", "", "known"), rows),
                f"<div class='wide'>{drawn}<p class='note'>The same features with each other: "
                "orange rise together, blue one falls as the other rises; the fuller, the "
                "stronger.</p></div>",
            ),
        )
    )
