"""`premortem models` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Run
from model_folders import folder_of, loadable_model, trained

from premortem.registry import Registry, open_registry


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return open_registry(str(tmp_path / "data" / "premortem" / "models"))


@pytest.fixture
def two(registry: Registry, tmp_path: Path) -> None:
    """A champion, and a better version nobody uses yet."""
    model = loadable_model(tmp_path / "model")
    registry.add(model, trained(), alias="champion")
    registry.add(model, trained(average_precision=0.6123, ece=0.02) | {"points": ["submit"]})


def words(line: str) -> list[str]:
    return line.split()


@pytest.mark.usefixtures("two")
class TestLooking:
    def test_list_has_a_row_for_each_version(self, premortem: Run) -> None:
        heading, newest, oldest = premortem("models", "list").out.splitlines()
        assert "AP submit" in heading
        assert words(newest)[0] == "v2"
        assert words(newest)[-3:] == ["submit", "0.6123", "0.6123"]
        assert words(oldest)[:2] == ["v1", "champion"]
        assert words(oldest)[-4:] == ["submit,", "start", "0.5000", "0.5000"]

    def test_list_as_json(self, premortem: Run) -> None:
        newest, oldest = premortem("models", "list", "--json").json
        assert (newest["version"], newest["aliases"]) == (2, [])
        assert (oldest["version"], oldest["aliases"]) == (1, ["champion"])
        assert oldest["manifest"]["data"]["jobs"] == 1000

    def test_show_tells_the_whole_manifest(self, premortem: Run) -> None:
        shown = premortem("models", "show", "champion").out
        assert shown.startswith("v1, the champion, registered 20")
        lines = [words(line) for line in shown.splitlines()]
        assert ["points", "submit,", "start"] in lines
        assert ["data", "jobs", "1000"] in lines
        assert ["metrics", "submit", "ece", "0.01"] in lines
        assert any(line[:2] == ["files", "model.json"] for line in lines)
        assert premortem("models", "show", "v2", "--json").json["manifest"]["number"] == 2

    def test_compare_puts_metrics_side_by_side(self, premortem: Run) -> None:
        lines = [words(line) for line in premortem("models", "compare", "1", "2").out.splitlines()]
        assert ["submit", "average_precision", "0.5000", "0.6123", "+0.1123"] in lines
        assert ["start", "auc", "0.8000", "0.8000", "+0.0000"] in lines
        compared = premortem("models", "compare", "2", "champion", "--json").json
        assert (compared["a"], compared["b"]) == (2, 1)
        (error,) = [m for m in compared["metrics"] if m["metric"] == ["start", "ece"]]
        assert error == {
            "metric": ["start", "ece"], "a": 0.02, "b": 0.01, "difference": pytest.approx(-0.01)
        }  # fmt: skip

    def test_compare_of_different_metrics(
        self, premortem: Run, registry: Registry, tmp_path: Path
    ) -> None:
        registry.add(tmp_path / "model", {"metrics": {"submit": {"auc": 0.9, "jobs": 50}}})
        registry.add(tmp_path / "model", {"metrics": "none"})
        lines = [words(line) for line in premortem("models", "compare", "3", "1").out.splitlines()]
        assert ["submit", "jobs", "50"] in lines
        assert ["submit", "ece", "0.0100"] in lines
        assert "Neither" in premortem("models", "compare", "4", "4").out
        assert premortem("models", "list").code == 0


@pytest.mark.usefixtures("two")
class TestChanging:
    def test_promote_and_roll_back(self, premortem: Run, registry: Registry) -> None:
        assert premortem("models", "promote", "2").out == "v2 is the champion instead of v1.\n"
        assert registry.aliases() == {"champion": 2}
        back = premortem("models", "rollback")
        assert back.out == "v1 is the champion again instead of v2.\n"
        assert registry.aliases() == {"champion": 1}
        again = premortem("models", "rollback")
        assert again.code == 4
        assert "no earlier champion" in again.err

    def test_promote_a_challenger_to_champion(self, premortem: Run) -> None:
        first = premortem("models", "promote", "v2", "--as", "challenger")
        assert first.out == "v2 is the challenger.\n"
        second = premortem("models", "promote", "challenger", "--json")
        assert second.json["aliases"] == ["challenger", "champion"]
        told = [words(line) for line in premortem("models", "history").out.splitlines()[1:]]
        assert [line[2:] for line in told] == [
            ["v1", "promoted", "champion"],
            ["v2", "promoted", "challenger"],
            ["v2", "promoted", "champion"],
        ]
        assert premortem("models", "history", "--json").json[0]["version"] == 1

    def test_there_are_two_aliases(self, premortem: Run) -> None:
        done = premortem("models", "promote", "2", "--as", "best")
        assert done.code == 2
        assert "challenger" in done.err

    def test_copy_brings_a_version_elsewhere(
        self, premortem: Run, registry: Registry, tmp_path: Path
    ) -> None:
        done = premortem("models", "copy", "champion", "elsewhere")
        assert done.out == "v1 is v1 there, and not in use yet.\n"
        assert premortem("models", "copy", "v1", "elsewhere", "--json").json["version"] == 2
        there = open_registry(str(tmp_path / "elsewhere"))
        assert there.aliases() == {}
        copied, original = there.resolve("v2"), registry.resolve("v1")
        assert copied.files == original.files
        assert copied.manifest["metrics"] == original.manifest["metrics"]
        promoted = premortem("models", "promote", "v2", "--registry", "elsewhere")
        assert promoted.out == "v2 is the champion.\n"

    def test_delete_asks_first(
        self, premortem: Run, registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        answer = tmp_path / "answer"
        for said, left in (("n\n", [2, 1]), ("", [2, 1]), ("y\n", [1])):
            answer.write_text(said)
            with answer.open() as stdin:
                monkeypatch.setattr("sys.stdin", stdin)
                done = premortem("models", "delete", "2")
            assert [version.number for version in registry.versions()] == left
            assert "Traceback" not in done.err
            assert (done.code == 0) == (len(left) == 1)

    def test_delete_without_asking(self, premortem: Run, registry: Registry) -> None:
        assert premortem("models", "delete", "2", "--yes").out == "v2 is deleted.\n"
        refused = premortem("models", "delete", "champion", "--yes")
        assert refused.code == 4
        assert "v1 is the champion" in refused.err
        assert [version.number for version in registry.versions()] == [1]


@pytest.mark.usefixtures("two")
class TestVersionsThatCannotBeLoaded:
    @pytest.fixture(params=["other features", "changed since", "no booster"])
    def broken(
        self, request: pytest.FixtureRequest, registry: Registry, tmp_path: Path, two: None
    ) -> str:
        """A third version; the word that its error has."""
        model = tmp_path / "model"
        if request.param == "other features":
            described = model / "model.json"
            told = json.loads(described.read_text())
            told["points"]["submit"]["fingerprint"] = "0"
            described.write_text(json.dumps(told))
        if request.param == "no booster":
            (model / "submit" / "xgboost.ubj").write_text("{these are no trees}")
        added = registry.add(model, trained())
        if request.param == "changed since":
            (registry.fetch(added) / "model.json").write_text("{}")
        return {"no booster": "not a model that XGBoost can read"}.get(
            request.param, str(request.param)
        )

    def test_are_not_promoted(self, premortem: Run, registry: Registry, broken: str) -> None:
        for alias in ("champion", "challenger"):
            done = premortem("models", "promote", "3", "--as", alias)
            assert done.code == 4
            assert "v3 cannot be loaded" in done.err
            assert broken in done.err
            assert "Traceback" not in done.err
            assert "Stack" not in done.err
        assert registry.aliases() == {"champion": 1}
        assert len(registry.history()) == 1

    def test_are_not_copied(self, premortem: Run, broken: str) -> None:
        done = premortem("models", "copy", "3", "elsewhere")
        assert done.code in (1, 4)
        assert broken in done.err
        assert premortem("models", "list", "--registry", "elsewhere", "--json").json == []

    def test_are_not_gone_back_to(self, premortem: Run, registry: Registry, broken: str) -> None:
        registry.set_alias("champion", registry.resolve("3"))
        registry.set_alias("champion", registry.resolve("2"))
        done = premortem("models", "rollback")
        assert done.code == 4
        assert "v3 cannot be loaded" in done.err
        assert broken in done.err
        assert registry.aliases() == {"champion": 2}
        assert len(registry.history()) == 3


@pytest.mark.usefixtures("two")
class TestDamagedManifests:
    @pytest.fixture(params=[None, "{", '{"created": "\\u001b[2J", "files": {}}'])
    def damaged(self, request: pytest.FixtureRequest, registry: Registry, two: None) -> None:
        """The manifest of v2 is missing, or is none."""
        path = registry.fetch(registry.resolve("2")).parent / "manifest.json"
        path.unlink()
        if request.param:
            path.write_text(request.param)

    @pytest.mark.usefixtures("damaged")
    def test_the_others_are_listed_and_what_is_wrong_is_told(self, premortem: Run) -> None:
        done = premortem("models", "list")
        assert done.code == 0
        _, newest, oldest, *why = done.out.splitlines()
        assert words(newest) == ["v2"]
        assert words(oldest)[:2] == ["v1", "champion"]
        told = " ".join(why)
        assert told.startswith("v2 cannot be read: ")
        assert "manifest.json" in told
        assert "\x1b" not in told
        newest, oldest = premortem("models", "list", "--json").json
        assert (newest["version"], newest["created"], newest["manifest"]) == (2, None, {})
        assert "manifest.json" in newest["damage"]
        assert oldest["damage"] is None

    @pytest.mark.usefixtures("damaged")
    def test_it_cannot_be_used_but_deleted(self, premortem: Run, registry: Registry) -> None:
        for command in (["show", "2"], ["compare", "1", "2"], ["promote", "2"]):
            done = premortem("models", *command)
            assert done.code == 1
            assert "premortem models delete v2" in done.err
        assert premortem("models", "delete", "v2", "--yes").out == "v2 is deleted.\n"
        assert [version.number for version in registry.versions()] == [1]


class TestWrongInput:
    def test_an_empty_registry(self, premortem: Run) -> None:
        assert premortem("models", "list").out == "No model is registered yet.\n"
        assert premortem("models", "list", "--json").json == []
        shown = premortem("models", "show", "champion")
        assert shown.code == 3
        assert "no model is registered" in shown.err

    @pytest.mark.usefixtures("two")
    def test_a_version_that_is_not_there(self, premortem: Run) -> None:
        for command in (["show", "9"], ["promote", "9"], ["delete", "9"], ["compare", "1", "9"]):
            done = premortem("models", *command)
            assert done.code == 3
            assert "there are v2, v1 (champion)" in done.err

    def test_an_address_that_is_none(self, premortem: Run) -> None:
        done = premortem("models", "list", "--registry", "s3://bucket/models")
        assert done.code == 1
        assert "folder:///path" in done.err

    def test_another_registry_can_be_named(self, premortem: Run, tmp_path: Path) -> None:
        other = open_registry(str(tmp_path / "other"))
        other.add(folder_of(tmp_path / "model", {"a.json": "{}"}), {})
        for url in ("other", f"folder://{tmp_path}/other"):
            assert len(premortem("models", "list", "--json", "--registry", url).json) == 1

    def test_control_characters_do_not_reach_the_terminal(
        self, premortem: Run, registry: Registry, tmp_path: Path
    ) -> None:
        model = folder_of(tmp_path / "model", {"a.json": "{}"})
        registry.add(model, {"\x1b[2J": "\x1b]0;x\x07", "points": ["\x1b[1m"]})
        for command in (["show", "1"], ["list"]):
            done = premortem("models", *command)
            assert done.code == 0
            assert "\x1b" not in done.out
