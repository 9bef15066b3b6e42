"""The campaign: who submits what next, and how they react to what became of it. Pure: no I/O.

The same seed gives the same users, and the same first attempts at the same moments of the calendar.
Second attempts depend on what became of the first, and on when that was heard.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from premortem.lab.workload.calendar import DAY, HOUR, activity
from premortem.lab.workload.cases import Case, needed_mb
from premortem.lab.workload.flaws import Flaw
from premortem.lab.workload.habits import WEIGHTS
from premortem.lab.workload.kinds import Kind
from premortem.lab.workload.submissions import Cancellation, Outcome, Submission, While
from premortem.lab.workload.users import User, chain

# First attempts; with those that follow there are about a tenth more.
JOBS_PER_DAY = 430.0
_NEW_VERSION = "3.0b"
_NODES_FAULT = ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL")


@dataclass
class _Person:
    """What changes about a user."""

    user: User
    by_chance: Random
    done: Counter[str] = field(default_factory=Counter)


class Campaign:
    """Submissions of a population, in the order of the simulated calendar."""

    def __init__(self, users: list[User], *, seed: int, nodes: list[str]) -> None:
        self._people = {user.name: _Person(user, Random(f"{seed} {user.name}")) for user in users}
        self._numbers = count(1)
        self._order = count()
        self._agenda: list[tuple[float, int, _Person | Submission]] = []
        # The nodes that low and urgent jobs meet on; the last one has the GPUs.
        self._meeting = nodes[-3:-1] or nodes[:1]
        total = sum(user.activity for user in users)
        self._pause = {
            user.name: DAY / JOBS_PER_DAY * _expected(user) * total / user.activity
            for user in users
        }
        for person in self._people.values():
            self._sleep(person, 0)

    def next(self) -> Submission:
        """The next submission; there is always one."""
        while True:
            moment, _, item = heapq.heappop(self._agenda)
            if isinstance(item, Submission):
                return item
            for submission in self._session(item, moment):
                self._plan(submission)
            self._sleep(item, moment)

    def ended(self, submission: Submission, outcome: Outcome, moment: float) -> None:
        """Tell the user of a submission what became of it, at a moment; they may react."""
        # Of its own, so that reactions do not change what people do anyway.
        by_chance = Random(f"{submission.case.seed} {submission.attempt} {outcome.state}")
        case = reaction(submission, outcome, by_chance)
        if case:
            later = moment + by_chance.uniform(0.1, 1.5) * HOUR
            again = self._submission(submission.user, case, later, by_chance)
            self._plan(replace(again, attempt=submission.attempt + 1))

    def _plan(self, submission: Submission) -> None:
        heapq.heappush(self._agenda, (submission.moment, next(self._order), submission))

    def _sleep(self, person: _Person, moment: float) -> None:
        """Until the next session; sooner in the hours that they like."""
        left = person.by_chance.expovariate(1) * self._pause[person.user.name]
        while left > 0:
            step = min(HOUR, left / (rate := activity(moment, person.user.habit)))
            moment += step
            left -= step * rate
        heapq.heappush(self._agenda, (moment, next(self._order), person))

    def _session(self, person: _Person, moment: float) -> list[Submission]:
        by_chance, habit = person.by_chance, person.user.habit
        if by_chance.random() < habit.chains:
            return self._chain(person, moment)
        kind = by_chance.choices(list(person.user.kinds), list(person.user.kinds.values()))[0]
        jobs = 1 if kind.tasks else by_chance.randint(*habit.session)
        made = []
        for _ in range(jobs):
            moment += by_chance.uniform(0.02, 0.3) * HOUR
            case = self._case(person, kind, moment)
            made.append(self._submission(person.user, case, moment, by_chance))
        return made

    def _chain(self, person: _Person, moment: float) -> list[Submission]:
        made: list[Submission] = []
        for kind in chain():
            case = self._case(person, kind, moment)
            after = made[-1].number if made else None
            moment += 0.02 * HOUR
            link = self._submission(person.user, case, moment, person.by_chance)
            made.append(replace(link, after=after))
        return made

    def _submission(self, user: User, case: Case, moment: float, by_chance: Random) -> Submission:
        wish = _cancellation(case, by_chance)
        return Submission(next(self._numbers), moment, user, case, cancellation=wish)

    def _case(self, person: _Person, kind: Kind, moment: float) -> Case:
        by_chance, habit = person.by_chance, person.user.habit
        size = by_chance.betavariate(1.4, 2.2)
        seconds = kind.seconds[0] + (kind.seconds[1] - kind.seconds[0]) * size
        memory = habit.fixed_mb or 10 * math.ceil(
            needed_mb(kind, size) * by_chance.uniform(*habit.memory) / 10
        )
        minutes = habit.fixed_minutes or math.ceil(seconds * by_chance.uniform(*habit.time) / 60)
        if kind.partition == "short":
            minutes = min(minutes, 5)
        drifted = habit.drifts_on is not None and moment > habit.drifts_on * DAY
        person.done[kind.name] += 1
        return Case(
            kind,
            person.done[kind.name],
            round(size, 3),
            # Not everybody says how much; the cluster then gives enough.
            None if by_chance.random() < 0.08 else max(30, min(memory, 400)),
            minutes,
            by_chance.choice(kind.cpus),
            by_chance.getrandbits(30),
            by_chance.random() < habit.strict,
            _NEW_VERSION if drifted else "2.1",
            self._flaw(person, kind, size, drifted=drifted),
            by_chance.random() >= habit.together,
            by_chance.randint(*kind.tasks) if kind.tasks else None,
            by_chance.choice(self._meeting) if kind.partition in ("low", "high") else None,
        )

    def _flaw(self, person: _Person, kind: Kind, size: float, *, drifted: bool) -> Flaw | None:
        habit, by_chance = person.user.habit, person.by_chance
        often = 0.5 if drifted else habit.flaws
        often *= max(0.12, habit.learning ** person.done[kind.name])
        # Large jobs are where things go wrong.
        often *= 0.8 + size
        if by_chance.random() >= min(0.9, often * kind.fragility):
            return None
        weights = {flaw: weight * habit.taste.get(flaw, 1) for flaw, weight in WEIGHTS.items()}
        if not kind.needs_gpu:
            del weights[Flaw.NO_GPU_ASKED]
        if kind.tasks:
            for flaw in (Flaw.HANG, Flaw.SLOW, Flaw.DEADLINE, Flaw.NEVER_ELIGIBLE):
                weights[flaw] /= 4
        return by_chance.choices(list(weights), list(weights.values()))[0]


def reaction(old: Submission, outcome: Outcome, by_chance: Random) -> Case | None:
    """What a user submits after an outcome: the same again, something better, or nothing."""
    habit = old.user.habit
    # Arrays are looked at as a whole, by nobody; what waits is the affair of the first.
    if outcome.is_good or old.case.tasks or old.after or old.attempt >= habit.most_tries:
        return None
    chance = by_chance.random()
    if outcome.state in _NODES_FAULT or chance < habit.retries:
        return old.case
    if chance < habit.retries + habit.mends:
        return mended(old.case, outcome, by_chance)
    return None


def mended(case: Case, outcome: Outcome, by_chance: Random) -> Case:
    """The case after its user has looked at what became of it.

    Who ran out of memory or time asks for more, which does not help against a leak or a hang;
    others find what is wrong, mostly.
    """
    if outcome.state == "OUT_OF_MEMORY" and (case.memory_mb or 0) < 300:
        return replace(case, memory_mb=min(400, 2 * case.asked_mb))
    if outcome.state == "TIMEOUT" and case.flaw is not Flaw.HANG:
        return replace(case, minutes=(case.minutes or 1) + 1)
    return replace(case, flaw=None) if by_chance.random() < 0.8 else case


def _expected(user: User) -> float:
    """How many jobs a session of theirs has, on average."""
    habit = user.habit
    usual = sum(habit.session) / 2
    total = sum(user.kinds.values())
    mean = sum(
        weight * (sum(kind.tasks) / 2 if kind.tasks else usual)
        for kind, weight in user.kinds.items()
    )
    return (1 - habit.chains) * mean / total + habit.chains * len(chain())


def _cancellation(case: Case, by_chance: Random) -> Cancellation | None:
    match case.flaw:
        case Flaw.CANCELLED_RUNNING:
            return Cancellation(While.RUNNING, by_chance.uniform(1, max(2, case.seconds * 0.8)))
        case Flaw.CANCELLED_PENDING:
            return Cancellation(While.PENDING, by_chance.uniform(4, 30))
        case Flaw.NEVER_ELIGIBLE:
            return Cancellation(While.PENDING, by_chance.uniform(15, 60))
        case Flaw.HANG if (case.minutes or 1) > 2 or by_chance.random() < 0.25:
            # Somebody looks, before a limit of hours ends it.
            return Cancellation(While.RUNNING, by_chance.uniform(15, 45))
        case _:
            return None
