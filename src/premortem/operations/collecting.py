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
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, Protocol, TypeVar

import polars as pl

from premortem.errors import PremortemError, Unavailable
from premortem.jobs.fields import KEY
from premortem.jobs.frame import SCHEMA
from premortem.jobs.states import STATES, UNFINISHED, Progress
from premortem.operations.accounting_spans import AccountingSpans
from premortem.operations.bad_records import BadRecords
from premortem.operations.budgets import Budget
from premortem.operations.collector_state import CollectorState, Round, moment
from premortem.operations.paces import Pace
from premortem.operations.sampling import Sampler, sampled
from premortem.operations.tries import JobKey, Tries
from premortem.sources.live.port import Accounting, Controller, Daemon
from premortem.sources.port import Batch
from premortem.stores.port import JobQuery, Store

# How many jobs one question names at most.
_AT_A_TIME = 200
# A script that is not there so long after the job was submitted will not come.
_LATE = timedelta(minutes=5)
# When so many jobs in a row have no script, the site keeps none; it is asked again so much later.
_ENOUGH_WITHOUT_SCRIPT = 200
_NO_SCRIPTS_S = 3600.0
# So long one waits for the budget rather than to leave a question out.
_SOON_S = 1.0
# Clocks that differ by less are not spoken of.
_SKEW_S = 5.0

_T = TypeVar("_T")


