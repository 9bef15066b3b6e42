"""Job logs in the Standard Workload Format of the Parallel Workloads Archive.

Eighteen numbers a line, -1 for unknown, comments behind `;`. Wait, run time, allocated processors,
CPU time and used memory are outcomes of the job; they fill fields that are known later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from premortem.errors import InvalidInput
from premortem.jobs.fields import Kind
from premortem.jobs.normal import normalise
from premortem.jobs.wording import filled
from premortem.sources.files import Block, InputFile, line_blocks
from premortem.sources.formats import SwfStatus
from premortem.sources.port import Batch, Context, checked

COLUMNS: tuple[str, ...] = (
    "job", "submit", "wait", "run", "procs", "cpu", "memory", "req_procs", "req_time",
    "req_memory", "status", "user", "group", "executable", "queue", "partition", "preceding",
    "think",
)  # fmt: skip


_ARCHIVE_STATES = {
    0: "FAILED", 1: "COMPLETED", 2: "REQUEUED", 3: "COMPLETED", 4: "FAILED", 5: "CANCELLED",
}  # fmt: skip


@dataclass(slots=True)
class SwfSource:
    """Reads one SWF log; the header's facts are in `header` once the first batch is out."""

    file: InputFile
    context: Context
    status: SwfStatus = SwfStatus.AUTO
    notes: list[str] = field(default_factory=list)
    header: Header = field(default_factory=lambda: Header())
    _told: bool = False

    def batches(self) -> Iterator[Batch]:
        """The log's jobs in batches, in the order of the log."""
        for block in line_blocks(self.file, collapse_blanks=True):
            yield self._batch(block)

    def _batch(self, block: Block) -> Batch:
        lines = block.lines.str.strip_chars()
        self._read_header(lines.filter(lines.str.starts_with(";")))
        is_record = ~lines.str.starts_with(";") & (lines != "")
        lines, numbers = lines.filter(is_record), block.numbers.filter(is_record)
        cells = lines.str.split_exact(" ", len(COLUMNS) - 1).struct.rename_fields(COLUMNS)
        texts = cells.struct.unnest()
        values = texts.select(pl.all().cast(pl.Float64, strict=False))
        if self.status is SwfStatus.AUTO and values.height:
            self.status = self._status_found(values["status"])
        reasons = _unreadable(lines, texts, values, self.status)
        records = normalise(self._records(values))
        batch = checked(
            records, lines, numbers, reasons, context=self.context, position=self.file.position
        )
        return replace(batch, rejects=pl.concat([batch.rejects, block.rejects]))

    def _read_header(self, comments: pl.Series) -> None:
        for comment in comments:
            try:
                self.header.take(comment)
            except InvalidInput as error:
                raise InvalidInput(f"{self.file.path}: {error}") from error
        if not self._told:
            self._told = True
            self.notes += self.header.summary()
        if self.header.start is None:
            self.header.start = 0
            self.notes.append(
                "the header has no UnixStartTime: times are counted from 1970-01-01 UTC"
            )

    def _status_found(self, statuses: pl.Series) -> SwfStatus:
        known = [-1.0, *map(float, _ARCHIVE_STATES)]
        strange = statuses.filter(~statuses.is_in(known)).drop_nulls()
        # Most jobs succeed, which is 0 as an exit code and 1 in the archive; and garbage on a few
        # lines is no reason to read all others differently.
        mostly_zero = (statuses == 0).sum() > (statuses == 1).sum()
        if not mostly_zero or len(strange) < max(3, len(statuses) / 1000):
            return SwfStatus.ARCHIVE
        self.notes.append(
            f"status {strange[0]:g} is none of the format's: the column is read as exit codes "
            "(--swf-status archive to insist)"
        )
        return SwfStatus.EXIT_CODE

    def _records(self, values: pl.DataFrame) -> pl.DataFrame:
        # The status column keeps its negatives: they are exit codes in some logs.
        known = values.with_columns(
            pl.when(pl.col(name) != -1).then(pl.col(name)).alias(name) for name in COLUMNS
        ).lazy()
        started = (pl.col("procs").fill_null(0) > 0) | (pl.col("run").fill_null(0) > 0)
        procs = pl.when(pl.col("procs") > 0).then(pl.col("procs"))
        start = pl.col("submit") + pl.col("wait")
        queue = _named("queue", self.header.queues)
        state, exit_code = self._verdict()
        return known.select(
            cluster=pl.lit(self._cluster()),
            job_id=pl.col("job").cast(pl.Int64, strict=False),
            submit_time=self._instant(pl.col("submit")),
            start_time=self._instant(pl.when(started).then(start)),
            end_time=self._instant(start + pl.col("run").fill_null(0)),
            user=_name("user"),
            group=_name("group"),
            partition=pl.coalesce(_named("partition", self.header.partitions), queue),
            qos=queue,
            executable=_name("executable"),
            dependency=filled("after:{}", pl.col("preceding").cast(pl.Int64, strict=False)),
            req_cpus=_count("req_procs"),
            req_memory_per_cpu_mb=pl.col("req_memory") / 1024,
            time_limit_s=_count("req_time"),
            alloc_cpus=procs.cast(pl.Int64, strict=False),
            state=state,
            exit_code=exit_code,
            elapsed_s=_count("run"),
            cpu_total_s=pl.col("cpu") * procs,
            max_rss_mb=pl.col("memory") / 1024,
            source=pl.lit("swf"),
            api_version=pl.lit(self.header.facts.get("Version")),
            seen_at=pl.lit(self.context.seen_at).cast(Kind.TIME.dtype),
        ).collect()

    def _verdict(self) -> tuple[pl.Expr, pl.Expr]:
        code = _count("status")
        if self.status is SwfStatus.EXIT_CODE:
            state = pl.when(code == 0).then(pl.lit("COMPLETED")).otherwise(pl.lit("FAILED"))
            return pl.when(code.is_not_null()).then(state), code
        state = code.replace_strict(_ARCHIVE_STATES, default=None, return_dtype=pl.String)
        return state, pl.lit(None, pl.Int64)

    def _cluster(self) -> str:
        if self.context.cluster:
            return self.context.cluster
        if self.file.is_regular:
            return re.split(r"[\\/]", self.file.path)[-1].partition(".swf")[0]
        return self.header.facts.get("Computer", self.context.fallback_cluster)

    def _instant(self, seconds: pl.Expr) -> pl.Expr:
        micros = (seconds + (self.header.start or 0)).floor() * 1_000_000
        return micros.cast(pl.Int64, strict=False).cast(Kind.TIME.dtype)


