"""What real Slurms of two releases tell of the same jobs, kept in `tests/recorded`.

    python tests/support/record_answers.py

Each release has jobs in every state; a folder holds what was told of them in each version of the
API by slurmdbd and by slurmctld, and by `sacct` as JSON and as text.
"""

from __future__ import annotations

import gzip
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

from slurm_lab import get_bytes, running
from slurm_work import Work

from premortem.lab import Lab

RECORDED = Path(__file__).parents[1] / "recorded"
VERSIONS = {"24.11": (40, 41, 42), "22.05": (37, 38)}
TEXT = (
    "JobIDRaw,JobID,JobName,User,Account,Partition,QOS,Cluster,State,ExitCode,DerivedExitCode,"
    "Submit,Eligible,Start,End,Timelimit,Elapsed,ReqCPUS,ReqMem,ReqNodes,ReqTRES,AllocCPUS,"
    "AllocNodes,AllocTRES,NodeList,WorkDir,Priority,Reason"
)
# Steps and their usage follow some seconds after a job.
SETTLED_AFTER_S = 15


def record(release: str, folder: Path) -> None:
    """Run the jobs in a lab, and keep what is told of them."""
    with running(folder / release, release, nodes=2) as lab:
        work = Work(lab)
        time.sleep(SETTLED_AFTER_S)
        kept = RECORDED / f"slurm-{release}"
        kept.mkdir(parents=True, exist_ok=True)
        for number in VERSIONS[release]:
            for daemon, query in (("slurmdb", by_id(work.all, number)), ("slurm", "")):
                _, told = get_bytes(lab, f"/{daemon}/v0.0.{number}/jobs{query}", user="root")
                write(kept / f"v0.0.{number}-{daemon}.json.gz", told)
        ids = ",".join(map(str, work.all))
        write(kept / "sacct.json.gz", said(lab, "sacct", "--jobs", ids, "--json"))
        columns = ("--parsable2", f"--format={TEXT}")
        write(kept / "sacct.txt.gz", said(lab, "env", "TZ=UTC", "sacct", "--jobs", ids, *columns))
        work.end()


def by_id(ids: list[int], number: int) -> str:
    """The question for these jobs, as this version reads it."""
    words = [str(job) for job in ids]
    if number < 40:
        return "?" + urllib.parse.urlencode({"step": ",".join(words)})
    return "?" + urllib.parse.urlencode({"step": words, "show_duplicates": "true"}, doseq=True)


def said(lab: Lab, *words: str) -> bytes:
    """What a command prints, as it is: not all of it need be UTF-8."""
    return subprocess.run(lab.command(*words), capture_output=True, check=True).stdout


def write(path: Path, told: bytes) -> None:
    """Keep an answer, the same bytes for the same answer."""
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(told)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for release in VERSIONS:
            record(release, Path(folder))


if __name__ == "__main__":
    main()
