"""A recorder's pace, its end, and what it does when something is not to be had."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import polars as pl
import pytest

from premortem.errors import InvalidInput, Unavailable
from premortem.jobs.samples import conform_samples
from premortem.sources.usage import Recorder


class Sampler:
    """Job 1, at every look."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.looks: list[float] = []
        self.takes_s = takes_s
        self.trouble: list[Exception] = []

    def sample(self) -> pl.DataFrame:
        self.looks.append(time.monotonic())
        time.sleep(self.takes_s)
        if self.trouble:
            raise self.trouble.pop()
        row = {"cluster": "c", "job_id": 1, "at": datetime.now(UTC)}
        return conform_samples(pl.DataFrame([row]))


class Sink:
    def __init__(self) -> None:
        self.moments: list[datetime] = []
        self.trouble: list[Exception] = []

    def add(self, samples: pl.DataFrame) -> None:
        if self.trouble:
            raise self.trouble.pop()
        self.moments += samples["at"].to_list()


def test_the_pace_does_not_drift() -> None:
    sampler, sink = Sampler(takes_s=0.02), Sink()
    Recorder(sampler, sink, 0.1).run(for_s=0.95)
    assert len(sink.moments) == 10
    for beat, moment in enumerate(sampler.looks):
        assert abs(moment - sampler.looks[0] - beat * 0.1) < 0.08


def test_a_slow_look_leaves_beats_out() -> None:
    sampler = Sampler(takes_s=0.25)
    Recorder(sampler, Sink(), 0.1).run(for_s=0.95)
    gaps = [late - early for early, late in zip(sampler.looks, sampler.looks[1:], strict=False)]
    assert len(sampler.looks) <= 5
    assert all(gap > 0.2 for gap in gaps)


def test_it_works_in_a_thread_until_it_is_stopped() -> None:
    sink = Sink()
    with Recorder(Sampler(), sink, 0.02):
        while len(sink.moments) < 3:
            time.sleep(0.01)
    assert threading.active_count() == 1 or "recorder" not in [
        thread.name for thread in threading.enumerate()
    ]
    recorder = Recorder(Sampler(), sink, 60)
    aside = threading.Thread(target=recorder.run)
    aside.start()
    recorder.stop()
    aside.join(timeout=10)
    assert not aside.is_alive()


def test_what_is_not_available_is_tried_again_and_nothing_is_lost() -> None:
    sampler, sink, told = Sampler(), Sink(), list[Unavailable]()
    sampler.trouble = [Unavailable("no /proc")]
    sink.trouble = [Unavailable("full"), Unavailable("locked")]
    Recorder(sampler, sink, 0.02, tell=told.append).run(for_s=0.15)
    assert [str(error) for error in told] == ["no /proc", "locked", "full"]
    assert len(sink.moments) == len(sampler.looks) - 1


def test_what_waited_is_handed_on_at_the_end() -> None:
    sampler, sink = Sampler(), Sink()
    sink.trouble = [Unavailable("locked")]
    Recorder(sampler, sink, 60, thin=False).run(for_s=0)
    assert len(sink.moments) == 1


def test_other_errors_end_it() -> None:
    sampler = Sampler()
    sampler.trouble = [InvalidInput("broken")]
    with pytest.raises(InvalidInput, match="broken"):
        Recorder(sampler, Sink(), 0.02).run()
    sampler.trouble = [InvalidInput("broken")]
    with pytest.raises(InvalidInput, match="broken"), Recorder(sampler, Sink(), 0.02):
        time.sleep(0.1)


def test_the_pace_must_be_one() -> None:
    with pytest.raises(InvalidInput, match="above 0 s"):
        Recorder(Sampler(), Sink(), 0)
