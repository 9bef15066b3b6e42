"""Nothing is asked for without end, and nothing is given up for ever."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from premortem.operations.tries import JobKey, Tries, What

JOB: JobKey = ("lab", 1, datetime(2026, 1, 5, tzinfo=UTC))
OTHER: JobKey = ("lab", 2, datetime(2026, 1, 5, tzinfo=UTC))


@pytest.mark.parametrize(("what", "most"), [("end", 6), ("steps", 3), ("script", 6)])
def test_ever_rarer_until_it_is_hopeless_and_anew_after_a_day(what: What, most: int) -> None:
    now = [0.0]
    tries = Tries(lambda: now[0])
    asked = []
    for second in range(3600):
        now[0] = second
        if tries.due(what, [JOB]):
            asked.append(second)
            tries.in_vain(what, [JOB])
    assert len(asked) == most
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    assert gaps == sorted(gaps)
    assert tries.hopeful(what, [JOB, OTHER]) == [OTHER]
    now[0] = asked[-1] + 86_000
    tries.forget_old()
    assert tries.due(what, [JOB]) == []
    now[0] = asked[-1] + 86_401
    tries.forget_old()
    assert tries.due(what, [JOB]) == [JOB]


def test_a_number_of_our_own_is_never_asked_for() -> None:
    made_up = ("lab", 7 + 4 * 2**32, JOB[2])
    assert Tries(lambda: 0.0).due("end", [made_up, JOB]) == [JOB]


def test_for_good_is_at_once_and_of_one_kind_alone() -> None:
    tries = Tries(lambda: 0.0)
    tries.in_vain("steps", [JOB], for_good=True)
    assert tries.hopeful("steps", [JOB]) == []
    assert tries.due("script", [JOB]) == [JOB]
