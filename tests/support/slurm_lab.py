"""A real Slurm for tests: what it needs from the machine, and how to ask it."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from requirements import require

from premortem.errors import PremortemError
from premortem.lab import Lab
from premortem.lab.releases import release_named
from premortem.lab.roots import CACHE_VARIABLE, ready_root

CACHE = Path(os.environ.get(CACHE_VARIABLE) or Path(__file__).parents[2] / ".cache" / "lab")


@contextmanager
def running(folder: Path, release: str, **options: Any) -> Iterator[Lab]:
    """A lab while it is needed."""
    require_lab(release)
    with Lab(folder, slurm=release, cache=CACHE, **options) as lab:
        yield lab


def require_lab(release: str) -> None:
    """Go on only where a lab can run; the first time its packages are fetched."""
    require(os.geteuid() == 0, "a lab needs root")
    own = ["unshare", "--mount", "--uts", "--pid", "--fork", "true"]
    allowed = subprocess.run(own, capture_output=True, check=False).returncode == 0
    require(allowed, "a lab needs a machine that allows namespaces")
    problem = None
    try:
        ready_root(release_named(release), CACHE, lambda text: None)
    except PremortemError as error:
        problem = error
    require(problem is None, f"a lab needs Debian's packages: {problem}")


def submit(lab: Lab, body: str, *options: str, user: str = "user01") -> int:
    """The number of a new job that runs a script."""
    script = f"#!/bin/bash\n{body}\n"
    done = lab.run("sbatch", "--parsable", *options, user=user, input=script)
    return int(done.stdout.split(";")[0])


def wait_for(lab: Lab, job: int, *states: str, patience_s: float = 90) -> dict[str, str]:
    """What sacct tells of a job once it is in one of these states."""
    names = ("State", "ExitCode", "User", "Account", "Partition", "NodeList")
    deadline = time.monotonic() + patience_s
    while True:
        asked = ("--allocations", "--noheader", "--parsable2", f"--format={','.join(names)}")
        said = lab.run("sacct", f"--jobs={job}", *asked).stdout.strip()
        row = dict(zip(names, said.split("|"), strict=True)) if said else {"State": "unknown"}
        if row["State"].split()[0] in states:
            return row
        assert time.monotonic() < deadline, f"job {job} is {row['State']}, not {states}"
        time.sleep(0.2)


def get(lab: Lab, path: str, *, user: str | None, token: str | None = None) -> tuple[int, Any]:
    """Status and JSON of a question to slurmrestd, with a token of that user's unless given."""
    status, told = get_bytes(lab, path, user=user, token=token)
    return status, json.loads(told) if told else None


def get_bytes(
    lab: Lab, path: str, *, user: str | None, token: str | None = None
) -> tuple[int, bytes]:
    """The same as it was sent; nothing with an error's status."""
    headers = {}
    if user:
        headers = {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token or lab.token(user)}
    request = urllib.request.Request(f"{lab.rest_url}{path}", headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""


def processes_of(namespace: str) -> list[str]:
    """The command lines of all processes in a namespace."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "ns" / "pid") == namespace:
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def namespace_of(lab: Lab) -> str:
    """What tells the lab's processes from all others."""
    return os.readlink(f"/proc/{lab.world.keeper.pid}/ns/pid")
