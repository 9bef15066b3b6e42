"""A cluster asked through slurmrestd, any release from 22.05 on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from premortem.errors import NotFound, Unavailable
from premortem.sources.content import Received
from premortem.sources.json_stream import JsonStream
from premortem.sources.live.callers import Caller
from premortem.sources.live.machines import Node, Partition, node_of, partition_of
from premortem.sources.live.port import Calls, Overlong, checked_ids
from premortem.sources.live.questions import Oversized, Patience, Query, Slurmrestd
from premortem.sources.live.reading import job_batches, script_in
from premortem.sources.live.versions import named, newest_known, number_of, served_in
from premortem.sources.live.windows import Windows
from premortem.sources.port import Batch, Context, together

# From v0.0.40 on, several numbers go into one question by repeating it, before that with commas
# between them; a job's times are cut to the window that was asked for, and only its last run is
# told, unless one says otherwise; and scripts can be had.
_SINCE_40 = 40
_IN_FULL = (("disable_truncate_usage_time", "true"), ("show_duplicates", "true"))
_AT_A_TIME = 200
_WINDOW_BYTES = 64 << 20


class RestCluster:
    """What slurmctld and slurmdbd tell through slurmrestd.

    The newest version of the API that is served and known is spoken, unless one is named. Answers
    are kept on disk while they are read, so that memory does not grow with them. `cluster` is the
    name to file jobs under, instead of their own.
    """

    def __init__(
        self,
        url: str,
        caller: Caller,
        *,
        version: str | None = None,
        cluster: str | None = None,
        window: timedelta = timedelta(hours=1),
        slow_s: float = 10.0,
        window_bytes: int = _WINDOW_BYTES,
        patience: Patience = Patience(),
        certificates: Path | str | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._daemon = Slurmrestd(
            url, caller, patience=patience, certificates=certificates, sleep=sleep
        )
        self._named = number_of(version) if version else None
        self._negotiated: int | None = None
        self._cluster = cluster
        # How long a window may be, as the last answers were, and whether a shorter one is no use.
        self._window, self._is_settled = window, False
        self._slow_s = slow_s
        self._window_bytes = window_bytes

    @property
    def calls(self) -> Calls:
        """How often each daemon has been asked."""
        return self._daemon.calls

    @property
    def version(self) -> str:
        """The version of the API that is spoken, such as ``v0.0.42``."""
        return named(self._version())

    def accounted(self, since: datetime, until: datetime) -> Iterator[Batch]:
        """The jobs of a span of time; see `Accounting`."""
        windows = Windows(since, until, self._window, is_settled=self._is_settled)
        while window := windows.current:
            query = [("start_time", f"uts{window[0]}"), ("end_time", f"uts{window[1]}")]
            query += self._in_full()
            begun = time.monotonic() - self.calls.waited_s
            # What cannot be had in smaller pieces is taken whole.
            is_limited = not (windows.is_shortest or windows.is_settled)
            try:
                answer = self._ask(
                    "slurmdb/{}/jobs",
                    [*query, ("skip_steps", "true")],
                    least=windows.is_shortest,
                    largest_bytes=self._window_bytes if is_limited else None,
                )
            except Overlong as error:
                if windows.is_shortest:
                    raise
                if is_limited and isinstance(error, Oversized):
                    windows.too_large()
                else:
                    windows.halve()
                self._window, self._is_settled = windows.width, windows.is_settled
                continue
            took = (time.monotonic() - self.calls.waited_s - begun) / self._slow_s
            size = answer.size / self._window_bytes if answer else 0.0
            yield from self._jobs(answer)
            windows.answered(max(took, size))
            self._window, self._is_settled = windows.width, windows.is_settled
            yield together([])

    def live(self) -> Batch:
        """All jobs in slurmctld's memory; see `Controller`."""
        return together(self._jobs(self._ask("slurm/{}/jobs")))

    def controlled(self, job_id: int) -> Batch:
        """One job as slurmctld sees it; see `Controller`."""
        [number] = checked_ids([job_id])
        return together(self._jobs(self._ask(f"slurm/{{}}/job/{number}")))

    def by_id(self, job_ids: Sequence[int]) -> Batch:
        """Jobs with what their steps tell, and their scripts; see `Accounting`."""
        ids = checked_ids(job_ids)
        return together(batch for answer in self._by_id(ids) for batch in self._jobs(answer))

    def scripts(self, job_ids: Sequence[int]) -> dict[int, str]:
        """Scripts; see `Accounting`. Releases before 23.11 do not tell them through slurmrestd."""
        found: dict[int, str] = {}
        if self._version() < _SINCE_40:
            return found
        for answer in self._by_id(checked_ids(job_ids), [("skip_steps", "true")]):
            for record in self._records(answer, "jobs"):
                script = script_in(record)
                if script:
                    found[script[0]] = script[1]
        return found

    @property
    def scripts_at_once(self) -> int:
        """Of how many jobs one call tells the scripts."""
        return _AT_A_TIME

    def partitions(self) -> list[Partition]:
        """The partitions; see `Controller`."""
        answer = self._ask("slurm/{}/partitions")
        return [partition_of(record) for record in self._records(answer, "partitions")]

    def nodes(self) -> list[Node]:
        """The nodes; see `Controller`."""
        answer = self._ask("slurm/{}/nodes")
        return [node_of(record) for record in self._records(answer, "nodes")]

    def close(self) -> None:
        """Hang up."""
        self._daemon.close()

    def _by_id(self, job_ids: list[int], extra: Query = ()) -> Iterator[Received | None]:
        """Answers to as few questions as the version allows, fewer jobs at a time if need be."""
        rest, several = list(job_ids), _AT_A_TIME
        while rest:
            some = rest[:several]
            words = [str(job_id) for job_id in some]
            steps = words if self._version() >= _SINCE_40 else [",".join(words)]
            query = [*(("step", step) for step in steps), *self._in_full(), *extra]
            if self._version() >= _SINCE_40:
                query.append(("show_batch_script", "true"))
            try:
                yield self._ask("slurmdb/{}/jobs", query, least=len(some) == 1)
            except Overlong:
                if len(some) == 1:
                    raise
                several = max(1, len(some) // 2)
                continue
            rest = rest[several:]

    def _in_full(self) -> Query:
        return _IN_FULL if self._version() >= _SINCE_40 else ()

    def _ask(
        self,
        path: str,
        query: Query = (),
        *,
        least: bool = True,
        largest_bytes: int | None = None,
    ) -> Received | None:
        """Ask in the version that is spoken; once more if that is served no longer."""

        def ask(version: int) -> Received | None:
            return self._daemon.ask(
                f"/{path.format(named(version))}", query, least=least, largest_bytes=largest_bytes
            )

        version = self._version()
        try:
            return ask(version)
        except NotFound:
            self._negotiated = None
            if self._version() == version:
                raise
        return ask(self._version())

    def _version(self) -> int:
        if self._named is not None:
            return self._named
        if self._negotiated is None:
            with self._daemon.ask("/openapi/v3") or Received("") as document:
                served = served_in(document.read(document.size))
            self._negotiated = newest_known(served, at=self._daemon.url)
        return self._negotiated

    def _jobs(self, answer: Received | None) -> Iterator[Batch]:
        now = datetime.now(UTC).replace(microsecond=0)
        return job_batches(answer, Context(cluster=self._cluster, seen_at=now, now=now))

    def _records(self, answer: Received | None, name: str) -> list[Any]:
        if answer is None:
            return []
        with answer:
            stream = JsonStream(answer)
            records = list(stream.items(name))
        if stream.damage:
            raise Unavailable(f"{answer.path}: {stream.damage}")
        return records

    def __enter__(self) -> RestCluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
