"""The words for what became of a job."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """What became of a job. `unfinished` jobs have not ended, `ignored` ones do not count."""

    COMPLETED = "completed"
    FAILED = "failed"
    IGNORED = "ignored"
    UNFINISHED = "unfinished"


class Cause(StrEnum):
    """The way a job failed."""

    APPLICATION = "application"
    OUT_OF_MEMORY = "out_of_memory"
    TIME_LIMIT = "time_limit"
    NODE_FAILURE = "node_failure"
    CANCELLED = "cancelled"
    CANCELLED_BEFORE_START = "cancelled_before_start"
    PREEMPTED = "preempted"
    DEADLINE = "deadline"
