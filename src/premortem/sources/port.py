"""What a source is, and the batches it yields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import polars as pl

from premortem.jobs.checks import faults
from premortem.jobs.fields import Kind
from premortem.jobs.frame import SCHEMA, conform
from premortem.jobs.samples import no_samples
from premortem.jobs.secrets import redacted_column, without_secrets

# A reject keeps this much of the offending text: enough to recognise it, not enough to hurt.
EXCERPT = 500

REJECT_SCHEMA: dict[str, pl.DataType] = {
    "line": pl.Int64(),
    "reason": pl.String(),
    "text": pl.String(),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Some records of a source: the good ones, and the bad ones with place, reason and excerpt.

    `samples` are those of running jobs that came along, see `jobs.samples`.
    `line` is the line of a text, or the number of the record where a format has no lines.
    `position` tells how many bytes of the file have been consumed so far, for progress bars.
    """

    jobs: pl.DataFrame
    rejects: pl.DataFrame
    position: int = 0
    samples: pl.DataFrame = field(default_factory=no_samples)

    @property
    def read(self) -> int:
        """Records looked at."""
        return self.jobs.height + self.rejects.height


class Source(Protocol):
    """A stream of job records of one format from one place."""

    notes: list[str]

    def batches(self) -> Iterator[Batch]:
        """The records, in batches of bounded size; `notes` may grow while they are consumed."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a source cannot know from its input alone.

    `seen_at` is when the input was made, `now` is the clock against which times are checked,
    `zone` is where clock times without a zone were written down.
    """

    cluster: str | None = None
    fallback_cluster: str = "cluster"
    zone: str = "UTC"
    seen_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def stamped(
        self, records: pl.DataFrame, *, source: str | None = None, cluster: str | None = None
    ) -> pl.DataFrame:
        """The records with where they come from: the kind of source, when, and the cluster.

        That is the one the user named; else the record's own; else `cluster`, which the source
        found elsewhere; else the fallback.
        """
        own = [pl.col("cluster")] if "cluster" in records.columns else []
        named = pl.lit(cluster or self.fallback_cluster)
        return records.with_columns(
            *([pl.lit(source).alias("source")] if source else []),
            cluster=pl.lit(self.cluster) if self.cluster else pl.coalesce(*own, named),
            seen_at=pl.lit(self.seen_at).cast(Kind.TIME.dtype),
        )


def checked(
    records: pl.DataFrame,
    texts: pl.Series,
    lines: pl.Series,
    reasons: pl.Series | None,
    *,
    context: Context,
    position: int,
) -> Batch:
    """Split parsed records into good and bad ones, neither of which has secrets any more.

    `reasons` holds what parsing already found wrong, null where nothing; `texts` and `lines` tell
    where each record came from. All have the height of `records`.
    """
    records = without_secrets(records)
    found = faults(records, now=context.now)
    why = found if reasons is None else pl.select(pl.coalesce(reasons, found)).to_series()
    if why.null_count() == len(why):
        return Batch(conform(records), no_rejects(), position)
    bad = why.is_not_null()
    rejects = pl.DataFrame({"line": lines, "reason": why, "text": texts}).filter(bad)
    return Batch(conform(records.filter(~bad)), shortened(rejects), position)


def together(batches: Iterable[Batch]) -> Batch:
    """Several batches as one; a frame of no jobs has all columns."""
    found = list(batches)
    frames = [batch.jobs for batch in found if batch.jobs.height]
    jobs = conform(pl.concat(frames, how="diagonal")) if frames else pl.DataFrame(schema=SCHEMA)
    rejects = pl.concat([no_rejects(), *(batch.rejects for batch in found)])
    return Batch(jobs, rejects, max((batch.position for batch in found), default=0))


def no_rejects() -> pl.DataFrame:
    """A frame of rejects with nothing in it."""
    return pl.DataFrame(schema=REJECT_SCHEMA)


def reject(line: int, reason: str, text: str = "") -> pl.DataFrame:
    """A frame of one reject."""
    return shortened(pl.DataFrame([(line, reason, text)], schema=REJECT_SCHEMA, orient="row"))


def shortened(rejects: pl.DataFrame) -> pl.DataFrame:
    """The rejects in their schema, their texts cut to an excerpt without secrets."""
    # A secret at the end of the excerpt is known by what comes after it.
    texts = redacted_column(rejects["text"].str.slice(0, 2 * EXCERPT)).str.slice(0, EXCERPT)
    return rejects.select(pl.col("line").cast(pl.Int64), "reason", texts)
