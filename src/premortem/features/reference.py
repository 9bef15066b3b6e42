"""The reference page of the features, as Markdown."""

from __future__ import annotations

from premortem.features.catalogue import CATALOGUE, Family, feature_set
from premortem.features.points import START, SUBMIT, running
from premortem.jobs.fields import KnownAt

_CHAPTERS = {
    "request": "What the job asks for.",
    "calendar": "When it was submitted, by the site's clock.",
    "comparison": "The request beside those before it, as seen at submission.",
    "script": "What the batch script looks like.",
    "run": "How the job got on so far.",
    "usage": "What the running job uses, from samples of it.",
    "history": "What became of other jobs like it, up to the second before.",
}


def features_page() -> str:
    """The whole page."""
    sets = [
        f"| `{family}` | " + " | ".join(str(len(feature_set(p, family).features)) for p in _POINTS)
        for family in Family
    ]
    lines = [
        "# Features",
        "",
        "Every number a prediction can be made from: what it is made of, when it is known, and",
        "what it means. A set for a prediction point holds only what is known by then; asking for",
        "more is an error. History comes from a replay in which an outcome enters when the job",
        "has ended.",
        "This page is made from `premortem.features.catalogue` by `make docs`.",
        "",
        "| family | " + " | ".join(f"at `{point}`" for point in _POINTS) + " |",
        "|---|" + "---|" * len(_POINTS),
        *[f"{row} |" for row in sets],
        "",
        "`generic` is everything. `restricted` leaves out who the user is and what became of the",
        "user's other jobs. `swf` is what logs of the Standard Workload Format can fill.",
        "`--family` of `train`, `bench` and `audit` chooses.",
    ]
    for chapter in dict.fromkeys(feature.chapter for feature in CATALOGUE):
        lines += ["", f"## {chapter.capitalize()}", "", _CHAPTERS[chapter], ""]
        lines += ["| feature | known at | made of | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{f.name}` | {KnownAt(f.known)} | {', '.join(f.inputs)} | {f.meaning} |"
            for f in CATALOGUE
            if f.chapter == chapter
        ]
    return "\n".join(lines) + "\n"


_POINTS = (SUBMIT, START, running(120))
