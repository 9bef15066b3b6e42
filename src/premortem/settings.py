"""The settings: one frozen tree, from one TOML file and the environment, with their origins.

The file is the one named by `--settings` or `PREMORTEM_SETTINGS`, else `premortem.toml` in the
working directory, else `settings.toml` in the user's configuration folder. A variable such as
`PREMORTEM_STORE_URL` overrides `url` under `[store]`. Unknown keys are refused, and all problems
are reported at once.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_origin

import platformdirs
import tzlocal
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from premortem.errors import InvalidInput, NotFound
from premortem.jobs.labels import LabelPolicy
from premortem.jobs.outcomes import Cause
from premortem.jobs.spellings import require_zone

PREFIX = "PREMORTEM_"
FILE_VARIABLE = f"{PREFIX}SETTINGS"
# Not settings: where the settings are, whether faults show a traceback, where a lab keeps packages.
_RESERVED = (FILE_VARIABLE, f"{PREFIX}DEBUG", f"{PREFIX}LAB_CACHE")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoreSettings(_Section):
    """Where records are kept."""

    url: str = Field(
        default_factory=lambda: f"sqlite:///{platformdirs.user_data_path('premortem') / 'jobs.db'}",
        description="Address of the store: sqlite:///relative/path or sqlite:////absolute/path.",
    )
    patience_s: float = Field(
        30.0, ge=0, le=86400, description="Seconds to wait for another process that is writing."
    )


class RegistrySettings(_Section):
    """Where trained models are kept; see docs/registry.md."""

    url: str = Field(
        default_factory=lambda: f"folder://{platformdirs.user_data_path('premortem') / 'models'}",
        description="Address of the registry: folder:///path or mlflow+http://host:port/model.",
    )


class SlurmSettings(_Section):
    """How the cluster is asked; see docs/collecting.md."""

    url: str | None = Field(
        None,
        description="Address of slurmrestd, such as http://slurm:6820; without one, Slurm's own "
        "commands are run.",
    )
    user: str | None = Field(
        None, description="Name of the user who asks; that of the token where not said."
    )
    token_file: str | None = Field(
        None, description="File that holds a JSON Web Token; SLURM_JWT where neither is said."
    )
    token_command: str | None = Field(
        None, description="Command that prints one, such as `scontrol token lifespan=600`."
    )
    version: str | None = Field(
        None, description="Version of the API, such as v0.0.42; the newest that both know."
    )
    certificates: str | None = Field(
        None, description="File of the authorities that slurmrestd's certificate is trusted by."
    )
    prefix: str = Field("", description="What comes before Slurm's commands, such as `ssh login1`.")
    every_s: float = Field(
        60.0, ge=1, description="Seconds from one round of questions to the next."
    )
    slurmctld_calls: int = Field(6, ge=1, description="Most calls to slurmctld in a minute.")
    slurmdbd_calls: int = Field(6, ge=1, description="Most calls to slurmdbd in a minute.")

    @field_validator("prefix", "token_command")
    @classmethod
    def _in_words(cls, value: str | None) -> str | None:
        try:
            shlex.split(value or "")
        except ValueError as error:
            raise ValueError(f"cannot be split into words: {error}") from error
        return value


class LabelSettings(_Section):
    """How the ends of jobs are read; see docs/labels.md."""

    ignored: frozenset[Cause] = Field(
        LabelPolicy().ignored, description="Causes that say nothing about a job and do not count."
    )
    completed: frozenset[Cause] = Field(
        LabelPolicy().completed, description="Causes that count as success."
    )
    exit_codes: dict[int, Cause] = Field(
        default_factory=dict, description="Causes told by the exit code of a failed job."
    )

    @model_validator(mode="after")
    def _decided(self) -> Self:
        both = self.ignored & self.completed
        if both:
            raise ValueError(f"{', '.join(sorted(both))} cannot be both ignored and completed")
        return self

    def policy(self) -> LabelPolicy:
        """These settings as the value that labels jobs."""
        return LabelPolicy(self.ignored, self.completed, self.exit_codes)


class Settings(_Section):
    """Everything a site can set."""

    cluster: str = Field(
        "cluster", min_length=1, description="Name for records that do not name their cluster."
    )
    zone: str = Field(
        default_factory=tzlocal.get_localzone_name,
        description="Time zone of clock times in sacct's text; the machine's by default.",
    )
    store: StoreSettings = Field(default_factory=StoreSettings)
    registry: RegistrySettings = Field(default_factory=RegistrySettings)
    labels: LabelSettings = Field(default_factory=LabelSettings)
    slurm: SlurmSettings = Field(default_factory=SlurmSettings)

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            return require_zone(value)
        except InvalidInput as error:
            raise ValueError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Setting:
    """One effective value and where it came from; passwords in addresses are masked."""

    key: str
    value: Any
    origin: str
    meaning: str


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in force, and how they came about."""

    values: Settings
    origins: Mapping[str, str]

    def explained(self) -> list[Setting]:
        """Every setting with its value, origin and meaning."""
        explained = []
        for key, model, name in _leaves(Settings):
            value = self.values.model_dump(mode="json")
            for part in key.split("."):
                value = value[part]
            if isinstance(value, list):
                value = sorted(value)
            meaning = model.model_fields[name].description or ""
            explained.append(
                Setting(key, _masked(value), self.origins.get(key, "default"), meaning)
            )
        return explained


