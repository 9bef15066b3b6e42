"""Runs commands for users inside a lab's world, one after the other, without entering it each time.

Started by `desk.py` as root in the lab's own small Python; it is not imported. It reads lines of
JSON: whom to be, where, which files to write first, which command to run with which input. For
each it writes a line with the exit code, the output and what was said on standard error.
"""

import json
import os
import subprocess
import sys
from typing import Any

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def main() -> None:
    """Serve until the input ends."""
    with open("/etc/passwd") as lines:
        rows = [line.split(":") for line in lines]
    people = {row[0]: (int(row[2]), int(row[3])) for row in rows}
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(json.dumps(served(asked, *people[asked["user"]])) + "\n")
        sys.stdout.flush()


def served(asked: dict[str, Any], uid: int, gid: int) -> dict[str, Any]:
    """What became of one request."""

    def prepare() -> None:
        # In the child, as the user: nothing is written that the user could not write.
        os.umask(0o022)
        os.makedirs(asked["folder"], exist_ok=True)
        os.chdir(asked["folder"])
        for path, (text, mode) in asked["files"].items():
            if os.path.dirname(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, mode)

    name = asked["user"]
    done = subprocess.run(
        asked["command"],
        input=asked["input"],
        capture_output=True,
        text=True,
        errors="replace",
        user=uid,
        group=gid,
        extra_groups=[gid],
        env={
            "HOME": f"/home/{name}",
            "USER": name,
            "LOGNAME": name,
            "PATH": _PATH,
            "LANG": "C.UTF-8",
        },
        preexec_fn=prepare,
    )
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


if __name__ == "__main__":
    main()
