"""Predictions for jobs that Slurm tells of now: tasks of arrays, and a slurmdbd that is down."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from staged_server import Reply, document, staged

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.features.points import SUBMIT
from premortem.operations.predicting import predict_live
from premortem.prediction.model import Model
from premortem.sources.live.callers import Caller
from premortem.sources.live.questions import Patience
from premortem.sources.live.rest import RestCluster
from premortem.stores import Store, open_store
from premortem.testing.synthetic import SyntheticCluster
from premortem.training.train import Options, train
from premortem.training.tuning import Budget

SUBMITTED = int(datetime.now(UTC).timestamp()) - 600
TOKEN = f"e30.{base64.urlsafe_b64encode(b'{}').decode()}.x"
DOWN = Reply(b"broken", 500, "text/plain")


@pytest.fixture(scope="module")
def model() -> Model:
    jobs = pl.concat(SyntheticCluster(400, seed=3, users=10, days=20).frames())
    return train(jobs, points=(SUBMIT,), options=Options(budget=Budget(trials=1))).model


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield opened
    opened.close()


def controlled(number: int, state: str = "PENDING", **more: Any) -> dict[str, Any]:
    """A job as slurmctld tells of it."""
    return {
        "job_id": number, "cluster": "one", "name": "x", "user_name": "ada", "job_state": [state],
        "submit_time": SUBMITTED, "cpus": 4, "tres_req_str": "cpu=4,mem=2G",
    } | more  # fmt: skip


def accounted(number: int, array: int, task: int, submitted: int = SUBMITTED) -> dict[str, Any]:
    """A task that is over, as slurmdbd tells of it."""
    return {
        "job_id": number,
        "cluster": "one",
        "array": {"job_id": array, "task_id": task},
        "time": {"submission": submitted, "start": submitted, "end": submitted + 9, "elapsed": 9},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "nodes": "n1",
    }


@contextmanager
def cluster(jobs: list[dict[str, Any]], accounts: Reply | None = None) -> Iterator[RestCluster]:
    """One whose slurmctld knows these jobs."""
    with staged() as stage:
        stage.answer = lambda path: (
            document(jobs=jobs) if path.startswith("/slurm/") else accounts or document(jobs=[])
        )
        patience = Patience(timeout_s=5, attempts=2, pause_s=0.001)
        with RestCluster(stage.url, Caller(lambda: TOKEN), patience=patience) as asked:
            yield asked


WAITING = controlled(7, array_job_id=7)
RUNNING = controlled(
    8, "RUNNING", array_job_id=7, array_task_id=3, start_time=SUBMITTED + 9, nodes="n1"
)


class TestTasks:
    @pytest.mark.parametrize("jobs", [[WAITING], [RUNNING, WAITING]])
    @pytest.mark.parametrize("accounts", [document(jobs=[]), DOWN])
    def test_one_that_waits_with_others(
        self, store: Store, model: Model, jobs: list[dict[str, Any]], accounts: Reply
    ) -> None:
        with cluster(jobs, accounts) as asked:
            [found] = predict_live(store, model, asked, ["7_4"]).predictions
        assert (found.job_id, found.user) == (7, "ada")
        assert (found.array_job_id, found.array_task_id) == (7, 4)

    def test_each_is_told_of_in_the_order_asked(self, store: Store, model: Model) -> None:
        with cluster([RUNNING, WAITING]) as asked:
            found = predict_live(store, model, asked, ["7_5", "7_3", "7_4"], point=SUBMIT)
        assert [one.array_task_id for one in found.predictions] == [5, 3, 4]
        assert [one.job_id for one in found.predictions] == [7, 8, 7]

    def test_one_that_has_a_record_of_its_own(self, store: Store, model: Model) -> None:
        with cluster([RUNNING, WAITING]) as asked:
            [found] = predict_live(store, model, asked, ["7_3"], point=SUBMIT).predictions
        assert found.job_id == 8

    def test_one_that_is_over_while_others_wait(self, store: Store, model: Model) -> None:
        with (
            cluster([WAITING], document(jobs=[accounted(9, 7, 4)])) as asked,
            pytest.raises(InvalidInput, match=r"7_4 is over \(COMPLETED\)"),
        ):
            predict_live(store, model, asked, ["7_4"])
        # The same number years ago.
        with cluster([WAITING], document(jobs=[accounted(9, 7, 4, 10**9)])) as asked:
            assert predict_live(store, model, asked, ["7_4"]).predictions[0].job_id == 7

    def test_one_that_is_not_there(self, store: Store, model: Model) -> None:
        with (
            cluster([controlled(7)]) as asked,
            pytest.raises(NotFound, match="no job 7_4: 7 is not an array"),
        ):
            predict_live(store, model, asked, ["7_4"])
        with cluster([RUNNING]) as asked, pytest.raises(NotFound, match="knows no job 7_4"):
            predict_live(store, model, asked, ["7_4"])
        with cluster([]) as asked, pytest.raises(NotFound, match="knows no job 7_4"):
            predict_live(store, model, asked, ["7_4"])
        with cluster([RUNNING], DOWN) as asked, pytest.raises(Unavailable, match="broken"):
            predict_live(store, model, asked, ["7_4"])

    def test_a_task_s_own_number_is_not_its_array_s(self, store: Store, model: Model) -> None:
        with cluster([RUNNING]) as asked, pytest.raises(NotFound, match="8 is not an array"):
            predict_live(store, model, asked, ["8_3"])


def test_without_slurmdbd_there_is_no_script_but_a_prediction(store: Store, model: Model) -> None:
    with cluster([controlled(7)], DOWN) as asked:
        [found] = predict_live(store, model, asked, ["7"]).predictions
    assert found.job_id == 7
