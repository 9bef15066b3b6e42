"""The simulated calendar: when people work. It starts on a Monday at eight in the morning."""

from __future__ import annotations

from premortem.lab.workload.habits import Habit

HOUR = 3600.0
DAY = 24 * HOUR
# By hour of the day.
_WORKING = (2, 1, 1, 1, 1, 1, 2, 4, 8, 11, 12, 11, 8, 10, 12, 12, 11, 9, 6, 5, 5, 4, 3, 3)
_MEAN = sum(_WORKING) / 24
_START = 8 * HOUR


def activity(moment: float, habit: Habit) -> float:
    """How active somebody is at a moment, in seconds since the start; about 1 on average."""
    moment += _START
    hour = int(moment % DAY // HOUR)
    weekend = int(moment // DAY) % 7 >= 5
    if habit.at_night:
        hour = (hour + 12) % 24
    usual = _WORKING[hour] / _MEAN * 0.7 + 0.3
    if weekend == habit.at_weekends:
        return usual * 1.15
    return usual * 0.55
