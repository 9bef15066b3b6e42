"""The cluster that a command asks, as the settings and its options say."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from premortem.operations.collecting import Cluster
    from premortem.operations.sampling import Sampler
    from premortem.settings import Settings

SlurmUrl = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="slurmrestd to ask, such as http://slurm:6820."),
]


class _Sstat:
    """Samples by sstat; whose they are is for the caller to say."""

    def __init__(self, prefix: str) -> None:
        from premortem.sources.usage.sstat import SstatSampler

        self._sampler = SstatSampler("", lambda: (), command=(*shlex.split(prefix), "sstat"))

    def sample(self, job_ids: Sequence[int]) -> pl.DataFrame:
        """What is told of these jobs now."""
        return self._sampler.ask(job_ids).samples


def sstat(settings: Settings) -> Sampler:
    """What samples running jobs, by Slurm's own command."""
    return _Sstat(settings.slurm.prefix)


@contextmanager
def open_cluster(settings: Settings, url: str | None = None) -> Iterator[Cluster]:
    """The cluster: through slurmrestd if it has an address, else by Slurm's commands."""
    slurm = settings.slurm
    address = url or slurm.url
    if not address:
        from premortem.sources.live.commands import CommandCluster

        yield CommandCluster(shlex.split(slurm.prefix))
        return
    from premortem.sources.live.callers import caller_from
    from premortem.sources.live.rest import RestCluster

    caller = caller_from(
        file=slurm.token_file,
        command=shlex.split(slurm.token_command) if slurm.token_command else None,
        user=slurm.user,
    )
    with RestCluster(
        address, caller, version=slurm.version, certificates=slurm.certificates
    ) as cluster:
        yield cluster
