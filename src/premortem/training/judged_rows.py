"""The judged jobs, as far as a report tells what was decided of them.

They are kept with the report, so that it can be told again for another threshold. Users are
numbers there, and nothing names a job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from premortem.models.port import Array
from premortem.training.report_slices import Part


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """A place for each judged job in everything here.

    `users` and `order`, that of submission, are what intervals are drawn by. `parts` are those of
    each kind, no job being in two of a kind. `causes` are how they failed, `named` how they most
    likely would, none if that was not told.
    """

    outcomes: Array
    risk: Array
    users: Array
    order: Array
    parts: Mapping[str, Sequence[Part]]
    causes: Sequence[str]
    named: Sequence[str]

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name; words that many jobs share are written once."""
        return {
            "failed": self.outcomes.astype(int).tolist(),
            "risk": self.risk.tolist(),
            "user": self.users.tolist(),
            "order": self.order.tolist(),
            "parts": {kind: _numbered(parts, self.outcomes) for kind, parts in self.parts.items()},
            "cause": _coded(self.causes),
            "named": _coded(self.named),
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> JudgedRows:
        """The rows that were written so."""
        return cls(
            np.array(told["failed"], dtype=float),
            np.array(told["risk"], dtype=float),
            np.array(told["user"], dtype=np.int64),
            np.array(told["order"], dtype=np.int64),
            {
                kind: [(name, np.array(one["of"]) == at) for at, name in enumerate(one["names"])]
                for kind, one in told["parts"].items()
            },
            _decoded(told["cause"]),
            _decoded(told["named"]),
        )


def _numbered(parts: Sequence[Part], jobs: Array) -> dict[str, Any]:
    """The parts' names, and which each job is in."""
    of = np.full(len(jobs), -1)
    for at, (_, member) in enumerate(parts):
        of[member] = at
    return {"names": [name for name, _ in parts], "of": of.tolist()}


def _coded(words: Sequence[str]) -> dict[str, Any]:
    places: dict[str, int] = {}
    of = [places.setdefault(word, len(places)) for word in words]
    return {"names": list(places), "of": of}


def _decoded(told: Mapping[str, Any]) -> list[str]:
    return [told["names"][at] for at in told["of"]]
