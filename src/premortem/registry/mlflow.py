"""Model versions on an MLflow server, for sites that have one.

A version is a model version of one registered model, made by one run that holds the files as
artifacts. Registering the model version is the last step, so that a run that was killed before it
is no version. The manifest, checksums and all, is kept in tags, apart from the files. What happened
is kept in tags of the registered model; MLflow itself remembers only where an alias points now.

Credentials come from MLflow's own variables, such as MLFLOW_TRACKING_USERNAME and
MLFLOW_TRACKING_PASSWORD or MLFLOW_TRACKING_TOKEN, never from the address.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from premortem.errors import Conflict, InvalidInput, NotFound
from premortem.registry import mlflow_records as records
from premortem.registry import mlflow_server as server
from premortem.registry.contents import checksums, require_unchanged
from premortem.registry.disk import disk_errors_told
from premortem.registry.history import Action, Event, champion_before, event_from, utc_now
from premortem.registry.manifest import completed, damaged_version, plain, version_from
from premortem.registry.naming import CHAMPION, number_named, pointing_to, require_alias
from premortem.registry.port import Overtaken, Version

_FILES = "files"
_EVENT = "premortem.event."
_MOST_PARAMS = 100
_MOST_METRICS = 900


class MlflowRegistry:
    """A registry on the server of `address`, whose last part names the registered model."""

    def __init__(self, address: str, *, clock: Callable[[], datetime] = utc_now) -> None:
        self.server, self.model = server.parts(address)
        self._clock = clock
        self._client = server.client(self.server)
        self._downloads: list[tempfile.TemporaryDirectory[str]] = []

    def add(
        self,
        files: Path,
        manifest: Mapping[str, Any],
        *,
        alias: str | None = None,
        instead_of: int | None = None,
    ) -> Version:
        """Register a copy of the folder; see the port."""
        told = plain(manifest)
        if alias:
            require_alias(alias)
        with disk_errors_told(files):
            sums = checksums(files)
        kept = completed(told, created=self._clock(), files=sums)
        with disk_errors_told(files), server.asking(self.server):
            self._make_model()
            self._require_standing(alias, instead_of)
            run = self._run(kept, files)
            # Should this fail, the run stays: the server may have done it all the same.
            made = self._client.create_model_version(
                self.model,
                f"{run.info.artifact_uri}/{_FILES}",
                run.info.run_id,
                tags=records.manifest_tags(json.dumps(kept)),
                await_creation_for=0,
            )
            try:
                # Files take their time, and MLflow cannot be asked to compare and move in one.
                self._require_standing(alias, instead_of)
            except Overtaken:
                self._client.delete_model_version(self.model, made.version)
                self._forget(run.info.run_id)
                raise
            if alias:
                self._move(alias, int(made.version), Action.PROMOTED)
            return self._version(made, self._model_record())

    def _require_standing(self, alias: str | None, expected: int | None) -> None:
        """Raise `Overtaken` if the alias points to another version than expected, 0 for none."""
        if alias is None or expected is None:
            return
        if _aliases(self._model_record()).get(alias, 0) != expected:
            raise Overtaken(alias)

    def require_writable(self) -> None:
        """Whether the server answers and lets us in; only `add` can tell more. See the port."""
        with server.asking(self.server):
            self._model_record()

    def versions(self) -> list[Version]:
        """Every version, newest first."""
        with server.asking(self.server):
            model = self._model_record()
            found = [self._version(each, model, damaged=True) for each in self._records()]
            return sorted(found, key=lambda version: -version.number)

    def resolve(self, name: str, *, damaged: bool = False) -> Version:
        """The version meant; see the port."""
        with server.asking(self.server):
            model = self._model_record()
            there = {int(each.version): each for each in self._records()}
            number = number_named(name, numbers=there, aliases=_aliases(model), place=self._place)
            return self._version(there[number], model, damaged=damaged)

    def fetch(self, version: Version) -> Path:
        """A temporary copy of the files, checked; see the port."""
        with disk_errors_told(Path(tempfile.gettempdir())), server.asking(self.server):
            run_id = self._required(version).run_id
            place = tempfile.TemporaryDirectory(prefix="premortem-model-")
            self._downloads.append(place)
            folder = Path(place.name) / _FILES
            self._download(run_id, version.files, Path(place.name))
            require_unchanged(folder, version.files, what=f"{version} on {self._place}")
            return folder

    def set_alias(self, alias: str, version: Version) -> None:
        """Point an alias to a version; see the port."""
        require_alias(alias)
        with server.asking(self.server):
            self._required(version)
            self._move(alias, version.number, Action.PROMOTED)

    def aliases(self) -> dict[str, int]:
        """The number that each alias points to."""
        with server.asking(self.server):
            return _aliases(self._model_record())

    def history(self) -> list[Event]:
        """What happened, oldest first."""
        with server.asking(self.server):
            return self._history(self._model_record())

    def rollback(self, check: Callable[[Version], None] = lambda _: None) -> Version:
        """Make the champion the one it was before; see the port."""
        with server.asking(self.server):
            model = self._model_record()
            there = {int(each.version): each for each in self._records()}
            number = champion_before(
                self._history(model), current=_aliases(model).get(CHAMPION), numbers=there
            )
            check(self._version(there[number], model))
            self._move(CHAMPION, number, Action.ROLLED_BACK)
            return self._version(there[number], self._model_record())

    def delete(self, version: Version) -> None:
        """Remove a version; see the port. Its run is deleted too, as MLflow deletes: see there."""
        with server.asking(self.server):
            record = self._required(version)
            pointing = pointing_to(version.number, _aliases(self._model_record()))
            if pointing:
                raise Conflict(
                    f"{version} is the {' and the '.join(pointing)}: promote another version first"
                )
            self._client.delete_model_version(self.model, str(version.number))
            self._note(Event(self._clock(), Action.DELETED, version.number))
            self._forget(record.run_id)

    def close(self) -> None:
        """Remove what was fetched."""
        while self._downloads:
            self._downloads.pop().cleanup()

    @property
    def _place(self) -> str:
        return f"{self.server}/{self.model}"

    def _run(self, kept: Mapping[str, Any], files: Path) -> Any:
        """A finished run with all that is known of the version, and its files."""
        from mlflow.entities import Metric, Param

        run = self._client.create_run(
            self._experiment(), run_name=self.model, tags=records.tags(kept)
        )
        try:
            at = int(self._clock().timestamp() * 1000)
            params = [Param(name, value) for name, value in records.params(kept).items()]
            numbers = [Metric(name, n, at, 0) for name, n in records.metrics(kept).items()]
            for some in _sliced(params, _MOST_PARAMS):
                self._client.log_batch(run.info.run_id, params=some)
            for some in _sliced(numbers, _MOST_METRICS):
                self._client.log_batch(run.info.run_id, metrics=some)
            self._client.log_artifacts(run.info.run_id, str(files), _FILES)
            self._client.update_run(run.info.run_id, status="FINISHED")
        except BaseException:
            self._forget(run.info.run_id)
            raise
        return run

    def _download(self, run_id: str, expected: Iterable[str], place: Path) -> None:
        """All files there are, expected or not."""
        if self._client.list_artifacts(run_id, _FILES):
            self._client.download_artifacts(run_id, _FILES, str(place))
        # MLflow takes a folder whose one file has the folder's own name for an empty one.
        for path in (place / _FILES / name for name in expected):
            if path.name == path.parent.name and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                name = str(path.relative_to(place))
                self._client.download_artifacts(run_id, name, str(path.parent))

    def _experiment(self) -> str:
        """The experiment named like the model, made if need be; another may be making it too."""
        with server.unless("RESOURCE_ALREADY_EXISTS"):
            found = self._client.get_experiment_by_name(self.model)
            return str(found.experiment_id if found else self._client.create_experiment(self.model))
        return str(self._client.get_experiment_by_name(self.model).experiment_id)

    def _make_model(self) -> None:
        if self._model_record() is None:
            with server.unless("RESOURCE_ALREADY_EXISTS"):
                self._client.create_registered_model(self.model)

    def _forget(self, run_id: str) -> None:
        """Delete a run; what remains of it is no version, so failing here does no harm."""
        with suppress(Exception):
            self._client.delete_run(run_id)

    def _move(self, alias: str, number: int, action: Action) -> None:
        # In this order: should this end midway, the alias is right and only the history lacks it.
        server.change(
            lambda: self._client.set_registered_model_alias(self.model, alias, str(number))
        )
        self._note(Event(self._clock(), action, number, alias))

    def _note(self, event: Event) -> None:
        name = f"{_EVENT}{event.at:%Y%m%dT%H%M%S.%fZ}-{secrets.token_hex(3)}"
        self._client.set_registered_model_tag(self.model, name, json.dumps(event.as_dict()))

    def _history(self, model: Any) -> list[Event]:
        kept = model.tags if model else {}
        events = []
        for name in sorted(name for name in kept if name.startswith(_EVENT)):
            try:
                events.append(event_from(json.loads(kept[name])))
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInput(
                    f"the tag {name} of {self._place} is not what premortem wrote: remove it"
                ) from error
        return events

    def _model_record(self) -> Any:
        """The registered model; None while there is none."""
        with server.unless("RESOURCE_DOES_NOT_EXIST"):
            return self._client.get_registered_model(self.model)
        return None

    def _records(self) -> list[Any]:
        """The model versions that premortem made; others may have made some of this name."""
        found: list[Any] = []
        token = None
        while True:
            page = self._client.search_model_versions(
                f"name='{self.model}'", max_results=200, page_token=token
            )
            found += [each for each in page if records.manifest_in(each.tags) is not None]
            token = page.token
            if not token:
                return found

    def _required(self, version: Version) -> Any:
        with server.unless("RESOURCE_DOES_NOT_EXIST"):
            return self._client.get_model_version(self.model, str(version.number))
        raise NotFound(f"{version} is not on {self._place} any more")

    def _version(self, record: Any, model: Any, *, damaged: bool = False) -> Version:
        number, aliases = int(record.version), _aliases(model)
        text = records.manifest_in(record.tags) or ""
        place = f"the manifest of v{number} on {self._place}"
        try:
            return version_from(text, number=number, aliases=aliases, place=place)
        except InvalidInput as error:
            if not damaged:
                raise
            return damaged_version(number, aliases, error)


def _aliases(model: Any) -> dict[str, int]:
    return {alias: int(number) for alias, number in model.aliases.items()} if model else {}


def _sliced(values: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
