"""Which features jobs can fill: chosen by what they tell, refused where they tell nothing."""

from __future__ import annotations

import polars as pl
import pytest

from premortem.errors import InvalidInput
from premortem.features.catalogue import Family
from premortem.features.points import START, SUBMIT
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.families import fitting_family
from premortem.training.train import Options, train
from premortem.training.tuning import Budget

BARE = ["cluster", "job_id", "submit_time", "start_time", "end_time", "state", "exit_code"]
SWF = [
    "user", "group", "account", "executable", "partition", "req_cpus", "req_memory_mb",
    "time_limit_s", "alloc_cpus", "elapsed_s",
]  # fmt: skip


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    return pl.concat(SyntheticCluster(1200, seed=5, users=15, days=30).frames())


@pytest.mark.parametrize(
    ("without", "family"),
    [
        ([], Family.GENERIC),
        (["user", "account", "group"], Family.RESTRICTED),
        (["job_name", "work_dir", "req_nodes", "req_tasks"], Family.GENERIC),
    ],
)
def test_it_is_chosen_by_what_the_jobs_tell(
    jobs: pl.DataFrame, without: list[str], family: Family
) -> None:
    found = fitting_family(jobs.drop(without, strict=False), [SUBMIT, START])
    assert found.family is family


def test_no_more_is_chosen_than_a_log_carries(jobs: pl.DataFrame) -> None:
    carried = jobs.select(*BARE, *(name for name in SWF if name in jobs.columns))
    training = train(carried, points=[SUBMIT], options=Options(budget=Budget(0)))
    assert training.model.family is Family.SWF
    assert training.notes[0].startswith("the features are those of swf")


def test_empty_chapters_are_named_with_what_they_lack(jobs: pl.DataFrame) -> None:
    found = fitting_family(jobs.select(*BARE, "user"), [SUBMIT])
    assert list(found.empty) == ["request", "script"]
    assert "time_limit_s" in found.empty["request"]
    (_, note) = found.notes()
    assert note.startswith("nothing is told by the features of request (no req_cpus, ")
    assert note.endswith("script (no script)")


@pytest.mark.parametrize(
    ("columns", "wanted", "says"),
    [
        ([], None, r"features of any family: load records with some of req_cpus, .*user"),
        (["user"], Family.RESTRICTED, r"of restricted: .*partition, or leave the family"),
        (["req_nodes", "work_dir"], Family.SWF, r"of swf: .*time_limit_s"),
    ],
)
def test_what_cannot_be_filled_is_refused(
    jobs: pl.DataFrame, columns: list[str], wanted: Family | None, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        fitting_family(jobs.select(*BARE, *columns), [SUBMIT], wanted)
