"""How a sacct dump is laid out: its columns, its separator, and its lines cut into cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from premortem.errors import InvalidInput
from premortem.jobs.wording import filled

_ID, _RAW_ID = "jobid", "jobidraw"
# What users write, separators included. As the last column it takes all that is left of a line.
_FREE_TEXT = ("jobname", "submitline", "workdir", "comment", "admincomment", "systemcomment")
_STEPS_LOOKED_AT = 1000


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a dump; `trailing` when every line ends with the separator (--parsable)."""

    names: tuple[str, ...]
    separator: str
    trailing: bool

    def __post_init__(self) -> None:
        lower = [name.lower() for name in self.names]
        if not {_ID, _RAW_ID} & set(lower) or "submit" not in lower:
            raise InvalidInput(
                "a job cannot be told from another without the columns JobID (or JobIDRaw) and "
                f"Submit; found {', '.join(self.names)}"
            )
        repeated = {name for name in self.names if lower.count(name.lower()) > 1}
        if repeated:
            raise InvalidInput(f"columns named twice: {', '.join(sorted(repeated))}")

    @classmethod
    def of_header(cls, line: str, separator: str) -> Layout | None:
        """The layout that a header line tells; None if it is no header."""
        names = [name.strip() for name in line.split(separator)]
        if not {_ID, _RAW_ID} & {name.lower() for name in names}:
            return None
        trailing = names[-1] == ""
        return cls(tuple(names[:-1] if trailing else names), separator, trailing)

    @classmethod
    def of_columns(cls, columns: Sequence[str], first: str, separator: str) -> Layout:
        """The layout of lines without header, from what was given to --format."""
        names = tuple(name.split("%")[0].strip() for name in columns)
        trailing = first.count(separator) == len(names) and first.endswith(separator)
        return cls(names, separator, trailing)

    @property
    def id_column(self) -> str:
        """The column that numbers the lines; JobID rather than JobIDRaw where both are there."""
        spelled = {name.lower(): name for name in self.names}
        return spelled.get(_ID) or spelled[_RAW_ID]

    def column(self, name: str) -> str | None:
        """A column as this dump spells it; None if it has no such column."""
        return next((own for own in self.names if own.lower() == name), None)

    def cells(self, lines: pl.Series) -> pl.DataFrame:
        """The cells of each line by column, and under `:rest` what follows the last of them."""
        if self.trailing:
            lines = lines.str.strip_suffix(self.separator)
        if self.names[-1].lower() in _FREE_TEXT:
            split = lines.str.splitn(self.separator, len(self.names))
            cells = split.struct.rename_fields(self.names).struct.unnest()
            return cells.with_columns(pl.lit(None, pl.String).alias(":rest"))
        split = lines.str.split_exact(self.separator, len(self.names))
        return split.struct.rename_fields([*self.names, ":rest"]).struct.unnest()

    def ids(self, lines: pl.Series) -> pl.Series:
        """The cell that numbers each line, without cutting the rest of it."""
        place = self.names.index(self.id_column)
        return lines.str.splitn(self.separator, place + 2).struct.field(f"field_{place}")

    def miscounted(self, lines: pl.Series, cells: pl.DataFrame) -> pl.Series | None:
        """Why a line has the wrong number of columns; None where all have the right one."""
        wrong = cells[":rest"].is_not_null() | cells[self.names[-1]].is_null()
        if self.trailing:
            wrong = wrong | ~lines.str.ends_with(self.separator)
        if not wrong.any():
            return None
        found = lines.str.count_matches(self.separator, literal=True) + 1 - self.trailing
        message = filled(f"{len(self.names)} columns expected, {{}} found", "found")
        return pl.DataFrame({"found": found}).select(pl.when(wrong).then(message)).to_series()


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a dump and their numbers."""

    numbers: pl.Series
    texts: pl.Series

    @classmethod
    def none(cls) -> Lines:
        """No lines."""
        return cls(pl.Series([], dtype=pl.Int64), pl.Series([], dtype=pl.String))

    def __bool__(self) -> bool:
        return len(self.texts) > 0

    def where(self, mask: pl.Series) -> Lines:
        """Those lines that the mask marks."""
        return Lines(self.numbers.filter(mask), self.texts.filter(mask))

    def between(self, begin: int, end: int) -> Lines:
        """The lines from one place up to another."""
        return Lines(self.numbers[begin:end], self.texts[begin:end])

    def followed_by(self, more: Lines) -> Lines:
        """These lines, and more."""
        if not self:
            return more
        return Lines(pl.concat([self.numbers, more.numbers]), pl.concat([self.texts, more.texts]))

    def before_last_job(self, layout: Layout) -> tuple[Lines, Lines]:
        """All but the last job and its steps, and that job, whose steps may not be complete."""
        cut = len(self.texts)
        while cut > 0:
            # The last job is near the end, as a rule: look no farther back than needed.
            begin = max(0, cut - _STEPS_LOOKED_AT)
            jobs = (~are_steps(layout.ids(self.texts[begin:cut]))).arg_true()
            cut = begin + jobs[-1] if len(jobs) else begin
            if len(jobs):
                break
        return self.between(0, cut), self.between(cut, len(self.texts))

    def headers(self, layout: Layout) -> list[int]:
        """Where a header stands again, as in dumps put one behind another.

        A job's own line is never taken for one, whatever the job is called: its number is one.
        """
        suspects = self.texts.str.contains("(?i)jobid", literal=False).arg_true()
        if suspects.is_empty():
            return []
        numbered = layout.ids(self.texts[suspects]).str.contains(r"^\s*\d").fill_null(False)
        return [
            place
            for place in suspects.filter(~numbered)
            if _is_header(self.texts[place], layout.separator)
        ]


def are_steps(ids: pl.Series) -> pl.Series:
    """Whether each JobID is that of a step, such as ``100_7.batch``."""
    return ids.str.contains(".", literal=True).fill_null(False)


def _is_header(line: str, separator: str) -> bool:
    cells = {cell.strip().lower() for cell in line.split(separator)}
    return "submit" in cells and bool({_ID, _RAW_ID} & cells)
