"""Settings: from a file and the environment, every problem at once, every origin told."""

from __future__ import annotations

from pathlib import Path

import pytest

from premortem.errors import InvalidInput, NotFound
from premortem.jobs.outcomes import Cause
from premortem.settings import load_settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_defaults_need_nothing(home: Path) -> None:
    loaded = load_settings(environment={})
    assert loaded.values.store.url == f"sqlite:///{home / 'data' / 'premortem' / 'jobs.db'}"
    assert loaded.values.registry.url == f"folder://{home / 'data' / 'premortem' / 'models'}"
    assert loaded.values.labels.policy().ignored == {Cause.PREEMPTED}
    assert {setting.origin for setting in loaded.explained()} == {"default"}


def test_the_file_in_the_working_directory_comes_before_the_users(home: Path) -> None:
    write(home / "config" / "premortem" / "settings.toml", 'cluster = "users"')
    assert load_settings(environment={}).values.cluster == "users"
    write(home / "premortem.toml", 'cluster = "here"')
    assert load_settings(environment={}).values.cluster == "here"
    named = write(home / "named.toml", 'cluster = "named"')
    assert load_settings(environment={"PREMORTEM_SETTINGS": str(named)}).values.cluster == "named"
    assert load_settings(str(named), environment={}).values.cluster == "named"


def test_the_environment_wins_and_origins_are_told(home: Path) -> None:
    write(home / "premortem.toml", 'cluster = "file"\nzone = "Europe/Paris"\n[store]\nurl = "a"\n')
    loaded = load_settings(environment={"PREMORTEM_STORE_URL": "b", "HOME": "ignored"})
    assert (loaded.values.store.url, loaded.values.zone) == ("b", "Europe/Paris")
    origins = {setting.key: setting.origin for setting in loaded.explained()}
    assert origins["store.url"] == "PREMORTEM_STORE_URL"
    assert origins["zone"] == "premortem.toml"
    assert origins["store.patience_s"] == "default"


def test_lists_and_tables_can_stand_in_variables(home: Path) -> None:
    labels = load_settings(
        environment={
            "PREMORTEM_LABELS_IGNORED": "preempted, deadline",
            "PREMORTEM_LABELS_EXIT_CODES": "137=out_of_memory,75=node_failure",
        }
    ).values.labels
    assert labels.ignored == {Cause.PREEMPTED, Cause.DEADLINE}
    assert labels.exit_codes == {137: Cause.OUT_OF_MEMORY, 75: Cause.NODE_FAILURE}


def test_all_problems_are_told_at_once(home: Path) -> None:
    write(
        home / "premortem.toml",
        'colour = "red"\nzone = "Mars/Olympus"\n[store]\nulr = "x"\npatience_s = "soon"\n'
        '[labels]\nignored = ["bad luck"]\n[slurm]\nprefix = "ssh \'login1"\n',
    )
    with pytest.raises(InvalidInput) as caught:
        load_settings(environment={"PREMORTEM_COLOUR": "red", "PREMORTEM_CLUSTER": ""})
    message = str(caught.value)
    for problem in (
        "colour: no such setting",
        "Mars/Olympus",
        "store.ulr: no such setting",
        "store.patience_s",
        "labels.ignored",
        "slurm.prefix: cannot be split into words: No closing quotation",
        "PREMORTEM_COLOUR: no such setting",
        "cluster",
        "(from premortem.toml)",
        "(from PREMORTEM_CLUSTER)",
    ):
        assert problem in message


@pytest.mark.parametrize("text", ["not toml at all", "\xff\xfe", "store = 3"])
def test_a_file_that_cannot_be_used_is_told(home: Path, text: str) -> None:
    (home / "premortem.toml").write_text(text, encoding="latin-1")
    with pytest.raises(InvalidInput, match=r"premortem\.toml"):
        load_settings(environment={})


def test_variables_that_clash_are_named(home: Path) -> None:
    clash = {"PREMORTEM_LABELS_IGNORED": "cancelled", "PREMORTEM_LABELS_COMPLETED": "cancelled"}
    with pytest.raises(InvalidInput, match=r"from PREMORTEM_LABELS_COMPLETED and PREMORTEM_LABELS"):
        load_settings(environment=clash)


def test_a_named_file_must_exist(home: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        load_settings("nowhere.toml", environment={})


def test_passwords_are_masked_when_shown(home: Path) -> None:
    loaded = load_settings(environment={"PREMORTEM_STORE_URL": "mongodb://ada:secret@host/jobs"})
    shown = {setting.key: setting.value for setting in loaded.explained()}["store.url"]
    assert shown == "mongodb://ada:***@host/jobs"
    assert "secret" in loaded.values.store.url
