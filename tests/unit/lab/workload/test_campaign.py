"""The campaign: the same seed gives the same jobs, and people are as their habits say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from premortem.lab.workload.calendar import DAY, HOUR, activity
from premortem.lab.workload.campaign import JOBS_PER_DAY, Campaign, mended
from premortem.lab.workload.cases import Case
from premortem.lab.workload.catalogue import KINDS
from premortem.lab.workload.flaws import Flaw
from premortem.lab.workload.habits import HABITS, WEIGHTS
from premortem.lab.workload.pacing import Pace
from premortem.lab.workload.submissions import Outcome, Submission
from premortem.lab.workload.users import User, population

NAMES = [f"user{number:02}" for number in range(1, 31)]
NODES = [f"n{number}" for number in range(1, 15)]
BY_NAME = {habit.name: habit for habit in HABITS}


def campaign(seed: int = 1, users: list[User] | None = None) -> Campaign:
    return Campaign(users or population(seed, NAMES), seed=seed, nodes=NODES)


def taken(campaign: Campaign, count: int) -> list[Submission]:
    return [campaign.next() for _ in range(count)]


def as_planned(submission: Submission) -> Outcome:
    """What a flaw would lead to, if all went by plan."""
    return Outcome("FAILED", "1:0") if submission.case.flaw else Outcome("COMPLETED", "0:0")


def lived(campaign: Campaign, count: int, end: Callable[[Submission], Outcome] = as_planned):  # type: ignore[no-untyped-def]
    """Submissions of a campaign whose people hear at once what became of each."""
    seen = []
    for _ in range(count):
        submission = campaign.next()
        seen.append(submission)
        campaign.ended(submission, end(submission), submission.moment)
    return seen


def only(habit: str, *kinds: str) -> list[User]:
    likings = {KINDS[kind]: 1.0 for kind in kinds}
    return [User("user01", BY_NAME[habit], likings, 1.0, False)]


class TestPopulation:
    def test_every_habit_and_every_kind_occurs(self) -> None:
        for seed in range(5):
            users = population(seed, NAMES)
            assert {user.habit.name for user in users} == set(BY_NAME)
            kinds = {kind.name for user in users for kind in user.kinds}
            chained = {"prepare_case", "solve_case", "plot_case"}
            assert kinds | chained == set(KINDS)
        assert population(1, NAMES) == population(1, NAMES)
        assert population(1, NAMES) != population(2, NAMES)

    def test_every_flaw_has_its_weight(self) -> None:
        assert set(WEIGHTS) == set(Flaw)


class TestCampaign:
    def test_the_same_seed_gives_the_same_jobs(self) -> None:
        one, two = (lived(campaign(3), 500) for _ in range(2))
        assert one == two
        assert [s.written() for s in one] == [s.written() for s in two]
        assert one != lived(campaign(4), 500)

    def test_reactions_do_not_change_what_people_do_anyway(self) -> None:
        heard, deaf = lived(campaign(3), 600), taken(campaign(3), 500)
        first = [(s.user.name, s.moment, s.case) for s in heard if s.attempt == 1]
        assert first == [(s.user.name, s.moment, s.case) for s in deaf][: len(first)]
        assert len(first) < len(heard)

    def test_moments_follow_the_calendar(self) -> None:
        seen = taken(campaign(), 3000)
        moments = [submission.moment for submission in seen]
        assert moments == sorted(moments)
        jobs = sum(submission.jobs for submission in seen)
        assert jobs / (moments[-1] / DAY) == pytest.approx(JOBS_PER_DAY, rel=0.2)

    def test_everything_occurs_in_a_run(self) -> None:
        seen = taken(campaign(), 5000)
        assert {submission.case.kind.name for submission in seen} == set(KINDS)
        assert {s.case.flaw for s in seen} == {*Flaw, None}
        assert len({submission.user.name for submission in seen}) == len(NAMES)
        flawed = sum(s.case.flaw is not None for s in seen) / len(seen)
        assert 0.12 < flawed < 0.35

    def test_requests_are_small_enough_for_the_machine(self) -> None:
        for submission in taken(campaign(), 3000):
            case = submission.case
            assert 30 <= case.asked_mb <= 1600
            assert case.needed_mb < 320
            if case.flaw is Flaw.HANG and (case.minutes or 1) > 2:
                assert submission.cancellation

    def test_what_waits_waits_for_its_own(self) -> None:
        seen = {s.number: s for s in taken(campaign(users=only("planner", "docking")), 300)}
        waiting = [s for s in seen.values() if s.after]
        assert len(waiting) > 50
        for submission in waiting:
            before = submission.after and seen[submission.after]
            assert before
            assert before.moment < submission.moment


class TestHabits:
    def flawed(self, habit: str, count: int = 400) -> list[bool]:
        seen = lived(campaign(users=only(habit, "docking", "md_relax")), count)
        return [submission.case.flaw is not None for submission in seen]

    def test_the_careful_err_less_than_the_novice(self) -> None:
        assert sum(self.flawed("careful")) < 0.5 * sum(self.flawed("novice"))

    def test_the_learner_learns(self) -> None:
        flaws = self.flawed("learner", 800)
        assert sum(flaws[:60]) / 60 > 2 * sum(flaws[-400:]) / 400

    def test_the_drifter_drifts(self) -> None:
        seen = taken(campaign(users=only("drifter", "md_relax")), 9000)
        by_version = Counter((s.case.version, s.case.flaw is not None) for s in seen)
        early, late = (
            by_version[version, True] / (by_version[version, True] + by_version[version, False])
            for version in ("2.1", "3.0b")
        )
        assert late > 3 * early

    def test_the_stubborn_try_again_without_change(self) -> None:
        people = campaign(users=only("stubborn", "docking"))
        seen = lived(people, 400)
        again = [s for s in seen if s.attempt > 1]
        assert len(again) > 30
        cases = [s.case for s in seen]
        assert sum(cases.count(s.case) > 1 for s in again) > 0.7 * len(again)
        assert max(s.attempt for s in seen) == BY_NAME["stubborn"].most_tries

    def test_the_optimist_asks_for_too_little(self) -> None:
        def too_little(habit: str) -> float:
            seen = taken(campaign(users=only(habit, "scf_energy", "fem_bridge")), 400)
            return sum(s.case.asked_mb < s.case.needed_mb for s in seen) / len(seen)

        assert too_little("optimist") > 0.15
        assert too_little("careful") == 0

    def test_sweeps_fail_together(self) -> None:
        seen = taken(campaign(users=only("sweeper", "hyper_sweep")), 300)
        flawed = [s for s in seen if s.case.flaw]
        assert sum(not s.case.scattered for s in flawed) > 0.6 * len(flawed)

    def test_people_have_their_hours(self) -> None:
        morning, night = 2 * HOUR, 18 * HOUR
        saturday = 5 * DAY + morning
        usual, owl, weekender = (BY_NAME[name] for name in ("careful", "routine", "gambler"))
        assert activity(morning, usual) > 2 * activity(night, usual)
        assert activity(night, owl) > 2 * activity(morning, owl)
        assert activity(saturday, usual) < activity(morning, usual)
        assert activity(saturday, weekender) > activity(morning, weekender)


class TestMending:
    case = Case(KINDS["md_relax"], 1, 0.5, 60, 1, 1, 9, flaw=None)

    def test_more_is_asked_for(self) -> None:
        by_chance = Random(1)
        assert mended(self.case, Outcome("OUT_OF_MEMORY"), by_chance).memory_mb == 120
        assert mended(self.case, Outcome("TIMEOUT"), by_chance).minutes == 2

    def test_a_leak_stays_a_leak(self) -> None:
        leaking = replace(self.case, flaw=Flaw.LEAK)
        assert mended(leaking, Outcome("OUT_OF_MEMORY"), Random(1)).flaw is Flaw.LEAK

    def test_what_is_wrong_is_found_mostly(self) -> None:
        broken = replace(self.case, flaw=Flaw.TYPO)
        found = sum(mended(broken, Outcome("FAILED"), Random(n)).flaw is None for n in range(100))
        assert 60 < found < 95


class TestPace:
    def test_the_calendar_runs_evenly_and_stands_still(self) -> None:
        pace = Pace(60, 10, 20, 5.0, load=lambda: 1.0)
        assert pace.moment(100.0) == 0
        later = pace.moment(101.0)
        assert later == pytest.approx(DAY / JOBS_PER_DAY)
        pace.stand_still(later / 2)
        assert pace.moment(101.0) == later / 2

    def test_a_full_queue_or_a_busy_machine_has_no_room(self) -> None:
        assert Pace(60, 10, 20, 5.0, load=lambda: 1.0).has_room(9, 19)
        assert not Pace(60, 10, 20, 5.0, load=lambda: 1.0).has_room(10, 0)
        assert not Pace(60, 10, 20, 5.0, load=lambda: 1.0).has_room(0, 20)
        assert not Pace(60, 10, 20, 5.0, load=lambda: 9.0).has_room(0, 0)
