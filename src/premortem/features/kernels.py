"""The compiled heart of the replay: one pass over events and rows in order of time.

Batch and live run this same code; live passes arrays of length one. Nothing here allocates or
knows names: places come from `memory` and `layout`.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from numba import njit

from premortem.features import layout, memory, recall, remember
from premortem.features.recall import look_back, write_row
from premortem.features.remember import Array, end, start, submit

SUBMIT, START, END, ROW = 0, 1, 2, 3


def _compiled(sources: int) -> Any:
    """The one entry to the compiled code, made once and kept on disk.

    What is kept is found again by the text of this file and by what `run` closes over: the texts of
    the others that it is made of, so that no change of them goes unnoticed.
    """

    @njit(cache=True)
    def run(
        kinds: Array,
        jobs: Array,
        times: Array,
        out: Array,
        elapsed: Array,
        groups: Array,
        facts: Array,
        kept: Array,
        memory: Array,
        row: Array,
        columns: Array,
        rows: Array,
    ) -> None:
        """Carry out actions in the order given.

        A row asked for is made in `row`, and what `columns` names of it written where `out` says.

        An action is an event of a job, or a request for its row at a moment; `elapsed` is for each
        row how long the job has run by its moment, NaN before its start. `groups` are each job's
        places in `memory`, -1 for none. `kept` holds what was seen at each job's own submission.
        """
        if sources < 0:  # Never, but named here it is closed over.
            return
        for i in range(len(kinds)):
            job = jobs[i]
            kind = kinds[i]
            if kind == ROW:
                so_far = elapsed[out[i]]
                write_row(times[i], so_far, groups[job], facts[job], kept[job], memory, row)
                for k in range(len(columns)):
                    rows[out[i], k] = row[columns[k]]
            elif kind == SUBMIT:
                look_back(times[i], groups[job], facts[job], memory, kept[job])
                submit(times[i], groups[job], facts[job], memory)
            elif kind == START:
                start(groups[job], facts[job], memory)
            else:
                end(times[i], groups[job], facts[job], memory)

    return run


_MADE_OF = (layout, memory, remember, recall)
run = _compiled(zlib.crc32(b"".join(Path(str(m.__file__)).read_bytes() for m in _MADE_OF)))
