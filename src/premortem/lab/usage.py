"""What the jobs of one lab use, seen from outside of its world."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from premortem.errors import Unavailable
from premortem.lab.processes import PROC

if TYPE_CHECKING:
    from premortem.lab.worlds import World
    from premortem.sources.usage import NodeSampler


def sampler_of(world: World, cluster: str) -> NodeSampler:
    """A sampler of the jobs in that world, on all its nodes together, and of no other's."""
    from premortem.sources.usage import NodeSampler

    own = _namespace(world.keeper.pid)
    if own is None:
        raise Unavailable("the lab has ended: `premortem lab up` starts it")
    return NodeSampler(cluster, belongs=lambda pid: _namespace(pid) == own)


def _namespace(pid: int) -> str | None:
    """What tells the processes of a world from all others; None if the process is gone."""
    try:
        return os.readlink(PROC / str(pid) / "ns" / "pid")
    except OSError:
        return None
