"""The data set that comes with the project is what its card says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import polars as pl

from premortem.jobs.labels import LabelPolicy
from premortem.jobs.secrets import redacted
from premortem.operations.reading import Log, read_log
from premortem.sources.detection import ReadOptions
from premortem.sources.port import Context

FOLDER = Path(__file__).parents[2] / "datasets" / "lab"


@cache
def lab() -> Log:
    return read_log(str(FOLDER / "jobs.parquet"), options=ReadOptions(), context=Context())


def test_it_is_small_and_whole() -> None:
    assert (FOLDER / "jobs.parquet").stat().st_size <= 15_000_000
    assert lab().rejected == 0
    assert lab().problem is None
    assert lab().jobs.height >= 12_000
    assert lab().jobs["user"].n_unique() >= 25


def test_jobs_failed_in_every_way_and_ended() -> None:
    labelled = LabelPolicy().label(lab().jobs)
    assert "unfinished" not in labelled["outcome"].unique()
    causes = dict(labelled["cause"].drop_nulls().value_counts().iter_rows())
    for cause in ("application", "out_of_memory", "time_limit", "cancelled", "node_failure"):
        assert causes[cause] >= 20, cause


def test_the_card_has_its_outcome_table() -> None:
    card = (FOLDER / "README.md").read_text()
    counts = dict(lab().jobs["state"].value_counts().iter_rows())
    told = {
        state: int(number.replace(",", ""))
        for state, number in re.findall(r"^\| `([A-Z_]+)` \| +([\d,]+) \|", card, re.MULTILINE)
    }
    assert told == counts
    assert f"{lab().jobs.height:,} jobs" in card


def test_scripts_and_samples_are_there_and_no_secrets_or_environments() -> None:
    jobs = lab().jobs
    assert jobs["script"].null_count() < jobs.height / 100
    ran = jobs.filter(pl.col("elapsed_s") >= 10)
    assert ran["samples"].null_count() < ran.height / 50
    scripts = jobs["script"].drop_nulls().unique()
    assert all(redacted(script) == script for script in scripts)
    texts = jobs.select(pl.col(pl.String)).unpivot()["value"].drop_nulls().unique()
    assert not texts.str.contains(r"SLURM_JWT|LD_LIBRARY_PATH=|/root/|/tmp/").any()
