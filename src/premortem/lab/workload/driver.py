"""The driver: runs a campaign on a lab. It alone talks to Slurm, through the desk."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from premortem.errors import Unavailable
from premortem.lab import Lab
from premortem.lab.workload.accidents import Accidents
from premortem.lab.workload.campaign import Campaign
from premortem.lab.workload.desk import Desk, Seen
from premortem.lab.workload.ledger import Ledger
from premortem.lab.workload.pacing import Pace
from premortem.lab.workload.sampling import Sampler, Sampling
from premortem.lab.workload.submissions import Outcome, Submission

LOOK_EVERY_S = 3.0
PATIENCE_S = 240.0
_MOST_MISSES = 10

Job = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a workload is."""

    submitted: int
    ended: int
    waiting: int
    running: int
    per_minute: float


@dataclass(slots=True)
class Report:
    """What became of a workload: jobs by state, and the failed ones by exit code and signal."""

    submitted: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    states: Counter[str] = field(default_factory=Counter)
    exit_codes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def unfinished(self) -> int:
        """How many had not ended when the driver left."""
        return self.submitted - sum(self.states.values())


class Driver:
    """Submits, looks, cancels and breaks nodes, until so many jobs have ended.

    What has not ended `patience_s` after the last submission is cancelled by its users.
    """

    def __init__(
        self,
        lab: Lab,
        campaign: Campaign,
        *,
        jobs: int,
        pace: Pace,
        ledger: Ledger,
        accidents: Accidents | None = None,
        sampler: Sampler | None = None,
        patience_s: float = PATIENCE_S,
        progress: Callable[[Progress], None] = lambda progress: None,
        tell: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lab = lab
        self._campaign = campaign
        self._wanted = jobs
        self._pace = pace
        self._ledger = ledger
        self._accidents = accidents
        self._sampler = sampler
        self._patience_s = patience_s
        self._progress = progress
        self._tell = tell
        self._clock = clock
        self._report = Report()
        self._numbers: dict[int, int] = {}
        self._open: dict[int, Submission] = {}
        self._left: dict[int, int] = {}
        self._known: set[Job] = set()
        # Since when jobs that will be cancelled are in the state for it.
        self._since: dict[Job, float] = {}
        self._queue: list[Seen] = []
        self._waiting = 0
        self._running = 0
        self._misses = 0
        self._began = 0.0

    def run(self) -> Report:
        """Run to the end; an interruption ends it early, and what was submitted goes on."""
        self._began = self._clock()
        try:
            with Desk(self._lab) as desk, Sampling(self._sampler, self._tell):
                self._submit_all(desk)
                self._wait_for_all(desk)
        except KeyboardInterrupt:
            self._report.interrupted = True
        finally:
            if self._accidents:
                self._accidents.finish()
        self._report.seconds = self._clock() - self._began
        return self._report

    def _submit_all(self, desk: Desk) -> None:
        looked, upcoming = self._began, self._campaign.next()
        while self._report.submitted < self._wanted:
            now = self._clock()
            if now - looked >= LOOK_EVERY_S:
                looked = now
                self._look(desk, react=True)
            if self._pace.moment(now) < upcoming.moment:
                time.sleep(0.02)
            elif not self._pace.has_room(self._waiting, self._running):
                self._pace.stand_still(upcoming.moment)
                time.sleep(0.1)
            else:
                self._submit(desk, upcoming)
                upcoming = self._campaign.next()

    def _wait_for_all(self, desk: Desk) -> None:
        deadline = self._clock() + self._patience_s
        while self._open and self._clock() < deadline:
            time.sleep(LOOK_EVERY_S / 2)
            self._look(desk, react=False)
        for job, submission in self._open.items():
            desk.cancel(submission.user.name, job)
        if self._open:
            time.sleep(LOOK_EVERY_S)
            self._look(desk, react=False)

    def _submit(self, desk: Desk, submission: Submission) -> None:
        after = None
        if submission.after is not None:
            after = self._numbers.get(submission.after)
            if after is None:
                return
        job = desk.submit(submission, after=after)
        if isinstance(job, str):
            self._report.refused[job] += 1
            return
        self._numbers[submission.number] = job
        self._open[job] = submission
        self._left[job] = submission.jobs
        self._ledger.write(submission, job)
        self._report.submitted += submission.jobs
        self._waiting += submission.jobs

    def _look(self, desk: Desk, *, react: bool) -> None:
        try:
            self._queue = [seen for seen in desk.look() if seen.job in self._open]
        except Unavailable:
            # A controller that is busy answers the next time.
            self._misses += 1
            if self._misses > _MOST_MISSES:
                raise
            return
        self._misses = 0
        now = self._clock()
        states = Counter(seen.state for seen in self._queue)
        self._waiting, self._running = states["PENDING"], states["RUNNING"]
        for seen in self._queue:
            if seen.has_ended:
                self._end(seen, now, react=react)
        self._cancel_due(desk, now)
        if self._accidents:
            self._accidents.look(desk, self._report.submitted, self._queue, now)
        ended = sum(self._report.states.values())
        rate = 60 * self._report.submitted / max(1.0, now - self._began)
        progress = Progress(self._report.submitted, ended, self._waiting, self._running, rate)
        self._progress(progress)

    def _end(self, seen: Seen, now: float, *, react: bool) -> None:
        job = (seen.job, seen.task)
        if job in self._known:
            return
        self._known.add(job)
        self._report.states[seen.state] += 1
        if seen.state == "FAILED":
            self._report.exit_codes[seen.exit_code] += 1
        submission = self._open[seen.job]
        self._left[seen.job] -= 1
        if not self._left[seen.job]:
            del self._open[seen.job], self._left[seen.job]
        if react:
            outcome = Outcome(seen.state, seen.exit_code, seen.reason)
            self._campaign.ended(submission, outcome, self._pace.moment(now))

    def _cancel_due(self, desk: Desk, now: float) -> None:
        """Cancel for users what has been in the state that they wait for, for long enough."""
        for seen in self._queue:
            submission = self._open.get(seen.job)
            wish = submission.cancellation if submission else None
            if submission is None or wish is None or seen.state != wish.state:
                continue
            if now - self._since.setdefault((seen.job, seen.task), now) >= wish.after_s:
                desk.cancel(submission.user.name, seen.job)
