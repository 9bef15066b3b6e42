"""The ledger: what was submitted, in the order of submission, for whoever wants to look later.

It tells what a job was meant to be. What became of it is in Slurm's accounting alone.
"""

from __future__ import annotations

import json
from pathlib import Path

from premortem.lab.workload.submissions import Submission


class Ledger:
    """A file of lines of JSON in the lab's folder, one for each submission."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(exist_ok=True)
        self.path = folder / f"seed-{seed}.jsonl"

    def write(self, submission: Submission, job: int) -> None:
        """Add a submission that Slurm has taken."""
        case = submission.case
        line = {
            "job": job,
            "tasks": case.tasks,
            "user": submission.user.name,
            "habit": submission.user.habit.name,
            "kind": case.kind.name,
            "language": case.kind.language,
            "flaw": case.flaw,
            "version": case.version,
            "attempt": submission.attempt,
            "needed_mb": round(case.needed_mb),
            "needed_s": case.seconds,
            "moment": round(submission.moment),
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
