"""Puts the programs that jobs run into a lab: compiled here, found by jobs in /home/apps."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from premortem.errors import Unavailable
from premortem.lab import Lab
from premortem.lab.workload.catalogue import KINDS
from premortem.lab.workload.inputs import SCRATCH, SCRATCH_MB

VERSIONS = ("2.1", "3.0b")
_SOURCES = Path(__file__).parent / "software"
_SMALL_DISK = f"""\
mountpoint --quiet {SCRATCH} && exit 0
mkdir -p {SCRATCH} && mount -t tmpfs -o size={SCRATCH_MB}m,mode=1777 tmpfs {SCRATCH}
"""


def install(lab: Lab) -> None:
    """Install everything that jobs of a workload need; what is there already is made again.

    Programs are linked statically, for the lab's world has libraries of its own.
    """
    apps = lab.folder / "home" / "apps"
    (apps / "data").mkdir(parents=True, exist_ok=True)
    shutil.copy(_SOURCES / "profile.sh", apps / "profile.sh")
    (apps / "data" / "genome.fa").write_text(">chr1\n" + "ACGT" * 500 + "\n")
    program = compiled(apps / "simulate")
    for version in VERSIONS:
        for kind in KINDS.values():
            folder = apps / kind.program / version / "bin"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / kind.program).unlink(missing_ok=True)
            (folder / kind.program).hardlink_to(program)
        for module, language, file in (
            ("pylab", "python", "labwork.py"),
            ("perllab", "perl", "LabWork.pm"),
        ):
            folder = apps / module / version / language
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(_SOURCES / file, folder / file)
    lab.run("sh", "-c", _SMALL_DISK)


def compiled(to: Path) -> Path:
    """The program that behaves as its input tells."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise Unavailable(
            "jobs of a workload run a program that is compiled here, and this machine has no "
            "C compiler: install one, on Debian by `apt-get install gcc libc6-dev`"
        )
    new = to.with_name(f"{to.name}.new")
    command = [compiler, "-O2", "-static", "-o", str(new), str(_SOURCES / "simulate.c")]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise Unavailable(f"{compiler} could not compile the programs of jobs:\n{done.stderr}")
    return new.replace(to)
