"""What a running job's samples tell by a moment: how busy it is, and where its memory is going.

Only samples taken before the moment count. Batch and live run the same compiled code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numba import njit

from premortem.features import layout as L
from premortem.jobs.samples import SAMPLES

Array = np.ndarray[Any, np.dtype[Any]]

# Each feature, the fields that are sampled or compared with, and its meaning; in the order of rows.
USAGE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "usage_cpu_share",
        ("cpu_total_s", "alloc_cpus", "req_cpus"),
        "CPU time used so far against what its CPUs could give.",
    ),
    (
        "usage_cpu_share_lately",
        ("cpu_total_s", "alloc_cpus", "req_cpus"),
        "The same, in the last third of its run.",
    ),
    ("usage_idle_s", ("cpu_total_s",), "Time since it last used a twentieth of a CPU or more."),
    ("usage_rss_mb", ("max_rss_mb",), "Resident memory in the last sample."),
    (
        "usage_memory_share",
        ("max_rss_mb", "req_memory_mb"),
        "The same against the memory asked for.",
    ),
    (
        "usage_peak_share",
        ("max_rss_mb", "req_memory_mb"),
        "The most resident memory in any sample against the memory asked for.",
    ),
    (
        "usage_growth_mb_s",
        ("max_rss_mb",),
        "Growth of its memory in a second, in the last third of its run.",
    ),
    (
        "usage_memory_left_s",
        ("max_rss_mb", "req_memory_mb"),
        "Time until its memory is full if it grows on like that.",
    ),
    ("usage_read_mb_s", ("avg_disk_read_mb",), "Data read in a second so far."),
    ("usage_written_mb_s", ("avg_disk_write_mb",), "Data written in a second so far."),
    (
        "usage_data_lately_mb_s",
        ("avg_disk_read_mb", "avg_disk_write_mb"),
        "Data read and written in a second, in the last third of its run.",
    ),
    ("usage_processes", ("elapsed_s",), "Processes alive in the last sample."),
    ("usage_sample_age_s", ("elapsed_s",), "How old the last sample is."),
)
_VALUES = ("cpu_s", "rss_mb", "read_mb", "written_mb", "processes")
_CPU, _RSS, _READ, _WRITTEN, _PROCESSES = range(5)
# Handed over, and not looked up in compiled code: what is kept of that does not see them change.
_ASKED = [int(L.ALLOC_CPUS), int(L.CPUS), int(L.MEMORY)]
# A job that uses less of a CPU than this idles.
_IDLE = 0.05


def usage_of(jobs: pl.DataFrame, facts: Array, moments: Array, elapsed: Array) -> Array | None:
    """The features of each job's samples as of its moment; None if no job has any.

    `facts` are those of the same jobs, `elapsed` is how long each has run by its moment.
    """
    if SAMPLES not in jobs.columns or jobs[SAMPLES].null_count() == jobs.height:
        return None
    lengths = jobs[SAMPLES].list.len().fill_null(0).to_numpy()
    ends = np.cumsum(lengths, dtype=np.int64)
    table = jobs.select(pl.col(SAMPLES).explode()).drop_nulls().unnest(SAMPLES)
    at = table["at"].dt.epoch("us").to_numpy() / 1e6
    values = table.select(pl.col(_VALUES).cast(pl.Float64).fill_null(np.nan)).to_numpy()
    out = np.full((jobs.height, len(USAGE)), np.nan)
    asked = facts[:, _ASKED]
    _fill(ends - lengths, ends, at, np.ascontiguousarray(values), asked, moments, elapsed, out)
    return out


def usage_of_one(job: Mapping[str, Any], facts: Array, moment: float, elapsed: float) -> Array:
    """The same for a single job, whose samples are given as mappings."""
    samples: Sequence[Mapping[str, Any]] = job.get(SAMPLES) or ()
    at = np.array([_micros(sample["at"]) / 1e6 for sample in samples])
    values = np.array(
        [[_number(sample[name]) for name in _VALUES] for sample in samples], dtype=np.float64
    ).reshape(len(samples), len(_VALUES))
    out = np.full((1, len(USAGE)), np.nan)
    ends = np.array([len(samples)], dtype=np.int64)
    asked = facts[None, _ASKED]
    _fill(ends * 0, ends, at, values, asked, np.array([moment]), np.array([elapsed]), out)
    found: Array = out[0]
    return found


def _micros(moment: Any) -> int:
    whole = int(moment.replace(microsecond=0).timestamp())
    return whole * 1_000_000 + int(moment.microsecond)


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


@njit(cache=True)
def _fill(
    begins: Array,
    ends: Array,
    at: Array,
    values: Array,
    asked: Array,
    moments: Array,
    elapsed: Array,
    out: Array,
) -> None:
    for job in range(len(moments)):
        first, last = begins[job], begins[job] - 1
        while last + 1 < ends[job] and at[last + 1] < moments[job]:
            last += 1
        if last >= first:
            began = moments[job] - elapsed[job]
            taken, told = at[first : last + 1], values[first : last + 1]
            _job(taken, told, asked[job], began, moments[job], out[job])


@njit()
def _job(at: Array, values: Array, asked: Array, began: float, moment: float, out: Array) -> None:
    last = len(at) - 1
    age = at[last] - began
    since = last
    while since > 0 and at[since] > at[last] - age / 3:
        since -= 1
    lately = at[last] - at[since]
    given_cpus, asked_cpus, asked_memory = asked
    cpus = given_cpus if given_cpus > 0 else asked_cpus
    used, rss = values[last, _CPU], values[last, _RSS]
    memory = asked_memory if asked_memory > 0 else np.nan
    growth = (rss - values[since, _RSS]) / lately if lately > 0 else np.nan
    moved = values[last, _READ] + values[last, _WRITTEN]
    moved_lately = moved - values[since, _READ] - values[since, _WRITTEN]
    busy = used - values[since, _CPU]
    out[0] = used / (age * cpus) if age > 0 and cpus > 0 else np.nan
    out[1] = busy / (lately * cpus) if lately > 0 and cpus > 0 else np.nan
    out[2] = moment - _last_busy(at, values, began)
    out[3] = rss
    out[4] = rss / memory
    out[5] = _most(values[:, _RSS]) / memory
    out[6] = growth
    out[7] = (memory - rss) / growth if growth > 0 else np.nan
    out[8] = values[last, _READ] / age if age > 0 else np.nan
    out[9] = values[last, _WRITTEN] / age if age > 0 else np.nan
    out[10] = moved_lately / lately if lately > 0 else np.nan
    out[11] = values[last, _PROCESSES]
    out[12] = moment - at[last]


@njit()
def _last_busy(at: Array, values: Array, began: float) -> float:
    """The end of the last stretch between samples in which it was busy; its start if none was."""
    for k in range(len(at) - 1, -1, -1):
        before = at[k - 1] if k > 0 else began
        spent = values[k, _CPU] - (values[k - 1, _CPU] if k > 0 else 0.0)
        if at[k] > before and spent / (at[k] - before) >= _IDLE:
            return float(at[k])
    return began


@njit()
def _most(values: Array) -> float:
    most = np.nan
    for value in values:
        most = np.fmax(most, value)
    return most
