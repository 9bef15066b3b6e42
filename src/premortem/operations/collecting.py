"""Keeps a store informed of a cluster, by few questions: one round of them after another.

A round asks slurmctld for the jobs in its memory, which shows each job as it was asked for and
keeps live ones fresh; slurmdbd for what it has noted since the last round and a while before, since
notes come late; and slurmdbd again for the jobs that slurmctld no longer knows, for the steps of
jobs that failed, and for scripts. Everything may be asked and stored twice: a store keeps each job
once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

import polars as pl

from premortem.errors import PremortemError
from premortem.jobs.fields import KEY
from premortem.jobs.frame import SCHEMA
from premortem.jobs.states import STATES, Progress
from premortem.operations.budgets import Budget
from premortem.operations.collector_state import CollectorState, Counters, moment
from premortem.sources.live.port import Accounting, Controller
from premortem.sources.port import Batch
from premortem.stores.port import JobQuery, Store

_UNFINISHED = tuple(s for s, progress in STATES.items() if progress is not Progress.ENDED)
# Accounting is read in spans of this length, each remembered when it is done.
_SPAN = timedelta(days=1)
# How many jobs one question names at most.
_AT_A_TIME = 50
# How often a job is asked for of which accounting tells nothing, and how long details may be late.
_MOST_TRIES = 6
_LATE = timedelta(minutes=5)
# When so many jobs in a row have no script, the site keeps none.
_ENOUGH_WITHOUT_SCRIPT = 200
# Clocks that differ by less are not spoken of.
_SKEW_S = 5.0

_Key = tuple[str, int, datetime]
_T = TypeVar("_T")


class Cluster(Accounting, Controller, Protocol):
    """A cluster of which both daemons can be asked."""


class Sampler(Protocol):
    """What tells how much running jobs use, by their numbers."""

    def sample(self, job_ids: Sequence[int]) -> pl.DataFrame:
        """Samples of those that run; see `jobs.samples`."""


def sampled(sampler: Sampler, jobs: Iterable[_Key]) -> pl.DataFrame:
    """Samples of these jobs, each filed under its cluster."""
    clusters = {number: cluster for cluster, number, _ in jobs}
    samples = sampler.sample(list(clusters))
    return samples.with_columns(
        cluster=pl.col("job_id").replace_strict(clusters, return_dtype=pl.String)
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to ask, and how much at most: calls are those of any minute.

    A first round looks back as far as `history`; later ones look back behind the last by `overlap`.
    """

    every_s: float = 60.0
    slurmctld_calls: int = 6
    slurmdbd_calls: int = 6
    overlap: timedelta = timedelta(minutes=10)
    history: timedelta = timedelta(days=1)
    longest_pause_s: float = 600.0


