"""What every model registry must do. A new adapter joins by adding an entry to `ADAPTERS`."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from model_folders import contents, folder_of, manifests, trained, trees

from premortem.errors import Conflict, InvalidInput, NotFound
from premortem.registry import Action, Overtaken, Registry, Version, open_registry

RANDOM = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=set(Phase) - {Phase.shrink},  # A server is asked for every example.
)
FILES = {"model.ubj": b"\x00\x01trees", "submit/calibration.json": "[0, 1]"}


@dataclass(frozen=True)
class Place:
    """A registry nobody has used yet, and where it keeps the files of a version."""

    url: str
    kept: Callable[[Version], Path]


def in_a_folder(request: pytest.FixtureRequest) -> Place:
    path = request.getfixturevalue("tmp_path_factory").mktemp("registry") / "models"
    return Place(f"folder://{path}", lambda version: path / f"v{version.number:04}" / "files")


def on_mlflow(request: pytest.FixtureRequest) -> Place:
    server = request.getfixturevalue("mlflow_server")
    url = server.new_registry()

    def kept(version: Version) -> Path:
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=server.address, registry_uri=server.address)
        run = client.get_model_version(url.rpartition("/")[2], str(version.number)).run_id
        (folder,) = server.artifacts.glob(f"*/{run}/artifacts/files")
        return Path(folder)

    return Place(url, kept)


ADAPTERS: dict[str, Callable[[pytest.FixtureRequest], Place]] = {
    "folder": in_a_folder,
    "mlflow": on_mlflow,
}


@pytest.fixture(params=ADAPTERS)
def place(request: pytest.FixtureRequest) -> Place:
    return ADAPTERS[request.param](request)


@pytest.fixture
def registry(place: Place) -> Iterator[Registry]:
    opened = open_registry(place.url)
    yield opened
    opened.close()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "model", FILES)


@pytest.fixture
def three(registry: Registry, model: Path) -> list[Version]:
    """Three versions that were champion one after the other."""
    return [registry.add(model, {"n": n}, alias="champion") for n in (1, 2, 3)]


class TestAdding:
    def test_numbers_and_describes_each_version(self, registry: Registry, model: Path) -> None:
        before = datetime.now(UTC) - timedelta(seconds=1)
        first, second = registry.add(model, trained()), registry.add(model, {"n": 2})
        assert [str(first), str(second)] == ["v1", "v2"]
        assert before < first.created <= second.created < datetime.now(UTC) + timedelta(seconds=1)
        assert first.manifest["engine"] == "xgboost"
        assert first.manifest["number"] == 1
        assert datetime.fromisoformat(first.manifest["created"]) == first.created
        assert set(first.manifest["files"]) == set(FILES)
        assert registry.versions() == [second, first]

    def test_what_is_the_registrys_to_tell_is_not_the_callers(
        self, registry: Registry, model: Path
    ) -> None:
        told = {"number": 99, "created": "yesterday", "files": {"x": "y"}, "engine": "xgboost"}
        added = registry.add(model, told)
        assert (added.number, set(added.manifest["files"])) == (1, set(FILES))
        assert registry.resolve("1").manifest["engine"] == "xgboost"

    def test_an_alias_is_not_taken_from_one_the_caller_does_not_know(
        self, registry: Registry, model: Path
    ) -> None:
        registry.add(model, {"n": 1}, alias="champion", instead_of=0)
        with pytest.raises(Overtaken, match="champion"):
            registry.add(model, {"n": 2}, alias="champion", instead_of=0)
        assert [version.number for version in registry.versions()] == [1]
        added = registry.add(model, {"n": 2}, alias="champion", instead_of=1)
        assert registry.aliases() == {"champion": added.number}

    def test_whether_it_could_be_is_told_without_adding_anything(
        self, registry: Registry, model: Path
    ) -> None:
        registry.require_writable()
        assert registry.versions() == []
        assert registry.history() == []
        assert registry.add(model, {}).number == 1

    def test_an_alias_can_be_given_at_once(self, registry: Registry, model: Path) -> None:
        added = registry.add(model, {}, alias="challenger")
        assert added.aliases == ("challenger",)
        assert registry.aliases() == {"challenger": 1}

    @pytest.mark.parametrize(
        ("files", "says"),
        [
            ({}, "no folder"),
            ({"model.pkl": "x"}, "model.pkl is a pickle"),
            ({"sub/model.JOBLIB": "x"}, "model.JOBLIB is a pickle"),
            ({"model.pickle.gz": "x"}, "is a pickle"),
            ({"model.bin": pickle.dumps(open)}, "model.bin is a pickle"),
            ({"good.json": "{}", "a file": "x"}, "may not be named 'a file'"),
            ({"modèle": "x"}, "may not be named"),
        ],
    )
    def test_what_may_not_be_kept_is_refused_whole(
        self, registry: Registry, tmp_path: Path, files: dict[str, str | bytes], says: str
    ) -> None:
        with pytest.raises((InvalidInput, NotFound), match=says):
            registry.add(folder_of(tmp_path / "bad", files), {}, alias="champion")
        assert registry.versions() == []
        assert registry.aliases() == {}

    def test_links_and_empty_folders_are_no_models(
        self, registry: Registry, model: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "empty" / "inside").mkdir(parents=True)
        with pytest.raises(InvalidInput, match="no files"):
            registry.add(tmp_path / "empty", {})
        with pytest.raises(InvalidInput, match="not a folder"):
            registry.add(model / "model.ubj", {})
        for target in ("model.ubj", "submit"):
            (model / "link").symlink_to(model / target)
            with pytest.raises(InvalidInput, match="link is not a plain file"):
                registry.add(model, {})
            (model / "link").unlink()
        assert registry.versions() == []

    @pytest.mark.parametrize(
        "manifest", [{"auc": float("nan")}, {"when": datetime.now(UTC)}, {"x": {1, 2}}]
    )
    def test_a_manifest_that_is_no_json_is_refused(
        self, registry: Registry, model: Path, manifest: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidInput, match="plain JSON"):
            registry.add(model, manifest)
        assert registry.versions() == []

    def test_an_unknown_alias_is_refused_before_anything_is_done(
        self, registry: Registry, model: Path
    ) -> None:
        with pytest.raises(InvalidInput, match="expected champion or challenger"):
            registry.add(model, {}, alias="champoin")
        assert registry.versions() == []

    def test_what_happens_to_the_folder_later_does_not_matter(
        self, registry: Registry, model: Path
    ) -> None:
        added = registry.add(model, {})
        (model / "model.ubj").write_text("other")
        assert contents(registry.fetch(added))["model.ubj"] == FILES["model.ubj"]

    def test_several_at_once_get_numbers_of_their_own(self, place: Place, tmp_path: Path) -> None:
        def train(n: int) -> tuple[int, bytes]:
            mine = open_registry(place.url)
            files = folder_of(tmp_path / f"model-{n}", {"model.json": f"{n}" * 5000})
            added = mine.add(files, {"n": n}, alias="champion")
            kept = contents(mine.fetch(added))["model.json"]
            mine.close()
            return added.number, kept

        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(train, range(6)))
        assert sorted(number for number, _ in done) == [1, 2, 3, 4, 5, 6]
        assert [kept for _, kept in done] == [f"{n}".encode() * 5000 for n in range(6)]
        registry = open_registry(place.url)
        assert len(registry.versions()) == 6
        assert len(registry.history()) == 6
        assert registry.resolve("champion").number in range(1, 7)
        registry.close()

    def test_a_file_may_be_named_like_its_folder(self, registry: Registry, tmp_path: Path) -> None:
        for files in ({"submit/submit": "x"}, {"files": "x"}, {"a/a/a": "x", "a/b": "y"}):
            added = registry.add(folder_of(tmp_path / "same", files), {})
            assert contents(registry.fetch(added)) == contents(tmp_path / "same")

    @RANDOM
    @given(files=trees, manifest=manifests)
    def test_every_tree_and_manifest_comes_back_unchanged(
        self, registry: Registry, tmp_path: Path, files: dict[str, bytes], manifest: dict[str, Any]
    ) -> None:
        own = ("number", "created", "files")
        added = registry.add(folder_of(tmp_path / "tree", files), manifest)
        found = registry.resolve(str(added))
        assert found == added
        assert {k: v for k, v in found.manifest.items() if k not in own} == {
            k: v for k, v in manifest.items() if k not in own
        }
        assert contents(registry.fetch(found)) == files


class TestFinding:
    def test_by_number_and_by_alias(self, registry: Registry, model: Path) -> None:
        registry.add(model, {}, alias="champion")
        registry.add(model, {}, alias="challenger")
        for name, number in {"1": 1, "v2": 2, "v0002": 2, "champion": 1, "challenger": 2}.items():
            assert registry.resolve(name).number == number
        assert registry.resolve("v1").aliases == ("champion",)

    def test_an_unused_registry_is_empty(self, registry: Registry) -> None:
        assert registry.versions() == []
        assert registry.aliases() == {}
        assert registry.history() == []
        with pytest.raises(NotFound, match="no model is registered"):
            registry.resolve("champion")
        with pytest.raises(Conflict, match="no earlier champion"):
            registry.rollback()

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("9", r"v9 is not in .*; there are v2 \(champion\), v1"),
            ("challenger", "no version is the challenger"),
            ("champoin", "neither a version such as v7 nor an alias"),
            ("", "neither"),
            ("0", "neither"),
            ("-1", "neither"),
            ("1.0", "neither"),
            ("../v0001", "neither"),
        ],
    )
    def test_what_is_not_there_is_told_with_what_is(
        self, registry: Registry, model: Path, name: str, says: str
    ) -> None:
        registry.add(model, {})
        registry.add(model, {}, alias="champion")
        with pytest.raises(NotFound, match=says):
            registry.resolve(name)

    def test_others_see_it_too(self, place: Place, registry: Registry, model: Path) -> None:
        added = registry.add(model, trained(), alias="champion")
        other = open_registry(place.url)
        assert other.versions() == [added]
        assert contents(other.fetch(other.resolve("champion"))) == contents(model)
        other.close()


class TestTampering:
    @pytest.mark.parametrize(
        ("file", "content", "says"),
        [
            ("model.ubj", "other", "model.ubj that was changed"),
            ("submit/calibration.json", None, "lacks its file submit/calibration.json"),
            ("extra.json", "{}", "'extra.json' that was not registered"),
            ("submit/more/deep.json", "{}", "deep.json' that was not registered"),
            ("model.ubj", pickle.dumps(open), "model.ubj is a pickle"),
        ],
    )
    def test_a_file_changed_missing_or_new_is_named(
        self,
        place: Place,
        registry: Registry,
        model: Path,
        file: str,
        content: str | bytes | None,
        says: str,
    ) -> None:
        added = registry.add(model, {})
        path = place.kept(added) / file
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        with pytest.raises(InvalidInput, match=says):
            registry.fetch(registry.resolve("v1"))

    def test_all_files_gone_is_told_too(
        self, place: Place, registry: Registry, model: Path
    ) -> None:
        added = registry.add(model, {})
        for path in list(place.kept(added).rglob("*")):
            if path.is_file():
                path.unlink()
        with pytest.raises(InvalidInput, match=r"lacks its file model\.ubj"):
            registry.fetch(added)

    def test_the_other_versions_are_none_the_worse(
        self, place: Place, registry: Registry, model: Path
    ) -> None:
        first, second = registry.add(model, {}), registry.add(model, {})
        (place.kept(first) / "model.ubj").write_text("other")
        assert contents(registry.fetch(second)) == contents(model)
        assert registry.add(model, {}).number == 3


class TestAliases:
    def test_move_and_are_remembered_with_times(self, registry: Registry, model: Path) -> None:
        first, second = registry.add(model, {}), registry.add(model, {})
        registry.set_alias("champion", first)
        registry.set_alias("champion", second)
        registry.set_alias("challenger", first)
        assert registry.aliases() == {"champion": 2, "challenger": 1}
        history = registry.history()
        assert [(event.alias, event.version) for event in history] == [
            ("champion", 1),
            ("champion", 2),
            ("challenger", 1),
        ]
        assert {event.action for event in history} == {Action.PROMOTED}
        assert sorted(event.at for event in history) == [event.at for event in history]

    def test_are_two(self, registry: Registry, model: Path) -> None:
        added = registry.add(model, {})
        with pytest.raises(InvalidInput, match="champion or challenger"):
            registry.set_alias("v7", added)

    def test_move_in_one_step_for_those_who_look(
        self, place: Place, registry: Registry, three: list[Version]
    ) -> None:
        done = threading.Event()
        seen: list[int] = []

        def look() -> None:
            mine = open_registry(place.url)
            while not done.is_set():
                seen.append(mine.resolve("champion").number)
            mine.close()

        with ThreadPoolExecutor(1) as pool:
            looking = pool.submit(look)
            for n in range(20):
                registry.set_alias("champion", three[n % 2])
            done.set()
            looking.result()
        assert seen
        assert set(seen) <= {1, 2, 3}


class TestRollingBack:
    def test_goes_back_one_by_one(self, registry: Registry, three: list[Version]) -> None:
        assert registry.rollback().number == 2
        assert registry.aliases() == {"champion": 2}
        assert registry.rollback().aliases == ("champion",)
        assert registry.aliases() == {"champion": 1}
        with pytest.raises(Conflict, match="no earlier champion"):
            registry.rollback()
        assert registry.aliases() == {"champion": 1}
        actions = [(event.action, event.version) for event in registry.history()[3:]]
        assert actions == [(Action.ROLLED_BACK, 2), (Action.ROLLED_BACK, 1)]

    def test_a_promotion_after_it_can_be_undone_too(
        self, registry: Registry, three: list[Version]
    ) -> None:
        registry.rollback()
        registry.set_alias("champion", three[0])
        assert registry.rollback().number == 2
        assert registry.rollback().number == 1

    def test_passes_over_versions_deleted_since(
        self, registry: Registry, three: list[Version]
    ) -> None:
        registry.delete(three[1])
        assert registry.rollback().number == 1

    def test_promoting_the_champion_again_is_no_step(
        self, registry: Registry, three: list[Version]
    ) -> None:
        registry.set_alias("champion", three[2])
        assert registry.rollback().number == 2

    def test_the_version_is_shown_first_and_may_be_refused(
        self, registry: Registry, three: list[Version]
    ) -> None:
        def refuse(version: Version) -> None:
            raise InvalidInput(f"not {version}")

        with pytest.raises(InvalidInput, match="not v2"):
            registry.rollback(refuse)
        assert registry.aliases() == {"champion": 3}
        assert len(registry.history()) == 3

    def test_leaves_the_challenger_alone(self, registry: Registry, three: list[Version]) -> None:
        registry.set_alias("challenger", three[0])
        registry.rollback()
        assert registry.aliases() == {"champion": 2, "challenger": 1}


class TestDeleting:
    def test_is_refused_while_an_alias_points_there(self, registry: Registry, model: Path) -> None:
        added = registry.add(model, {}, alias="champion")
        registry.set_alias("challenger", added)
        with pytest.raises(Conflict, match="the challenger and the champion: promote another"):
            registry.delete(added)
        assert contents(registry.fetch(registry.resolve("champion"))) == contents(model)

    def test_is_for_good_and_the_number_is_not_given_again(
        self, registry: Registry, model: Path
    ) -> None:
        first, second = registry.add(model, {}), registry.add(model, {})
        registry.delete(second)
        assert registry.versions() == [first]
        assert [event.action for event in registry.history()] == [Action.DELETED]
        for attempt in (
            lambda: registry.resolve("2"),
            lambda: registry.fetch(second),
            lambda: registry.set_alias("champion", second),
            lambda: registry.delete(second),
        ):
            with pytest.raises(NotFound):
                attempt()
        assert registry.add(model, {}).number == 3
