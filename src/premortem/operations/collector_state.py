"""What a collector remembers from one start to the next, and tells when asked how it is."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass, field, fields
from datetime import datetime
from typing import Any

from premortem.stores.port import Store

NOTE = "collector"


@dataclass(slots=True)
class Counters:
    """What was done since the collector was first started on this store."""

    rounds: int = 0
    new: int = 0
    updated: int = 0
    rejected: int = 0
    scripts: int = 0
    samples: int = 0
    calls_slurmctld: int = 0
    calls_slurmdbd: int = 0
    failed_slurmctld: int = 0
    failed_slurmdbd: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(
            *(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True))
        )

    def as_dict(self) -> dict[str, int]:
        """Counts by name."""
        return asdict(self)


@dataclass(slots=True)
class Round:
    """What one round brought; `problems` tell by daemon why it could not be asked.

    `seconds` is how long it took, and `waited_s` how much of that was waiting for the budget.
    """

    counters: Counters = field(default_factory=Counters)
    problems: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    waited_s: float = 0.0


@dataclass(slots=True)
class CollectorState:
    """`read_from` and `watermark` are from when and up to when accounting has been read,
    `details_from` from when on steps and scripts may be missing. Times are ISO 8601, in UTC.

    `problems` are why a daemon could not be asked last time, `answered` when it last could;
    `ahead_s` is by how much the cluster's clock was seen to be ahead of this machine's. Of `open`
    jobs the end is not known yet; `untold` are those of which accounting knows nothing. `clusters`
    are those that were told of: other jobs of the store are not asked for. `sound_since` is from
    when on slurmdbd has answered every question; `calls` are the times, in seconds since 1970, of
    the last minute's calls to each daemon.
    """

    clusters: list[str] = field(default_factory=list)
    read_from: str | None = None
    watermark: str | None = None
    details_from: str | None = None
    last_round: str | None = None
    answered: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    ahead_s: float = 0.0
    open: int = 0
    untold: int = 0
    without_details: int = 0
    sound_since: str | None = None
    calls: dict[str, list[float]] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return asdict(self)

    def save(self, store: Store) -> None:
        """Keep it in the store."""
        store.set_note(NOTE, json.dumps(asdict(self)))

    @classmethod
    def load(cls, store: Store) -> CollectorState | None:
        """What was kept; None if no collector has worked on this store, or no like one."""
        text = store.note(NOTE)
        if text is None:
            return None
        try:
            told = _known(cls, json.loads(text))
            counters = Counters(**_known(Counters, told.get("counters", {})))
        except (ValueError, TypeError, AttributeError):
            return None
        return cls(**{**told, "counters": counters})


def _known(kind: type[CollectorState | Counters], told: dict[str, Any]) -> dict[str, Any]:
    """What is known here of what was kept; another version may have known more."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in told.items() if name in names}


def moment(text: str | None) -> datetime | None:
    """A time as it is kept here."""
    return None if text is None else datetime.fromisoformat(text)
