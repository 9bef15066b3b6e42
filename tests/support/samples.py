"""Small texts as the tools print them."""

from __future__ import annotations

HEADER = (
    "JobID|JobIDRaw|Cluster|User|Partition|Submit|Start|End|Elapsed|State|ExitCode|NCPUS|ReqMem|"
    "Timelimit|JobName"
)


def sacct_line(job_id: int, **cells: str) -> str:
    row = {
        "JobID": str(job_id),
        "JobIDRaw": str(job_id),
        "Cluster": "alpha",
        "User": "ada",
        "Partition": "cpu",
        "Submit": "2026-01-05T12:00:00",
        "Start": "2026-01-05T12:10:00",
        "End": "2026-01-05T13:10:00",
        "Elapsed": "01:00:00",
        "State": "COMPLETED",
        "ExitCode": "0:0",
        "NCPUS": "4",
        "ReqMem": "4G",
        "Timelimit": "02:00:00",
        "JobName": "relax",
    }
    return "|".join((row | cells)[name] for name in HEADER.split("|"))


def sacct_text(count: int = 3, **cells: str) -> str:
    return "\n".join([HEADER, *[sacct_line(n, **cells) for n in range(1, count + 1)]]) + "\n"


def swf_line(job: int, *, submit: int = 0, status: int = 1) -> str:
    return f"{job} {submit} 10 100 4 90 -1 4 3600 -1 {status} 7 2 5 1 -1 -1 -1"


def swf_text(count: int = 3) -> str:
    header = "; Version: 2.2\n; Computer: Test\n; UnixStartTime: 1700000000\n"
    return header + "".join(swf_line(n, submit=n) + "\n" for n in range(1, count + 1))
