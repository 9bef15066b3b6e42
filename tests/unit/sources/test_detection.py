"""The format of a file is told by its content."""

import gzip
import os
from datetime import UTC, datetime

import polars as pl
import pytest

from premortem.errors import InvalidInput
from premortem.sources.detection import ReadOptions, source_for
from premortem.sources.files import InputFile
from premortem.sources.formats import Format, SwfStatus
from premortem.sources.mapping import load_mapping
from premortem.sources.port import Context
from premortem.sources.sacct import SacctSource
from premortem.sources.slurm_json import SlurmJsonSource
from premortem.sources.swf import SwfSource
from premortem.sources.tables import TableSource

SWF_LINE = "1 0 5 60 4 -1 -1 4 3600 -1 1 7 3 12 1 1 -1 -1\n"
NREL = ",".join(column.column for column in load_mapping("nrel").columns.values())
MAPPING = '[columns]\njob_id = "id"\nsubmit_time = "t"\n'


def detected(tmp_path, data, **options):
    """The source for a file of this content."""
    path = tmp_path / "some.file"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with InputFile(path) as file:
        return source_for(file, ReadOptions(**options), Context())


@pytest.mark.parametrize(
    ("content", "source"),
    [
        ("; Computer: x\n" + SWF_LINE, SwfSource),
        ("; Computer: x\n", SwfSource),
        (SWF_LINE * 3, SwfSource),
        ("\n   " + SWF_LINE, SwfSource),
        (SWF_LINE + "2 cut short\n", SwfSource),
        ("JobID|Submit|State\n", SacctSource),
        ("100|2026-01-05T08:00:00|COMPLETED\n", SacctSource),
        ('{"jobs": []}', SlurmJsonSource),
        ('\n  {\n "jobs": []}', SlurmJsonSource),
        ("[]", SlurmJsonSource),
        ("\ufeff" + '{"jobs": []}', SlurmJsonSource),
        (NREL + "\n", TableSource),
    ],
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gz"])
def test_each_format_is_told_by_its_content(tmp_path, content, source, compress):
    assert type(detected(tmp_path, compress(content.encode()))) is source


def test_a_parquet_file_is_a_table(tmp_path):
    (tmp_path / "site.toml").write_text(MAPPING)
    pl.DataFrame({"id": [1]}).write_parquet(tmp_path / "table")
    data = (tmp_path / "table").read_bytes()
    assert type(detected(tmp_path, data, mapping=str(tmp_path / "site.toml"))) is TableSource
    with pytest.raises(InvalidInput, match="a table of unknown columns"):
        detected(tmp_path, data)


@pytest.mark.parametrize("data", [b"", b"\n \n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_refused(tmp_path, data):
    with pytest.raises(InvalidInput, match="the file is empty"):
        detected(tmp_path, data)


@pytest.mark.parametrize("kept", [10, 12])
def test_a_file_that_cannot_be_decompressed_is_refused_for_that(tmp_path, kept):
    with pytest.raises(InvalidInput, match="the gzip data is cut short or damaged"):
        detected(tmp_path, gzip.compress(b"JobID|Submit|State\n")[:kept])


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)) * 20,
        b"\x00" * 100,
        b"\x7fELF\x02\x01\x01\x00 binary",
        b"Dear diary,\ntoday nothing failed.\n",
        b"1 2 3\n4 5 6\n",
        b"a|b\n",
    ],
)
def test_what_is_none_of_them_is_refused_with_its_beginning(tmp_path, data):
    with pytest.raises(InvalidInput) as refused:
        detected(tmp_path, data)
    assert "none of the formats known (swf, sacct, slurm-json, table)" in str(refused.value)
    assert "--format" in str(refused.value)
    assert repr(data[:10])[2:-1] in str(refused.value)


def test_a_csv_of_unknown_columns_needs_a_mapping(tmp_path):
    with pytest.raises(InvalidInput, match=r"describe them with --mapping FILE, .*\(.*nrel"):
        detected(tmp_path, "id,when,what\n1,2,3\n")
    (tmp_path / "site.toml").write_text(MAPPING)
    table = detected(tmp_path, "id,t\n1,2\n", mapping=str(tmp_path / "site.toml"))
    assert type(table) is TableSource


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ({"format": Format.SWF}, SwfSource),
        ({"format": Format.SACCT}, SacctSource),
        ({"format": Format.SLURM_JSON}, SlurmJsonSource),
        ({"mapping": "nrel"}, TableSource),
        ({"columns": ["JobID", "Submit"]}, SacctSource),
    ],
)
def test_what_is_wanted_counts_more_than_the_content(tmp_path, options, source):
    assert type(detected(tmp_path, "who knows\n", **options)) is source


def test_options_reach_their_source(tmp_path):
    swf = detected(tmp_path, SWF_LINE, swf_status=SwfStatus.EXIT_CODE)
    assert swf.status is SwfStatus.EXIT_CODE
    sacct = detected(tmp_path, "1|2|3\n", columns=["JobID", "Submit", "User"])
    assert sacct.columns == ["JobID", "Submit", "User"]


def test_the_jobs_were_seen_when_the_file_was_written(tmp_path):
    path = tmp_path / "log"
    path.write_text(SWF_LINE)
    os.utime(path, (1767600000.75, 1767600000.75))
    with InputFile(path) as file:
        [batch] = source_for(file, ReadOptions(), Context()).batches()
    assert batch.jobs["seen_at"].item() == datetime(2026, 1, 5, 8, tzinfo=UTC)
