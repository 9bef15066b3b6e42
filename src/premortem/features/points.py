"""The moments at which a job's failure is predicted."""

from __future__ import annotations

import re
from dataclasses import dataclass

from premortem.errors import InvalidInput
from premortem.jobs.fields import KnownAt


@dataclass(frozen=True, slots=True)
class Point:
    """A moment in a job's life: `submit`, `start`, or so long after the start, as `running@2min`.

    `posthoc` is no moment to predict at: everything is known. It exists to compare with published
    results, which often use run time and CPU time.
    """

    name: str
    known: KnownAt
    after_start_s: float | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def leaks(self) -> bool:
        """Whether rows at this point tell what only the end of the job can tell."""
        return self.known is KnownAt.END

    @property
    def reached(self) -> str | None:
        """What a job did that has a row at this point; None where every job has one.

        >>> SUBMIT.reached, START.reached, running(600).reached
        (None, 'is known to have started', 'ran for 600 s')
        """
        if self.after_start_s is None:
            return None
        if self.after_start_s == 0:
            return "is known to have started"
        return f"ran for {self.after_start_s:g} s"


SUBMIT = Point("submit", KnownAt.SUBMIT)
START = Point("start", KnownAt.START, 0.0)
POSTHOC = Point("posthoc", KnownAt.END)


def running(seconds: float) -> Point:
    """The point so many seconds after the start, named in the largest unit that leaves no rest.

    >>> running(7200).name, running(90).name, running(0).name
    ('running@2h', 'running@90s', 'running@0s')
    """
    sizes = ((3600, "h"), (60, "min")) if seconds else ()
    size, unit = next((one for one in sizes if seconds % one[0] == 0), (1, "s"))
    return Point(f"running@{seconds / size:.12g}{unit}", KnownAt.RUNNING, float(seconds))


DEFAULT_POINTS = (SUBMIT, START, running(120), running(600), running(3600), POSTHOC)


def parse_point(text: str) -> Point:
    """The point of that name; seconds may stand alone, and times be written in any unit.

    >>> parse_point("running@600").name
    'running@10min'
    """
    named = {point.name: point for point in (SUBMIT, START, POSTHOC)}
    if text in named:
        return named[text]
    found = re.fullmatch(r"running@(\d{1,7})(s|min|h)?", text)
    if not found:
        raise InvalidInput(
            f"'{text}' is not a prediction point; expected submit, start, running@2min or posthoc"
        )
    return running(int(found[1]) * {None: 1, "s": 1, "min": 60, "h": 3600}[found[2]])