def load_settings(
    file: str | None = None, *, environment: Mapping[str, str] | None = None
) -> LoadedSettings:
    """Read the settings; raises `InvalidInput` with every problem found."""
    variables = os.environ if environment is None else environment
    path = _file_to_read(file or variables.get(FILE_VARIABLE))
    tree = _read_file(path) if path else {}
    origins = dict.fromkeys(_given(tree), f"{path}")
    problems: list[str] = []
    for name, text in sorted(variables.items()):
        if not name.startswith(PREFIX) or name in _RESERVED:
            continue
        key = _keys_by_variable().get(name)
        if key is None:
            problems.append(f"{name}: no such setting")
            continue
        _assign(tree, key, _from_text(key, text))
        origins[key] = name
    try:
        values = Settings.model_validate(tree)
    except ValidationError as error:
        problems += [_told(problem, path, origins) for problem in error.errors()]
    if problems:
        raise InvalidInput("the settings cannot be used:\n  " + "\n  ".join(problems))
    return LoadedSettings(values, origins)


def variable_for(key: str) -> str:
    """The environment variable that overrides a setting, such as PREMORTEM_STORE_URL."""
    return PREFIX + key.replace(".", "_").upper()


def _leaves(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[BaseModel], str]]:
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _leaves(annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", model, name


def _keys_by_variable() -> dict[str, str]:
    return {variable_for(key): key for key, _, _ in _leaves(Settings)}


def _file_to_read(named: str | None) -> Path | None:
    if named:
        if not os.path.isfile(named):
            raise NotFound(f"there is no settings file {named}")
        return Path(named)
    usual = (Path("premortem.toml"), platformdirs.user_config_path("premortem") / "settings.toml")
    return next((path for path in usual if os.path.isfile(path)), None)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: not TOML: {error}") from error
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from error


def _given(tree: Mapping[str, Any]) -> list[str]:
    """The settings that a file gives a value to."""
    keys = []
    for key, _, _ in _leaves(Settings):
        node: Any = tree
        for part in key.split("."):
            node = node.get(part) if isinstance(node, Mapping) else None
        if node is not None:
            keys.append(key)
    return keys


def _assign(tree: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    for part in parents:
        child = tree.setdefault(part, {})
        if not isinstance(child, dict):
            return  # The file's own value is at fault, and will be reported.
        tree = child
    tree[last] = value


def _from_text(key: str, text: str) -> Any:
    """A variable's text as the value meant: `a,b` for a list, `137=out_of_memory` for a table."""
    annotation = next(m.model_fields[n].annotation for k, m, n in _leaves(Settings) if k == key)
    items = [item.strip() for item in text.split(",") if item.strip()]
    if get_origin(annotation) is frozenset:
        return items
    if get_origin(annotation) is dict:
        return {name.strip(): value.strip() for name, _, value in (i.partition("=") for i in items)}
    return text


def _told(problem: Any, path: Path | None, origins: Mapping[str, str]) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    known = next((k for k in origins if key == k or key.startswith(f"{k}.")), None)
    of_its_section = sorted({origin for k, origin in origins.items() if k.startswith(f"{key}.")})
    origin = origins[known] if known else str(path or " and ".join(of_its_section))
    message = "no such setting" if problem["type"] == "extra_forbidden" else problem["msg"]
    return f"{key}: {message.removeprefix('Value error, ')} (from {origin})"


def _masked(value: Any) -> Any:
    return (
        re.sub(r"://([^:/@]*):[^@/]*@", r"://\1:***@", value) if isinstance(value, str) else value
    )
