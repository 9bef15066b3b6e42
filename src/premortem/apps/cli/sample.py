"""`premortem sample`: what the jobs on this node use now."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from premortem.apps.cli.options import Invocation, StoreUrl, seconds
from premortem.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl

    from premortem.sources.usage import Recorder, Sampler, SampleSink
    from premortem.stores import Store

HELP = """\
Show what the jobs on this node use: CPU time, memory, data read and written, processes.

It looks every ten seconds until it is interrupted, and needs no Slurm command: it reads /proc.
Only root sees the data that jobs of other users read and write.
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sample", help=HELP)(sample)


def sample(
    context: typer.Context,
    every: Annotated[
        str, typer.Option(metavar="TIME", help="Time between two looks: 10s, 1m.")
    ] = "10s",
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="End after this long: 5m, 2h, 1d.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Add the samples to this .jsonl or .parquet."
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep them in the store, fewer as a job grows older.")
    ] = False,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Cluster of this node.")
    ] = None,
    store: StoreUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON a sample.")] = False,
) -> None:
    """Look, show and keep, until told to end."""
    from contextlib import ExitStack, closing

    from premortem.apps.cli.progress import say
    from premortem.apps.cli.sample_views import Lines, screen
    from premortem.sources.usage import NodeSampler, Recorder
    from premortem.sources.usage.sample_files import open_sample_file

    if once and for_:
        raise InvalidInput("--once and --for are two ways to end: give one of them")
    if output and keep:
        raise InvalidInput("--output and --keep are two places for samples: give one of them")
    every_s = seconds(every)
    for_s = 0.0 if once else seconds(for_) if for_ else None
    invocation: Invocation = context.obj
    sampler = NodeSampler(cluster or invocation.settings().values.cluster)
    with ExitStack() as stack:
        sink: SampleSink = _Nowhere()
        if output:
            sink = stack.enter_context(closing(open_sample_file(output)))
        if keep:
            sink = _InStore(stack.enter_context(invocation.store(store, read_only=False)))
        shown: Sampler = Lines(sampler) if as_json else stack.enter_context(screen(sampler))
        recorder = Recorder(
            shown, sink, every_s, thin=keep, tell=lambda error: say(f"premortem: {error}")
        )
        stack.enter_context(_ended_by_signals(recorder))
        recorder.run(for_s)


@contextmanager
def _ended_by_signals(recorder: Recorder) -> Iterator[None]:
    """The first interruption ends the work in order; a second one ends it at once."""

    def stop(number: int, frame: object) -> None:
        recorder.stop()
        signal.signal(number, signal.SIG_DFL)

    before = {name: signal.signal(name, stop) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


class _Nowhere:
    """Keeps nothing."""

    def add(self, samples: pl.DataFrame) -> None:
        """Let them go."""


class _InStore:
    """Keeps samples in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, samples: pl.DataFrame) -> None:
        """Keep them."""
        self._store.add_samples(samples)
