"""Sentences made of values, by whole columns."""

import polars as pl
import pytest

from premortem.jobs.wording import filled

JOBS = pl.DataFrame({"n": [1, 2, None], "user": ["ada", "{}", "eve"]})


def test_each_gap_is_filled_row_by_row_and_a_null_voids_the_sentence():
    told = JOBS.select(filled("{} has {} jobs", "user", pl.col("n"))).to_series()
    assert told.to_list() == ["ada has 1 jobs", "{} has 2 jobs", None]


def test_a_sentence_without_gaps_is_itself():
    assert pl.select(filled("all is well")).item() == "all is well"


@pytest.mark.parametrize("values", [(), ("n", "user")])
def test_gaps_and_values_must_be_as_many(values):
    with pytest.raises(ValueError):
        filled("{} jobs", *values)
