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
) = range(21)  # fmt: skip
FACTS = 21

# Groups a job belongs to; a group's rate is shrunk toward its parent's.
CLUSTER, ACCOUNT, USER, NAME, EXECUTABLE, SHAPE, PARTITION, NODE = range(8)
GROUPS = 8
PARENTS = (-1, CLUSTER, ACCOUNT, USER, USER, USER, CLUSTER, CLUSTER)

# The groups in which a request is compared with the one before it, and what is compared.
LOOKED_BACK = (USER, NAME, EXECUTABLE, SHAPE)
SINCE_SUBMIT, CPUS_CHANGE, LIMIT_CHANGE, MEMORY_CHANGE, CPUS_UNUSUAL, LIMIT_UNUSUAL = range(6)
LOOK_WIDTH = 6
KEPT = len(LOOKED_BACK) * LOOK_WIDTH

# A row of features, chapter after chapter.
REQUEST_AT = 0
CALENDAR_AT = 16
LOOK_AT = 21
STARTED_AT = LOOK_AT + KEPT
GROUPS_AT = STARTED_AT + 7
GROUP_WIDTH = 23
ROW_WIDTH = GROUPS_AT + GROUPS * GROUP_WIDTH
