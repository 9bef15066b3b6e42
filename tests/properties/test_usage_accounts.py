"""What a job has used, as its processes come and go: any family tree, looked at at any moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from premortem.sources.usage.accounts import Account, Reading

OUTSIDE = 1


@dataclass
class Family:
    """Processes as the kernel has them: a parent that waits for a child gets its figures."""

    living: dict[int, Reading] = field(default_factory=dict)
    truth: int = 0
    born: int = 100

    def fork(self, parent: int) -> None:
        self.born += 1
        pid = self.born
        self.living[pid] = Reading(pid, pid, parent, (0, 0, 0), (0, 0, 0))

    def work(self, pid: int, amount: int) -> None:
        one = self.living[pid]
        cpu, read, written = one.used
        data = (read + 2 * amount, written + 3 * amount)
        self.living[pid] = one._replace(
            used=(cpu + amount, *data), of_children=(one.of_children[0], *data)
        )
        self.truth += amount

    def end(self, pid: int, *, waited: bool) -> None:
        gone = self.living.pop(pid)
        heir = self.living.get(gone.parent)
        if waited and heir:
            cpu, read, written = (a + b for a, b in zip(heir.used, gone.used, strict=True))
            children = (heir.of_children[0] + gone.used[0], read, written)
            self.living[heir.pid] = heir._replace(used=(cpu, read, written), of_children=children)
        for child in [one for one in self.living.values() if one.parent == pid]:
            self.living[child.pid] = child._replace(parent=OUTSIDE)


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["fork", "work", "work", "end", "lose", "look"]),
        st.integers(0, 20),
        st.integers(1, 1000),
    ),
    max_size=60,
)


def lived(steps: Sequence[Step], *, all_waited: bool) -> list[tuple[int, tuple[int, int, int]]]:
    """The truth and the account's total at each look."""
    family, account, seen = Family(), Account(), []
    family.fork(OUTSIDE)
    first = family.born
    for what, which, amount in [*steps, ("look", 0, 1)]:
        pids = sorted(family.living)
        pid = pids[which % len(pids)] if pids else None
        if what == "look":
            account.update(dict(family.living))
            seen.append((family.truth, account.total))
        elif pid is None:
            continue
        elif what == "fork":
            family.fork(pid)
        elif what == "work":
            family.work(pid, amount)
        elif not all_waited:
            family.end(pid, waited=what == "end")
        elif pid != first and not any(one.parent == pid for one in family.living.values()):
            family.end(pid, waited=True)
    return seen


@given(STEPS)
def test_sums_never_fall_and_never_exceed_the_truth(steps: list[Step]) -> None:
    before = (0, 0, 0)
    for truth, total in lived(steps, all_waited=False):
        assert all(old <= new for old, new in zip(before, total, strict=True))
        assert total[0] <= truth
        assert total[1] <= 2 * truth
        before = total


@given(STEPS)
def test_nothing_is_missed_where_parents_wait(steps: list[Step]) -> None:
    for truth, total in lived(steps, all_waited=True):
        assert total == (truth, 2 * truth, 3 * truth)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_what_ends_with_nobody_above_it_is_kept(amounts: list[int]) -> None:
    account = Account()
    for number, amount in enumerate(amounts):
        used = (amount, 0, 0)
        account.update({9: Reading(9, number, OUTSIDE, used, (0, 0, 0))})
    account.update({})
    assert account.total == (sum(amounts), 0, 0)
