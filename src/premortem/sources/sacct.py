"""The text of `sacct --parsable` and `--parsable2`, with or without header, with or without steps.

Steps follow their job in sacct's output and are folded into it: their usage, and the most telling
of their states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from premortem.errors import InvalidInput
from premortem.jobs.normal import normalise
from premortem.jobs.numbers import with_job_number
from premortem.jobs.spellings import timestamp
from premortem.jobs.tres import with_tres_counts
from premortem.sources.columns import read_fields
from premortem.sources.content import Content
from premortem.sources.files import line_blocks
from premortem.sources.port import Batch, Context, checked, no_rejects, shortened
from premortem.sources.sacct_columns import readings_for
from premortem.sources.sacct_layout import Layout, Lines, are_steps
from premortem.sources.sacct_steps import fold_steps


@dataclass(slots=True)
class SacctSource:
    """Reads one sacct dump. `columns` are those given to `--format`, needed only without header."""

    file: Content
    context: Context
    columns: Sequence[str] | None = None
    separator: str = "|"
    notes: list[str] = field(default_factory=list)
    _layout: Layout | None = None

    def batches(self) -> Iterator[Batch]:
        """The dump's jobs in batches; `line` in rejects is the line of the job itself."""
        held = Lines.none()
        for block in line_blocks(self.file):
            if block.rejects.height:
                yield Batch(pl.DataFrame(), block.rejects, self.file.position)
            lines = Lines(block.numbers, block.lines)
            lines = lines.where(lines.texts.str.strip_chars() != "")
            if not lines:
                continue
            if self._layout is None:
                self._layout = self._first_layout(lines.texts[0])
            begin = 0
            for header in lines.headers(self._layout):
                # A dump behind another may have other columns: finish this one first.
                ready = held.followed_by(lines.between(begin, header))
                if ready:
                    yield self._batch(ready, self._layout)
                held, begin = Lines.none(), header + 1
                self._layout = self._header_layout(lines.texts[header]) or self._layout
            lines = held.followed_by(lines.between(begin, len(lines.texts)))
            ready, held = lines.before_last_job(self._layout)
            if ready:
                yield self._batch(ready, self._layout)
        if held and self._layout:
            yield self._batch(held, self._layout)

    def _first_layout(self, first: str) -> Layout:
        layout = self._header_layout(first)
        if layout is None and self.columns:
            layout = Layout.of_columns(self.columns, first, self.separator)
        if layout is None:
            raise InvalidInput(
                f"{self.file.path} has no header line: say what was given to sacct's --format "
                "with --columns, such as --columns JobID,User,Submit,Start,End,State; and use "
                "sacct --parsable2 (-P), so that columns can be told apart"
            )
        _, unused = readings_for(layout.names, self.context.zone)
        if unused:
            self.notes.append(f"columns not used: {', '.join(unused)}")
        if layout.column("cluster") is None and self.context.cluster is None:
            self.notes.append(
                f"no column Cluster: the jobs are filed under '{self.context.fallback_cluster}' "
                "(--cluster NAME to name theirs)"
            )
        return layout

    def _header_layout(self, line: str) -> Layout | None:
        try:
            return Layout.of_header(line, self.separator)
        except InvalidInput as error:
            raise InvalidInput(f"{self.file.path}: {error}") from error

    def _batch(self, lines: Lines, layout: Layout) -> Batch:
        cells = layout.cells(lines.texts)
        readings, _ = readings_for(layout.names, self.context.zone)
        records, unreadable = read_fields(cells, readings)
        records = self._second_hour_told(records, cells, layout)
        reasons = _coalesced(layout.miscounted(lines.texts, cells), unreadable)
        ids = cells[layout.id_column]
        is_step = are_steps(ids)
        lost_steps = no_rejects()
        if is_step.any():
            records, lost_steps = _with_steps_folded(records, reasons, lines, ids, is_step)
            is_job = ~is_step
            lines, ids = lines.where(is_job), ids.filter(is_job)
            reasons = None if reasons is None else reasons.filter(is_job)
        records = self.context.stamped(with_job_number(records, ids), source="sacct")
        batch = checked(
            normalise(with_tres_counts(records)), lines.texts, lines.numbers, reasons,
            context=self.context, position=self.file.position,
        )  # fmt: skip
        return Batch(batch.jobs, pl.concat([batch.rejects, lost_steps]), batch.position)

    def _second_hour_told(
        self, records: pl.DataFrame, cells: pl.DataFrame, layout: Layout
    ) -> pl.DataFrame:
        """Read a time as the second of two equal hours where the first would be out of order."""
        for earlier, later, name in (
            ("submit_time", "start_time", "start"),
            ("submit_time", "end_time", "end"),
            ("start_time", "end_time", "end"),
        ):
            column = layout.column(name)
            if column is None or earlier not in records.columns:
                continue
            early = records.select(pl.col(later) < pl.col(earlier)).to_series().fill_null(False)
            if early.any():
                second = timestamp(pl.col(column), self.context.zone, ambiguous="latest")
                told = cells.select(second.alias(later)).to_series()
                records = records.with_columns(
                    pl.when(early).then(told).otherwise(pl.col(later)).alias(later)
                )
        return records


def _with_steps_folded(
    records: pl.DataFrame,
    reasons: pl.Series | None,
    lines: Lines,
    ids: pl.Series,
    is_step: pl.Series,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The jobs alone, with what their steps tell, and the steps that could not be used."""
    why = reasons if reasons is not None else pl.repeat(None, len(ids), dtype=pl.String, eager=True)
    jobs, orphans = fold_steps(records, ids, is_step, readable=why.is_null())
    rejects = pl.DataFrame({"line": lines.numbers, "reason": why, "text": lines.texts})
    no_job = pl.lit("a step whose job is not on a line before it")
    unusable = rejects.with_columns(
        reason=pl.coalesce("reason", pl.when(orphans).then(no_job))
    ).filter(is_step & pl.col("reason").is_not_null())
    return jobs, shortened(unusable)


def _coalesced(first: pl.Series | None, second: pl.Series | None) -> pl.Series | None:
    if first is None or second is None:
        return first if second is None else second
    return pl.select(pl.coalesce(first, second)).to_series()
