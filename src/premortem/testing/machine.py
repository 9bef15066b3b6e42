"""Where jobs run: partitions and their nodes, the week's rhythm, and the nodes that go bad."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from premortem.testing.habits import Array

HOUR_S = 3600
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition; those with the same `prefix` share their nodes."""

    name: str
    prefix: str
    nodes: int
    cpus: int
    memory_mb: int
    longest_s: int
    wait_s: float  # usual wait at a usual hour
    qos: str = "normal"
    metered: bool = True  # nodes that report their energy


PARTITIONS: tuple[Partition, ...] = (
    Partition("batch", "cn", 96, 64, 256_000, 168 * HOUR_S, 240),
    Partition("short", "cn", 96, 64, 256_000, 4 * HOUR_S, 40),
    Partition("bigmem", "bm", 8, 64, 2_063_000, 168 * HOUR_S, 900, metered=False),
    Partition("gpu", "gn", 24, 48, 515_000, 72 * HOUR_S, 700),
    Partition("scavenge", "cn", 96, 64, 256_000, 72 * HOUR_S, 30, qos="low"),
    Partition("debug", "dn", 4, 32, 128_000, HOUR_S // 2, 4, qos="debug", metered=False),
)
BATCH, SHORT, BIGMEM, GPU, SCAVENGE, DEBUG = range(len(PARTITIONS))

# What people type for a limit (minutes) and for memory (MiB, by node and by CPU).
LIMITS_S: Array = 60 * np.array(
    [10, 15, 30, 60, 120, 240, 360, 480, 720, 1440, 2160, 2880, 4320, 7200, 10080]
)
NODE_MEMORY_MB: Array = np.array(
    [
        500, 1000, 2048, 4096, 8192, 12_000, 16_384, 32_768, 48_000, 65_536, 98_304, 128_000,
        190_000, 256_000, 400_000, 515_000, 786_432, 1_048_576, 1_572_864, 2_063_000,
    ]
)  # fmt: skip
CPU_MEMORY_MB: Array = np.array(
    [500, 1000, 1024, 2000, 2048, 3900, 4096, 8192, 16_384, 32_768, 65_536]
)


def typed(amount: Array, steps: Array) -> Array:
    """The first of the round numbers people type that is at least the amount; else the last."""
    return np.asarray(steps[np.minimum(np.searchsorted(steps, amount), len(steps) - 1)])


class Calendar:
    """The rhythm of submissions: busy working days, quiet nights, quieter weekends, slow growth.

    Times are Unix seconds; `begin` and `end` bound the period.
    """

    def __init__(self, begin: int, days: float) -> None:
        self.begin = begin
        self.end = begin + max(int(days * DAY_S), 1)
        self._edges = np.append(np.arange(begin, self.end, HOUR_S), self.end)
        middle = (self._edges[:-1] + self._edges[1:]) / 2
        hour = (middle % DAY_S) / HOUR_S
        weekday = (middle // DAY_S + 3) % 7  # 1 January 1970 was a Thursday
        day = 0.25 + np.exp(-(((hour - 14) / 4.2) ** 2))
        self._pace = day * np.where(weekday >= 5, 0.4, 1.0) * (1 + 0.4 * self.progress(middle))
        self._flow = np.append(0.0, np.cumsum(self._pace * np.diff(self._edges)))

    def progress(self, time: Array) -> Array:
        """How much of the period has passed, from 0 to 1."""
        return (time - self.begin) / (self.end - self.begin)

    def time(self, share: Array) -> Array:
        """When that share of all submissions has been made, in whole seconds."""
        moments = np.interp(share * self._flow[-1], self._flow, self._edges)
        return np.asarray(np.clip(moments, self.begin, self.end).astype(np.int64))

    def load(self, time: Array) -> Array:
        """How busy the cluster is, 1 on average."""
        hour = np.clip((time - self.begin) // HOUR_S, 0, len(self._pace) - 1)
        return np.asarray(self._pace[hour] / self._pace.mean())


class Outages:
    """Spells in which one node kills what it gets, and being idle again, gets more.

    Spells never overlap. The same few nodes are to blame for most of them.
    """

    def __init__(self, calendar: Calendar, rng: np.random.Generator) -> None:
        period = calendar.end - calendar.begin
        count = max(3, int(period / (4 * DAY_S)))
        slot = period / count
        length = np.minimum(rng.uniform(3, 10, count) * HOUR_S, slot * 0.8)
        offset = rng.random(count) * (slot - length)
        self._begins = calendar.begin + (np.arange(count) * slot + offset).astype(np.int64)
        self._ends = self._begins + length.astype(np.int64)
        self._on_gpu = rng.random(count) < 0.25
        culprits = np.minimum((rng.random(count) ** 3 * 12).astype(np.int64) * 7 + 5, 95)
        self._node = np.where(self._on_gpu, culprits % PARTITIONS[GPU].nodes, culprits)

    def at(self, time: Array, partition: Array) -> tuple[Array, Array]:
        """The bad node of each job's partition at that time, -1 for none, and when it recovers."""
        spell = np.maximum(np.searchsorted(self._begins, time, side="right") - 1, 0)
        within = (time >= self._begins[spell]) & (time < self._ends[spell])
        prefix = np.array([p.prefix for p in PARTITIONS])[partition]
        hit = within & (prefix == np.where(self._on_gpu[spell], "gn", "cn"))
        return np.where(hit, self._node[spell], -1), self._ends[spell]
