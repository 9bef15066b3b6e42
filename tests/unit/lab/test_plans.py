"""What a lab may be, who works there, and which ports it takes."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from premortem.errors import Conflict, InvalidInput
from premortem.lab.plans import Plan, Ports, choose_ports
from premortem.lab.releases import RELEASES


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


@pytest.mark.parametrize("release", RELEASES.values(), ids=str)
def test_a_plan_survives_being_written_down(release: object) -> None:
    plan = Plan(release, "alpha", 2, 7, oom=False)  # type: ignore[arg-type]
    assert Plan.from_dict(plan.as_dict()) == plan
    ports = choose_ports(2)
    assert Ports.from_dict(ports.as_dict()) == ports


@pytest.mark.parametrize("name", ["", "9lives", "Alpha", "a b", "a;drop", "x" * 41])
def test_a_name_that_is_no_table_of_a_database_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="a cluster's name"):
        Plan(cluster=name)


@pytest.mark.parametrize("users", [1, 2, 3, 20])
def test_every_user_has_an_account_and_some_have_two(users: int) -> None:
    plan = Plan(users=users)
    accounts: dict[str, list[str]] = {}
    for account, members in plan.memberships:
        assert members
        for user in members:
            accounts.setdefault(user, []).append(account)
    assert sorted(accounts) == plan.user_names
    assert all(len(own) == len(set(own)) for own in accounts.values())
    assert sum(len(own) > 1 for own in accounts.values()) == users // 3


def test_ports_are_all_different() -> None:
    ports = choose_ports(64)
    assert len(set(ports.all)) == 67


def test_ports_stay_unless_another_took_them(taken: int) -> None:
    before = choose_ports(3)
    assert choose_ports(3, before=before) == before
    fewer = choose_ports(2, before=before)
    assert fewer.all == before.all[:-1]
    more = choose_ports(5, before=before)
    assert more.all[:6] == before.all
    moved = choose_ports(1, before=Ports(1, taken, before.slurmrestd, (taken,)))
    assert moved.slurmrestd == before.slurmrestd
    assert taken not in moved.all


def test_a_port_asked_for_must_be_free(taken: int) -> None:
    with pytest.raises(Conflict, match=f"port {taken} "):
        choose_ports(1, rest=taken)
