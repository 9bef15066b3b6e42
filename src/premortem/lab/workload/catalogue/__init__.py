"""The kinds of job that a workload is made of, by the people who run them."""

from __future__ import annotations

from premortem.lab.workload.catalogue import biology, chemistry, housekeeping, learning, physics

KINDS = {
    kind.name: kind
    for group in (physics, chemistry, biology, learning, housekeeping)
    for kind in group.KINDS
}
