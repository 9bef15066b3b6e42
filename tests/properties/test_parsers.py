"""Whatever is fed to a source: no crash, and every record is either kept or set aside."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from samples import HEADER, sacct_line, swf_line, swf_text

from premortem.errors import PremortemError
from premortem.sources.detection import ReadOptions, source_for
from premortem.sources.files import InputFile
from premortem.sources.formats import Format
from premortem.sources.port import Batch, Context

RANDOM = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NREL_HEADER = (
    "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,"
    "submit_time,start_time,end_time,run_time,state,name,work_dir,submit_line"
)
BEGINNINGS = {
    Format.SWF: b"; UnixStartTime: 1000000000\n",
    Format.SACCT: HEADER.encode() + b"\n",
    Format.SLURM_JSON: b'{"jobs": [',
    Format.TABLE: NREL_HEADER.encode() + b"\n",
}


def read(path: Path, content: bytes, format: Format = Format.AUTO) -> list[Batch]:
    path.write_bytes(content)
    with InputFile(path) as file:
        return list(source_for(file, ReadOptions(format=format), Context()).batches())


def jobs_of(batches: list[Batch]) -> pl.DataFrame:
    return pl.concat(batch.jobs for batch in batches if batch.jobs.height)


def kept(batches: list[Batch]) -> int:
    return sum(batch.jobs.height for batch in batches)


def set_aside(batches: list[Batch]) -> int:
    return sum(batch.rejects.height for batch in batches)


@pytest.mark.parametrize("format", list(Format))
@RANDOM
@given(content=st.binary(max_size=400))
@example(content=b"\x1f\x8b")
@example(content=b"\x1f\x8b\x08\x00garbage")
@example(content=b"BZh9")
@example(content=b"PAR1 but not really PAR1")
@example(content=b"[[[[[[")
@example(content=b'{"jobs": [1, "x", null, [], {}]}')
def test_garbage_never_crashes_a_source(tmp_path: Path, format: Format, content: bytes) -> None:
    beginning = BEGINNINGS.get(format, b"")
    for data in (content, beginning + content, gzip.compress(beginning + content)[:-3]):
        with suppress(PremortemError):
            read(tmp_path / "garbage", data, format)


# Separators that Python takes for blanks and others do not are left out.
lines = st.text(
    st.characters(exclude_characters="\n\r\x1c\x1d\x1e\x1f\x85", exclude_categories=("Cs",)),
    max_size=80,
)


@RANDOM
@given(damaged=st.lists(lines, max_size=10), good=st.integers(0, 5))
def test_every_swf_line_is_kept_or_set_aside(tmp_path: Path, damaged: list[str], good: int) -> None:
    text = swf_text(good) + "".join(line + "\n" for line in damaged)
    batches = read(tmp_path / "log.swf", text.encode(), Format.SWF)
    records = [
        line for line in text.split("\n") if line.strip() and not line.strip().startswith(";")
    ]
    assert kept(batches) >= good
    assert kept(batches) + set_aside(batches) == len(records)


@RANDOM
@given(damaged=st.lists(lines, max_size=10), good=st.integers(0, 5))
def test_every_sacct_line_is_kept_or_set_aside(
    tmp_path: Path, damaged: list[str], good: int
) -> None:
    rows = [*damaged, *[sacct_line(n) for n in range(1, good + 1)]]
    text = "\n".join([HEADER, *rows]) + "\n"
    batches = read(tmp_path / "jobs.txt", text.encode(), Format.SACCT)
    assert kept(batches) == good
    assert kept(batches) + set_aside(batches) == len([row for row in rows if row.strip()])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
ACCOUNTING = {
    "job_id": 7,
    "cluster": "alpha",
    "user": "ada",
    "state": {"current": ["COMPLETED"], "reason": "None"},
    "time": {"submission": 1767600000, "start": 1767600010, "end": 1767603610, "elapsed": 3600},
    "array": {"job_id": 0},
    "required": {"CPUs": 4},
    "tres": {"requested": [], "allocated": []},
    "exit_code": {"return_code": 0},
    "steps": [],
    "priority": 5,
}


@RANDOM
@given(name=st.sampled_from(sorted(ACCOUNTING)), value=json_values, good=st.integers(1, 3))
def test_a_job_with_a_strange_value_never_costs_its_neighbours(
    tmp_path: Path, name: str, value: Any, good: int
) -> None:
    jobs = [{**ACCOUNTING, "job_id": n} for n in range(1, good + 1)]
    document = {"jobs": [*jobs[:1], {**ACCOUNTING, "job_id": 99, name: value}, *jobs[1:]]}
    batches = read(tmp_path / "jobs.json", json.dumps(document).encode(), Format.SLURM_JSON)
    assert kept(batches) >= good
    assert kept(batches) + set_aside(batches) == good + 1


@RANDOM
@given(cut=st.integers(1, 2000))
def test_a_json_document_cut_anywhere_keeps_what_came_before(tmp_path: Path, cut: int) -> None:
    text = json.dumps({"jobs": [{**ACCOUNTING, "job_id": n} for n in range(1, 6)]})
    cut = min(cut, len(text) - 1)
    whole = text[:cut].count('"priority": 5}')
    try:
        batches = read(tmp_path / "jobs.json", text[:cut].encode(), Format.SLURM_JSON)
    except PremortemError:
        assert whole == 0
    else:
        assert kept(batches) == whole
        assert set_aside(batches) <= 1


instants = st.integers(10**9, 1_700_000_000).map(lambda s: datetime.fromtimestamp(s, UTC))
spans = st.integers(0, 10**7)


def written(seconds: int) -> str:
    """A duration as Slurm writes it."""
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


@RANDOM
@given(submit=instants, wait=spans, run=spans, limit=spans, cpus=st.integers(1, 10**6))
def test_what_sacct_writes_is_what_is_read(
    tmp_path: Path, submit: datetime, wait: int, run: int, limit: int, cpus: int
) -> None:
    start = submit + timedelta(seconds=wait)
    end = start + timedelta(seconds=run)
    row = sacct_line(
        5,
        Submit=f"{submit:%Y-%m-%dT%H:%M:%S}",
        Start=f"{start:%Y-%m-%dT%H:%M:%S}",
        End=f"{end:%Y-%m-%dT%H:%M:%S}",
        Elapsed=written(run),
        Timelimit=written(limit),
        NCPUS=str(cpus),
    )
    (batch,) = read(tmp_path / "jobs.txt", f"{HEADER}\n{row}\n".encode())
    job = batch.jobs.row(0, named=True)
    assert (job["submit_time"], job["start_time"], job["end_time"]) == (submit, start, end)
    assert (job["elapsed_s"], job["time_limit_s"], job["alloc_cpus"]) == (run, limit, cpus)


@RANDOM
@given(
    job=st.integers(1, 10**9),
    submit=spans,
    status=st.sampled_from([0, 1, 5]),
    gap=st.sampled_from("\t "),
)
def test_what_an_swf_log_says_is_what_is_read(
    tmp_path: Path, job: int, submit: int, status: int, gap: str
) -> None:
    line = swf_line(job, submit=submit, status=status).replace(" ", gap * 3)
    batches = read(tmp_path / "log.swf", f"; UnixStartTime: 1000000000\n  {line}".encode())
    found = jobs_of(batches).row(0, named=True)
    assert found["job_id"] == job
    assert found["submit_time"] == datetime.fromtimestamp(10**9 + submit, UTC)
    assert found["state"] == {0: "FAILED", 1: "COMPLETED", 5: "CANCELLED"}[status]


@RANDOM
@given(block=st.integers(1, 300), count=st.integers(1, 30))
def test_how_the_file_is_cut_into_blocks_does_not_matter(
    tmp_path: Path, block: int, count: int
) -> None:
    text = "\n".join([HEADER, *[sacct_line(n) for n in range(1, count + 1)]])
    whole = read(tmp_path / "jobs.txt", text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("premortem.sources.files.BLOCK_BYTES", block)
        patch.setattr("premortem.sources.files.HEAD_BYTES", max(block, len(HEADER) + 1))
        pieces = read(tmp_path / "jobs.txt", text.encode())
    assert jobs_of(pieces).drop("seen_at").equals(jobs_of(whole).drop("seen_at"))
