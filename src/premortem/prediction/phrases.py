"""What sentences are made of: numbers, times and names as people write them, and what is told."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from premortem.features.scripts import read_script
from premortem.jobs.names import stem

Voice = Literal["your", "their"]

_UNITS = ((86_400, "day", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
_LONGEST_NAME = 40
# What a name may hold beside letters and digits; markup of any kind needs more.
_HARMLESS = " ._-+:=@/,%#~()*"

# Of each group the field that names it, the words before its name, and those for want of a name.
_WHICH: Mapping[str, tuple[str, str, str]] = {
    "cluster": ("", "", "on this cluster"),
    "account": ("account", "of account", "of this account"),
    "user": ("", "", ""),
    "name": ("job_name", "named", "of this name"),
    "executable": ("executable", "running", "of this executable"),
    "directory": ("work_dir", "in", "in this directory"),
    "script": ("", "", "of this script (numbers aside)"),
    "program": ("program", "whose script runs", "whose script runs the same program"),
    "partition": ("partition", "in partition", "in this partition"),
    "node": ("node_list", "on node", "on its first node"),
}
_NOT_OF_ONE_USER = ("cluster", "account", "program", "partition", "node")
_NUMBERS_ASIDE = ("name", "directory")
_PATHS = ("executable", "directory")


@dataclass(frozen=True, slots=True)
class Tally:
    """How the jobs of a group ended; counts that the row does not give exactly are None.

    `share` is the part of them that failed.
    """

    ended: int
    share: float
    failed: int | None = None
    at_limit: int | None = None
    early: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a sentence is made of.

    `values` are the row's by feature, without the missing ones; `features` the topic's, the most
    telling first. `raises` is whether the topic raises the risk.
    """

    values: Mapping[str, float]
    tallies: Mapping[str, Tally]
    job: Mapping[str, Any]
    features: Sequence[str]
    raises: bool
    voice: Voice = "your"

    def jobs(self, group: str, count: int | None = None) -> str:
        """The jobs of a group, as in ``your 10 jobs named `relax_*` ``."""
        return jobs_of(group, self.job, self.values, self.voice, count)


def duration(seconds: float) -> str:
    """A length of time in at most two units, without seconds from ten minutes on.

    >>> duration(9000), duration(259_200), duration(59.7), duration(2_840)
    ('2 h 30 min', '3 days', '1 min', '47 min')
    """
    if seconds >= 600:
        seconds = round(seconds / 60) * 60
    for size, unit, part, smaller in _UNITS:
        whole, rest = divmod(round(seconds / part) * part, size)
        if whole > 0:
            plural = "s" if unit == "day" and whole > 1 else ""
            return f"{whole:,} {unit}{plural}" + (f" {rest // part} {smaller}" if rest else "")
    return f"{round(seconds)} s" if seconds >= 1 else "less than 1 s"


def memory(mebibytes: float) -> str:
    """An amount of memory in the unit that suits it.

    >>> memory(512), memory(16_384), memory(1_572_864)
    ('512 MiB', '16 GiB', '1.5 TiB')
    """
    for unit in ("MiB", "GiB", "TiB"):
        if round(mebibytes) < 1024 or unit == "TiB":
            break
        mebibytes /= 1024
    return f"{mebibytes:,.0f} {unit}" if abs(mebibytes) >= 100 else f"{mebibytes:.3g} {unit}"


def percent(share: float, about: str = "") -> str:
    """A share of one; what only comes near nothing or everything is not called so.

    `about` comes before the number where that is not vague already.

    >>> percent(0.231, "about "), percent(0.002, "about "), percent(0.9999)
    ('about 23 %', 'less than 1 %', 'more than 99 %')
    """
    if 0 < share < 0.005:
        return "less than 1 %"
    if 0.995 <= share < 1:
        return "more than 99 %"
    return f"{about}{share * 100:,.0f} %"


def many(count: float, noun: str) -> str:
    """A number of things.

    >>> many(1, "CPU"), many(1024, "CPU")
    ('1 CPU', '1,024 CPUs')
    """
    return f"{round(count):,} {noun}{'' if round(count) == 1 else 's'}"


def quoted(name: object, *, numbers: bool = True, path: bool = False) -> str | None:
    """A name in backticks, short and harmless wherever it is shown; None if nothing is left of it.

    Without `numbers`, each is a ``*``. Of a long path the end is kept.

    >>> quoted("relax_01", numbers=False), quoted("<b>`rm -rf`</b>"), quoted("")
    ('`relax_*`', '`?b??rm -rf??/b?`', None)
    """
    if name is None:
        return None
    text = " ".join(unicodedata.normalize("NFC", str(name)).split())
    text = "".join(c if c.isalnum() or c in _HARMLESS else "?" for c in text)
    text = text if numbers else stem(text).replace("#", "*")
    if len(text) > _LONGEST_NAME:
        end = _LONGEST_NAME - 1 if path else _LONGEST_NAME // 3
        text = text[: _LONGEST_NAME - 1 - end] + "…" + text[-end:]
    return f"`{text}`" if text else None


def jobs_of(
    group: str,
    job: Mapping[str, Any],
    values: Mapping[str, float],
    voice: Voice,
    count: int | None = None,
) -> str:
    """The jobs of a group that a job is in; `values` are features of the job, which may lack any.

    >>> jobs_of("name", {"job_name": "relax_01", "user": "ada"}, {}, "their", 10)
    "ada's 10 jobs named `relax_*`"
    >>> jobs_of("partition", {"partition": "gpu"}, {}, "your")
    'the jobs in partition `gpu`'
    """
    owner = "your" if voice == "your" else _owner(job)
    words = [
        "the" if group in _NOT_OF_ONE_USER else owner,
        "" if count is None else f"{count:,}",
        "job" if count == 1 else "jobs",
        _shape(values) if group == "shape" else _which(group, job),
    ]
    return " ".join(word for word in words if word)


def _owner(job: Mapping[str, Any]) -> str:
    name = quoted(job.get("user"))
    if name is None:
        return "this user's"
    if re.fullmatch(r"`\w[\w.-]*`", name):
        name = name.strip("`")
    return f"user {name}'s" if name.isdigit() else f"{name}'s"


def _which(group: str, job: Mapping[str, Any]) -> str:
    """What the jobs of a group have in common, by its name if that is known."""
    field, words, otherwise = _WHICH[group]
    told = job.get(field)
    if group == "program" and job.get("script") is not None:
        told = read_script(job["script"]).program
    if group == "account" and told is None:
        told = job.get("group")
    if group == "node" and {",", "["} & set(str(told)):
        return otherwise
    name = quoted(told, numbers=group not in _NUMBERS_ASIDE, path=group in _PATHS)
    return f"{words} {name}" if name else otherwise


def _shape(values: Mapping[str, float]) -> str:
    if "req_cpus" not in values or "time_limit_s" not in values:
        return "of the same CPUs and limit"
    cpus, limit = values["req_cpus"], values["time_limit_s"]
    return f"with {many(cpus, 'CPU')} and a limit of {duration(limit)}"
