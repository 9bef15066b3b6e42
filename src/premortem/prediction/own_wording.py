"""Sentences about what a job's script says, and about what the running job uses.

What has nothing to say returns None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from premortem.prediction.phrases import Told, duration, many, memory, percent

# Less growth than this in a second is none.
_STEADY_MB_S = 0.01


def script_care(told: Told) -> str | None:
    """Whether the script minds its failures; of its traits that which tells most."""
    tell: Mapping[str, Callable[[float], str]] = {
        "script_stops_on_error": lambda yes: (
            "its script ends when a command fails"
            if yes
            else "its script goes on when a command fails (no `set -e`)"
        ),
        "script_minds_pipes": lambda yes: (
            f"its script {'minds' if yes else 'does not mind'} failures inside pipes"
        ),
        "script_minds_names": lambda yes: (
            f"its script {'minds' if yes else 'does not mind'} variables without a value"
        ),
        "script_checks": lambda count: f"its script checks something in {many(count, 'place')}",
        "script_exits": lambda count: f"its script ends by itself in {many(count, 'place')}",
    }
    return _first(told, tell)


def script_shape(told: Told) -> str | None:
    """How large the script is, and what it is made of."""
    tell: Mapping[str, Callable[[float], str]] = {
        "script_lines": lambda count: f"its script has {many(count, 'line')}",
        "script_options": lambda count: f"its script has {many(count, 'option')} for sbatch",
        "script_steps": lambda count: f"its script starts {many(count, 'step')}",
        "script_loops": lambda count: f"its script has {many(count, 'loop')}",
        "script_modules": lambda count: f"its script loads {many(count, 'module')}",
        "script_folders": lambda count: f"its script changes directory {_times(count)}",
        "script_absolute_paths": lambda count: f"its script names {many(count, 'absolute path')}",
        "script_relative_paths": lambda count: f"its script names {many(count, 'relative path')}",
        "script_variables": lambda count: f"its script sets {many(count, 'variable')}",
        "script_redirections": lambda count: (
            f"its script reads or writes files by {many(count, 'redirection')}"
        ),
        "script_background": lambda count: (
            f"its script leaves {many(count, 'command')} in the background"
        ),
        "script_longest_line": lambda count: (
            f"its script's longest line has {many(count, 'character')}"
        ),
    }
    return _first(told, tell)


def script_unbalanced(told: Told) -> str | None:
    """Whether something is opened and not closed."""
    count = told.values.get("script_unbalanced")
    if count is None:
        return None
    if count == 0:
        return "in its script everything opened is closed again"
    return f"its script opens what it does not close in {many(count, 'place')}, or the reverse"


def usage_cpu(told: Told) -> str | None:
    """How busy it is."""
    share, lately = map(told.values.get, ("usage_cpu_share", "usage_cpu_share_lately"))
    idle = told.values.get("usage_idle_s", 0.0)
    if told.features[0] == "usage_idle_s" and idle >= 5:
        return f"it has hardly used a CPU for {duration(idle)}"
    if share is None:
        return None
    text = f"it uses {percent(share)} of its CPUs"
    return text if lately is None else f"{text}, {percent(max(lately, 0.0))} lately"


def usage_memory(told: Told) -> str | None:
    """How much of its memory it uses, and when that will be all of it."""
    rss, share = map(told.values.get, ("usage_rss_mb", "usage_memory_share"))
    if rss is None:
        return None
    text = f"it uses {memory(rss)} of memory"
    if share is not None:
        text = f"it uses {percent(share)} of the memory asked for"
    left = told.values.get("usage_memory_left_s")
    growth = told.values.get("usage_growth_mb_s", 0.0)
    if left is not None and left >= 0 and growth > _STEADY_MB_S:
        return f"{text} and at this growth all of it in {duration(left)}"
    return f"{text} and more from second to second" if growth > _STEADY_MB_S else text


def usage_data(told: Told) -> str | None:
    """How much it reads and writes."""
    read, written = map(told.values.get, ("usage_read_mb_s", "usage_written_mb_s"))
    if read is None or written is None:
        return None
    return f"it reads {read:.3g} and writes {written:.3g} MiB a second"


def usage_processes(told: Told) -> str | None:
    """How many processes it has."""
    count = told.values.get("usage_processes")
    if count is None:
        return None
    return "it has one process alive" if count == 1 else f"it has {count:,.0f} processes alive"


def _times(count: float) -> str:
    return "once" if count == 1 else f"{count:.0f} times"


def _first(told: Told, tell: Mapping[str, Callable[[float], str]]) -> str | None:
    known = (name for name in told.features if name in tell and name in told.values)
    return next((tell[name](told.values[name]) for name in known), None)
