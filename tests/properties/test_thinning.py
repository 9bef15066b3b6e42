"""Samples of jobs that run long: never too many, never too far apart, the first and last kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from premortem.jobs.samples import SAMPLE_SCHEMA, conform_samples
from premortem.sources.usage import Thinning

BEGAN = datetime(2026, 1, 5, 8, tzinfo=UTC)
DAY_S = 86_400


def samples(job_ids: list[int], at_s: float) -> pl.DataFrame:
    at = BEGAN + timedelta(seconds=at_s)
    rows = {"cluster": ["c"] * len(job_ids), "job_id": job_ids, "at": [at] * len(job_ids)}
    return conform_samples(pl.DataFrame(rows, schema_overrides={"job_id": pl.Int64}))


def recorded(moments: list[tuple[float, list[int]]]) -> dict[int, list[float]]:
    """When samples of each job were kept, in seconds."""
    thinning = Thinning()
    kept: dict[int, list[float]] = {}
    frames = [thinning.thinned(samples(job_ids, at_s)) for at_s, job_ids in moments]
    for frame in (*frames, thinning.rest()):
        assert dict(frame.schema) == SAMPLE_SCHEMA
        for job, at in frame.select("job_id", "at").iter_rows():
            kept.setdefault(job, []).append((at - BEGAN).total_seconds())
    return kept


@settings(max_examples=15, deadline=None)
@given(every_s=st.floats(5, 60), beats=st.integers(0, 3000), start_s=st.floats(0, 1e6))
def test_a_long_job_leaves_few_samples_and_no_long_gaps(
    every_s: float, beats: int, start_s: float
) -> None:
    moments = [start_s + beat * every_s for beat in range(beats + 1)]
    kept = recorded([(at_s, [7]) for at_s in moments])[7]
    assert kept == sorted(set(kept))
    assert (round(kept[0], 3), round(kept[-1], 3)) == (round(moments[0], 3), round(moments[-1], 3))
    early = [at_s for at_s in moments if at_s - moments[0] <= 120]
    assert len([at_s for at_s in kept if at_s - moments[0] <= 120.001]) >= len(early) - 1
    for before, after in pairwise(kept):
        age_s = after - moments[0]
        assert after - before <= max(min(age_s / 20, 600), every_s) + every_s + 0.01
    assert len(kept) <= 120 / every_s + 105 + 144 * (moments[-1] - moments[0]) / DAY_S


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1, 200), st.lists(st.integers(1, 5), unique=True)), max_size=50)
)
def test_the_first_and_the_last_of_every_run_are_kept(
    looks: list[tuple[float, list[int]]],
) -> None:
    at_s, moments = 0.0, []
    for pause_s, job_ids in looks:
        at_s += pause_s
        moments.append((at_s, job_ids))
    kept = recorded(moments)
    for job in {job for _, job_ids in moments for job in job_ids}:
        seen = [at_s for at_s, job_ids in moments if job in job_ids]
        assert len(kept[job]) == len(set(kept[job])), "each sample once at most"
        assert abs(min(kept[job]) - seen[0]) < 0.001
        assert abs(max(kept[job]) - seen[-1]) < 0.001
