"""The names of the formats sources can read, and of the ways to read them."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """What a file may be."""

    AUTO = "auto"
    SWF = "swf"
    SACCT = "sacct"
    SLURM_JSON = "slurm-json"
    TABLE = "table"


class SwfStatus(StrEnum):
    """What the status column holds.

    `archive` is the format's own: 1 completed, 0 failed, 5 cancelled, 2 to 4 parts of a
    checkpointed job. `exit_code` is what some conversions put there instead: 0 is success.
    `auto` looks at the first lines: some statuses the format does not know, and 0 more common
    than 1, mean exit codes.
    """

    AUTO = "auto"
    ARCHIVE = "archive"
    EXIT_CODE = "exit-code"
