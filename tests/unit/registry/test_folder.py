"""The folder registry among processes and disks: killed, locked, full, read-only, damaged."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from model_folders import contents, folder_of

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.registry import Registry, open_registry

# Adds a version, and kills itself at the nth thing it does to the registry's folder.
KILLED = """
import os, signal, sys
from pathlib import Path
from premortem.registry import open_registry
root, model, last = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
done = 0
def watch(event, arguments):
    global done
    changes = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "open")
    if changes and any(root in os.fsdecode(a) for a in arguments if isinstance(a, (str, Path))):
        done += 1
        if done > last:
            os.kill(os.getpid(), signal.SIGKILL)
registry = open_registry(root)
sys.addaudithook(watch)
registry.add(model, {"n": 2}, alias="champion")
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "model", {"model.ubj": b"trees" * 1000, "submit/a.json": "[]"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def registry(root: Path) -> Registry:
    return open_registry(str(root))


def test_killed_at_any_moment_nothing_is_half_registered(
    registry: Registry, root: Path, model: Path
) -> None:
    registry.add(model, {"n": 1}, alias="champion")
    for last in range(200):
        before = registry.versions()
        command = [sys.executable, "-c", KILLED, str(root), str(model), str(last)]
        code = subprocess.run(command, check=False).returncode
        assert code in (0, -signal.SIGKILL)
        after = registry.versions()
        assert [v.number for v in after[-len(before) :]] == [v.number for v in before]
        assert len(after) <= len(before) + 1
        for version in after:
            assert contents(registry.fetch(version)) == contents(model)
        assert registry.resolve("champion").number in (before[0].number, after[0].number)
        if code == 0:
            break
    assert code == 0, "it does more than expected: raise the range"
    assert last > 8, "it does less than expected: is it still being watched?"
    left = {path.name for path in root.iterdir() if not path.name.startswith("v0")}
    assert left == {"aliases.json", "lock"}


def test_what_a_killed_one_left_is_ignored_and_removed(
    registry: Registry, root: Path, model: Path
) -> None:
    folder_of(root / ".new-dead" / "files", {"model.ubj": "half"})
    (root / ".new-dead-too").write_text("{")
    assert registry.versions() == []
    assert registry.add(model, {}).number == 1
    assert sorted(path.name for path in root.iterdir()) == ["lock", "v0001"]


def test_a_deletion_killed_midway_is_completed_by_the_next(
    registry: Registry, root: Path, model: Path
) -> None:
    version = registry.add(model, {})
    registry.delete(version)
    folder_of(root / "v0001" / "files", {"model.ubj": "half gone"})
    assert registry.versions() == []
    assert registry.add(model, {}).number == 2
    assert not (root / "v0001").exists()


def test_several_processes_at_once(root: Path, model: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from premortem.registry import open_registry; "
        "open_registry(sys.argv[1]).add(Path(sys.argv[2]), {}, alias='champion')"
    )
    command = [sys.executable, "-c", code, str(root), str(model)]
    for process in [subprocess.Popen(command) for _ in range(6)]:
        assert process.wait(timeout=60) == 0
    registry = open_registry(str(root))
    assert [version.number for version in registry.versions()] == [6, 5, 4, 3, 2, 1]
    assert [event.version for event in registry.history()] == [1, 2, 3, 4, 5, 6]


def test_a_held_lock_is_told_after_waiting(root: Path, model: Path) -> None:
    registry = open_registry(str(root), patience_s=0.2)
    registry.add(model, {}, alias="champion")
    with (root / "lock").open("ab") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        began = time.monotonic()
        with pytest.raises(Unavailable, match=r"another process is changing .* after 0.2 s"):
            registry.add(model, {})
        assert 0.2 <= time.monotonic() - began < 5
        assert registry.resolve("champion").number == 1, "readers need no lock"
    assert registry.add(model, {}).number == 2


def test_a_full_disk_registers_nothing_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    registry = open_registry(str(small_disk / "models"))
    small = folder_of(tmp_path / "small", {"model.ubj": b"x" * 100_000})
    big = folder_of(tmp_path / "big", {"a.ubj": b"x" * 100_000, "b.ubj": b"x" * 3_000_000})
    registry.add(small, {}, alias="champion")
    with pytest.raises(Unavailable, match="no space left"):
        registry.add(big, {}, alias="champion")
    (small_disk / "filler").write_bytes(b"x" * 1_900_000)
    with pytest.raises(Unavailable, match="no space left"):
        registry.require_writable()
    (small_disk / "filler").unlink()
    registry.require_writable()
    assert [version.number for version in registry.versions()] == [1]
    assert sorted(p.name for p in (small_disk / "models").iterdir()) == [
        "aliases.json",
        "lock",
        "v0001",
    ]
    assert registry.add(small, {}, alias="champion").number == 2


def test_wherever_the_space_ends_nothing_is_half_registered(
    small_disk: Path, tmp_path: Path
) -> None:
    registry = open_registry(str(small_disk / "models"))
    tiny = folder_of(tmp_path / "tiny", {"model.json": "{}"})
    registry.add(tiny, {}, alias="champion")
    refused = 0
    for free in range(0, 20 * 4096, 4096):
        with suppress(OSError):
            (small_disk / "filler").write_bytes(b"x" * (2 << 20))
        os.truncate(small_disk / "filler", (small_disk / "filler").stat().st_size - free)
        try:
            registry.add(tiny, {}, alias="champion")
            break
        except Unavailable:
            refused += 1
        assert registry.resolve("champion") == registry.versions()[0]
        assert len(registry.versions()) == 1
    assert refused >= 3, "the files, the manifest and the alias each take a page"
    assert registry.resolve("champion").number == 2


def test_a_read_only_registry_is_read_but_not_written(small_disk: Path, tmp_path: Path) -> None:
    registry = open_registry(str(small_disk / "models"))
    model = folder_of(tmp_path / "model", {"model.json": "{}"})
    version = registry.add(model, {}, alias="champion")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(Unavailable, match="Read-only file system: check the permissions"):
        registry.add(model, {})
    with pytest.raises(Unavailable, match="Read-only"):
        registry.set_alias("challenger", version)
    with pytest.raises(Unavailable, match="Read-only"):
        registry.require_writable()
    assert contents(registry.fetch(registry.resolve("champion"))) == contents(model)


def test_a_place_that_cannot_be_is_told(root: Path, model: Path) -> None:
    root.write_text("a file")
    with pytest.raises(InvalidInput, match="is not a folder"):
        open_registry(str(root)).add(model, {})
    with pytest.raises(InvalidInput, match="is not a folder"):
        open_registry(str(root)).versions()
    below = open_registry(str(root / "below"))
    with pytest.raises(Unavailable, match="cannot be used: Not a directory"):
        below.add(model, {})
    with pytest.raises(Unavailable, match="cannot be used"):
        below.versions()


@pytest.mark.parametrize(
    "garbage",
    ["", "{", "[]", "null", '{"aliases": []}', '{"aliases": {"champion": "1"}, "history": []}',
     '{"aliases": {}, "history": [{}]}', '{"aliases": {}, "history": 3}', "[" * 100_000, "\xff"],
)  # fmt: skip
def test_a_damaged_alias_file_is_told_and_left_alone(
    registry: Registry, root: Path, model: Path, garbage: str
) -> None:
    version = registry.add(model, {}, alias="champion")
    (root / "aliases.json").write_text(garbage, encoding="latin-1")
    for attempt in (
        registry.versions,
        registry.aliases,
        registry.rollback,
        lambda: registry.resolve("1"),
        lambda: registry.add(model, {}),
        lambda: registry.set_alias("champion", version),
    ):
        with pytest.raises(InvalidInput, match=r"aliases\.json is not what premortem wrote"):
            attempt()
    assert (root / "aliases.json").read_text(encoding="latin-1") == garbage
    (root / "aliases.json").unlink()
    assert registry.versions()[0].number == 1, "as the message promises"


@pytest.mark.parametrize(
    ("garbage", "says"),
    [
        ("", "not a manifest"),
        ("[]", "not an object"),
        ("{}", "no 'created'"),
        ('{"created": "2026-01-05", "files": {}}', "without its zone"),
        ('{"created": "2026-01-05T12:00:00Z", "files": []}', "no table of checksums"),
        ('{"created": "2026-01-05T12:00:00Z", "files": {"../x": "0"}}', r"'\.\./x'"),
        ('{"created": "2026-01-05T12:00:00Z", "files": {}, "number": 7}', "the manifest of v7"),
        ("[" * 100_000, "not a manifest"),
        (None, "has no .*manifest.json"),
    ],
)
def test_a_damaged_manifest_is_told_and_the_others_work(
    registry: Registry, root: Path, model: Path, garbage: str | None, says: str
) -> None:
    registry.add(model, {})
    good = registry.add(model, {}, alias="champion")
    path = root / "v0001" / "manifest.json"
    path.unlink()
    if garbage is not None:
        path.write_text(garbage)
    with pytest.raises(InvalidInput, match=says):
        registry.resolve("v1")
    assert registry.resolve("champion") == good
    found, damaged = registry.versions()
    assert found == good
    assert (damaged.number, damaged.created, damaged.manifest) == (1, None, {})
    assert "restore it from a backup, or remove" in str(damaged.damage)
    with pytest.raises(InvalidInput, match=says):
        registry.fetch(damaged)
    assert registry.add(model, {}).number == 3
    registry.delete(registry.resolve("v1", damaged=True))
    assert [version.number for version in registry.versions()] == [3, 2]


def test_a_manifest_that_may_not_be_read_does_not_hide_the_others(
    registry: Registry, root: Path, model: Path
) -> None:
    registry.add(model, {})
    good = registry.add(model, {})
    path = root / "v0001" / "manifest.json"
    path.unlink()
    path.mkdir()
    found, damaged = registry.versions()
    assert found == good
    assert "manifest.json" in str(damaged.damage)


def test_a_champion_whose_manifest_is_damaged_is_not_gone_back_to(
    registry: Registry, root: Path, model: Path
) -> None:
    registry.add(model, {}, alias="champion")
    registry.add(model, {}, alias="champion")
    (root / "v0001" / "manifest.json").write_text("{")
    with pytest.raises(InvalidInput, match="not a manifest"):
        registry.rollback()
    assert registry.aliases() == {"champion": 2}


def test_an_alias_of_a_version_removed_by_hand_is_told(
    registry: Registry, root: Path, model: Path
) -> None:
    registry.add(model, {})
    registry.add(model, {}, alias="champion")
    (root / "v0002").rename(root / "elsewhere")
    with pytest.raises(NotFound, match=r"v2, the champion, is not in .*; there is v1"):
        registry.resolve("champion")
    registry.set_alias("champion", registry.resolve("1"))


def test_others_on_the_machine_may_read_it(registry: Registry, model: Path) -> None:
    umask = os.umask(0o022)
    try:
        folder = registry.fetch(registry.add(model, {}, alias="champion"))
    finally:
        os.umask(umask)
    for path in (folder, *folder.parents[:2], folder / "submit"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o755
    for path in (folder / "model.ubj", folder.parent / "manifest.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_people_can_read_it_too(registry: Registry, root: Path, model: Path) -> None:
    registry.add(model, {"engine": "xgboost"}, alias="champion")
    assert json.loads((root / "v0001" / "manifest.json").read_text())["engine"] == "xgboost"
    assert json.loads((root / "aliases.json").read_text())["aliases"] == {"champion": 1}


def test_a_pipe_among_the_files_is_refused_not_waited_for(registry: Registry, model: Path) -> None:
    version = registry.add(model, {})
    os.mkfifo(model / "pipe")
    with pytest.raises(InvalidInput, match="pipe is not a plain file"):
        registry.add(model, {})
    kept = registry.fetch(version)
    (kept / "model.ubj").unlink()
    os.mkfifo(kept / "model.ubj")
    with pytest.raises(InvalidInput, match="not a plain file"):
        registry.fetch(version)
