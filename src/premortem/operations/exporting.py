"""Jobs of the store as a file that `premortem load` and `premortem bench` read again."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from polars.exceptions import PolarsError

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.jobs.frame import SCHEMA
from premortem.jobs.samples import with_samples
from premortem.stores.port import JobQuery, Store


def export_jobs(store: Store, path: str | os.PathLike[str], query: JobQuery = JobQuery()) -> int:
    """Write the jobs wanted, every field that any of them has, and their samples, as Parquet.

    Returns how many jobs there are. A file already there is replaced when all is written.
    """
    whole = Path(path)
    if not whole.name:
        raise InvalidInput(
            f"{path} is a folder: name a file in it, such as {whole / 'jobs.parquet'}"
        )
    jobs = store.jobs(query, list(SCHEMA))
    if jobs.is_empty():
        raise NotFound("the store has no such jobs: nothing was written")
    jobs = with_samples(jobs, store.samples())
    told = [name for name in jobs.columns if jobs[name].null_count() < jobs.height]
    part = whole.with_name(f"{whole.name}.part")
    try:
        jobs.select(told).write_parquet(part, compression="zstd", compression_level=19)
        part.replace(whole)
    except (OSError, PolarsError) as error:
        # Polars tells of a full disk by an error of its own, without a number.
        why = error.strerror if isinstance(error, OSError) else None
        raise Unavailable(f"{path} cannot be written: {why or error}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return jobs.height
