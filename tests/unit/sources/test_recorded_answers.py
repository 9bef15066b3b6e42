"""What two releases of Slurm told of the same jobs, in five versions of the API and by `sacct`.

`tests/support/record_answers.py` made the files: real answers, read here without any Slurm.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from slurm_work import NAME, differences

from premortem.operations.reading import Log, read_log
from premortem.sources.detection import ReadOptions
from premortem.sources.port import Context

RECORDED = Path(__file__).parents[2] / "recorded"
NEWEST = {"slurm-24.11": "v0.0.42", "slurm-22.05": "v0.0.38"}
ANSWERS = [path.relative_to(RECORDED) for path in sorted(RECORDED.glob("*/*.json.gz"))]
# Accounting keeps neither all bytes of a name nor double quotes.
ODD_NAME = 10
TIMES = ("submit_time", "eligible_time", "start_time", "end_time")


def read(path: Path | str) -> Log:
    return read_log(str(RECORDED / path), options=ReadOptions(), context=Context())


def newest(release: str) -> pl.DataFrame:
    return read(f"{release}/{NEWEST[release]}-slurmdb.json.gz").jobs


def test_all_were_recorded() -> None:
    assert len(ANSWERS) == 12


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_each_answer_tells_the_same(answer: Path) -> None:
    log = read(answer)
    assert (log.jobs.height, log.rejected) == (11, 0)
    found = differences(newest(answer.parts[0]), log.jobs)
    assert [row for row in found if row[:2] != (ODD_NAME, "job_name")] == []


@pytest.mark.parametrize("release", NEWEST)
def test_so_does_text(release: str) -> None:
    log = read(f"{release}/sacct.txt.gz")
    # Names with the separator or an end of line in them cannot be told from what is around them.
    told = newest(release).filter(~pl.col("job_id").is_in([1, ODD_NAME]))
    assert differences(told, log.jobs) == []
    assert log.rejected > 0


def test_releases_tell_the_same_of_jobs_that_are_alike() -> None:
    new, old = (newest(release).sort("job_id") for release in NEWEST)
    # They ran at other moments, and used a little more or less; whether they ran is compared.
    for name in TIMES:
        assert new[name].is_null().to_list() == old[name].is_null().to_list()
    moved = old.with_columns(*(new[name] for name in TIMES))
    assert differences(new, moved, "max_rss_mb", "total_cpu_s") == []
    assert new["job_name"][0] == NAME
