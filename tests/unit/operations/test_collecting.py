"""What a collector asks and keeps, over hours of a clock that passes quickly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from staged_cluster import (
    BEGIN,
    Invented,
    cut_short,
    garbage,
    most_in_a_minute,
    refusal,
    staged_cluster,
)

from premortem.errors import Unavailable
from premortem.operations.collecting import Collector
from premortem.operations.collector_state import CollectorState
from premortem.operations.paces import Pace
from premortem.stores import Store, open_store

HOUR = 3600
LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'jobs.db'}", patience_s=0.2)
    yield opened
    opened.close()


def rows(store: Store) -> dict[int, dict[str, Any]]:
    jobs = store.jobs().to_dicts()
    assert len({job["job_id"] for job in jobs}) == len(jobs)
    return {job["job_id"]: job for job in jobs}


def run_until(collector: Collector, cluster: Any, second: float) -> None:
    collector.run(lambda: cluster.now_s >= second)


class TestBudget:
    @pytest.mark.parametrize("trouble", ["none", "slurmdbd", "both"])
    @pytest.mark.parametrize(("every_s", "calls"), [(60, 6), (10, 6), (1, 3)])
    def test_no_minute_has_more_calls(
        self, store: Store, trouble: str, every_s: int, calls: int
    ) -> None:
        pace = Pace(every_s=every_s, slurmctld_calls=calls, slurmdbd_calls=calls)
        with staged_cluster(store, pace=pace) as (cluster, collector):
            for number in range(1, 41):
                state = "FAILED" if number % 4 else "COMPLETED"
                cluster.jobs[number] = Invented(number * 10, number * 37, state)
            daemons = {"none": [], "slurmdbd": ["slurmdbd"], "both": ["slurmdbd", "slurmctld"]}
            run_until(collector, cluster, 300)
            cluster.faults = dict.fromkeys(daemons[trouble], refusal())
            run_until(collector, cluster, 1200)
            cluster.faults = {}
            run_until(collector, cluster, 3000)
            assert most_in_a_minute(cluster.calls("slurmctld")) <= calls
            assert most_in_a_minute(cluster.calls("slurmdbd")) <= calls
            told = rows(store)
            assert len(told) == 40
            assert all(job["script"] for job in told.values())
            assert all(job["step_state"] for job in told.values() if job["state"] == "FAILED")

    def test_a_long_history_is_read_within_it(self, store: Store) -> None:
        events: list[str] = []
        tell = lambda event, **_: events.append(event)  # noqa: E731
        pace = Pace(history=timedelta(days=20))
        with staged_cluster(store, pace=pace, tell=tell) as (cluster, collector):
            cluster.jobs[1] = Invented(0, 5)
            collector.round(patient=False)
            assert cluster.now_s < 1, "nothing is waited for"
            run_until(collector, cluster, 500)
            assert set(events) == {"round"}, "nor is anything waited for later"
            assert collector.state.watermark is not None
            assert collector.state.watermark >= BEGIN.isoformat()
            # Windows grow from an hour to a day, and stay so.
            assert 20 < len(cluster.calls("slurmdbd")) < 40
            assert most_in_a_minute(cluster.calls("slurmdbd")) <= 6
            assert len(cluster.calls("slurmctld")) >= 6, "live jobs are looked at meanwhile"
            assert rows(store)[1]["state"] == "COMPLETED"

    def test_a_patient_round_waits_until_all_is_read(self, store: Store) -> None:
        with staged_cluster(store, pace=Pace(history=timedelta(days=9))) as (cluster, collector):
            collector.round()
            assert cluster.now_s > 60
            assert most_in_a_minute(cluster.calls("slurmdbd")) <= 6
            assert collector.state.watermark == BEGIN.isoformat()

    def test_a_long_history_does_not_keep_all_else_waiting(self, store: Store) -> None:
        pace = Pace(history=timedelta(days=40), slurmdbd_calls=2)
        with staged_cluster(store, pace=pace) as (cluster, collector):
            cluster.jobs[1] = Invented(0, HOUR)
            run_until(collector, cluster, 240)
            assert collector.state.watermark is not None
            assert collector.state.watermark < BEGIN.isoformat()
            assert rows(store)[1]["script"]

    def test_it_is_kept_to_from_one_start_to_the_next(self, store: Store) -> None:
        calls: list[float] = []
        for start in (0, 5, 10, 15):
            with staged_cluster(store, pace=Pace(history=timedelta(days=3))) as (cluster, one):
                cluster.now_s = start
                one.round(patient=False)
                calls += cluster.calls("slurmdbd")
        assert most_in_a_minute(calls) <= 6

    def test_a_later_one_may_look_back_further(self, store: Store) -> None:
        long_ago, calls = {1: Invented(-5 * 24 * HOUR, -5 * 24 * HOUR + 60)}, []
        for days, seen in ((1, 0), (9, 1), (1, 1), (9, 1)):
            pace = Pace(history=timedelta(days=days))
            with staged_cluster(store, pace=pace) as (cluster, collector):
                cluster.jobs |= long_ago
                collector.round()
                asked = len(cluster.calls("slurmdbd"))
            assert len(rows(store)) == seen
            calls.append(asked)
        assert calls[1] >= 9
        assert calls[3] < 5, "what was read is not read again"


class TestWhatIsKept:
    def test_a_job_that_fails_after_hours_has_its_steps_read(self, store: Store) -> None:
        with staged_cluster(store) as (cluster, collector):
            cluster.jobs[1] = Invented(5, 3 * HOUR, "FAILED", "OUT_OF_MEMORY")
            run_until(collector, cluster, 3 * HOUR + 120)
            assert rows(store)[1]["step_state"] == "OUT_OF_MEMORY"
            assert collector.state.without_details == 0
            asked = cluster.asked_by_number()
            assert len(asked) < 5, "it is not asked for again and again"

    def test_a_restart_takes_up_what_is_left(self, store: Store) -> None:
        pace = Pace(slurmdbd_calls=1)
        with staged_cluster(store, pace=pace) as (cluster, collector):
            cluster.jobs[1] = Invented(0, 1, "FAILED", "OUT_OF_MEMORY")
            cluster.jobs[2] = Invented(0, 2 * HOUR)
            collector.round()
            assert rows(store)[1]["step_state"] is None
            assert collector.state.without_details
            later = cluster.now_s + HOUR
        with staged_cluster(store) as (again, collector):
            again.jobs = cluster.jobs
            again.now_s = later
            collector.round()
            assert rows(store)[1]["step_state"] == "OUT_OF_MEMORY"
            again.now_s += 3 * HOUR
            collector.round()
            assert rows(store)[2]["state"] == "COMPLETED"
            assert collector.state.open == 0

    def test_jobs_of_other_clusters_are_left_alone(self, store: Store) -> None:
        stale = [("two", n, BEGIN, "RUNNING") for n in range(1, 500)]
        names = ["cluster", "job_id", "submit_time", "state"]
        store.append(pl.DataFrame(stale, schema=names, orient="row"))
        with staged_cluster(store) as (cluster, collector):
            cluster.jobs[7] = Invented(0, HOUR)
            run_until(collector, cluster, 600)
            assert set().union(*cluster.asked_by_number()) == {7}
            assert store.jobs().filter(cluster="two").height == 499

    def test_a_bad_record_is_kept_once_however_often_it_is_told(self, store: Store) -> None:
        with staged_cluster(store) as (cluster, collector):
            cluster.jobs[7] = Invented(0, HOUR)
            cluster.nonsense = [{"job_id": 1}, {"job_id": 2}]
            run_until(collector, cluster, 300)
            assert collector.state.counters.rejected == 4, "two by each daemon"
            cluster.nonsense = [{"job_id": 3}, {"job_id": 2}]
            run_until(collector, cluster, 600)
            assert collector.state.counters.rejected == store.rejects().height == 6
        assert set(store.rejects()["text"]) == {'{"job_id": 1}', '{"job_id": 2}', '{"job_id": 3}'}
        with staged_cluster(store) as (cluster, collector):
            cluster.nonsense = [{"job_id": 2}]
            run_until(collector, cluster, 300)
        assert store.rejects().height == 6, "another collector knows of them"
        assert list(rows(store)) == [7]

    def test_a_site_that_keeps_no_scripts(self, store: Store) -> None:
        events: list[str] = []
        tell = lambda event, **_: events.append(event)  # noqa: E731
        with staged_cluster(store, tell=tell) as (cluster, collector):
            for number in range(1, 400):
                cluster.jobs[number] = Invented(number, number + 30, script="")
            run_until(collector, cluster, HOUR)
            assert events.count("no_scripts") == 1
            assert collector.state.without_details == 0
            asked = len(cluster.asked_by_number())
            for number in range(400, 800):
                cluster.jobs[number] = Invented(HOUR + number, HOUR + number + 30, script="")
            run_until(collector, cluster, 2 * HOUR)
            assert len(cluster.asked_by_number()) <= asked + 2, "it is tried once an hour"
            assert collector.state.without_details == 0

    def test_a_site_that_begins_to_keep_scripts(self, store: Store) -> None:
        with staged_cluster(store) as (cluster, collector):
            for number in range(1, 400):
                cluster.jobs[number] = Invented(number, number + 30, script="")
            cluster.jobs[500] = Invented(HOUR // 2, HOUR)
            run_until(collector, cluster, 3 * HOUR)
            assert rows(store)[500]["script"]

    def test_a_script_that_is_noted_after_an_outage(self, store: Store) -> None:
        with staged_cluster(store) as (cluster, collector):
            collector.round()
            cluster.faults = {"slurmdbd": refusal()}
            cluster.jobs[1] = Invented(120, HOUR)
            cluster.unknown_to_accounting = {1}
            run_until(collector, cluster, 1500)
            cluster.faults = {}
            run_until(collector, cluster, cluster.now_s + 120)
            cluster.unknown_to_accounting = set()
            run_until(collector, cluster, cluster.now_s + 1200)
            assert rows(store)[1]["script"]

    def test_a_job_that_waits_since_before_the_history_has_its_script(self, store: Store) -> None:
        with staged_cluster(store) as (cluster, collector):
            cluster.jobs[1] = Invented(-3 * 24 * HOUR, HOUR)
            run_until(collector, cluster, 120)
            assert rows(store)[1]["script"]

    def test_a_job_that_accounting_never_hears_of(self, store: Store) -> None:
        told: list[dict[str, Any]] = []
        tell = lambda event, **values: event == "untold" and told.append(values)  # noqa: E731
        with staged_cluster(store, tell=tell) as (cluster, collector):
            cluster.jobs = {1: Invented(0, 50), 2: Invented(0, 90)}
            cluster.unknown_to_accounting = {1, 2}
            collector.round()
            del cluster.jobs[1]  # as after a slurmctld that lost its memory
            run_until(collector, cluster, HOUR)
            assert [one["job"] for one in told] == [1]
            assert (collector.state.open, collector.state.untold) == (1, 1)
            asked = sum(1 in numbers for numbers in cluster.asked_by_number())
            assert asked < 20


class TestTroubles:
    def test_a_store_that_fails_once_loses_nothing(self, store: Store) -> None:
        class Stumbles:
            times = 0

            def __getattr__(self, name: str) -> Any:
                return getattr(store, name)

            def append(self, jobs: pl.DataFrame) -> Any:
                self.times += 1
                if self.times == 3:
                    raise Unavailable("the disk is full")
                return store.append(jobs)

        pace = Pace(history=timedelta(days=10))
        with staged_cluster(Stumbles(), pace=pace) as (cluster, collector):  # type: ignore[arg-type]
            for day in range(1, 10):
                cluster.jobs[day] = Invented(-day * 24 * HOUR, -day * 24 * HOUR + 60)
            run_until(collector, cluster, HOUR)
        assert sorted(rows(store)) == list(range(1, 10))

    def test_a_long_history_is_read_in_spite_of_failures(self, store: Store) -> None:
        pace = Pace(history=timedelta(days=20), slurmdbd_calls=1)
        with staged_cluster(store, pace=pace) as (cluster, collector):
            for _ in range(8):
                run_until(collector, cluster, cluster.now_s + 900)
                cluster.faults = {"slurmdbd": refusal()}
                run_until(collector, cluster, cluster.now_s + 60)
                cluster.faults = {}
            assert collector.state.watermark is not None
            assert collector.state.watermark >= BEGIN.isoformat()

    @pytest.mark.parametrize("reply", [garbage(), cut_short(), refusal()])
    def test_a_bad_answer_costs_a_round(self, store: Store, reply: Any) -> None:
        with staged_cluster(store) as (cluster, collector):
            cluster.jobs[1] = Invented(0, 30, "FAILED")
            cluster.faults = {"slurmctld": reply, "slurmdbd": reply}
            done = collector.round()
            assert sorted(done.problems) == ["slurmctld", "slurmdbd"]
            assert collector.state.watermark == collector.state.read_from
            assert rows(store) == {}
            cluster.now_s += 60
            cluster.faults = {"slurmctld": reply}
            assert list(collector.round().problems) == ["slurmctld"]
            assert rows(store)[1]["state"] == "FAILED"
            cluster.now_s += 60
            cluster.faults = {"slurmdbd": reply}
            assert list(collector.round().problems) == ["slurmdbd"]
            cluster.now_s += 60
            cluster.faults = {}
            assert collector.round().problems == {}
            assert rows(store)[1]["step_state"] == "FAILED"

    def test_what_is_noted_long_after_an_outage(self, store: Store) -> None:
        with staged_cluster(store) as (cluster, collector):
            collector.round()
            cluster.faults = {"slurmdbd": refusal()}
            # It comes and goes unseen by any look at slurmctld, and is noted half an hour late.
            cluster.jobs[1] = Invented(601, 602)
            cluster.unknown_to_accounting = {1}
            for daemon_is_up in (False, True):
                if daemon_is_up:
                    cluster.faults = {}
                for _ in range(3):
                    cluster.now_s += 900 if not daemon_is_up else 61
                    collector.round()
            cluster.unknown_to_accounting = set()
            cluster.now_s += 60
            collector.round()
            assert rows(store)[1]["state"] == "COMPLETED"
            run_until(collector, cluster, cluster.now_s + 1200)
            mark = CollectorState.load(store)
            assert mark is not None
            assert mark.watermark is not None
            assert mark.watermark > cluster.now().replace(minute=0).isoformat()[:13]

    def test_rounds_become_rarer_but_never_more_frequent_than_asked(self, store: Store) -> None:
        pauses: list[float] = []

        def tell(event: str, **values: Any) -> None:
            if event == "backing_off":
                pauses.append(values["pause_s"])

        for every_s, expected in ((60, [120, 240, 480, 600, 600]), (1800, [1800, 1800])):
            pauses.clear()
            with staged_cluster(store, pace=Pace(every_s=every_s), tell=tell) as (cluster, one):
                cluster.faults = {"slurmctld": refusal(), "slurmdbd": refusal()}
                one.run(lambda wanted=len(expected): len(pauses) >= wanted)
            assert pauses == expected

    def test_a_store_that_is_locked_for_a_while(self, store: Store, tmp_path: Path) -> None:
        events: list[str] = []
        other = subprocess.Popen(
            [sys.executable, "-c", LOCK, tmp_path / "jobs.db"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert other.stdout
        assert other.stdout.readline() == b"locked\n"

        def tell(event: str, **_: Any) -> None:
            events.append(event)
            if event == "no_store":
                other.communicate()

        with staged_cluster(store, tell=tell) as (cluster, collector):
            cluster.jobs[1] = Invented(0, 5)
            run_until(collector, cluster, 200)
        assert other.wait(10) == 0
        assert events.count("no_store") == 1
        assert rows(store)[1]["state"] == "COMPLETED"
