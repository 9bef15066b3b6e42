"""A real Slurm on this machine, for trying things out and for tests.

`Lab` is all that others need. A lab runs from a root folder of Debian's packages (`roots`), in a
world of its own (`worlds`, `keeper`); everything that it writes is in its folder.
"""

from __future__ import annotations

from premortem.lab.lab import Lab

__all__ = ["Lab"]
