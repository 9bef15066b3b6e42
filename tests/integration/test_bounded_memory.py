"""Files larger than memory should be: what a load holds does not grow with what it reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from command import PREMORTEM, environment
from samples import HEADER, sacct_line, swf_text

MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


def peak_mib(folder: Path, log: Path) -> int:
    """Peak memory of loading a file, in MiB."""
    command = [sys.executable, "-c", MEASURE, *PREMORTEM, "load", str(log)]
    output = subprocess.check_output(command, cwd=folder, env=environment(folder), text=True)
    code, peak = map(int, output.split())
    assert code == 0
    return peak


def test_a_line_of_a_hundred_megabytes_is_set_aside(tmp_path: Path) -> None:
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    rows = [HEADER, sacct_line(1)]
    small.write_text("\n".join([*rows, sacct_line(2), ""]))
    large.write_text("\n".join([*rows, "x" * 100_000_000, sacct_line(2), ""]))
    baseline = peak_mib(tmp_path, small)
    assert peak_mib(tmp_path, large) < baseline + 120
    from premortem.stores import open_store

    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}", read_only=True)
    assert store.jobs(columns=["job_id"]).rows() == [(1,), (2,)]
    assert store.rejects()["reason"].to_list() == ["the line is longer than 1 MiB"]
    assert store.rejects()["line"].to_list() == [3]
    store.close()


def test_four_times_the_jobs_need_no_more_memory(tmp_path: Path) -> None:
    peaks = []
    for count in (400_000, 1_600_000):
        log = tmp_path / f"{count}.swf"
        log.write_text(swf_text(count))
        peaks.append(peak_mib(tmp_path, log))
    assert peaks[1] < peaks[0] * 1.3
