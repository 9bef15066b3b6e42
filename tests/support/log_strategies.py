"""Random small logs for the replay: few groups, so that they are shared, and many ties in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
from hypothesis import strategies as st
from job_strategies import frame, key_of

from premortem.jobs.labels import LabelPolicy
from premortem.jobs.samples import SAMPLES, SAMPLES_DTYPE

# Two hours before Europe puts its clocks back, and a day before a month ends in some zones.
BEGINNING = datetime(2021, 10, 30, 23, tzinfo=UTC)

WHO: tuple[dict[str, Any], ...] = (
    {"user": "ada", "account": "physics", "group": "staff"},
    {"user": "ada", "account": "biology"},
    {"user": "bob", "account": "physics"},
    {"user": "bob", "group": "staff"},
    {"user": "eve"},
    {"account": "physics"},
    {},
)
WHAT: tuple[dict[str, Any], ...] = (
    {"job_name": "relax_01", "executable": "vasp", "work_dir": "/home/ada/run1"},
    {"job_name": "relax_3", "script": "#!/bin/sh\nsrun ./relax --step 3\n"},
    {"job_name": "relax_4", "script": "#!/bin/sh\n# again\nsrun ./relax --step 4\n"},
    {"script": "#!/bin/bash -e\ncd /scratch/x || exit 2\npython3 fit.py > out &\nwait\n"},
    {"script": ""},
    {"job_name": "relax_2", "executable": "vasp", "array_job_id": 4, "work_dir": "/home/ada/run2/"},
    {"job_name": "relax", "executable": "lammps", "dependency": "afterok:3", "work_dir": "//home"},
    {"job_name": "7", "work_dir": "/"},
    {"executable": "vasp", "work_dir": "/home/ada/run2/é/4/5/6/7/8/9"},
    {"executable": "vasp", "work_dir": "/home/ada/run2/é/4/5/6/7/8/10"},
    {},
)
SIZES: tuple[dict[str, Any], ...] = (
    {"req_cpus": 4, "req_nodes": 1, "time_limit_s": 600, "req_memory_per_cpu_mb": 512.0},
    {"req_cpus": 4, "req_nodes": 2, "time_limit_s": 600, "req_memory_mb": 4000.0, "req_tasks": 4},
    {"req_cpus": 96, "time_limit_s": 90_000, "req_memory_mb": 1e5, "req_gpus": 2, "priority": 9},
    {"req_cpus": 7, "req_nodes": 1, "time_unlimited": True, "req_memory_per_node_mb": 800.0},
    {"req_cpus": 4, "time_limit_s": 0, "time_unlimited": False},
    {"req_cpus": 0, "req_nodes": 0, "time_limit_s": 3600, "req_memory_mb": 0.0},
    {"time_limit_s": 3600},
    {},
)
NODES = (None, "n01", "n[01-03]", "n02,n01", "n[02,04]")
ENDS = (
    "COMPLETED", "COMPLETED", "FAILED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY",
    "NODE_FAIL", "PREEMPTED", "REQUEUED",
)  # fmt: skip
WAITS = (0, 0, 1, 60, 3600, 86_400)
MOMENTS = (-1, 0, 0.25, 2, 5, 61.5, 119, 119.5, 120, 130, 400, 600, 601)
RUNS = (0, 0, 1, 119, 120, 121, 590, 600, 601, 4000, 90_000)
# A clock that was put back between two events.
SLIPS = (-1, -300)

offsets = st.sampled_from((0, 0, 0, 1, 60, 120, 121, 600, 3600, 3601, 7200, 86_400, 2_000_000))


@st.composite
def _records(draw: st.DrawFn) -> dict[str, Any]:
    submitted = BEGINNING + timedelta(seconds=draw(offsets) + draw(st.sampled_from((0, 0, 0, 1))))
    record = {
        "cluster": "alpha",
        # Numbers do not grow with time, and come again: a requeued run keeps its number.
        "job_id": draw(st.integers(1, 25)),
        "submit_time": submitted,
        "partition": draw(st.sampled_from(("cpu", "cpu", "gpu", None))),
        **draw(st.sampled_from(WHO)),
        **draw(st.sampled_from(WHAT)),
        **draw(st.sampled_from(SIZES)),
    }
    return record | draw(_fates(submitted))


@st.composite
def _fates(draw: st.DrawFn, submitted: datetime) -> dict[str, Any]:
    wait = timedelta(seconds=draw(st.sampled_from(WAITS + SLIPS)))
    ran = draw(st.sampled_from(RUNS))
    end = draw(st.sampled_from(ENDS))
    slip = timedelta(seconds=draw(st.sampled_from((0, 0, 0, 0, 0, *SLIPS))))
    got = {
        "alloc_cpus": draw(st.sampled_from((4, 4, 8, None))),
        "alloc_nodes": draw(st.sampled_from((1, None))),
        "node_list": draw(st.sampled_from(NODES)),
    }
    used = {
        "state": end,
        "elapsed_s": draw(st.sampled_from((ran, ran, ran, None))),
        "max_rss_mb": draw(st.sampled_from((None, 100.0, 512.0, 900.0))),
    }
    started = submitted + wait
    over = started + timedelta(seconds=ran) + slip
    got["samples"] = draw(_samples(started))
    match draw(st.integers(0, 11)):
        case 0:
            return {"state": "PENDING"}
        case 1:
            return {"state": "RUNNING", "start_time": started, **got}
        case 2:
            return {"state": "CANCELLED", "end_time": started, "elapsed_s": 0}
        case 3:
            return {"state": "CANCELLED"}
        case 4:
            # As in logs without wait times: it ran, but nobody knows from when.
            return got | used | {"elapsed_s": ran}
        case 5:
            return {"start_time": started, **got, **used}
        case _:
            return {"start_time": started, "end_time": over, **got, **used}


@st.composite
def _samples(draw: st.DrawFn, started: datetime) -> list[dict[str, Any]] | None:
    """What was sampled of a job, in order; some of it before a clock was put back."""
    offsets = draw(st.lists(st.sampled_from(MOMENTS), unique=True, max_size=5))
    number = st.sampled_from((0.0, 0.0, 1.5, 30.0, 800.0, None))
    samples = [
        {
            "at": started + timedelta(seconds=offset),
            **{name: draw(number) for name in ("cpu_s", "rss_mb", "read_mb", "written_mb")},
            "processes": draw(st.sampled_from((1, 4, None))),
        }
        for offset in sorted(offsets)
    ]
    return samples or draw(st.sampled_from(([], None)))


def _many(count: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(_records(), min_size=count, max_size=count, unique_by=key_of)


# Small logs show ties, large ones what takes many jobs to show.
records = st.integers(3, 12).flatmap(_many) | st.integers(25, 40).flatmap(_many)


def labelled(jobs: list[dict[str, Any]]) -> pl.DataFrame:
    """The records as a frame of labelled jobs."""
    own = [{name: value for name, value in job.items() if name != SAMPLES} for job in jobs]
    samples = pl.Series(SAMPLES, [job.get(SAMPLES) for job in jobs], dtype=SAMPLES_DTYPE)
    return LabelPolicy().label(frame(own)).with_columns(samples)


logs = records.map(labelled)
