"""The text of `sacct --parsable` and `--parsable2`, with or without header, with or without steps.

Steps follow their job in sacct's output and are folded into it: their usage, and the most telling
of their states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from premortem.errors import InvalidInput
from premortem.jobs import spellings
from premortem.jobs.fields import Kind
from premortem.jobs.normal import normalise
from premortem.jobs.numbers import with_job_number
from premortem.jobs.wording import filled
from premortem.sources.columns import read_fields
from premortem.sources.files import InputFile, line_blocks
from premortem.sources.port import Batch, Context, checked, no_rejects, shortened
from premortem.sources.sacct_columns import readings_for
from premortem.sources.sacct_steps import fold_steps

_ID, _RAW_ID = "jobid", "jobidraw"
_STEPS_LOOKED_AT = 1000


@dataclass(slots=True)
class SacctSource:
    """Reads one sacct dump. `columns` are those given to `--format`, needed only without header."""

    file: InputFile
    context: Context
    columns: Sequence[str] | None = None
    notes: list[str] = field(default_factory=list)
    _layout: _Layout | None = None

    def batches(self) -> Iterator[Batch]:
        """The dump's jobs in batches; `line` in rejects is the line of the job itself."""
        held = _Lines.none()
        for block in line_blocks(self.file):
            lines = held.followed_by(_Lines(block.numbers, block.lines).without_blank())
            if block.rejects.height:
                yield Batch(pl.DataFrame(), block.rejects, self.file.position)
            if not lines:
                continue
            if self._layout is None:
                self._layout = self._find_layout(lines.texts[0])
            lines = lines.without(self._layout.header)
            ready, held = lines.before_last_job(self._layout)
            if ready:
                yield self._batch(ready, self._layout)
        if held and self._layout:
            yield self._batch(held, self._layout)

    def _find_layout(self, first: str) -> _Layout:
        names = [name.strip() for name in first.split("|")]
        if {_ID, _RAW_ID} & {name.lower() for name in names}:
            trailing = names[-1] == ""
            layout = _Layout(tuple(names[:-1] if trailing else names), trailing, first)
        elif self.columns:
            given = tuple(name.split("%")[0].strip() for name in self.columns)
            trailing = first.count("|") == len(given) and first.endswith("|")
            layout = _Layout(given, trailing, None)
        else:
            raise InvalidInput(
                f"{self.file.path} has no header line: say what was given to sacct's --format "
                "with --columns, such as --columns JobID,User,Submit,Start,End,State"
            )
        lower = [name.lower() for name in layout.names]
        if not {_ID, _RAW_ID} & set(lower) or "submit" not in lower:
            raise InvalidInput(
                f"{self.file.path}: a job cannot be told from another without the columns "
                f"JobID (or JobIDRaw) and Submit; found {', '.join(layout.names)}"
            )
        repeated = {name for name in layout.names if lower.count(name.lower()) > 1}
        if repeated:
            raise InvalidInput(
                f"{self.file.path}: columns named twice: {', '.join(sorted(repeated))}"
            )
        _, unused = readings_for(layout.names, self.context.zone)
        if unused:
            self.notes.append(f"columns not used: {', '.join(unused)}")
        return layout

    def _batch(self, lines: _Lines, layout: _Layout) -> Batch:
        raw = layout.cells(lines.texts)
        readings, _ = readings_for(layout.names, self.context.zone)
        records, unreadable = read_fields(raw, readings)
        reasons = _coalesced(layout.miscounted(lines.texts, raw), unreadable)
        is_step = raw[layout.id_column].str.contains(".", literal=True).fill_null(False)
        lost_steps = no_rejects()
        if is_step.any():
            records, lost_steps = _with_steps_folded(
                records, reasons, lines, raw[layout.id_column], is_step
            )
            is_job = ~is_step
            lines, raw = lines.where(is_job), raw.filter(is_job)
            reasons = None if reasons is None else reasons.filter(is_job)
        records = normalise(self._completed(records, raw[layout.id_column]))
        batch = checked(
            records, lines.texts, lines.numbers, reasons,
            context=self.context, position=self.file.position,
        )  # fmt: skip
        return Batch(batch.jobs, pl.concat([batch.rejects, lost_steps]), batch.position)

    def _completed(self, records: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
        """Add what other columns imply, and where the records come from."""
        own = [pl.col("cluster")] if "cluster" in records.columns else []
        cluster = (
            pl.lit(self.context.cluster)
            if self.context.cluster
            else pl.coalesce(*own, pl.lit(self.context.fallback_cluster))
        )
        records = records.with_columns(
            cluster=cluster,
            source=pl.lit("sacct"),
            seen_at=pl.lit(self.context.seen_at).cast(Kind.TIME.dtype),
        )
        return _with_implied(with_job_number(records, ids))


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines of the dump and their numbers."""

    numbers: pl.Series
    texts: pl.Series

    @classmethod
    def none(cls) -> _Lines:
        return cls(pl.Series([], dtype=pl.Int64), pl.Series([], dtype=pl.String))

    def __bool__(self) -> bool:
        return len(self.texts) > 0

    def where(self, mask: pl.Series) -> _Lines:
        return _Lines(self.numbers.filter(mask), self.texts.filter(mask))

    def without_blank(self) -> _Lines:
        return self.where(self.texts.str.strip_chars() != "")

    def without(self, header: str | None) -> _Lines:
        return self if header is None else self.where(self.texts != header)

    def followed_by(self, more: _Lines) -> _Lines:
        if not self:
            return more
        return _Lines(pl.concat([self.numbers, more.numbers]), pl.concat([self.texts, more.texts]))

    def before_last_job(self, layout: _Layout) -> tuple[_Lines, _Lines]:
        """All but the last job and its steps, and that job, whose steps may not be complete."""
        cut = len(self.texts)
        while cut > 0:
            # The last job is near the end, as a rule: look no farther back than needed.
            begin = max(0, cut - _STEPS_LOOKED_AT)
            ids = layout.ids(self.texts[begin:cut])
            jobs = (~ids.str.contains(".", literal=True).fill_null(False)).arg_true()
            cut = begin + jobs[-1] if len(jobs) else begin
            if len(jobs):
                break
        return (
            _Lines(self.numbers[:cut], self.texts[:cut]),
            _Lines(self.numbers[cut:], self.texts[cut:]),
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns of a dump; `trailing` when every line ends with the separator (--parsable)."""

    names: tuple[str, ...]
    trailing: bool
    header: str | None

    @property
    def id_column(self) -> str:
        """The column that numbers the lines; JobID rather than JobIDRaw where both are there."""
        spelled = {name.lower(): name for name in self.names}
        return spelled.get(_ID) or spelled[_RAW_ID]

    def cells(self, lines: pl.Series) -> pl.DataFrame:
        """The cells of each line by column, and under `:rest` what follows the last of them."""
        split = lines.str.split_exact("|", len(self.names))
        return split.struct.rename_fields([*self.names, ":rest"]).struct.unnest()

    def ids(self, lines: pl.Series) -> pl.Series:
        place = self.names.index(self.id_column)
        return lines.str.splitn("|", place + 2).struct.field(f"field_{place}")

    def miscounted(self, lines: pl.Series, cells: pl.DataFrame) -> pl.Series | None:
        """Why a line has the wrong number of columns; None where all have the right one."""
        none_follow = cells[":rest"].null_count() == cells.height
        if not self.trailing and none_follow and cells[self.names[-1]].null_count() == 0:
            return None
        found = lines.str.count_matches("|", literal=True) + 1 - self.trailing
        message = filled(f"{len(self.names)} columns expected, {{}} found", "found")
        wrong = pl.col("found") != len(self.names)
        reasons = pl.DataFrame({"found": found}).select(pl.when(wrong).then(message)).to_series()
        return reasons if reasons.null_count() < len(reasons) else None


def _with_steps_folded(
    records: pl.DataFrame,
    reasons: pl.Series | None,
    lines: _Lines,
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


def _with_implied(records: pl.DataFrame) -> pl.DataFrame:
    """Fill counts from the TRES lists where sacct has no column of its own for them."""
    implied = []
    for prefix, tres in (("req", "req_tres"), ("alloc", "alloc_tres")):
        if tres not in records.columns:
            continue
        distinct = records.select(pl.col(tres).unique().drop_nulls())
        counts = {
            f"{prefix}_nodes": "node",
            f"{prefix}_cpus": "cpu",
            f"{prefix}_memory_mb": "mem",
            f"{prefix}_gpus": "gres/gpu",
        }
        table = distinct.with_columns(
            spellings.tres_count(pl.col(tres), resource).alias(f":{name}")
            for name, resource in counts.items()
        )
        records = records.join(table, on=tres, how="left", maintain_order="left")
        implied += list(counts)
    return records.with_columns(
        pl.coalesce(
            *([pl.col(name)] if name in records.columns else []),
            # Cut to what a whole number can hold; the check of bounds refuses it by name.
            pl.col(f":{name}")
            .clip(upper_bound=2.0**62)
            .cast(pl.Float64 if name.endswith("_mb") else pl.Int64),
        ).alias(name)
        for name in implied
    ).drop([f":{name}" for name in implied])


def _coalesced(first: pl.Series | None, second: pl.Series | None) -> pl.Series | None:
    if first is None or second is None:
        return first if second is None else second
    return pl.select(pl.coalesce(first, second)).to_series()
