"""What every store must do. A new adapter joins by adding an entry to `ADAPTERS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from job_strategies import distinct_jobs, frame, jobs, lives
from polars.testing import assert_frame_equal

from premortem.errors import InvalidInput, NotFound
from premortem.jobs.fields import KEY
from premortem.jobs.frame import SCHEMA
from premortem.jobs.samples import SAMPLE_SCHEMA, no_samples
from premortem.sources.port import reject
from premortem.stores import Appended, JobQuery, Store, open_store

ADAPTERS: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder / 'jobs.db'}",
}

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
RANDOM = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

OpenStore = Callable[[], Store]


@pytest.fixture(params=ADAPTERS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ADAPTERS[request.param](tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture(params=ADAPTERS)
def new_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenStore]:
    """A maker of empty stores, for tests that need one for every example."""
    opened: list[Store] = []

    def make() -> Store:
        opened.append(open_store(ADAPTERS[request.param](tmp_path_factory.mktemp("store"))))
        return opened[-1]

    yield make
    for made in opened:
        made.close()


def job(job_id: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "cluster": "alpha",
        "job_id": job_id,
        "submit_time": NOON,
        "state": "COMPLETED",
        **fields,
    }


def ids(found: pl.DataFrame) -> list[int]:
    return found["job_id"].to_list()


class TestAppending:
    def test_counts_every_record_once(self, store: Store) -> None:
        assert store.append(frame([job(1), job(2)])) == Appended(new=2)
        again = frame([job(1), job(2, user="ada"), job(3)])
        assert store.append(again) == Appended(new=1, updated=1, unchanged=1)

    def test_counts_repeated_records_of_one_frame(self, store: Store) -> None:
        assert store.append(frame([job(1), job(1), job(1)])) == Appended(new=1, unchanged=2)
        assert ids(store.jobs()) == [1]

    def test_nothing_is_an_empty_frame(self, store: Store) -> None:
        assert store.append(frame([])) == Appended()

    def test_a_requeued_job_is_another_record(self, store: Store) -> None:
        store.append(frame([job(1), job(1, submit_time=NOON + timedelta(hours=1))]))
        assert ids(store.jobs()) == [1, 1]

    def test_what_was_asked_for_stays_as_first_seen(self, store: Store) -> None:
        store.append(frame([job(state="PENDING", time_limit_s=3600)]))
        store.append(frame([job(time_limit_s=7200, user="ada", elapsed_s=5000)]))
        seen = store.jobs().row(0, named=True)
        assert (seen["time_limit_s"], seen["user"], seen["elapsed_s"]) == (3600, "ada", 5000)

    def test_a_late_pending_changes_nothing(self, store: Store) -> None:
        ended = job(end_time=NOON + timedelta(hours=1), exit_code=0, user="ada")
        store.append(frame([ended]))
        before = store.jobs()
        late = job(state="PENDING", reason="Priority", user="ada")
        assert store.append(frame([late])) == Appended(unchanged=1)
        assert_frame_equal(store.jobs(), before)

    def test_a_fraction_of_a_second_makes_no_other_job(self, store: Store) -> None:
        submitted = NOON + timedelta(seconds=0.5)
        store.append(frame([job(state="RUNNING", submit_time=submitted)]))
        assert store.append(frame([job(submit_time=submitted)])) == Appended(updated=1)
        assert store.jobs()["state"].to_list() == ["COMPLETED"]

    @pytest.mark.parametrize("order", list(permutations(range(3))))
    def test_what_was_seen_in_between_is_not_the_latest(
        self, store: Store, order: tuple[int, ...]
    ) -> None:
        states = ("RUNNING", "SUSPENDED", "RUNNING")
        for place in order:
            seen_at = NOON + timedelta(minutes=place)
            store.append(frame([job(state=states[place], seen_at=seen_at)]))
        assert store.jobs()["state"].to_list() == ["RUNNING"]

    def test_an_unknown_column_is_refused_and_nothing_kept(self, store: Store) -> None:
        with pytest.raises(InvalidInput, match="colour"):
            store.append(frame([job(1)]).with_columns(colour=pl.lit("red")))
        assert store.jobs().is_empty()

    def test_outlives_the_process_that_wrote_it(self, url: str) -> None:
        first = open_store(url)
        first.append(frame([job(1)]))
        first.close()
        second = open_store(url, read_only=True)
        assert ids(second.jobs()) == [1]
        second.close()

    @RANDOM
    @given(records=distinct_jobs)
    def test_every_record_survives_unchanged(
        self, new_store: OpenStore, records: list[dict[str, Any]]
    ) -> None:
        store = new_store()
        given_jobs = frame(records)
        assert store.append(given_jobs) == Appended(new=len(records))
        order = ["submit_time", "cluster", "job_id"]
        assert_frame_equal(store.jobs(), given_jobs.sort(order), check_exact=True)

    @RANDOM
    @given(records=st.lists(jobs(ids=st.integers(1, 4)), min_size=1, max_size=12))
    def test_appending_twice_changes_nothing(
        self, new_store: OpenStore, records: list[dict[str, Any]]
    ) -> None:
        store = new_store()
        store.append(frame(records))
        before = store.jobs()
        assert store.append(frame(records)) == Appended(unchanged=len(records))
        assert_frame_equal(store.jobs(), before)

    @RANDOM
    @given(sightings=lives(), data=st.data())
    def test_order_and_batches_do_not_matter(
        self, new_store: OpenStore, sightings: list[dict[str, Any]], data: st.DataObject
    ) -> None:
        shuffled = data.draw(st.permutations(sightings))
        cut = data.draw(st.integers(0, len(sightings)))
        in_order, in_pieces = new_store(), new_store()
        in_order.append(frame(sightings))
        in_pieces.append(frame(shuffled[:cut]))
        in_pieces.append(frame(shuffled[cut:]))
        # Where it was last heard of is the one thing that may differ.
        provenance = ["source", "api_version", "seen_at"]
        assert_frame_equal(in_order.jobs().drop(provenance), in_pieces.jobs().drop(provenance))


class TestReading:
    @pytest.fixture(autouse=True)
    def filled(self, store: Store) -> None:
        hour = timedelta(hours=1)
        store.append(
            frame(
                [
                    job(3, submit_time=NOON + 2 * hour, user="ada", state="FAILED", job_name="x"),
                    job(1, submit_time=NOON, user="ada", partition="gpu", account="bio"),
                    job(2, submit_time=NOON + hour, user="bob", partition="cpu", array_job_id=7),
                    job(9, submit_time=NOON + hour, user="bob", cluster="beta"),
                    job(4, submit_time=NOON + 3 * hour, cluster="gamma", partition="big,gpus"),
                    job(8, submit_time=NOON - hour, cluster="gamma", partition="big"),
                ]
            )
        )

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (JobQuery(), [8, 1, 2, 9, 3, 4]),
            (JobQuery(clusters=("gamma",), job_ids=(4, 8)), [8, 4]),
            (JobQuery(clusters=("gamma",), job_ids=(4, 8), limit=1), [4]),
            (JobQuery(partitions=("gpus",)), [4]),
            (JobQuery(partitions=("big",)), [8, 4]),
            (JobQuery(clusters=("beta",)), [9]),
            (JobQuery(clusters=("alpha", "beta"), users=("bob",)), [2, 9]),
            (JobQuery(job_ids=(1, 3)), [1, 3]),
            (JobQuery(array_job_ids=(7,)), [2]),
            (JobQuery(users=("ada",)), [1, 3]),
            (JobQuery(users=("ada", "bob")), [1, 2, 9, 3]),
            (JobQuery(accounts=("bio",)), [1]),
            (JobQuery(partitions=("gpu", "cpu")), [1, 2]),
            (JobQuery(job_names=("x",)), [3]),
            (JobQuery(lacking="script"), [8, 1, 2, 9, 3, 4]),
            (JobQuery(lacking="state"), []),
            (JobQuery(states=("FAILED",)), [3]),
            (JobQuery(users=("ada",), states=("FAILED",)), [3]),
            (JobQuery(since=NOON + timedelta(hours=1)), [2, 9, 3, 4]),
            (JobQuery(until=NOON + timedelta(hours=1)), [8, 1]),
            (JobQuery(limit=2), [3, 4]),
            (JobQuery(users=("ada",), limit=1), [3]),
            (JobQuery(users=("'; DROP TABLE job; --",)), []),
        ],
    )
    def test_gives_the_jobs_wanted_by_submission(
        self, store: Store, query: JobQuery, expected: list[int]
    ) -> None:
        assert ids(store.jobs(query)) == expected

    def test_gives_only_the_columns_wanted(self, store: Store) -> None:
        found = store.jobs(JobQuery(users=("ada",)), ["user", "state"])
        assert found.columns == ["user", "state"]
        assert found.rows() == [("ada", "COMPLETED"), ("ada", "FAILED")]

    def test_refuses_columns_that_are_no_fields(self, store: Store) -> None:
        with pytest.raises(InvalidInput, match="colour"):
            store.jobs(columns=["colour"])

    def test_keeps_the_schema_when_nothing_is_found(self, store: Store) -> None:
        assert store.jobs(JobQuery(users=("nobody",))).schema == pl.Schema(SCHEMA)


class TestRejects:
    def test_keeps_them_by_source_and_line(self, store: Store) -> None:
        store.set_aside("b.txt", reject(2, "no job id", "2|x"))
        store.set_aside("a.txt", pl.concat([reject(9, "bad time"), reject(4, "no job id")]))
        kept = store.rejects()
        assert kept.select("source", "line", "reason").rows() == [
            ("a.txt", 4, "no job id"),
            ("a.txt", 9, "bad time"),
            ("b.txt", 2, "no job id"),
        ]
        assert store.rejects("b.txt")["text"].to_list() == ["2|x"]

    def test_setting_aside_twice_keeps_one(self, store: Store) -> None:
        for _ in range(2):
            store.set_aside("a.txt", reject(2, "no job id", "2|x"))
        assert store.rejects().height == 1

    def test_afresh_forgets_what_that_source_gave_before(self, store: Store) -> None:
        store.set_aside("a.txt", reject(2, "no job id"))
        store.set_aside("b.txt", reject(1, "no job id"))
        store.set_aside("a.txt", reject(7, "bad time"), afresh=True)
        assert store.rejects().select("source", "line").rows() == [("a.txt", 7), ("b.txt", 1)]
        store.set_aside("b.txt", reject(1, "x").clear(), afresh=True)
        assert store.rejects("b.txt").is_empty()


def test_reading_a_store_that_is_not_there_says_so(url: str) -> None:
    with pytest.raises(NotFound, match="premortem load"):
        open_store(url, read_only=True)


def test_the_key_identifies_a_job() -> None:
    assert KEY == ("cluster", "job_id", "submit_time")


class TestScripts:
    def test_are_kept_with_their_jobs(self, store: Store) -> None:
        script = "#!/bin/sh\nsrun ./relax\n"
        store.append(frame([job(1, script=script), job(2, script=script), job(3)]))
        store.append(frame([job(4, script="#!/bin/sh\n"), job(3, user="ada")]))
        found = store.jobs(columns=["job_id", "script"])
        assert found["script"].to_list() == [script, script, None, "#!/bin/sh\n"]

    def test_stay_as_first_seen(self, store: Store) -> None:
        store.append(frame([job(1, script="one"), job(2)]))
        store.append(frame([job(1, script="other"), job(2, script="late")]))
        assert store.jobs(columns=["script"])["script"].to_list() == ["one", "late"]

    def test_of_some_jobs_only(self, store: Store) -> None:
        store.append(frame([job(n, script=f"run {n}") for n in range(5)]))
        found = store.jobs(JobQuery(limit=2), ["script"])
        assert found["script"].to_list() == ["run 3", "run 4"]


class TestSamples:
    def sample(self, job_id: int, seconds: float, **values: float) -> dict[str, Any]:
        at = NOON + timedelta(seconds=seconds)
        return {"cluster": "alpha", "job_id": job_id, "at": at, **values}

    def test_are_kept_once_and_in_order(self, store: Store) -> None:
        first = [self.sample(2, 4, cpu_s=3.0), self.sample(1, 2.25, rss_mb=7.5, processes=3)]
        assert store.add_samples(pl.DataFrame(first, infer_schema_length=None)) == 2
        again = pl.DataFrame([self.sample(2, 4, cpu_s=9.0), self.sample(2, 1, cpu_s=1.0)])
        assert store.add_samples(again) == 1
        found = store.samples()
        assert found.schema == SAMPLE_SCHEMA
        assert found["job_id"].to_list() == [1, 2, 2]
        assert found["at"][0] == NOON + timedelta(seconds=2.25)
        assert found["cpu_s"].to_list() == [None, 1.0, 3.0]
        assert found["processes"].to_list() == [3, None, None]

    def test_of_some_jobs(self, store: Store) -> None:
        store.add_samples(pl.DataFrame([self.sample(n, 1, cpu_s=1.0) for n in range(4)]))
        assert store.samples([3, 1])["job_id"].to_list() == [1, 3]

    def test_of_nothing(self, store: Store) -> None:
        assert store.add_samples(no_samples()) == 0
        assert store.samples().schema == SAMPLE_SCHEMA


def test_notes_are_kept_by_name(url: str) -> None:
    store = open_store(url)
    assert store.note("collector") is None
    store.set_note("collector", '{"watermark": 1}')
    store.set_note("other", "ü")
    store.set_note("collector", '{"watermark": 2}')
    store.close()
    again = open_store(url, read_only=True)
    assert (again.note("collector"), again.note("other")) == ('{"watermark": 2}', "ü")
    again.close()
