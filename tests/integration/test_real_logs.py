"""Real logs and answers, where they lie beside the project: every job counted, none lost."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from command import premortem

DATA = Path(__file__).parents[3] / "shared" / "data"
SACCT_COLUMNS = (
    "JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,GID,User,UID,Submit,Eligible,Start,End,"
    "Elapsed,ExitCode,State,NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,Timelimit,NodeList,JobName"
)

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real logs are not beside the project"
)


def counts(report: dict[str, int]) -> tuple[int, int]:
    return report["new"], report["rejected"]


@pytest.mark.parametrize("log", sorted(DATA.glob("swf/*.gz")), ids=lambda path: path.name)
def test_workload_archive_logs(tmp_path: Path, log: Path) -> None:
    with gzip.open(log, "rt") as lines:
        jobs = sum(1 for line in lines if line.strip() and not line.lstrip().startswith(";"))
    assert counts(premortem(tmp_path, "load", log, "--json").json) == (jobs, 0)
    again = premortem(tmp_path, "load", log, "--json").json
    assert (again["unchanged"], again["new"], again["updated"]) == (jobs, 0, 0)
    assert premortem(tmp_path, "stats", "--json").json["jobs"] == jobs


def test_the_sacct_log(tmp_path: Path) -> None:
    log = DATA / "sacct" / "pozidriv.log"
    load = ("load", log, "--columns", SACCT_COLUMNS, "--json")
    jobs = len(log.read_text().splitlines())
    assert counts(premortem(tmp_path, *load).json) == (jobs, 0)
    assert premortem(tmp_path, *load).json["unchanged"] == jobs
    summed = premortem(tmp_path, "stats", "--json").json
    assert (summed["jobs"], summed["users"]) == (jobs, 18)
    # Counted in the log itself, by its column State.
    assert summed["outcomes"] == {"completed": 10134, "failed": 1484, "ignored": 86}
    assert summed["causes"]["time_limit"] == 9
    assert summed["causes"]["application"] == 1007
    assert summed["causes"]["cancelled"] + summed["causes"]["cancelled_before_start"] == 468


def test_every_answer_of_slurmrestd(tmp_path: Path) -> None:
    answers = sorted(DATA.glob("slurmrestd/*/*.json"))
    jobs = {path: json.loads(path.read_text()).get("jobs", []) for path in answers}
    report = premortem(tmp_path, "load", *answers, "--json").json
    assert report["rejected"] == 0
    assert {file["path"]: file["read"] for file in report["files"]} == {
        str(path): len(found) for path, found in jobs.items()
    }
    keys = {
        (job["job_id"], job.get("submit_time", {}).get("number") or job["time"]["submission"])
        for found in jobs.values()
        for job in found
    }
    assert report["new"] == len(keys) == premortem(tmp_path, "stats", "--json").json["jobs"]
    again = premortem(tmp_path, "load", *answers, "--json").json
    assert again["new"] == again["rejected"] == 0
    settled = premortem(tmp_path, "load", *answers, "--json").json
    assert settled["unchanged"] == settled["read"]


def test_the_nrel_sample(tmp_path: Path) -> None:
    sample = DATA / "nrel" / "eagle-sample.csv"
    assert counts(premortem(tmp_path, "load", sample, "--json").json) == (1000, 0)
    assert premortem(tmp_path, "load", sample, "--json").json["unchanged"] == 1000
    assert premortem(tmp_path, "stats", "--json").json["causes"] == {"time_limit": 15}
