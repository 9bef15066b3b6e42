"""Jobs of a store with their labels, found by what became of them or by their number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from premortem.errors import InvalidInput, NotFound
from premortem.jobs.fields import KEY
from premortem.jobs.labels import LABEL_INPUTS, LabelPolicy
from premortem.jobs.outcomes import Cause, Outcome
from premortem.stores.port import JobQuery, Store

# So many jobs are fetched by their numbers rather than by reading all of their time.
_FEW = 10_000


def labelled_jobs(
    store: Store,
    query: JobQuery,
    policy: LabelPolicy,
    *,
    outcomes: Sequence[Outcome] = (),
    causes: Sequence[Cause] = (),
) -> pl.DataFrame:
    """The jobs wanted with all their fields, `outcome` and `cause`, in order of submission.

    Labels are not stored, so those filters read a few columns of every job first.
    """
    if not outcomes and not causes:
        return policy.label(store.jobs(query))
    narrow = store.jobs(replace(query, limit=None), [*KEY, *LABEL_INPUTS])
    wanted = policy.label(narrow)
    if outcomes:
        wanted = wanted.filter(pl.col("outcome").is_in([str(outcome) for outcome in outcomes]))
    if causes:
        wanted = wanted.filter(pl.col("cause").is_in([str(cause) for cause in causes]))
    wanted = wanted.tail(query.limit) if query.limit else wanted
    if wanted.is_empty():
        return policy.label(store.jobs(replace(query, limit=1)).clear())
    within = replace(query, since=wanted.select(pl.col("submit_time").min()).item(), limit=None)
    if wanted.height <= _FEW:
        within = replace(within, job_ids=wanted["job_id"].unique().to_list())
    found = store.jobs(within).join(wanted.select(KEY), on=KEY, how="semi", maintain_order="left")
    return policy.label(found)


def find_job(store: Store, name: str, policy: LabelPolicy, *, cluster: str | None) -> pl.DataFrame:
    """Every record of one job, oldest first: its requeued runs, and other jobs of that number.

    The number of an array alone gives its tasks, unless a job has that number itself.

    `name` is written as Slurm writes it: ``436277``, ``436277_4`` for an array task, ``436277+1``
    for a component of a heterogeneous job.
    """
    parts = re.fullmatch(r"(\d{1,18})(?:_(\d{1,9})|\+(\d{1,9}))?", name)
    if parts is None:
        raise InvalidInput(f"'{name}' is not a job number; expected one such as 436277 or 436277_4")
    base, task, offset = (int(part) if part else None for part in parts.groups())
    clusters = (cluster,) if cluster else ()
    own = store.jobs(JobQuery(clusters=clusters, job_ids=((base or 0) + (offset or 0),)))
    tasks = store.jobs(JobQuery(clusters=clusters, array_job_ids=(base or 0,)))
    if task is not None:
        found = tasks.filter(pl.col("array_task_id") == task)
    elif offset is not None:
        found = own.filter(pl.col("het_job_id") == base)
    else:
        # An array's number alone means its tasks, where no job has that number itself.
        found = own if own.height else tasks
    if found.is_empty():
        raise NotFound(f"no job {name} in the store" + (f" for {cluster}" if cluster else ""))
    return policy.label(found)
