"""The folder of a lab: what lies in it, and what that takes the place of in the lab's world."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from premortem.lab import configuration
from premortem.lab.records import Record

LOGS = "log"
# By the paths that they have inside.
_FOLDERS = {
    "etc/slurm": "etc",
    "etc/munge": "munge",
    "var/lib/mysql": "database",
    "var/lib/slurm": "state",
    "var/log/slurm": LOGS,
    "home": "home",
    "tmp": "tmp",
}
_FILES = ("passwd", "group", "hosts")


def binds(folder: Path) -> dict[str, str]:
    """What takes the place of which of the root's folders and files, by their paths in the root."""
    folders = {inside: str(folder / own) for inside, own in _FOLDERS.items()}
    return folders | {f"etc/{name}": str(folder / name) for name in _FILES}


def users(folder: Path) -> set[str]:
    """Everybody known in the lab, daemons' users included."""
    return set(configuration.uids((folder / "passwd").read_text(encoding="utf-8")))


def furnish(folder: Path, record: Record, *, oom: bool) -> None:
    """Write the lab's files, each with the owner that its reader insists on."""
    root, plan = record.root, record.plan
    texts = configuration.machine_files(
        plan, (root / "etc/passwd").read_text(), (root / "etc/group").read_text()
    )
    _write_all(folder, texts)
    owners = configuration.uids(texts["passwd"])
    for own in _FOLDERS.values():
        (folder / own).mkdir(exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    etc, munge, database, state = (folder / own for own in ("etc", "munge", "database", "state"))
    _write_all(etc, configuration.slurm_files(plan, record.ports, oom=oom))
    kept = configuration.KEPT.items()
    _write_all(etc, {name: text for name, text in kept if not (etc / name).exists()})
    _write_key(etc / "jwt_hs256.key", 32)
    _write_key(munge / "munge.key", 128)
    _write_all(database, {"premortem.sql": configuration.database_file()})
    (etc / "slurmdbd.conf").chmod(0o600)
    for name in ("state", "spool"):
        (state / name).mkdir(exist_ok=True)
    belongings = {
        "slurm": (etc / "jwt_hs256.key", etc / "slurmdbd.conf", state / "state"),
        "munge": (munge, munge / "munge.key"),
        "mysql": (database, database / "premortem.sql"),
    }
    for user in ("root", *plan.user_names):
        (folder / "home" / user).mkdir(exist_ok=True)
        belongings[user] = (folder / "home" / user,)
    for user, paths in belongings.items():
        for path in paths:
            os.chown(path, *owners[user])


def _write_all(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _write_key(path: Path, length: int) -> None:
    """A new key, unless there is one."""
    if not path.exists() or not path.stat().st_size:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(length))
