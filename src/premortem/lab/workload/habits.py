"""Habits: how a person of some sort asks for things, errs, learns and reacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from premortem.lab.workload.flaws import FILES, QUEUE, RUN, TEXT, Flaw

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Habit:
    """How people of some sort behave.

    `flaws` is how often something is wrong at first, and `learning` what is left of that after
    each job of the same kind. `memory` and `time` are how much of what is needed they ask for;
    `fixed_mb` and `fixed_minutes` are asked for whatever is needed. After a failure they try
    again without change (`retries`), mend it (`mends`), or leave it. `session` is how many jobs
    they submit at a sitting; `together` how often the tasks of an array all have the same flaw.
    From the day `drifts_on` they use a version of their programs that is not ready.
    """

    name: str
    flaws: float = 0.18
    taste: dict[Flaw, float] = field(default_factory=dict)
    learning: float = 1.0
    memory: Range = (1.1, 2.1)
    fixed_mb: int | None = None
    time: Range = (2, 6)
    fixed_minutes: int | None = None
    strict: float = 0.7
    retries: float = 0.1
    mends: float = 0.5
    most_tries: int = 3
    session: tuple[int, int] = (1, 4)
    together: float = 0.3
    chains: float = 0.0
    drifts_on: float | None = None
    at_night: bool = False
    at_weekends: bool = False


def _taste(flaws: Sequence[Flaw], weight: float) -> dict[Flaw, float]:
    return dict.fromkeys(flaws, weight)


_LIMITS = (Flaw.SLOW, Flaw.HANG, Flaw.LEAK, Flaw.SPIKE)

HABITS = (
    Habit("careful", 0.08, memory=(1.6, 2.5), time=(3, 8), strict=1.0, mends=0.9),
    Habit("novice", 0.45, _taste((*TEXT, *FILES), 2), strict=0.2, fixed_mb=90, session=(1, 3)),
    Habit("stubborn", 0.26, _taste(RUN, 2), retries=0.85, mends=0.1, most_tries=4),
    Habit("learner", 0.6, _taste(TEXT, 1.5), learning=0.95, strict=0.8, mends=0.9),
    Habit("drifter", 0.12, _taste(RUN, 4), drifts_on=9, retries=0.3, mends=0.3),
    Habit("sweeper", 0.26, _taste(RUN, 2), together=0.75, session=(1, 2), mends=0.7),
    Habit("forgetful", 0.26, {Flaw.SLOW: 3, Flaw.HANG: 2}, time=(0.9, 1.2), fixed_minutes=1),
    Habit("optimist", 0.2, _taste((Flaw.LEAK, Flaw.SPIKE), 3), memory=(0.7, 1.5), mends=0.7),
    Habit("hoarder", 0.18, memory=(3, 6), time=(15, 60), strict=0.5, mends=0.4),
    Habit("hasty", 0.26, {Flaw.CANCELLED_RUNNING: 8, Flaw.CANCELLED_PENDING: 8}, session=(2, 6)),
    Habit("tinkerer", 0.33, _taste(TEXT, 3), mends=0.95, session=(2, 5), at_night=True),
    Habit("copier", 0.34, _taste(FILES, 4), strict=0.1, retries=0.4, mends=0.4),
    Habit("planner", 0.2, chains=0.6, strict=1.0, mends=0.8, session=(1, 2)),
    Habit("gambler", 0.3, _taste((*QUEUE, *_LIMITS), 3), memory=(0.85, 1.6), at_weekends=True),
    Habit("routine", 0.08, memory=(1.3, 1.8), session=(3, 7), mends=0.8, at_night=True),
)

# How often a flaw is the one, before anybody's taste.
WEIGHTS = {
    Flaw.TYPO: 5,
    Flaw.SYNTAX: 4,
    Flaw.UNKNOWN_OPTION: 5,
    Flaw.UNSET_VARIABLE: 3,
    Flaw.MISSING_FOLDER: 3,
    Flaw.MISSING_MODULE: 4,
    Flaw.MISSING_PYTHON_MODULE: 5,
    Flaw.OUTPUT_NOWHERE: 2,
    Flaw.BROKEN_PIPE: 1.2,
    Flaw.TOO_MANY_TASKS: 2,
    Flaw.OWN_TIME_LIMIT: 3,
    Flaw.FILE_SIZE_LIMIT: 2.5,
    Flaw.OPEN_FILES_LIMIT: 2,
    Flaw.FAILING_STEP: 4,
    Flaw.NO_GPU_ASKED: 12,
    Flaw.MISSING_INPUT: 5,
    Flaw.UNREADABLE_INPUT: 2,
    Flaw.DAMAGED_INPUT: 4,
    Flaw.NOT_EXECUTABLE: 3,
    Flaw.WRONG_CHECKSUM: 2,
    Flaw.SEGFAULT: 9,
    Flaw.ASSERTION: 7,
    Flaw.DIVISION_BY_ZERO: 6,
    Flaw.NOT_CONVERGED: 14,
    Flaw.BAD_DATA: 13,
    Flaw.STALL: 13,
    Flaw.HANG: 14,
    Flaw.SLOW: 18,
    Flaw.LEAK: 12,
    Flaw.SPIKE: 5,
    Flaw.FULL_DISK: 3.5,
    Flaw.NEVER_ELIGIBLE: 1.5,
    Flaw.DEADLINE: 0.8,
    Flaw.CANCELLED_PENDING: 4,
    Flaw.CANCELLED_RUNNING: 8,
}
