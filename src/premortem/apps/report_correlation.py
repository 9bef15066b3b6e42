"""The part of a report's page on what goes with failure: correlations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from premortem.apps.drawing import heat_map, meter
from premortem.apps.markup import Safe, count, paragraph, percent, row, table

Told = Mapping[str, Any]


def correlation_section(told: Told) -> str:
    """Which features rise and fall with failure, and with each other."""
    rows = [
        (
            one["feature"], f"{one['correlation']:+.3f}",
            Safe(meter(abs(one["correlation"]), 5 if one["correlation"] > 0 else 0)),
            percent(one["known"]),
        )
        for one in told["with_failure"]
        if one["feature"] in told["strongest"]
    ]  # fmt: skip
    note = (
        f"Rank correlations over {count(told['sampled'])} jobs: above zero, the higher the "
        "feature, the more jobs fail. What goes together need not be a cause."
    )
    copies: Mapping[str, str] = told["near_copies"]
    if copies:
        copy, original = next(iter(copies.items()))
        note += (
            f" Left out, as they say nearly the same as one shown: {count(len(copies))}, such as "
            f"{copy} beside {original}."
        )
    drawn = heat_map(
        told["strongest"], told["map"], "Correlations among the features strongest in failure"
    )
    return "".join(
        (
            "<h2 id='correlation'>Correlations</h2>",
            paragraph(note, note=True),
            row(
                table(("feature", "with failure", "", "known"), rows),
                f"<div class='wide'>{drawn}<p class='note'>The same features with each other: "
                "orange rise together, blue one falls as the other rises; the fuller, the "
                "stronger.</p></div>",
            ),
        )
    )
