"""What `premortem sample` shows while it looks: a table, or lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import polars as pl
from rich.live import Live
from rich.table import Table

from premortem.apps.cli import render
from premortem.sources.usage import Sampler
from premortem.sources.usage.sample_files import json_lines


class Lines:
    """Prints what a sampler sees as JSON, a line for each job."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def sample(self) -> pl.DataFrame:
        """Look, and print."""
        samples = self._sampler.sample()
        sys.stdout.write(json_lines(samples))
        sys.stdout.flush()
        return samples


@contextmanager
def screen(sampler: Sampler) -> Iterator[Sampler]:
    """Shows what a sampler sees: in place on a terminal, one table after the other elsewhere."""
    console = render.console()
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield _Tables(sampler, lambda table: live.update(table, refresh=True))
    else:

        def show(table: Table) -> None:
            console.print(table)
            console.file.flush()

        yield _Tables(sampler, show)


class _Tables:
    """Shows what a sampler sees as a table, and how many CPUs were busy since the last."""

    def __init__(self, sampler: Sampler, show: Callable[[Table], None]) -> None:
        self._sampler = sampler
        self._show = show
        self._before: dict[int, tuple[datetime, float]] = {}

    def sample(self) -> pl.DataFrame:
        """Look, and show."""
        samples = self._sampler.sample()
        rows = [self._row(one) for one in samples.sort("job_id").iter_rows(named=True)]
        self._before = {
            job: (at, cpu_s) for job, at, cpu_s in samples.select("job_id", "at", "cpu_s").rows()
        }
        columns = (
            "job",
            "CPU time",
            "CPUs busy",
            "memory MB",
            "read MB",
            "written MB",
            "processes",
        )
        title = f"{render.shown(datetime.now(UTC))} UTC: {_jobs(samples.height)}"
        self._show(render.table(title, columns, rows, right=columns))
        return samples

    def _row(self, one: dict[str, Any]) -> tuple[str, ...]:
        read, written = one["read_mb"], one["written_mb"]
        return (
            str(one["job_id"]),
            render.duration(one["cpu_s"]),
            self._busy(one),
            f"{one['rss_mb']:,.0f}",
            "" if read is None else f"{read:,.1f}",
            "" if written is None else f"{written:,.1f}",
            str(one["processes"]),
        )

    def _busy(self, one: dict[str, Any]) -> str:
        if one["job_id"] not in self._before:
            return ""
        at, cpu_s = self._before[one["job_id"]]
        passed_s = (one["at"] - at).total_seconds()
        return f"{(one['cpu_s'] - cpu_s) / passed_s:.1f}" if passed_s > 0 else ""


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count or 'no'} jobs"
