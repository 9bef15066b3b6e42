"""Ends all that a node runs, as a power cut would: its daemon, the steps of its jobs, their tasks.

Run by `accidents.py` as root in the lab's own small Python, with the node's name; it is not
imported. Nodes of a lab share one machine, so what belongs to which is found by the sockets that
steps keep in the spool folder of their node.
"""

import os
import re
import signal
import sys


def main(node: str) -> None:
    """End them all at once."""
    names = os.listdir(f"/var/lib/slurm/spool/{node}")
    found = (re.fullmatch(rf"{node}_(\d+)\.\d+(\.\d+)?", name) for name in names)
    jobs = {match[1] for match in found if match}
    parents: dict[int, int] = {}
    doomed: set[int] = set()
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline") as file:
                line = file.read()
            with open(f"/proc/{name}/stat") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        step = re.match(r"slurmstepd: \[(\d+)\.", line)
        words = line.split("\0")
        is_daemon = words[0].endswith("/slurmd") and node in words
        if is_daemon or (step and step[1] in jobs):
            doomed.add(int(name))
    while more := {pid for pid, parent in parents.items() if parent in doomed} - doomed:
        doomed |= more
    for pid in doomed:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main(sys.argv[1])
