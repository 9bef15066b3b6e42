"""What the command line's exit codes mean, and how errors become them."""

from __future__ import annotations

from premortem.errors import (
    Conflict,
    InvalidInput,
    MissingExtra,
    NotFound,
    PremortemError,
    Unavailable,
)

# 2 is what every command line returns for a wrong option; 130 for an interruption.
EXIT_CODES: dict[type[PremortemError], int] = {
    PremortemError: 1,
    InvalidInput: 1,
    NotFound: 3,
    Conflict: 4,
    Unavailable: 5,
    MissingExtra: 6,
}
INTERRUPTED = 130
INTERNAL = 70

MEANINGS = """\
Exit codes: 0 done, also when some records were set aside · 1 nothing useful could be done with
what was given, or an audit found a leak · 2 wrong option · 3 no such job, file or store · 4 clash
with what is there, such as a store of a newer version · 5 not available now, try again · 6 an extra
is not installed · 70 a fault in premortem itself · 130 interrupted.
"""


def exit_code(error: PremortemError) -> int:
    """The exit code for an error: that of its nearest class in the table."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