class Cluster(Accounting, Controller, Protocol):
    """A cluster of which both daemons can be asked."""


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
        self._for_spans = Budget(max(1, pace.slurmdbd_calls // 2), clock)
        self._asked_before = (cluster.calls.slurmctld, cluster.calls.slurmdbd)
        cluster.calls.before = self._keep_to_budget
        self.state = CollectorState.load(store) or CollectorState()
        for daemon, times in self.state.calls.items():
            self._budgets[daemon].recall(now().timestamp() - at for at in times)
        columns = [*KEY, "state"]
        known = store.jobs(JobQuery(states=UNFINISHED), columns)
        self._open: dict[JobKey, str] = {(c, n, at): state for c, n, at, state in known.iter_rows()}
        # Jobs that failed and whose steps are to be read.
        self._failed: set[JobKey] = set()
        self._tries = Tries(clock)
        self._bad = BadRecords(store)
        # How many scripts in a row were not there, and until when none is asked for since.
        self._without_script, self._no_scripts_until_s = 0, float("-inf")
        self._waited_s = 0.0
        self._looked_s = float("-inf")
        self._spans = AccountingSpans(cluster, self.state, pace, now=now, clock=clock)

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Round after round until stopped, rarer while a daemon does not answer or is slow."""
        every, pause = self._pace.every_s, self._pace.every_s
        while not stopped():
            begun = self._clock()
            troubled = self._is_troubled()
            longest = max(every, self._pace.longest_pause_s)
            pause = min(pause * 2, longest) if troubled else every
            if troubled:
                self._tell("backing_off", pause_s=pause)
            while not stopped() and (left := begun + pause - self._clock()) > 0:
                self._sleep(min(left, 1.0))

    def round(self, *, patient: bool = True) -> Round:
        """Ask once for everything, as far as the budget goes.

        A patient one waits for the budget until all of accounting has been read.
        """
        done, begun = Round(), self._clock()
        seen = self._look_at_live(done)
        # A long history must not keep all else from being asked.
        self._read_accounting(done, patient=patient, most=None if patient else self._for_spans)
        if seen is not None:
            self._follow_missing(seen, done)
        if self.state.clusters:
            self._read_details(done)
        if self._spans.is_reading:
            self._read_accounting(done)
        self._take_samples(done)
        done.seconds = self._clock() - begun
        self._conclude(done)
        return done

    def _is_troubled(self) -> bool:
        """Whether a round went badly: a daemon or the store did not answer, or took long."""
        try:
            done = self.round(patient=False)
        except Unavailable as error:
            self._tell("no_store", why=str(error))
            return True
        slow = done.seconds - done.waited_s > max(self._pace.every_s / 2, 5.0)
        return bool(done.problems) or slow

    # --- the questions of a round ---------------------------------------------------------------

    def _look_at_live(self, done: Round) -> set[JobKey] | None:
        """The jobs that slurmctld has in memory; None if it cannot be asked, or was just now."""
        begun = self._clock()
        if begun < self._looked_s + 54 / self._pace.slurmctld_calls:
            return None
        self._looked_s = begun
        batch = self._ask("slurmctld", self._cluster.live, done)
        if batch is None:
            return None
        self._keep("slurmctld", batch, done)
        return set(_keys(batch.jobs))

    def _read_accounting(
        self, done: Round, *, patient: bool = False, most: Budget | None = None
    ) -> None:
        """What slurmdbd has noted since the watermark, and a while before.

        `most` is a budget within that of the daemon.
        """
        reading = self._spans.is_due
        while reading and (most is None or most.left):
            before = self._cluster.calls.slurmdbd
            batch = self._ask("slurmdbd", self._spans.read, done, patient=patient)
            self._for_spans.spend(self._cluster.calls.slurmdbd - before)
            if "slurmdbd" in done.problems:
                self._spans.begin_anew()
            if batch is None:
                return
            try:
                self._keep("slurmdbd", batch, done)
                self._save()
            except BaseException:
                self._spans.go_back()
                raise
            reading = self._spans.is_reading

    def _follow_missing(self, seen: set[JobKey], done: Round) -> None:
        """Ask slurmdbd what became of the jobs that slurmctld has forgotten."""
        ours = self.state.clusters
        missing = [key for key in self._open if key not in seen and key[0] in ours]
        for some in _parts(self._tries.due("end", missing)):
            if not self._read_jobs({number for _, number, _ in some}, done):
                break
            self._tries.in_vain("end", untold := [key for key in some if key in self._open])
            for _, number, at in set(untold) - set(self._tries.hopeful("end", untold)):
                self._tell("untold", job=number, submitted=at.isoformat())
        missing = [key for key in missing if key in self._open]
        self.state.untold = len(missing) - len(self._tries.hopeful("end", missing))

    def _read_details(self, done: Round) -> None:
        """Steps of jobs that failed, where a lack of memory may hide; and scripts, newest first."""
        since = moment(self.state.details_from) or self._now()
        late = JobQuery(clusters=self.state.clusters, since=since)
        failed = replace(late, states=("FAILED",), lacking="step_state")
        self._failed.update(self._store.jobs(failed, list(KEY)).iter_rows())
        self._read_steps(done)
        # A job may have waited since before the time that is looked at.
        open_ = replace(late, since=None, states=UNFINISHED)
        scriptless = pl.concat(
            self._store.jobs(replace(query, lacking="script"), [*KEY, "array_job_id"])
            for query in (late, open_)
        ).unique(KEY, maintain_order=True)
        self._read_scripts(scriptless.sort("submit_time", maintain_order=True), done)
        without = self._tries.hopeful("script", _keys(scriptless))
        left = {*self._failed, *(without if self._scripts_are_kept else ())}
        self.state.without_details = len(left)
        # Jobs of the time since accounting was last read may still turn up; and young ones are to
        # be looked at again if scripts are asked for again.
        read = moment(self.state.watermark) or since
        if not self._scripts_are_kept:
            read = min(read, self._now() - timedelta(seconds=_NO_SCRIPTS_S))
        oldest = min((at for _, _, at in left), default=read)
        self.state.details_from = min(oldest, read - self._pace.overlap).isoformat()

    def _read_steps(self, done: Round) -> None:
        """A job may fail long after it was submitted: `_failed` has those that were told of."""
        newest = sorted(self._tries.due("steps", self._failed), key=itemgetter(2), reverse=True)
        for some in _parts(newest):
            if not self._read_jobs({number for _, number, _ in some}, done):
                break
            self._tries.in_vain("steps", [key for key in some if key in self._failed])
        self._failed = set(self._tries.hopeful("steps", self._failed))

    @property
    def _scripts_are_kept(self) -> bool:
        return self._clock() >= self._no_scripts_until_s

    def _read_scripts(self, jobs: pl.DataFrame, done: Round) -> None:
        wanted = set(self._tries.due("script", _keys(jobs)))
        # The tasks of an array share a script: one of them is asked for.
        whose: dict[tuple[Any, ...], list[JobKey]] = {}
        for cluster, number, at, array in jobs.select(*KEY, "array_job_id").iter_rows():
            if (cluster, number, at) in wanted:
                alike = (cluster, number, at) if array is None else (cluster, array, at, "array")
                whose.setdefault(alike, []).append((cluster, number, at))
        rest = list(whose.values())
        while rest and self._scripts_are_kept:
            count = min(_AT_A_TIME, self._cluster.scripts_at_once)
            some, rest = rest[-count:], rest[:-count]
            numbers = [keys[0][1] for keys in some]
            found = self._ask("slurmdbd", partial(self._cluster.scripts, numbers), done)
            if found is None:
                return
            rows = [
                (*key, found[keys[0][1]]) for keys in some if keys[0][1] in found for key in keys
            ]
            self._store.append(pl.DataFrame(rows, schema=_SCRIPTS, orient="row"))
            done.counters.scripts += len(rows)
            self._without_script = 0 if found else self._without_script + len(some)
            for keys in (keys for keys in some if keys[0][1] not in found):
                # What was to be noted while slurmdbd was down may come a while after itself.
                could_be_noted = max(keys[0][2], moment(self.state.sound_since) or self._now())
                late = self._now() - could_be_noted > _LATE
                self._tries.in_vain("script", keys, for_good=late)
            if self._without_script >= _ENOUGH_WITHOUT_SCRIPT:
                self._without_script = 0
                self._no_scripts_until_s = self._clock() + _NO_SCRIPTS_S
                self._tell("no_scripts", why="accounting keeps none of them")

    def _read_jobs(self, numbers: Iterable[int], done: Round) -> bool:
        """Ask for jobs with their steps; False if that cannot be done now."""
        batch = self._ask("slurmdbd", partial(self._cluster.by_id, sorted(numbers)), done)
        if batch is not None:
            self._keep("slurmdbd", batch, done)
        return batch is not None

    def _take_samples(self, done: Round) -> None:
        ours = self.state.clusters
        running = [
            key for key, state in self._open.items() if state == "RUNNING" and key[0] in ours
        ]
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
        self, daemon: Daemon, question: Callable[[], _T], done: Round, *, patient: bool = False
    ) -> _T | None:
        """The answer, if the budget allows to ask and there is one; `patient` waits for the budget.

        A daemon that did not answer in this round is not asked again in it.
        """
        if daemon in done.problems or not (patient or self._budgets[daemon].wait_s <= _SOON_S):
            return None
        try:
            answer = question()
        except PremortemError as error:
            done.problems[daemon] = str(error)
            self._tell("no_answer", daemon=daemon, why=str(error))
            if daemon == "slurmdbd":
                self.state.sound_since = None
            return None
        finally:
            self._settle(done)
        now = self._now().isoformat(timespec="seconds")
        self.state.answered[daemon] = now
        if daemon == "slurmdbd":
            self.state.sound_since = self.state.sound_since or now
        return answer

    def _keep_to_budget(self, daemon: Daemon) -> None:
        """Ahead of every call: wait until there may be one."""
        budget = self._budgets[daemon]
        if wait_s := budget.wait_s:
            if wait_s > _SOON_S:
                self._tell("waiting_for_budget", daemon=daemon, seconds=round(wait_s))
            self._sleep(wait_s)
            self._waited_s += wait_s
        if not budget.left:
            raise Unavailable(f"{daemon} may not be asked more often in this minute")
        budget.spend()

    def _settle(self, done: Round) -> None:
        """Count the calls made since last time, and the time spent waiting for them."""
        made = (self._cluster.calls.slurmctld, self._cluster.calls.slurmdbd)
        control, accounts = (m - b for m, b in zip(made, self._asked_before, strict=True))
        self._asked_before = made
        done.counters.calls_slurmctld += control
        done.counters.calls_slurmdbd += accounts
        done.waited_s, self._waited_s = done.waited_s + self._waited_s, 0.0

    def _keep(self, daemon: Daemon, batch: Batch, done: Round) -> None:
        if batch.rejects.height:
            before = self.state.counters.rejected + done.counters.rejected
            done.counters.rejected += self._bad.keep(daemon, batch.rejects, before=before)
        if batch.jobs.is_empty():
            return
        appended = self._store.append(batch.jobs)
        done.counters.new += appended.new
        done.counters.updated += appended.updated
        self._mind_the_clock(batch.jobs)
        step_state = pl.col("step_state") if "step_state" in batch.jobs.columns else pl.lit(None)
        told = batch.jobs.select(*KEY, "state", step_state)
        for cluster, number, at, state, step_state in told.iter_rows():
            key = (cluster, number, at)
            if STATES.get(state) is not Progress.ENDED:
                self._open[key] = state
                continue
            self._open.pop(key, None)
            if state == "FAILED" and step_state is not None:
                self._failed.discard(key)
                self._tries.in_vain("steps", [key], for_good=True)
            elif state == "FAILED" and self._tries.hopeful("steps", [key]):
                self._failed.add(key)
        self.state.clusters = sorted({*self.state.clusters, *batch.jobs["cluster"]})

    def _save(self) -> None:
        now = self._now().timestamp()
        self.state.calls = {
            daemon: [now - age for age in budget.ages_s] for daemon, budget in self._budgets.items()
        }
        self.state.save(self._store)

    def _mind_the_clock(self, jobs: pl.DataFrame) -> None:
        newest = jobs["submit_time"].max()
        ahead = (newest - self._now()).total_seconds() if isinstance(newest, datetime) else 0.0
        if ahead > max(_SKEW_S, self.state.ahead_s):
            self.state.ahead_s = ahead
            self._tell("clock_skew", cluster_ahead_s=round(ahead))

    def _conclude(self, done: Round) -> None:
        self._tries.forget_old()
        done.counters.rounds = 1
        done.counters.failed_slurmctld = int("slurmctld" in done.problems)
        done.counters.failed_slurmdbd = int("slurmdbd" in done.problems)
        self.state.counters += done.counters
        self.state.problems = done.problems
        self.state.open = len(self._open)
        self.state.last_round = self._now().isoformat(timespec="seconds")
        self._save()
        brought = {name: count for name, count in done.counters.as_dict().items() if count}
        self._tell("round", seconds=round(done.seconds, 2), open=len(self._open), **brought)


_SCRIPTS = {name: SCHEMA[name] for name in (*KEY, "script")}


def _keys(jobs: pl.DataFrame) -> Iterable[JobKey]:
    return jobs.select(KEY).iter_rows() if jobs.height else ()


def _parts(things: Sequence[_T]) -> Iterable[Sequence[_T]]:
    return (things[at : at + _AT_A_TIME] for at in range(0, len(things), _AT_A_TIME))
