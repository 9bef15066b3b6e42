"""A cluster asked by Slurm's own commands, for sites without slurmrestd."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from premortem.errors import InvalidInput, Unavailable
from premortem.sources.content import Received
from premortem.sources.json_stream import JsonStream
from premortem.sources.live.answers import Meaning, verdict_on
from premortem.sources.live.machines import Node, Partition
from premortem.sources.live.port import Calls, Overlong, checked_ids
from premortem.sources.live.programs import TIMES_IN_SECONDS, Failed, Programs
from premortem.sources.live.reading import job_batches, script_in
from premortem.sources.live.scontrol_text import cluster_in, job_records, nodes_in, partitions_in
from premortem.sources.live.windows import Windows
from premortem.sources.port import Batch, Context, together
from premortem.sources.sacct import SacctSource
from premortem.sources.sacct_columns import WANTED_COLUMNS
from premortem.sources.slurm_json import batch_of, version_in
from premortem.sources.slurm_values import script

_NO_SUCH_JOB = "Invalid job id"
_NO_JSON = re.compile(r"unrecognized option|json", re.IGNORECASE)
# These call every end a success that was not a signal, so that the text tells more.
_WITHOUT_EXIT_CODES = ("v0.0.37", "v0.0.38")
_AT_A_TIME = 200
_HEADING = re.compile(r"Batch Script for \S+\n-{20,}\n")


class CommandCluster:
    """What `sacct`, `squeue` and `scontrol` tell, run behind a prefix such as ``ssh login1``.

    JSON is asked for first, since it leaves no doubt about names; where a release has none, or none
    with exit codes, text is read. `json=False` does not even try. `cluster` is the name to file
    jobs under, instead of their own.
    """

    def __init__(
        self,
        prefix: Sequence[str] = (),
        *,
        cluster: str | None = None,
        window: timedelta = timedelta(hours=1),
        slow_s: float = 10.0,
        timeout_s: float = 60.0,
        json: bool = True,
    ) -> None:
        self.calls = Calls()
        self._programs = Programs(tuple(prefix), timeout_s)
        self._cluster = cluster
        self._own_name: str | None = None
        # How long a window may be, as the last answers were.
        self._window = window
        self._slow_s = slow_s
        # Of each command, whether it knows JSON; scontrol of 22.05 does not, though squeue does.
        self._knows_json = dict.fromkeys(("sacct", "squeue", "scontrol"), json)

    def accounted(self, since: datetime, until: datetime) -> Iterator[Batch]:
        """The jobs of a span of time; see `Accounting`."""
        windows = Windows(since, until, self._window)
        while window := windows.current:
            span = (f"--starttime=uts{window[0]}", f"--endtime=uts{window[1]}")
            begun = time.monotonic() - self.calls.waited_s
            try:
                batches = self._sacct("--allocations", *span)
            except Overlong:
                if windows.is_shortest:
                    raise
                windows.halve()
                self._window = windows.width
                continue
            took = time.monotonic() - self.calls.waited_s - begun
            yield from batches
            windows.answered(took / self._slow_s)
            self._window = windows.width
            yield together([])

    def by_id(self, job_ids: Sequence[int]) -> Batch:
        """Jobs with what their steps tell; see `Accounting`."""
        ids = checked_ids(job_ids)
        parts = [ids[at : at + _AT_A_TIME] for at in range(0, len(ids), _AT_A_TIME)]
        return together(
            batch for some in parts for batch in self._sacct(f"--jobs={','.join(map(str, some))}")
        )

    def scripts(self, job_ids: Sequence[int]) -> dict[int, str]:
        """Scripts; see `Accounting`. Without JSON each takes a call: text does not tell its end."""
        found: dict[int, str] = {}
        ids = checked_ids(job_ids)
        for at in range(0, len(ids), _AT_A_TIME):
            some = ids[at : at + _AT_A_TIME]
            told = self._scripts_in_json(some)
            found |= self._scripts_in_text(some) if told is None else told
        return found

    @property
    def scripts_at_once(self) -> int:
        """Of how many jobs one call tells the scripts."""
        return _AT_A_TIME if self._knows_json["sacct"] else 1

    def live(self) -> Batch:
        """All jobs in slurmctld's memory; see `Controller`."""
        answer = self._json("squeue", "--all", "--states=all")
        if answer is None:
            return self._from_text("scontrol", "show", "jobs", "--oneliner", "--all")
        return together(job_batches(_usable(answer), self._context()))

    def controlled(self, job_id: int) -> Batch:
        """One job as slurmctld sees it; see `Controller`."""
        [number] = checked_ids([job_id])
        question = ("scontrol", "show", "job", str(number), "--all")
        try:
            answer = self._json(*question)
            if answer is None:
                return self._from_text(*question, "--oneliner")
        except Failed as error:
            if _NO_SUCH_JOB in error.said:
                return together([])
            raise
        return together(job_batches(_usable(answer), self._context()))

    def partitions(self) -> list[Partition]:
        """The partitions; see `Controller`."""
        return partitions_in(self._asked_slurmctld("scontrol", "show", "partitions", "--oneliner"))

    def nodes(self) -> list[Node]:
        """The nodes; see `Controller`."""
        return nodes_in(self._asked_slurmctld("scontrol", "show", "nodes", "--oneliner"))

    def close(self) -> None:
        """There is nothing to let go of."""

    def _sacct(self, *options: str) -> Iterator[Batch]:
        """What sacct tells, asked before the first batch is; every run of a requeued job counts."""
        asked = ("sacct", "--allusers", "--duplicates", *options)
        answer = self._json(*asked)
        if answer is not None and version_in(answer.head()) in _WITHOUT_EXIT_CODES:
            answer.close()
            answer, self._knows_json["sacct"] = None, False
        if answer is not None:
            return job_batches(_usable(answer), self._context())
        self.calls.count("slurmdbd")
        columns = f"--format={','.join(WANTED_COLUMNS)}"
        text = self._programs.run(*asked, "--parsable2", columns, times=TIMES_IN_SECONDS)
        return _of_text(text, self._context())

    def _scripts_in_json(self, job_ids: Sequence[int]) -> dict[int, str] | None:
        """Scripts that sacct tells in JSON; None if it knows none, or none with scripts."""
        asked = ("--allusers", "--duplicates", "--batch-script")
        answer = self._json("sacct", *asked, f"--jobs={','.join(map(str, job_ids))}")
        if answer is not None and version_in(answer.head()) in _WITHOUT_EXIT_CODES:
            answer.close()
            answer, self._knows_json["sacct"] = None, False
        if answer is None:
            return None
        usable = _usable(answer)
        if usable is None:
            return {}
        with usable:
            stream = JsonStream(usable)
            told = [script_in(record) for record in stream.items("jobs")]
        if stream.damage:
            raise Unavailable(f"{usable.path}: {stream.damage}")
        return dict(filter(None, told))

    def _scripts_in_text(self, job_ids: Sequence[int]) -> dict[int, str]:
        found = {}
        for job_id in job_ids:
            self.calls.count("slurmdbd")
            text = _text(self._programs.run("sacct", "--batch-script", f"--jobs={job_id}"))
            # The tasks of an array are told one behind another, all with the same script.
            scripts = [piece for piece in _HEADING.split(text) if piece.strip()]
            told = script(scripts[0]) if scripts else None
            if told and told.strip() != "NONE":
                found[job_id] = told
        return found

    def _json(self, command: str, *options: str) -> Received | None:
        """What a command tells in JSON; None if it knows none."""
        if not self._knows_json[command]:
            return None
        self._count(command)
        try:
            return self._programs.run(command, *options, "--json")
        except Failed as error:
            if not _NO_JSON.search(error.said):
                raise
            self._knows_json[command] = False
        return None

    def _from_text(self, *command: str) -> Batch:
        text = self._asked_slurmctld(*command)
        numbered = list(enumerate(job_records(text), start=1))
        return batch_of(numbered, context=self._context(), cluster=self._name_of_cluster())

    def _asked_slurmctld(self, *command: str) -> str:
        self._count(command[0])
        return _text(self._programs.run(*command, times=TIMES_IN_SECONDS))

    def _name_of_cluster(self) -> str | None:
        if self._cluster is None and self._own_name is None:
            self._own_name = cluster_in(self._asked_slurmctld("scontrol", "show", "config"))
        return self._cluster or self._own_name

    def _count(self, command: str) -> None:
        self.calls.count("slurmdbd" if command == "sacct" else "slurmctld")

    def _context(self) -> Context:
        now = datetime.now(UTC).replace(microsecond=0)
        return Context(cluster=self._cluster, seen_at=now, now=now)


def _usable(answer: Received) -> Received | None:
    """The answer if it tells of jobs; None if there are none; raises if it tells of a failure."""
    verdict = verdict_on(answer)
    match verdict.meaning:
        case Meaning.FINE:
            return answer
        case Meaning.NOTHING:
            answer.close()
            return None
        case Meaning.FAILING | Meaning.UNAUTHORISED:
            answer.close()
            raise Unavailable(f"{answer.path} has no answer: {verdict.words}")
        case _:
            answer.close()
            raise InvalidInput(f"{answer.path}: {verdict.words}")


def _of_text(answer: Received, context: Context) -> Iterator[Batch]:
    with answer:
        yield from SacctSource(answer, context).batches()


def _text(answer: Received) -> str:
    with answer:
        return answer.read(answer.size).decode(errors="backslashreplace")
