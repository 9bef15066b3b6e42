"""Sampling: somebody is called in time, and does no harm by failing."""

from __future__ import annotations

import time

from premortem.lab.workload.sampling import Sampling


class Sampler:
    def __init__(self, fails_at: int | None = None) -> None:
        self.calls = 0
        self.fails_at = fails_at

    def sample(self) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise RuntimeError("no sstat here")


def test_it_is_called_until_the_end_and_not_after() -> None:
    sampler = Sampler()
    with Sampling(sampler, print, period_s=0.01):
        time.sleep(0.2)
    calls = sampler.calls
    assert calls >= 3
    time.sleep(0.05)
    assert sampler.calls == calls


def test_a_sampler_that_fails_is_told_and_left_alone() -> None:
    told: list[str] = []
    sampler = Sampler(fails_at=2)
    with Sampling(sampler, told.append, period_s=0.01):
        time.sleep(0.2)
    assert sampler.calls == 2
    assert told == ["sampling has ended: no sstat here"]


def test_nobody_needs_to_sample() -> None:
    with Sampling(None, print):
        pass
