"""What the replay remembers of each group of jobs, and where in its row of numbers.

A group is all jobs of one user, of one user's job name, of one partition, and so on. The kernels
read and write these rows by the places named here.
"""

from __future__ import annotations

from premortem.features import layout

# Counts. Only jobs that completed or failed count as ended.
SUBMITTED, PENDING, RUNNING, ENDED, FAILED, EARLY_FAILED, FAILED_AT_LIMIT = range(7)

# Sums that fade with time, three speeds; and the moment up to which they have faded.
HOUR_ALL, HOUR_FAILED, DAY_ALL, DAY_FAILED, LONG_ALL, LONG_FAILED, FADED_AT = range(7, 14)

# The last of each; times are seconds since 1970.
LAST_SUBMIT, LAST_END, LAST_FAILURE, LAST_OUTCOME, LAST_CAUSE, STREAK = range(14, 20)
LAST_ELAPSED, LAST_LIMIT_SHARE, LAST_CPUS, LAST_LIMIT, LAST_MEMORY = range(20, 25)

# Slow averages, and how many values each has seen.
USUAL_ELAPSED, USUAL_LIMIT_SHARE, USUAL_MEMORY_SHARE, USUAL_CPUS, USUAL_LIMIT = range(25, 30)
ELAPSED_SEEN, LIMIT_SHARE_SEEN, MEMORY_SHARE_SEEN, CPUS_SEEN, LIMIT_SEEN = range(30, 35)

# Of the jobs that ran at least so many seconds, how many there were and how many failed.
SURVIVAL_STEPS = (0.0, 120.0, 600.0, 3600.0, 14400.0)
SURVIVED, SURVIVED_FAILED = 35, 40

# The largest CPUs, limit, memory, CPUs a node and memory a node of those that started.
LARGEST = 45

# The last working directory, part by part.
LAST_PATH = 50
WIDTH = LAST_PATH + layout.PATH_DEPTH

# What is unknown at first; everything else begins at zero.
UNKNOWN_AT_FIRST = (*range(FADED_AT, USUAL_LIMIT + 1), *range(LARGEST, WIDTH))

HOUR_HALF_LIFE_S, DAY_HALF_LIFE_S, LONG_HALF_LIFE_S = 3600.0, 86400.0, 14 * 86400.0
EARLY_S = 120.0
AT_LIMIT_SHARE = 0.98
# A slow average weighs a new value by 1/n, but never less than this.
LEAST_WEIGHT = 0.1
# The failure rate expected of a cluster of which nothing is known; and of the failures expected
# anywhere, which part happens early, and which at the limit.
FIRST_GUESS, EARLY_PART, AT_LIMIT_PART = 0.2, 0.5, 0.2
# How many jobs' worth of its parent's rate a group starts with.
PRIOR_WEIGHT = 5.0
