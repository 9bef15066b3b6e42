"""What a lab is to be: its release, size, people and ports, checked before anything is started."""

from __future__ import annotations

import random
import re
import socket
from dataclasses import dataclass
from typing import Any

from premortem.errors import Conflict, InvalidInput
from premortem.lab.releases import NEWEST, Release, release_named

LOOPBACK = "127.0.0.1"
CPUS_PER_NODE = 8
MEMORY_PER_NODE_MB = 8000
GPUS = 2
ACCOUNTS = ("physics", "chemistry", "biology")

_MOST_NODES = 64
_MOST_USERS = 500
# Below the ports that connections of their own take.
_PORTS = range(20_000, 32_000)


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a lab, all on loopback; `nodes` has one for each node."""

    slurmctld: int
    slurmdbd: int
    slurmrestd: int
    nodes: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        """Each of them."""
        return (self.slurmctld, self.slurmdbd, self.slurmrestd, *self.nodes)

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return {
            "slurmctld": self.slurmctld,
            "slurmdbd": self.slurmdbd,
            "slurmrestd": self.slurmrestd,
            "nodes": list(self.nodes),
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Ports:
        """From a file."""
        return cls(**{**told, "nodes": tuple(told["nodes"])})


@dataclass(frozen=True, slots=True)
class Plan:
    """What a lab is to be. `oom` is None where the machine is to decide."""

    release: Release = NEWEST
    cluster: str = "lab"
    nodes: int = 4
    users: int = 3
    oom: bool | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= _MOST_NODES:
            raise InvalidInput(f"a lab has 1 to {_MOST_NODES} nodes, not {self.nodes}")
        if not 1 <= self.users <= _MOST_USERS:
            raise InvalidInput(f"a lab has 1 to {_MOST_USERS} users, not {self.users}")
        # Slurm makes tables of this name.
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", self.cluster):
            raise InvalidInput(
                "a cluster's name is of small letters, digits and _, a letter first; "
                f"not '{self.cluster}'"
            )

    @property
    def node_names(self) -> list[str]:
        """n1, n2 and so on."""
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    @property
    def user_names(self) -> list[str]:
        """user01, user02 and so on."""
        return [f"user{number:02}" for number in range(1, self.users + 1)]

    @property
    def memberships(self) -> list[tuple[str, list[str]]]:
        """Accounts with users of theirs, in the order to tell Slurm.

        A user's first account is the one it uses unless told otherwise; every third has two.
        """
        users, count = self.user_names, len(ACCOUNTS)
        own = [(account, users[place::count]) for place, account in enumerate(ACCOUNTS)]
        return [(account, some) for account, some in (*own, (ACCOUNTS[0], users[2::3])) if some]

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return {
            "slurm": self.release.name,
            "cluster": self.cluster,
            "nodes": self.nodes,
            "users": self.users,
            "oom": self.oom,
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Plan:
        """From a file."""
        told = dict(told)
        return cls(release_named(told.pop("slurm")), **told)


def choose_ports(nodes: int, *, before: Ports | None = None, rest: int | None = None) -> Ports:
    """Free ports: those of before where they still are, and `rest` for slurmrestd if given."""
    if rest is not None and not _is_free(rest):
        raise Conflict(f"port {rest} of {LOOPBACK} is taken: choose another for slurmrestd")
    wanted: list[int | None] = [None] * (3 + nodes)
    if before:
        wanted[: len(before.all)] = before.all[: 3 + nodes]
    if rest is not None:
        wanted[2] = rest
    chosen = [port if port and _is_free(port) else None for port in wanted]
    # From anywhere, so that labs that start at the same moment hardly meet.
    fresh = iter(random.sample(_PORTS, len(_PORTS)))
    for place, port in enumerate(chosen):
        if port is None:
            chosen[place] = next((p for p in fresh if p not in chosen and _is_free(p)), None)
    ports = [port for port in chosen if port]
    if len(ports) < len(chosen):
        raise Conflict(f"of {LOOPBACK}'s ports {_PORTS[0]} to {_PORTS[-1]} not enough are free")
    return Ports(ports[0], ports[1], ports[2], tuple(ports[3:]))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do it: a port whose last connections are still closing counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError):
            return False
    return True
