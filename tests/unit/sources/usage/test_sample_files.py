"""Files of samples: they grow, survive a kill and a full disk, and refuse what is not theirs."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from premortem.errors import InvalidInput, Unavailable
from premortem.jobs.samples import SAMPLE_SCHEMA, conform_samples
from premortem.sources.usage import sample_files
from premortem.sources.usage.sample_files import open_sample_file


def samples(*job_ids: int) -> pl.DataFrame:
    at = datetime(2026, 1, 5, 8, 0, 0, 250_000, tzinfo=UTC)
    rows = [{"cluster": "c", "job_id": job, "at": at, "cpu_s": 1.23456} for job in job_ids]
    return conform_samples(pl.DataFrame(rows))


def keep(path: Path, *job_ids: int) -> None:
    with closing(open_sample_file(path)) as file:
        file.add(samples(*job_ids))


def kept(path: Path) -> list[int]:
    if path.suffix == ".parquet":
        found = pl.read_parquet(path)
        assert dict(found.schema) == SAMPLE_SCHEMA
        return found["job_id"].to_list()
    return [json.loads(line)["job_id"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", ["samples.jsonl", "samples.parquet"])
class TestBoth:
    def test_what_was_there_stays(self, tmp_path: Path, name: str) -> None:
        keep(tmp_path / name, 1, 2)
        keep(tmp_path / name, 3)
        assert kept(tmp_path / name) == [1, 2, 3]
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_a_folder_that_is_not_there_is_told(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(Unavailable, match="cannot be written"):
            keep(tmp_path / "none" / name, 1)

    def test_a_full_disk_leaves_what_was_there(self, small_disk: Path, name: str) -> None:
        keep(small_disk / name, 1, 2)
        with suppress(OSError), (small_disk / "large").open("wb", buffering=0) as large:
            while True:
                large.write(bytes(4096))
        with pytest.raises(Unavailable, match="cannot be written"):
            keep(small_disk / name, *range(100_000))
        assert kept(small_disk / name) == [1, 2]


def test_what_was_not_taken_in_may_be_handed_over_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "later" / "samples.parquet"
    file = open_sample_file(path)
    # These are to be written with the next.
    file.add(samples(1, 2))
    monkeypatch.setattr(sample_files, "_BETWEEN_WRITES_S", -1.0)
    for _ in range(2):
        with pytest.raises(Unavailable, match="cannot be written"):
            file.add(samples(3, 4))
    path.parent.mkdir()
    file.add(samples(3, 4))
    file.close()
    assert kept(path) == [1, 2, 3, 4]


def test_a_line_is_json_with_its_time(tmp_path: Path) -> None:
    keep(tmp_path / "samples.jsonl", 7)
    assert json.loads((tmp_path / "samples.jsonl").read_text()) == {
        "cluster": "c",
        "job_id": 7,
        "at": "2026-01-05T08:00:00.250Z",
        "cpu_s": 1.235,
        **dict.fromkeys(("rss_mb", "read_mb", "written_mb", "processes")),
    }


def test_half_a_line_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text('{"cluster": "c", "jo')
    keep(path, 7)
    assert json.loads(path.read_text().splitlines()[1])["job_id"] == 7


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"end in \.jsonl or \.parquet"):
        open_sample_file(tmp_path / "samples.csv")
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
        open_sample_file(tmp_path / "text.parquet")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InvalidInput, match="something else than samples"):
        open_sample_file(tmp_path / "other.parquet")
