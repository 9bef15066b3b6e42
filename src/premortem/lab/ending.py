"""Brings the daemons of a lab down in their order, so that what they know is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from premortem.lab.processes import Process
from premortem.lab.worlds import World

# Nobody's server ends before it.
_ORDER = ("slurmrestd", "slurmctld", "slurmd-", "slurmdbd", "mariadbd", "munged")
# Jobs that are ending get a few seconds for it.
_CANCEL = """\
squeue --noheader --format=%A | sort -u | xargs scancel --quiet
for turn in 1 2 3 4 5 6 7 8 9 10; do
    [ -z "$(squeue --noheader)" ] && break
    sleep 0.5
done
"""


def end_all(world: World, daemons: Mapping[str, Process], tell: Callable[[str], None]) -> None:
    """End the daemons one after the other, and then the world with all that is left in it."""
    try:
        controller = daemons.get("slurmctld")
        if controller and controller.is_running(world.proc):
            _cancel_jobs(world, tell)
        for first in _ORDER:
            group = {name: one for name, one in daemons.items() if name.startswith(first)}
            for name in group:
                tell(f"ending {name}")
            world.stop_all(list(group.values()))
    finally:
        world.end()


def _cancel_jobs(world: World, tell: Callable[[str], None]) -> None:
    """So that accounting does not wait for jobs that are no more."""
    queue = world.run("squeue", "--noheader", "--format=%A", timeout_s=30).stdout.split()
    if queue:
        tell(f"cancelling {len(set(queue))} jobs")
        world.run("sh", "-c", _CANCEL)
