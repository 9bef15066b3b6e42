"""What can be wrong with a job: in its script, its files, its run, or its place in the queue.

A flaw changes what is submitted; what becomes of it is Slurm's to say. Where the script goes on
after an error, a flawed job may well complete.
"""

from __future__ import annotations

from enum import StrEnum


class Flaw(StrEnum):
    """One thing that is wrong with a job."""

    # In the script's text.
    TYPO = "typo"
    SYNTAX = "syntax"
    UNKNOWN_OPTION = "unknown_option"
    UNSET_VARIABLE = "unset_variable"
    MISSING_FOLDER = "missing_folder"
    MISSING_MODULE = "missing_module"
    MISSING_PYTHON_MODULE = "missing_python_module"
    OUTPUT_NOWHERE = "output_nowhere"
    BROKEN_PIPE = "broken_pipe"
    TOO_MANY_TASKS = "too_many_tasks"
    OWN_TIME_LIMIT = "own_time_limit"
    FILE_SIZE_LIMIT = "file_size_limit"
    OPEN_FILES_LIMIT = "open_files_limit"
    FAILING_STEP = "failing_step"
    NO_GPU_ASKED = "no_gpu_asked"
    # In its files.
    MISSING_INPUT = "missing_input"
    UNREADABLE_INPUT = "unreadable_input"
    DAMAGED_INPUT = "damaged_input"
    NOT_EXECUTABLE = "not_executable"
    WRONG_CHECKSUM = "wrong_checksum"
    # In how its program runs.
    SEGFAULT = "segfault"
    ASSERTION = "assertion"
    DIVISION_BY_ZERO = "division_by_zero"
    NOT_CONVERGED = "not_converged"
    BAD_DATA = "bad_data"
    STALL = "stall"
    HANG = "hang"
    SLOW = "slow"
    LEAK = "leak"
    SPIKE = "spike"
    FULL_DISK = "full_disk"
    # In its place in the queue.
    NEVER_ELIGIBLE = "never_eligible"
    DEADLINE = "deadline"
    CANCELLED_PENDING = "cancelled_pending"
    CANCELLED_RUNNING = "cancelled_running"


TEXT = tuple(Flaw)[: tuple(Flaw).index(Flaw.MISSING_INPUT)]
FILES = tuple(Flaw)[tuple(Flaw).index(Flaw.MISSING_INPUT) : tuple(Flaw).index(Flaw.SEGFAULT)]
RUN = tuple(Flaw)[tuple(Flaw).index(Flaw.SEGFAULT) : tuple(Flaw).index(Flaw.NEVER_ELIGIBLE)]
QUEUE = tuple(Flaw)[tuple(Flaw).index(Flaw.NEVER_ELIGIBLE) :]
