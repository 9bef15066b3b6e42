"""From how a job ended to what it is called: completed, failed with a cause, or ignored.

Labels are not stored: they are computed when asked for, so that a site can change its policy
without loading anything again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

import polars as pl

from premortem.jobs.frame import SCHEMA
from premortem.jobs.outcomes import Cause, Outcome
from premortem.jobs.states import UNFINISHED

_STATE_VERDICTS: Mapping[str, str] = {
    "COMPLETED": Outcome.COMPLETED,
    "FAILED": Cause.APPLICATION,
    "CANCELLED": Cause.CANCELLED,
    "TIMEOUT": Cause.TIME_LIMIT,
    "OUT_OF_MEMORY": Cause.OUT_OF_MEMORY,
    "NODE_FAIL": Cause.NODE_FAILURE,
    "BOOT_FAIL": Cause.NODE_FAILURE,
    "DEADLINE": Cause.DEADLINE,
    "PREEMPTED": Cause.PREEMPTED,
    "REQUEUED": Outcome.IGNORED,
    "RESIZING": Outcome.IGNORED,
    "REVOKED": Outcome.IGNORED,
}

# A job that outlives its killed step may hang until its limit, or until its owner gives up.
_MAY_HIDE_MEMORY = ("FAILED", "TIMEOUT", "CANCELLED")

# Slurm's mark of a step killed for its memory: derived exit code 0:125.
_OUT_OF_MEMORY_SIGNAL = 125

LABEL_INPUTS: tuple[str, ...] = (
    "state",
    "step_state",
    "exit_code",
    "exit_signal",
    "derived_exit_signal",
    "start_time",
    "alloc_cpus",
    "elapsed_s",
)


@dataclass(frozen=True, slots=True)
class LabelPolicy:
    """How a site reads the ends of its jobs.

    By default every job that ended without completing is a failure, as in the literature, except
    those that say nothing about the job itself: preempted and requeued runs are ignored.
    `exit_codes` gives a cause to what would otherwise be an application failure, `ignored` and
    `completed` name causes that shall not count as failures.
    """

    ignored: frozenset[Cause] = frozenset({Cause.PREEMPTED})
    completed: frozenset[Cause] = frozenset()
    exit_codes: Mapping[int, Cause] = field(default_factory=dict)

    def label(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """The same jobs with columns `outcome` and `cause`; `cause` is null unless they failed.

        The columns of `LABEL_INPUTS` that are missing count as absent.
        """
        missing = [name for name in LABEL_INPUTS if name not in jobs.columns]
        cause = pl.col("cause")
        outcome = (
            pl.when(cause.is_in(_words(Outcome)))
            .then(cause)
            .when(cause.is_in(_words(self.ignored)))
            .then(pl.lit(str(Outcome.IGNORED)))
            .when(cause.is_in(_words(self.completed)))
            .then(pl.lit(str(Outcome.COMPLETED)))
            .otherwise(pl.lit(str(Outcome.FAILED)))
        )
        return (
            jobs.lazy()
            .with_columns(pl.lit(None, SCHEMA[name]).alias(name) for name in missing)
            .with_columns(cause=self._verdict())
            .with_columns(outcome=outcome)
            .with_columns(cause=pl.when(pl.col("outcome") == str(Outcome.FAILED)).then(cause))
            .drop(missing)
            .collect()
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return {
            "ignored": sorted(_words(self.ignored)),
            "completed": sorted(_words(self.completed)),
            "exit_codes": {str(code): str(cause) for code, cause in self.exit_codes.items()},
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """The policy that told these values."""
        return cls(
            frozenset(map(Cause, told.get("ignored", ()))),
            frozenset(map(Cause, told.get("completed", ()))),
            {int(code): Cause(cause) for code, cause in told.get("exit_codes", {}).items()},
        )

    def _verdict(self) -> pl.Expr:
        """An outcome or a cause for each job, before causes are ignored or forgiven."""
        never_started = (
            pl.col("start_time").is_null()
            & pl.col("alloc_cpus").is_null()
            & (pl.col("elapsed_s").fill_null(0) == 0)
        )
        killed_for_memory = (pl.col("step_state") == "OUT_OF_MEMORY") | (
            pl.col("derived_exit_signal") == _OUT_OF_MEMORY_SIGNAL
        )
        by_state = pl.col("state").replace_strict(
            {state: str(verdict) for state, verdict in _STATE_VERDICTS.items()},
            default=str(Outcome.IGNORED),
            return_dtype=pl.String,
        )
        by_exit_code = pl.col("exit_code").replace_strict(
            {code: str(cause) for code, cause in self.exit_codes.items()},
            default=str(Cause.APPLICATION),
            return_dtype=pl.String,
        )
        succeeded = (pl.col("exit_code") == 0) & (pl.col("exit_signal").fill_null(0) == 0)
        return (
            pl.when(pl.col("state").is_null() & succeeded)
            .then(pl.lit(str(Outcome.COMPLETED)))
            .when(pl.col("state").is_null() & pl.col("exit_code").is_not_null())
            .then(by_exit_code)
            .when(pl.col("state").is_null())
            .then(pl.lit(str(Outcome.IGNORED)))
            .when(pl.col("state").is_in(UNFINISHED))
            .then(pl.lit(str(Outcome.UNFINISHED)))
            .when(pl.col("state").is_in(_MAY_HIDE_MEMORY) & killed_for_memory)
            .then(pl.lit(str(Cause.OUT_OF_MEMORY)))
            .when(pl.col("state") == "FAILED")
            .then(by_exit_code)
            .when((pl.col("state") == "CANCELLED") & never_started)
            .then(pl.lit(str(Cause.CANCELLED_BEFORE_START)))
            .otherwise(by_state)
        )


def _words(values: Iterable[StrEnum]) -> list[str]:
    return [str(value) for value in values]
