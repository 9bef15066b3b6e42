"""The reference page of the table of fields, as Markdown."""

from __future__ import annotations

from premortem.jobs.fields import FIELDS, Group, KnownAt

_MOMENTS = {
    KnownAt.SUBMIT: "when the job is submitted, or before, from its script",
    KnownAt.START: "when it starts",
    KnownAt.RUNNING: "while it runs",
    KnownAt.END: "when it has ended",
}


def fields_page() -> str:
    """The whole page."""
    lines = [
        "# Job fields",
        "",
        "Every field of a job record: its type and unit, when it becomes known, and what it means.",
        "A prediction may only use what is known by then. The store's columns, the frames and the",
        "checks of records follow from the same table, `premortem.jobs.fields`; this page is made",
        "from it by `make docs`.",
        "",
        "A job's key is `cluster`, `job_id` and `submit_time`: a requeued job keeps its number,",
        "and numbers are used again after years. Times are UTC, in whole seconds.",
        "",
        "| known at | that is |",
        "|---|---|",
        *[f"| `{moment}` | {meaning} |" for moment, meaning in _MOMENTS.items()],
    ]
    for group in Group:
        lines += ["", f"## {group.capitalize()}", ""]
        lines += ["| field | type | unit | known at | meaning |", "|---|---|---|---|---|"]
        lines += [
            f"| `{f.name}` | {f.kind} | {f.unit} | {f.known} | {f.meaning} |"
            for f in FIELDS
            if f.group is group
        ]
    return "\n".join(lines) + "\n"
