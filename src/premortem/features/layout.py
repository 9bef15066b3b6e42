"""Where the kernels find what they are told of a job, and where they write its features.

The catalogue names the same places in words; `tests` hold the two together.
"""

from __future__ import annotations

# Facts of a job: request first, then what is learned at start, then at the end.
(
    SUBMITTED_AT, UTC_OFFSET, CPUS, NODES, TASKS, MEMORY, MEMORY_PER_CPU, LIMIT, UNLIMITED, GPUS,
    IN_ARRAY, DEPENDS, PRIORITY,
    WAITED, ALLOC_CPUS, ALLOC_NODES, STARTED,
    RAN, OUTCOME, CAUSE, MEMORY_SHARE,
    PATH,
) = range(22)  # fmt: skip
# From PATH on, one number for each part of the working directory, and nothing after the last.
PATH_DEPTH = 8
FACTS = PATH + PATH_DEPTH

# Groups a job belongs to; a group's rate is shrunk toward its parent's.
(
    CLUSTER, ACCOUNT, USER, NAME, EXECUTABLE, SHAPE, DIRECTORY, SCRIPT, PROGRAM, PARTITION, NODE,
) = range(11)  # fmt: skip
GROUPS = 11
PARENTS = (-1, CLUSTER, ACCOUNT, USER, USER, USER, USER, USER, CLUSTER, CLUSTER, CLUSTER)

# The groups in which a request is compared with the one before it, and what is compared.
LOOKED_BACK = (USER, NAME, EXECUTABLE, SHAPE)
(
    SINCE_SUBMIT, CPUS_CHANGE, LIMIT_CHANGE, MEMORY_CHANGE, CPUS_UNUSUAL, LIMIT_UNUSUAL,
    RETRIED_UNCHANGED,
) = range(7)  # fmt: skip
LOOK_WIDTH = 7

# What is kept of a job as seen at its submission: that comparison, how much of the largest request
# of its partition it is (by the quantities of `memory.LARGEST`), and how like the last working
# directory its own is.
OF_LARGEST_AT = len(LOOKED_BACK) * LOOK_WIDTH
OF_LARGEST = 5
LIKENESS_AT = OF_LARGEST_AT + OF_LARGEST
KEPT = LIKENESS_AT + 1

# A row of features, chapter after chapter.
REQUEST_AT = 0
CALENDAR_AT = 16
LOOK_AT = 21
STARTED_AT = LOOK_AT + KEPT
GROUPS_AT = STARTED_AT + 7
GROUP_WIDTH = 24
# From here on the kernels write nothing: what needs no history is added to their rows.
SCRIPT_AT = GROUPS_AT + GROUPS * GROUP_WIDTH
SCRIPT_WIDTH = 18
USAGE_AT = SCRIPT_AT + SCRIPT_WIDTH
USAGE_WIDTH = 13
ROW_WIDTH = USAGE_AT + USAGE_WIDTH