@dataclass(slots=True)
class Header:
    """What a log's comments tell: `facts` such as Computer, the start, and names of queues."""

    facts: dict[str, str] = field(default_factory=dict)
    queues: dict[int, str] = field(default_factory=dict)
    partitions: dict[int, str] = field(default_factory=dict)
    start: int | None = None

    def summary(self) -> list[str]:
        """What machine the log is from and which zone its clock was in, as a note; if it tells."""
        told = [self.facts.get(name) for name in ("Computer", "Installation", "TimeZoneString")]
        words = "; ".join(word for word in told if word)
        return [f"a log of {words}"] if words else []

    def take(self, comment: str) -> None:
        """Learn from one comment line; lines of other shapes are passed over."""
        key, colon, value = comment.strip("; \t").partition(":")
        value = value.strip()
        if not colon or not value:
            return
        if key in ("Queue", "Partition"):
            number, _, name = value.partition(" ")
            if re.fullmatch(r"\d{1,18}", number) and name.strip():
                names = self.queues if key == "Queue" else self.partitions
                names[int(number)] = name.strip()
        else:
            self.facts.setdefault(key, value)
        if key == "UnixStartTime":
            seconds = re.match(r"\d{1,11}(?!\d)", value)
            if not seconds:
                raise InvalidInput(
                    f"the header's UnixStartTime is '{value}', expected seconds since 1970"
                )
            self.start = int(seconds[0])


def _unreadable(
    lines: pl.Series, texts: pl.DataFrame, values: pl.DataFrame, status: SwfStatus
) -> pl.Series | None:
    found = lines.str.count_matches(" ", literal=True) + 1
    frame = texts.with_columns(found.alias(":found"))
    problems = [
        pl.when(pl.col(":found") != len(COLUMNS)).then(
            filled(f"{len(COLUMNS)} columns expected, {{}} found", pl.col(":found"))
        )
    ]
    for name in COLUMNS:
        bad = ~values[name].is_finite().fill_null(False)
        if name != "status" or status is SwfStatus.ARCHIVE:
            bad = bad | (values[name] < 0) & (values[name] != -1)
        if bad.any():
            text = pl.col(name).str.slice(0, 60)
            problems.append(
                pl.when(bad).then(filled(f"{name} is '{{}}', expected a number or -1", text))
            )
    if status is SwfStatus.ARCHIVE:
        strange = ~values["status"].is_in([-1.0, *map(float, _ARCHIVE_STATES)])
        hint = "expected -1 to 5 (--swf-status exit-code if the log holds exit codes)"
        problems.append(
            pl.when(strange).then(filled(f"status is '{{}}', {hint}", pl.col("status")))
        )
    reasons = frame.select(pl.coalesce(problems)).to_series()
    return reasons if reasons.null_count() < len(reasons) else None


def _count(name: str) -> pl.Expr:
    return pl.col(name).round().cast(pl.Int64, strict=False)


def _name(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64, strict=False).cast(pl.String)


def _named(name: str, names: dict[int, str]) -> pl.Expr:
    number = pl.col(name).cast(pl.Int64, strict=False)
    if not names:
        return number.cast(pl.String)
    named = number.replace_strict(names, default=None, return_dtype=pl.String)
    return pl.coalesce(named, number.cast(pl.String))
