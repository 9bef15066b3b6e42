"""`premortem collect`: the store kept informed of a live cluster."""

from __future__ import annotations

import json
import re
import signal
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from premortem.apps.cli.options import AsJson, Invocation, StoreUrl, instant, seconds
from premortem.apps.cli.slurm import SlurmUrl, open_cluster, sstat
from premortem.errors import InvalidInput, NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from premortem.operations.collecting import Collector
    from premortem.operations.collector_state import CollectorState

HELP = """\
Collect jobs from a Slurm cluster, again and again, with few calls to its daemons.

Through slurmrestd if the settings or --url name it, else by Slurm's own commands. It can be
interrupted or killed at any time, and goes on where it was.

    premortem collect --once --since 30d

    premortem collect --url http://slurm:6820 --every 2min

    premortem collect --status
"""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("collect", help=HELP)(collect)


def collect(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="One round of questions, no more.")] = False,
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="From one round to the next: 60s, 2min.")
    ] = None,
    since: Annotated[
        str,
        typer.Option(
            metavar="WHEN", help="How far back to look, where no round has yet: 7d, 2026-01-05."
        ),
    ] = "1d",
    usage: Annotated[
        bool, typer.Option("--usage", help="Sample what running jobs use, too, by sstat.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show how far collecting has come, and ask nothing.")
    ] = False,
    url: SlurmUrl = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Collect, or tell how it is going."""
    from premortem.operations.collecting import Collector
    from premortem.operations.paces import Pace

    invocation: Invocation = context.obj
    if status:
        _show_status(invocation, store, as_json)
        return
    settings = invocation.settings().values
    slurm = settings.slurm
    now = datetime.now(UTC)
    began = instant(since, now=now)
    if began > now:
        raise InvalidInput(f"--since {since} is yet to come; expected a time past, or an age")
    pace = Pace(
        every_s=seconds(every) if every else slurm.every_s,
        slurmctld_calls=slurm.slurmctld_calls,
        slurmdbd_calls=slurm.slurmdbd_calls,
        history=now - began,
    )
    stopped = threading.Event()
    with invocation.store(store, read_only=False) as target, open_cluster(settings, url) as cluster:
        sampler = sstat(settings) if usage else None
        tell = teller(as_json)
        collector = Collector(
            cluster, target, pace=pace, sampler=sampler, tell=tell,
            sleep=stopped.wait,
        )  # fmt: skip
        if once:
            done = collector.round()
            if len(done.problems) == 2:
                raise Unavailable("; ".join(dict.fromkeys(done.problems.values())))
            if left := collector.state.without_details:
                tell("unfinished", steps_or_scripts_of=left, hint="collect again to have them")
            return
        run_until_signal(collector, stopped)


def run_until_signal(collector: Collector, stopped: threading.Event) -> None:
    """Collect until told to stop, then stop at once: nothing is lost, however far it had come."""

    def stop(*_: object) -> None:
        stopped.set()
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with suppress(KeyboardInterrupt):
        collector.run(stopped.is_set)


def teller(as_json: bool) -> Callable[..., None]:
    """A line for each event: structured for machines, `name=value` for people."""
    from premortem.apps.cli.render import printable

    def tell(event: str, **values: Any) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        if as_json:
            line = json.dumps({"at": at, "event": event, **values}, default=str)
            typer.echo(line)
            return
        told = " ".join(f"{name}={_shown(value)}" for name, value in values.items())
        typer.echo(printable(f"{at} {event} {told}".rstrip()), err=True)

    return tell


def _shown(value: Any) -> str:
    text = str(value)
    return json.dumps(text) if re.search(r"[\s\"=]", text) else text


def _show_status(invocation: Invocation, store: str | None, as_json: bool) -> None:
    from premortem.apps.cli import render
    from premortem.operations.collector_state import CollectorState

    with invocation.store(store) as source:
        state = CollectorState.load(source)
    if state is None:
        raise NotFound("nothing was collected into this store yet: `premortem collect` begins")
    if as_json:
        render.print_json(state.as_dict() | {"state": _word(state)})
        return
    rows = [
        ("state", _word(state)),
        ("last round", _ago(state.last_round)),
        ("accounting read", f"{state.read_from or ''} to {state.watermark or ''}"),
        ("slurmctld", _daemon(state, "slurmctld")),
        ("slurmdbd", _daemon(state, "slurmdbd")),
        ("jobs not ended", f"{state.open:,}"),
        ("of those, unknown to accounting", f"{state.untold:,}"),
        ("steps or scripts to be read", f"{state.without_details:,}"),
        *((name.replace("_", " "), f"{n:,}") for name, n in state.counters.as_dict().items()),
    ]
    if state.ahead_s:
        rows.insert(2, ("clock", f"the cluster's is {state.ahead_s:.0f} s ahead of this machine's"))
    render.console().print(render.table(None, ("", ""), rows))


def _word(state: CollectorState) -> str:
    if state.problems:
        return "failing" if len(state.problems) == 2 else "partly failing"
    return "fine"


def _daemon(state: CollectorState, name: str) -> str:
    answered = state.answered.get(name)
    problem = state.problems.get(name)
    told = f"answered {_ago(answered)}" if answered else "has never answered"
    return f"{told}; now: {problem}" if problem else told


def _ago(text: str | None) -> str:
    from premortem.operations.collector_state import moment

    at = moment(text)
    if at is None:
        return "never"
    seconds = (datetime.now(UTC) - at).total_seconds()
    return f"{at:%Y-%m-%d %H:%M:%S} UTC ({max(seconds, 0):,.0f} s ago)"
