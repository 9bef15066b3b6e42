"""Answers of Slurm's turned into jobs and scripts, by whichever way they came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from premortem.errors import InvalidInput, Unavailable
from premortem.sources.content import Received
from premortem.sources.port import Batch, Context
from premortem.sources.slurm_json import SlurmJsonSource
from premortem.sources.slurm_values import BadRecord, identifier, script


def job_batches(answer: Received | None, context: Context) -> Iterator[Batch]:
    """The jobs of an answer in JSON, which is closed behind them; one cut short is an error."""
    if answer is None:
        return
    source = SlurmJsonSource(answer, context)
    try:
        with answer:
            yield from source.batches()
    except InvalidInput:
        if not source.damage:
            raise
    if source.damage:
        raise Unavailable(f"{answer.path}: {source.damage}")


def script_in(record: Any) -> tuple[int, str] | None:
    """A job's number and its script without secrets; None where it has none."""
    if not isinstance(record, dict):
        return None
    try:
        number, told = identifier(record.get("job_id")), script(record.get("script"))
    except BadRecord:
        return None
    return (number, told) if number and told else None
