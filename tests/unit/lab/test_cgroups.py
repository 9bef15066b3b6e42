"""What a machine's control groups allow, on folders that look like them."""

from __future__ import annotations

from pathlib import Path

from premortem.lab import cgroups


def controllers(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir()
        (folder / name / "cgroup.procs").touch()


def test_a_machine_without_the_controllers_is_told(tmp_path: Path) -> None:
    assert "no memory and no freezer controller" in (cgroups.why_not(tmp_path) or "")
    controllers(tmp_path, "memory")
    assert "no freezer controller" in (cgroups.why_not(tmp_path) or "")
    controllers(tmp_path, "freezer")
    assert cgroups.why_not(tmp_path) is None


def test_each_lab_has_groups_of_its_own(tmp_path: Path) -> None:
    controllers(tmp_path, "memory", "freezer", "cpuset")
    for name in ("cpuset.cpus", "cpuset.mems"):
        (tmp_path / "cpuset" / name).write_text("0-1\n")
    one, two = (cgroups.make(tmp_path / name, tmp_path) for name in ("one", "two"))
    assert set(one) == {"memory", "freezer", "cpuset"}
    assert not {*one.values()} & {*two.values()}
    assert (Path(one["cpuset"]) / "cpuset.cpus").read_text() == "0-1\n"


def test_groups_are_removed_from_the_innermost(tmp_path: Path) -> None:
    controllers(tmp_path, "memory", "freezer")
    made = cgroups.make(tmp_path / "lab", tmp_path)
    (Path(made["memory"]) / "slurm_n1" / "uid_0" / "job_1").mkdir(parents=True)
    cgroups.remove(tmp_path / "lab", tmp_path)
    assert [path.name for path in (tmp_path / "memory").iterdir()] == ["cgroup.procs"]
    cgroups.remove(tmp_path / "lab", tmp_path)
