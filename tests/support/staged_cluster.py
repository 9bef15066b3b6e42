"""A slurmrestd on loopback that tells of invented jobs, by a clock that tests set."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from staged_server import Reply, document, staged

from premortem.operations.collecting import Collector
from premortem.sources.live.callers import Caller
from premortem.sources.live.questions import Patience
from premortem.sources.live.rest import RestCluster
from premortem.stores import Store

# Long enough ago for some simulated hours, and no later than the real clock.
BEGIN = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=20)
MINJOBAGE_S = 300
TOKEN = f"e30.{base64.urlsafe_b64encode(b'{}').decode()}.x"


@dataclass(slots=True)
class Invented:
    """A job; times are seconds since the beginning, `memory_of` is for how long it is listed."""

    submit_s: int
    end_s: int
    state: str = "COMPLETED"
    step_state: str | None = None
    script: str = "#!/bin/sh\ntrue\n"


@dataclass(slots=True)
class Cluster:
    """The jobs by their numbers, and the time; `faults` are replies by the first part of paths."""

    now_s: float = 0.0
    jobs: dict[int, Invented] = field(default_factory=dict)
    unknown_to_accounting: set[int] = field(default_factory=set)
    faults: dict[str, Reply] = field(default_factory=dict)
    # Told beside the jobs, by both daemons.
    nonsense: list[Any] = field(default_factory=list)
    # When each daemon was asked, by what.
    asked: list[tuple[float, str, dict[str, list[str]]]] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.now_s)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def calls(self, daemon: str) -> list[float]:
        """When a daemon was asked."""
        return [at for at, who, _ in self.asked if who == daemon]

    def asked_by_number(self) -> list[set[int]]:
        """The numbers in each question of that kind."""
        return [set(map(int, query["step"])) for _, _, query in self.asked if "step" in query]

    def answer(self, path: str) -> Reply:
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        daemon = "slurmdbd" if parts.path.startswith("/slurmdb/") else "slurmctld"
        self.asked.append((self.now_s, daemon, query))
        if daemon in self.faults:
            return self.faults[daemon]
        return document(jobs=[*self.nonsense, *self._told(daemon, query)])

    def _told(self, daemon: str, query: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
        for number, job in self.jobs.items():
            if job.submit_s > self.now_s:
                continue
            if daemon == "slurmctld":
                if self.now_s < job.end_s + MINJOBAGE_S:
                    yield self._record(number, job, steps=False)
            elif number in self.unknown_to_accounting:
                continue
            elif "step" in query:
                if str(number) in query["step"]:
                    steps = "skip_steps" not in query
                    yield self._record(number, job, steps=steps) | {"script": job.script}
            else:
                first, last = (
                    int(query[name][0].removeprefix("uts")) - BEGIN.timestamp()
                    for name in ("start_time", "end_time")
                )
                if job.submit_s <= last and min(job.end_s, self.now_s) >= first:
                    yield self._record(number, job, steps=False)

    def _record(self, number: int, job: Invented, *, steps: bool) -> dict[str, Any]:
        begun = int(BEGIN.timestamp())
        over = self.now_s >= job.end_s
        step = {"state": [job.step_state or job.state]}
        return {
            "job_id": number,
            "cluster": "one",
            "name": "x",
            "time": {
                "submission": begun + job.submit_s,
                "start": begun + job.submit_s,
                "end": begun + job.end_s if over else 0,
                "elapsed": 0,
            },
            "state": {"current": [job.state if over else "RUNNING"], "reason": "None"},
            "nodes": "n1",
            "steps": [step] if steps and over else [],
        }


@contextmanager
def staged_cluster(store: Store, **options: Any) -> Iterator[tuple[Cluster, Collector]]:
    """Such a cluster, and a collector of it that lives by the same clock."""
    cluster = Cluster()
    patience = Patience(timeout_s=5, attempts=4, pause_s=1)
    with staged() as stage:
        stage.answer = cluster.answer
        with RestCluster(
            stage.url, Caller(lambda: TOKEN), patience=patience, sleep=cluster.sleep
        ) as asked:
            yield (
                cluster,
                Collector(
                    asked, store, now=cluster.now, clock=cluster.clock, sleep=cluster.sleep,
                    **options,
                ),
            )  # fmt: skip


def most_in_a_minute(times: list[float]) -> int:
    """The most calls that any minute has, both ends included."""
    return max((sum(1 for t in times if at <= t <= at + 60) for at in times), default=0)


def garbage() -> Reply:
    return Reply(b"\xff\x00 garbage")


def cut_short() -> Reply:
    return Reply(json.dumps({"jobs": [{"job_id": 1}]}).encode()[:-4])


def refusal() -> Reply:
    return Reply(b"broken", 500, "text/plain")
