"""The first process of a lab's world: it makes the world's mounts, and the world ends with it.

Started by `worlds.py` as a script, in namespaces of its own for mounts, processes and the host's
name. It reads the plan from its standard input, a line of JSON, and writes `ready`, or why it could
not be. Then it watches its input: a byte tells it to stay for good, the end ends the world. So a
lab never outlives a process that died while starting it, or the tests that it was started for.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys

# Name, and the numbers by which Linux knows these devices.
_DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}


def main(plan: dict[str, object]) -> None:
    """Make the world, then stand by until it is to end."""
    root = str(plan["root"])
    try:
        _mount_all(root, plan)
        socket.sethostname("localhost")
        os.chroot(root)
        os.chdir("/")
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        _say(str(said).strip())
        sys.exit(1)
    # Whatever ends in this world without a parent is forgotten at once.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _say("ready")
    nowhere = os.open("/dev/null", os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    if os.read(0, 1):
        os.dup2(nowhere, 0)
        while True:
            signal.pause()


def _line() -> bytes:
    """A line of the input, and not a byte more."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(1)
        line += byte
    return line


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def _mount_all(root: str, plan: dict[str, object]) -> None:
    # Mounted over itself, the root can be made unwritable for this world alone.
    _mount("--bind", root, root)
    _mount("-o", "remount,bind,ro", root)
    _mount("-t", "proc", "proc", f"{root}/proc")
    _mount("-t", "sysfs", "-o", "ro", "sysfs", f"{root}/sys")
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", f"{root}/run")
    _devices(f"{root}/dev", int(str(plan["gpus"])))
    cgroups = plan["cgroups"]
    if isinstance(cgroups, dict) and cgroups:
        _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", f"{root}/sys/fs/cgroup")
        for controller, folder in cgroups.items():
            os.mkdir(f"{root}/sys/fs/cgroup/{controller}")
            _mount("--bind", folder, f"{root}/sys/fs/cgroup/{controller}")
    binds = plan["binds"]
    if isinstance(binds, dict):
        for target, source in binds.items():
            _mount("--bind", source, f"{root}/{target}")


def _devices(folder: str, gpus: int) -> None:
    """What every program expects, and devices that Slurm may hand out as GPUs."""
    _mount("-t", "tmpfs", "-o", "mode=755,size=64m", "tmpfs", folder)
    os.umask(0)
    for name, minor in _DEVICES.items():
        os.mknod(f"{folder}/{name}", stat.S_IFCHR | 0o666, os.makedev(1, minor))
    for number in range(gpus):
        os.mknod(f"{folder}/fakegpu{number}", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(f"{folder}/tty", stat.S_IFCHR | 0o666, os.makedev(5, 0))
    os.mkdir(f"{folder}/shm", 0o1777)
    os.mkdir(f"{folder}/pts", 0o755)
    _mount("-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=620,gid=5", "pts", f"{folder}/pts")
    os.umask(0o022)
    for link, to in {"ptmx": "pts/ptmx", "fd": "/proc/self/fd"}.items():
        os.symlink(to, f"{folder}/{link}")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{folder}/{name}")


def _mount(*arguments: str) -> None:
    subprocess.run(
        ["mount", *arguments], check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


if __name__ == "__main__":
    main(json.loads(_line()))