@dataclass(slots=True)
class Round:
    """What one round brought; `problems` tell by daemon why it could not be asked."""

    counters: Counters = field(default_factory=Counters)
    problems: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class Collector:
    """Asks a cluster and fills a store; see the module.

    `tell` hears of what happens: an event's name and its values. The state is kept in the store,
    so that a collector killed at any moment goes on where it was.
    """

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        *,
        pace: Pace = Pace(),
        sampler: Sampler | None = None,
        tell: Callable[..., None] = lambda _event, **_values: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._pace = pace
        self._sampler = sampler
        self._tell = tell
        self._now = now
        self._clock = clock
        self._sleep = sleep
        self._budgets = {
            "slurmctld": Budget(pace.slurmctld_calls, clock),
            "slurmdbd": Budget(pace.slurmdbd_calls, clock),
        }
        self._asked_before = (cluster.calls.slurmctld, cluster.calls.slurmdbd)
        self.state = CollectorState.load(store) or CollectorState()
        columns = [*KEY, "state"]
        known = store.jobs(JobQuery(states=_UNFINISHED), columns)
        self._open: dict[_Key, str] = {(c, n, at): state for c, n, at, state in known.iter_rows()}
        # How often a job was asked for in vain: for its end, its steps, its script.
        self._tries: dict[tuple[str, _Key], int] = {}
        self._without_script = 0

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Round after round until stopped, rarer while a daemon does not answer or is slow."""
        pause = self._pace.every_s
        while not stopped():
            begun = self._clock()
            done = self.round()
            troubled = bool(done.problems) or done.seconds > max(self._pace.every_s / 2, 5.0)
            pause = min(pause * 2, self._pace.longest_pause_s) if troubled else self._pace.every_s
            if troubled:
                self._tell("backing_off", pause_s=pause)
            while not stopped() and (left := begun + pause - self._clock()) > 0:
                self._sleep(min(left, 1.0))

    def round(self) -> Round:
        """Ask once for everything, as far as the budget goes."""
        done, begun = Round(), self._clock()
        seen = self._look_at_live(done)
        self._read_accounting(done)
        if seen is not None:
            self._follow_missing(seen, done)
        self._read_details(done)
        self._take_samples(done)
        done.seconds = self._clock() - begun
        self._conclude(done)
        return done

    # --- the questions of a round ---------------------------------------------------------------

    def _look_at_live(self, done: Round) -> set[_Key] | None:
        """The jobs that slurmctld has in memory; None if it cannot be asked."""
        batch = self._ask("slurmctld", self._cluster.live, done)
        if batch is None:
            return None
        self._keep("slurmctld", batch, done)
        return set(_keys(batch.jobs))

    def _read_accounting(self, done: Round) -> None:
        """What slurmdbd has noted since the watermark, and a while before."""
        now = self._now()
        mark = moment(self.state.watermark)
        since = now - self._pace.history if mark is None else min(mark, now) - self._pace.overlap
        self.state.details_from = self.state.details_from or since.isoformat()
        # A cluster whose clock is ahead has noted things that lie in the future here.
        last = now + timedelta(seconds=self.state.ahead_s + 1)
        while since < last:
            until = min(since + _SPAN, last)
            # A question may be behind any batch.
            ask = partial(next, iter(self._cluster.accounted(since, until)), _NOTHING)
            while (batch := self._ask("slurmdbd", ask, done, patient=True)) is not _NOTHING:
                if batch is None:
                    return
                self._keep("slurmdbd", batch, done)
            self.state.watermark = min(until, now).isoformat()
            self.state.save(self._store)
            since = until

    def _follow_missing(self, seen: set[_Key], done: Round) -> None:
        """Ask slurmdbd what became of the jobs that slurmctld has forgotten."""
        missing = [key for key in self._open if key not in seen]
        wanted = self._worth_trying("end", missing)
        self.state.untold = len(missing) - len(wanted)
        for some in _parts(wanted):
            if not self._read_jobs({number for _, number, _ in some}, done):
                return
            self._tried("end", [key for key in some if key in self._open])

    def _read_details(self, done: Round) -> None:
        """Steps of jobs that failed, where a lack of memory may hide; and scripts, newest first."""
        since = moment(self.state.details_from)
        columns = [*KEY, "array_job_id", "state", "step_state", "script"]
        jobs = self._store.jobs(JobQuery(since=since), columns)
        stepless = jobs.filter(pl.col("step_state").is_null() & (pl.col("state") == "FAILED"))
        for some in _parts(self._worth_trying("steps", list(_keys(stepless))[::-1])):
            if not self._read_jobs({number for _, number, _ in some}, done):
                break
            self._tried("steps", some)
        scriptless = jobs.filter(pl.col("script").is_null())
        if self._without_script < _ENOUGH_WITHOUT_SCRIPT:
            self._read_scripts(scriptless, done)
        left = self._worth_trying("steps", _keys(stepless))
        left += self._worth_trying("script", _keys(scriptless))
        oldest = min((at for _, _, at in left), default=self._now())
        self.state.without_details = len(set(left))
        self.state.details_from = min(oldest, self._now() - self._pace.overlap).isoformat()

    def _read_scripts(self, jobs: pl.DataFrame, done: Round) -> None:
        wanted = set(self._worth_trying("script", _keys(jobs)))
        # The tasks of an array share a script: one of them is asked for.
        whose: dict[tuple[Any, ...], list[_Key]] = {}
        for cluster, number, at, array in jobs.select(*KEY, "array_job_id").iter_rows():
            if (cluster, number, at) in wanted:
                alike = (cluster, number, at) if array is None else (cluster, array, at, "array")
                whose.setdefault(alike, []).append((cluster, number, at))
        for some in _parts(list(whose.values())[::-1]):
            numbers = [keys[0][1] for keys in some]
            found = self._ask("slurmdbd", partial(self._cluster.scripts, numbers), done)
            if found is None:
                return
            rows = [
                (*key, found[keys[0][1]]) for keys in some for key in keys if keys[0][1] in found
            ]
            self._store.append(pl.DataFrame(rows, schema=_SCRIPTS, orient="row"))
            done.counters.scripts += len(rows)
            self._without_script = 0 if found else self._without_script + len(some)
            self._tried("script", [k for keys in some if keys[0][1] not in found for k in keys])
        if self._without_script >= _ENOUGH_WITHOUT_SCRIPT:
            self._tell("no_scripts", why="accounting keeps none of them")

    def _read_jobs(self, numbers: Iterable[int], done: Round) -> bool:
        """Ask for jobs with their steps; False if that cannot be done now."""
        batch = self._ask("slurmdbd", partial(self._cluster.by_id, sorted(numbers)), done)
        if batch is not None:
            self._keep("slurmdbd", batch, done)
        return batch is not None

    def _take_samples(self, done: Round) -> None:
        running = [key for key, state in self._open.items() if state == "RUNNING"]
        if self._sampler is None or not running:
            return
        try:
            samples = sampled(self._sampler, running)
        except PremortemError as error:
            self._tell("no_samples", why=str(error))
            return
        done.counters.samples += self._store.add_samples(samples)

    # --- asking and keeping ---------------------------------------------------------------------

    def _ask(
        self, daemon: str, question: Callable[[], _T], done: Round, *, patient: bool = False
    ) -> _T | None:
        """The answer, if the budget allows to ask and there is one; `patient` waits for the budget.

        A daemon that did not answer in this round is not asked again in it.
        """
        budget = self._budgets[daemon]
        if daemon in done.problems:
            return None
        if patient and budget.wait_s:
            self._tell("waiting_for_budget", daemon=daemon, seconds=round(budget.wait_s))
            self._sleep(budget.wait_s)
        if not budget.left:
            return None
        try:
            answer = question()
        except PremortemError as error:
            done.problems[daemon] = str(error)
            self._tell("no_answer", daemon=daemon, why=str(error))
            return None
        finally:
            self._settle(done)
        self.state.answered[daemon] = self._now().isoformat(timespec="seconds")
        return answer

    def _settle(self, done: Round) -> None:
        """Charge the calls made since last time."""
        made = (self._cluster.calls.slurmctld, self._cluster.calls.slurmdbd)
        control, accounts = (m - b for m, b in zip(made, self._asked_before, strict=True))
        self._asked_before = made
        self._budgets["slurmctld"].spend(control)
        self._budgets["slurmdbd"].spend(accounts)
        done.counters.calls_slurmctld += control
        done.counters.calls_slurmdbd += accounts

    def _keep(self, daemon: str, batch: Batch, done: Round) -> None:
        if batch.rejects.height:
            self._store.set_aside(f"{daemon}, collected", batch.rejects)
            done.counters.rejected += batch.rejects.height
        if batch.jobs.is_empty():
            return
        appended = self._store.append(batch.jobs)
        done.counters.new += appended.new
        done.counters.updated += appended.updated
        self._mind_the_clock(batch.jobs)
        for cluster, number, at, state in batch.jobs.select(*KEY, "state").iter_rows():
            if STATES.get(state) is Progress.ENDED:
                self._open.pop((cluster, number, at), None)
            elif self._tries.get(("end", (cluster, number, at)), 0) < _MOST_TRIES:
                self._open[cluster, number, at] = state

    def _mind_the_clock(self, jobs: pl.DataFrame) -> None:
        newest = jobs["submit_time"].max()
        ahead = (newest - self._now()).total_seconds() if isinstance(newest, datetime) else 0.0
        if ahead > max(_SKEW_S, self.state.ahead_s):
            self.state.ahead_s = ahead
            self._tell("clock_skew", cluster_ahead_s=round(ahead))

    def _worth_trying(self, what: str, keys: Iterable[_Key]) -> list[_Key]:
        return [key for key in keys if self._tries.get((what, key), 0) < _MOST_TRIES]

    def _tried(self, what: str, keys: Iterable[_Key]) -> None:
        """Asked in vain; once what may be late has had its time, in vain for good."""
        for key in keys:
            late = self._now() - key[2] > _LATE
            tries = self._tries.get((what, key), 0) + 1
            self._tries[what, key] = _MOST_TRIES if late and what != "end" else tries
            if what == "end" and tries == _MOST_TRIES:
                self._tell("untold", job=key[1], submitted=key[2].isoformat())

    def _conclude(self, done: Round) -> None:
        done.counters.rounds = 1
        done.counters.failed_slurmctld = int("slurmctld" in done.problems)
        done.counters.failed_slurmdbd = int("slurmdbd" in done.problems)
        self.state.counters += done.counters
        self.state.problems = done.problems
        self.state.open = len(self._open)
        self.state.last_round = self._now().isoformat(timespec="seconds")
        self.state.save(self._store)
        brought = {name: count for name, count in done.counters.as_dict().items() if count}
        self._tell("round", seconds=round(done.seconds, 2), open=len(self._open), **brought)


_NOTHING = Batch(pl.DataFrame(), pl.DataFrame())
_SCRIPTS = {name: SCHEMA[name] for name in (*KEY, "script")}


def _keys(jobs: pl.DataFrame) -> Iterable[_Key]:
    return jobs.select(KEY).iter_rows() if jobs.height else ()


def _parts(things: Sequence[_T]) -> Iterable[Sequence[_T]]:
    return (things[at : at + _AT_A_TIME] for at in range(0, len(things), _AT_A_TIME))
