"""The input files of a case: what its programs will do, line by line."""

from __future__ import annotations

from random import Random

from premortem.lab.workload.cases import Case
from premortem.lab.workload.flaws import Flaw
from premortem.lab.workload.kinds import Language

SCRATCH = "/home/scratch"
SCRATCH_MB = 24

_COMPLAINTS = {
    1: "the data ends too early",
    2: "cannot make sense of record 17",
    4: "units of input and reference differ",
    5: "negative volume in cell 4711",
    9: "too many warnings",
    42: "checkpoint is of another run",
}
Lines = dict[str, float | int | str]


def input_text(case: Case, task: int | None = None) -> str:
    """The input of a case, or of a task of an array."""
    by_chance = Random(f"{case.seed} {task}")
    lines: Lines = {
        "seconds": round(case.seconds * by_chance.uniform(0.93, 1.07), 1),
        "rss_mb": case.program_mb,
        "cpu": case.kind.cpu,
    }
    if case.kind.io_mb_s:
        lines["io_mb_s"] = case.kind.io_mb_s
    if case.kind.needs_gpu:
        lines["needs_gpu"] = 1
    spared = case.scattered and by_chance.random() < 0.6
    if case.flaw and not spared:
        lines |= _flawed(case, case.flaw, lines, by_chance)
    text = "".join(f"{word} {value}\n" for word, value in lines.items())
    damage = "control{ nstep=\n" if case.flaw is Flaw.DAMAGED_INPUT and not spared else ""
    return f"# {case.kind.purpose}: {case.amount}\n{text}{damage}"


def _flawed(case: Case, flaw: Flaw, lines: Lines, by_chance: Random) -> Lines:
    seconds = float(lines["seconds"])
    partly = round(seconds * by_chance.uniform(0.4, 1.1), 1)
    match flaw:
        case Flaw.SEGFAULT:
            return {"seconds": partly, "end": "segv"}
        case Flaw.ASSERTION:
            return {"seconds": partly, "end": "abort", "code": by_chance.randrange(200)}
        case Flaw.DIVISION_BY_ZERO:
            return {"seconds": partly, "end": "fpe"}
        case Flaw.NOT_CONVERGED:
            # It tries for longer than it would need.
            longer = round(seconds * by_chance.uniform(1.1, 1.5), 1)
            words = f"not converged after {by_chance.randrange(80, 900)} iterations"
            return {"seconds": longer, "end": "exit", "code": 3, "message": words}
        case Flaw.BAD_DATA:
            code, words = by_chance.choice(sorted(_COMPLAINTS.items()))
            end = "error" if case.kind.language is Language.PYTHON and code < 3 else "exit"
            return {"seconds": partly, "end": end, "code": code, "message": words}
        case Flaw.STALL:
            return {
                "seconds": round(max(11, seconds) + by_chance.uniform(4, 12), 1),
                "stall_at": round(seconds * by_chance.uniform(0.2, 0.5), 1),
                "end": "exit",
                "code": 75,
                "message": "the licence server does not answer",
            }
        case Flaw.HANG:
            stall = round(seconds * by_chance.uniform(0.1, 0.6), 1)
            return {"seconds": 200, "stall_at": stall, "end": "exit", "code": 70}
        case Flaw.SLOW:
            # Longer than the limit of those who ask for a minute, and of some who ask for two.
            longer = 60 if case.minutes == 2 and by_chance.random() < 0.4 else 0
            return {"seconds": round(by_chance.uniform(66, 92) + longer, 1)}
        case Flaw.LEAK:
            length = max(seconds, by_chance.uniform(12, 26))
            spare = case.asked_mb - case.needed_mb + 12
            return {"seconds": round(length, 1), "leak_mb_s": round(spare / (0.85 * length), 2)}
        case Flaw.SPIKE:
            return {"spike_mb": case.asked_mb, "spike_at": round(partly * 0.9, 1)}
        case Flaw.FULL_DISK:
            return {"scratch": SCRATCH, "output_mb": SCRATCH_MB + 16}
        case Flaw.FILE_SIZE_LIMIT:
            return {"seconds": partly, "output_mb": 6}
        case Flaw.OPEN_FILES_LIMIT:
            return {"open_files": 64}
        case Flaw.OWN_TIME_LIMIT:
            return {"seconds": round(max(8, seconds), 1)}
        case _:
            return {}
