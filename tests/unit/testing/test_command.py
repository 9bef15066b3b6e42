from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from premortem.errors import InvalidInput
from premortem.testing.__main__ import main
from premortem.testing.spoiling import WAYS, spoil
from premortem.testing.writers import SACCT_COLUMNS


def text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


@pytest.mark.parametrize("form", ["sacct", "swf"])
def test_a_log_is_written_and_announced(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "log"
    assert main([form, str(out), "--jobs", "200", "--seed", "4"]) == 0
    assert capsys.readouterr().out == f"200 jobs written to {out}\n"
    lines = [line for line in text(out).splitlines() if not line.startswith((";", "JobID"))]
    assert len(lines) == 200


def test_steps_are_written_on_request(tmp_path: Path) -> None:
    assert main(["sacct", str(tmp_path / "log"), "--jobs", "50", "--steps"]) == 0
    assert ".batch|" in text(tmp_path / "log")


def test_a_request_that_cannot_be_met_is_one_line_and_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sacct", str(tmp_path / "log"), "--jobs", "-5"]) == 1
    assert main(["swf", str(tmp_path / "no" / "log"), "--jobs", "5"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize(
    ("form", "name", "more"),
    [
        ("sacct", "log", []),
        ("sacct", "log", ["--steps"]),
        ("swf", "log", []),
        ("swf", "log.gz", []),
    ],
)
def test_spoiling_damages_so_many_lines_each_in_its_way(
    form: str, name: str, more: list[str], tmp_path: Path
) -> None:
    sound, spoiled = tmp_path / f"sound_{name}", tmp_path / f"spoiled_{name}"
    asked = ["--jobs", "300", "--seed", "2", *more]
    main([form, str(sound), *asked])
    main([form, str(spoiled), *asked, "--spoil", "6"])
    pairs = zip(text(sound).splitlines(), text(spoiled).splitlines(), strict=True)
    changed = [(before, after) for before, after in pairs if before != after]
    assert len(changed) == 6
    split = "|" if form == "sacct" else " "
    cells = [(before.split(split), after.split(split)) for before, after in changed]
    assert all("." not in before[1] for before, _ in cells if form == "sacct")
    assert len(cells[0][1]) < len(cells[0][0])
    for before, after in cells[1:]:
        assert len(before) == len(after)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_damage_is_what_it_says(tmp_path: Path) -> None:
    main(["sacct", str(tmp_path / "log"), "--jobs", "100"])
    done = spoil(tmp_path / "log", 12, seed=1)
    assert [way for _, way in done] == list(WAYS * 2)
    lines = text(tmp_path / "log").splitlines()
    damaged = {
        way: dict(zip(SACCT_COLUMNS, lines[number - 1].split("|"), strict=False))
        for number, way in done
    }
    assert "State" in damaged["unknown state"]
    assert damaged["unknown state"]["State"] == "EXPLODED"
    assert damaged["end before start"]["End"] < damaged["end before start"]["Start"]
    assert int(damaged["negative CPUs"]["NCPUS"]) < 0
    assert "Reason" not in damaged["columns missing"]


def test_spoiling_is_seeded(tmp_path: Path) -> None:
    for name in ("a", "b"):
        main(["swf", str(tmp_path / name), "--jobs", "100", "--spoil", "5"])
    assert text(tmp_path / "a") == text(tmp_path / "b")


def test_more_damage_than_there_are_jobs_is_refused(tmp_path: Path) -> None:
    main(["sacct", str(tmp_path / "log"), "--jobs", "10"])
    before = text(tmp_path / "log")
    with pytest.raises(InvalidInput):
        spoil(tmp_path / "log", 11)
    assert text(tmp_path / "log") == before
