"""Root folders with a release of Slurm in them, made of Debian's packages and kept for next time.

Nothing is installed on the machine itself: even the tool that unpacks the packages is only fetched.
A root is never changed once it is made, so any number of labs can run from one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from premortem.errors import InvalidInput, Unavailable
from premortem.lab.logs import last_lines
from premortem.lab.releases import Release

Tell = Callable[[str], None]

CACHE_VARIABLE = "PREMORTEM_LAB_CACHE"
# What a lab puts its own in the place of.
_FOLDERS = ("etc/slurm", "etc/munge", "var/lib/mysql", "var/lib/slurm", "var/log/slurm")
_FILES = ("etc/hosts", "etc/passwd", "etc/group")


def default_cache() -> Path:
    """Where roots are kept unless said otherwise."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else platformdirs.user_cache_path("premortem") / "lab"


def ready_root(release: Release, cache: Path, tell: Tell) -> Path:
    """The root of a release; made first if need be, which takes minutes and 600 MB."""
    root = cache / f"slurm-{release.name}-{_fingerprint(release)}"
    if root.exists():
        return root
    _require_debian()
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{cache} cannot be made: {error.strerror}") from error
    with _only_one(cache / f"{root.name}.lock", tell):
        if not root.exists():
            _make(release, root, cache, tell)
    return root


def _make(release: Release, root: Path, cache: Path, tell: Tell) -> None:
    tell(f"{release}: fetching Debian's packages, which happens once and takes minutes")
    mirror, path = _sources(cache)
    command = [
        # It ends with us, and in namespaces of its own: nothing stays mounted, nothing running.
        *("setpriv", "--pdeathsig", "KILL", "unshare"),
        *("--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"),
        "mmdebstrap",
        *("--variant=minbase", "--mode=root", "--format=directory", "--skip=output/dev"),
        *("--aptopt=APT::Install-Recommends false", "--aptopt=Acquire::Languages none"),
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "locale")),
        # No package may start its service.
        "--setup-hook=mkdir -p \"$1/usr/sbin\" && printf '#!/bin/sh\\nexit 101\\n'"
        ' >"$1/usr/sbin/policy-rc.d" && chmod 755 "$1/usr/sbin/policy-rc.d"',
        f"--include={','.join(release.packages)}",
        *(release.suite, str(partial := root.with_name(f"{root.name}.partial")), mirror),
    ]
    shutil.rmtree(partial, ignore_errors=True)
    log = cache / f"{root.name}.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            command,
            env=os.environ | {"PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as making,
    ):
        try:
            for line in making.stdout or ():
                output.write(line)
                if line.startswith("I: ") and "hook" not in line:
                    tell(f"{release}: {line[3:].strip()}")
        except BaseException:
            making.kill()
            # Until the last one that could still write to the folder has ended.
            making.communicate()
            shutil.rmtree(partial, ignore_errors=True)
            raise
    if making.returncode:
        shutil.rmtree(partial, ignore_errors=True)
        raise Unavailable(
            f"Debian's packages of {release} ({release.suite}) could not be fetched and unpacked. "
            "They come from apt's own mirror: see whether `apt-get update` works. "
            f"The end of {log}:\n{last_lines(log)}"
        )
    for folder in _FOLDERS:
        (partial / folder).mkdir(parents=True, exist_ok=True)
    for file in _FILES:
        (partial / file).touch()
    partial.rename(root)


def _fingerprint(release: Release) -> str:
    """Changes with what a root is made of: labs may still run from the one that was before."""
    parts = (release.suite, *release.packages, *_FOLDERS, *_FILES)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def _require_debian() -> None:
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    if system.get("ID") != "debian" or not shutil.which("apt-get"):
        raise InvalidInput(
            "a lab is made of Debian's packages, fetched by Debian's apt; this machine is "
            f"{system.get('PRETTY_NAME', 'of another kind')}. Make the cache on a Debian machine "
            f"and name it by {CACHE_VARIABLE}, or run the lab there"
        )


def _sources(cache: Path) -> tuple[str, str]:
    """The mirror of Debian that apt is set up with, and a search path with mmdebstrap in it.

    By the machine's own lists of packages, or, where they are old or missing, by lists of ours: the
    machine's stay as they are.
    """
    tools = cache / "tools"
    (tools / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    usual = ("-q", "-o", "APT::Sandbox::User=root")
    own = (*usual, "-o", f"Dir::State::Lists={tools / 'lists'}")
    said = ""
    for options in (usual, own):
        if options is own:
            said = _run(["apt-get", *own, "update"], tools).stdout
        mirror = _mirror(options, tools)
        path = _path_to_mmdebstrap(options, tools) if mirror else None
        if mirror and path:
            return mirror, path
    raise Unavailable(
        "Debian's packages could not be fetched: see whether `apt-get update` works. apt said:\n"
        + "\n".join(f"  {line}" for line in said.splitlines()[-8:])
    )


def _mirror(options: tuple[str, ...], tools: Path) -> str | None:
    asked = ["indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(REPO_URI)"]
    told = _run(["apt-get", *options, *asked, "Created-By: Packages"], tools).stdout
    rows = (line.split(" ") for line in told.splitlines())
    return next(
        (
            uri
            for origin, component, uri in (row for row in rows if len(row) == 3)
            if origin == "Debian" and component == "main" and "security" not in uri
        ),
        None,
    )


def _path_to_mmdebstrap(options: tuple[str, ...], tools: Path) -> str | None:
    usual = os.environ.get("PATH", os.defpath)
    if shutil.which("mmdebstrap"):
        return usual
    script = tools / "usr" / "bin" / "mmdebstrap"
    if not script.exists():
        if _run(["apt-get", *options, "download", "mmdebstrap"], tools).returncode:
            return None
        package = max(tools.glob("mmdebstrap_*.deb"))
        _run(["dpkg-deb", "--extract", str(package), str(tools)], tools)
    return f"{script.parent}:{usual}"


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


@contextmanager
def _only_one(path: Path, tell: Tell) -> Iterator[None]:
    """Held by one process at a time; the others wait."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("waiting for another process, which is fetching the packages")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
