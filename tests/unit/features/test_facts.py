"""A job record as numbers, times and group names; one by one as by the frame."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from job_strategies import frame

from premortem.features import layout
from premortem.features.facts import INPUTS, facts_of, facts_of_one
from premortem.jobs.fields import BY_NAME
from premortem.jobs.labels import LabelPolicy
from premortem.jobs.outcomes import Cause

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SECOND = NOON.timestamp()


def labelled(*records):
    jobs = [
        {"cluster": "alpha", "job_id": n, "submit_time": NOON, "state": "COMPLETED", **record}
        for n, record in enumerate(records, start=1)
    ]
    return LabelPolicy().label(frame(jobs))


def facts(*, zone="UTC", **record):
    return facts_of(labelled(record), zone=zone)


def value(place, **record):
    return facts(**record).values[0, place]


def after(seconds):
    return NOON + timedelta(seconds=seconds)


class TestZones:
    @pytest.mark.parametrize(
        ("zone", "time", "hours"),
        [
            ("UTC", datetime(2026, 7, 1, tzinfo=UTC), 0),
            ("Europe/Zurich", datetime(2026, 1, 1, tzinfo=UTC), 1),
            ("Europe/Zurich", datetime(2026, 7, 1, tzinfo=UTC), 2),
            ("America/St_Johns", datetime(2026, 1, 1, tzinfo=UTC), -3.5),
            ("America/St_Johns", datetime(2026, 7, 1, tzinfo=UTC), -2.5),
            ("Asia/Kathmandu", datetime(2026, 7, 1, tzinfo=UTC), 5.75),
            ("Australia/Lord_Howe", datetime(2026, 1, 1, tzinfo=UTC), 11),
            ("Australia/Lord_Howe", datetime(2026, 7, 1, tzinfo=UTC), 10.5),
            # Ireland calls its winter time the shifted one.
            ("Europe/Dublin", datetime(2026, 1, 1, tzinfo=UTC), 0),
            ("Europe/Dublin", datetime(2026, 7, 1, tzinfo=UTC), 1),
        ],
    )
    def test_the_offset_is_that_of_the_site_on_that_day(self, zone, time, hours):
        found = facts(zone=zone, submit_time=time)
        assert found.values[0, layout.UTC_OFFSET] == hours * 3600
        assert found.values[0, layout.SUBMITTED_AT] == time.timestamp()

    def test_summer_time_ends_at_a_moment_not_on_a_day(self):
        last = datetime(2026, 10, 25, 0, 59, 59, tzinfo=UTC)
        times = [last, last + timedelta(seconds=1)]
        jobs = labelled(*({"submit_time": time} for time in times))
        offsets = facts_of(jobs, zone="Europe/Zurich").values[:, layout.UTC_OFFSET]
        assert offsets.tolist() == [7200, 3600]

    def test_one_job_by_itself_has_the_same_offset(self):
        for zone in ("Europe/Zurich", "Europe/Dublin", "America/St_Johns", "Australia/Lord_Howe"):
            for day in range(0, 365, 5):
                jobs = labelled({"submit_time": NOON + timedelta(days=day)})
                values, _ = facts_of_one(jobs.row(0, named=True), zone=zone)
                of_frame = facts_of(jobs, zone=zone).values[0, layout.UTC_OFFSET]
                assert values[layout.UTC_OFFSET] == of_frame


class TestStart:
    def test_a_known_start_counts(self):
        found = facts(start_time=after(90), end_time=after(100))
        assert found.started[0] == SECOND + 90
        assert found.values[0, layout.STARTED] == 1
        assert found.values[0, layout.WAITED] == 90

    @pytest.mark.parametrize("trace", [{"alloc_cpus": 4}, {"alloc_cpus": 0}])
    def test_an_allocation_without_a_start_counts_as_started_at_submission(self, trace):
        found = facts(end_time=after(100), **trace)
        assert found.started[0] == SECOND
        assert found.values[0, layout.STARTED] == 1
        assert np.isnan(found.values[0, layout.WAITED])

    @pytest.mark.parametrize("trace", [{}, {"elapsed_s": 0}, {"node_list": "n1"}, {"elapsed_s": 3}])
    def test_without_either_it_never_started(self, trace):
        found = facts(state="CANCELLED", end_time=after(100), **trace)
        assert np.isnan(found.started[0])
        assert found.values[0, layout.STARTED] == 0

    def test_a_clock_put_back_makes_nobody_start_before_the_submission(self):
        found = facts(start_time=after(-30), end_time=after(-20))
        assert found.started[0] == SECOND
        assert found.ended[0] == SECOND
        assert found.values[0, layout.WAITED] == -30

    def test_nor_end_before_the_start(self):
        found = facts(start_time=after(60), end_time=after(50))
        assert found.ended[0] == SECOND + 60


class TestEnd:
    def test_a_known_end_counts(self):
        found = facts(start_time=after(10), end_time=after(100), elapsed_s=7)
        assert found.ended[0] == SECOND + 100

    def test_without_it_the_run_time_tells(self):
        assert facts(start_time=after(10), elapsed_s=7).ended[0] == SECOND + 17
        assert facts(elapsed_s=7).ended[0] == SECOND + 7

    def test_without_either_it_ended_as_it_started(self):
        assert facts(start_time=after(10)).ended[0] == SECOND + 10

    def test_one_that_never_started_ended_when_it_was_cancelled_or_at_once(self):
        assert facts(state="CANCELLED", end_time=after(5)).ended[0] == SECOND + 5
        assert facts(state="CANCELLED").ended[0] == SECOND

    @pytest.mark.parametrize("state", ["PENDING", "RUNNING", "SUSPENDED"])
    def test_an_unfinished_job_has_not_ended_whatever_else_is_told(self, state):
        found = facts(state=state, start_time=after(1), end_time=after(5), elapsed_s=4)
        assert np.isnan(found.ended[0])

    def test_an_ignored_one_has_ended_without_outcome(self):
        found = facts(state="PREEMPTED", start_time=after(1), end_time=after(5))
        assert found.ended[0] == SECOND + 5
        assert np.isnan(found.values[0, layout.OUTCOME])


class TestValues:
    def test_outcomes_and_causes(self):
        started = {"start_time": after(1), "end_time": after(2)}
        assert value(layout.OUTCOME, **started) == 0
        assert value(layout.CAUSE, **started) == 0
        assert value(layout.OUTCOME, state="FAILED", **started) == 1
        codes = [
            value(layout.CAUSE, state=state, **started)
            for state in ("FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "CANCELLED")
        ]
        assert codes == [1, 2, 3, 4, 5]
        assert value(layout.CAUSE, state="CANCELLED") == 6
        assert len(Cause) == 8

    @pytest.mark.parametrize(
        ("asked", "share"),
        [
            ({"req_memory_per_cpu_mb": 200.0, "req_memory_mb": 800.0}, 0.5),
            ({"req_memory_per_node_mb": 400.0, "req_memory_mb": 800.0}, 0.25),
            ({"req_memory_mb": 800.0}, 0.125),
        ],
    )
    def test_memory_is_measured_against_what_a_task_may_have(self, asked, share):
        assert value(layout.MEMORY_SHARE, max_rss_mb=100.0, **asked) == share

    @pytest.mark.parametrize("used", [0.0, 100.0])
    def test_a_share_of_nothing_is_unknown_rather_than_infinite(self, used):
        assert np.isnan(value(layout.MEMORY_SHARE, max_rss_mb=used, req_memory_mb=0.0))
        assert np.isnan(value(layout.MEMORY_PER_CPU, req_memory_mb=used, req_cpus=0))

    def test_what_is_missing_is_nan_or_no(self):
        row = facts(state="PENDING").values[0]
        absent = {
            layout.SUBMITTED_AT,
            layout.UTC_OFFSET,
            layout.IN_ARRAY,
            layout.DEPENDS,
            layout.STARTED,
            layout.CAUSE,
        }
        assert {place for place in range(layout.FACTS) if not np.isnan(row[place])} == absent
        assert row[[layout.IN_ARRAY, layout.DEPENDS, layout.STARTED, layout.CAUSE]].tolist() == [
            0,
            0,
            0,
            0,
        ]

    def test_columns_that_are_missing_count_as_absent(self):
        jobs = labelled({})
        narrow = jobs.select("cluster", "job_id", "submit_time", "outcome", "cause")
        expected = facts_of(jobs, zone="UTC")
        found = facts_of(narrow, zone="UTC")
        assert found.values.tobytes() == expected.values.tobytes()
        assert found.names.equals(expected.names)

    def test_a_frame_without_jobs_has_no_facts(self):
        found = facts_of(labelled({}).clear(), zone="UTC")
        assert found.values.shape == (0, layout.FACTS)
        assert len(found.submitted) == 0

    def test_everything_it_reads_is_declared(self):
        jobs = labelled({"start_time": after(1), "elapsed_s": 4, "user": "ada", "req_cpus": 2})
        narrow = jobs.select(*INPUTS, "outcome", "cause")
        assert set(INPUTS) <= set(BY_NAME)
        assert (
            facts_of(narrow, zone="UTC").values.tobytes()
            == facts_of(jobs, zone="UTC").values.tobytes()
        )


class TestGroups:
    def same(self, group, one, other):
        names = facts_of(labelled(one, other), zone="UTC").names[str(group)]
        assert names.null_count() == 0
        return names[0] == names[1]

    def test_names_are_alike_but_for_their_numbers(self):
        ada = {"user": "ada"}
        relax = {**ada, "job_name": "relax_01"}
        assert self.same(layout.NAME, relax, {**ada, "job_name": "relax_175"})
        assert not self.same(layout.NAME, relax, {**ada, "job_name": "relax"})
        assert not self.same(layout.NAME, relax, {"user": "bob", "job_name": "relax_01"})

    @pytest.mark.parametrize("nodes", ["n01,n02", "n[01-04]", "n[01,03]", "n01,n[02-04]"])
    def test_a_node_is_the_same_however_the_list_is_written(self, nodes):
        assert self.same(layout.NODE, {"node_list": "n01"}, {"node_list": nodes})
        assert not self.same(layout.NODE, {"node_list": "n02"}, {"node_list": nodes})

    def test_the_unix_group_stands_in_for_an_account(self):
        assert self.same(layout.ACCOUNT, {"account": "physics", "group": "x"}, {"group": "physics"})

    def test_a_shape_without_a_size_is_a_shape_too(self):
        ada = {"user": "ada", "req_cpus": 4}
        assert self.same(layout.SHAPE, ada, ada)
        assert not self.same(layout.SHAPE, ada, {**ada, "time_limit_s": 0})

    def test_a_group_named_by_something_missing_is_none(self):
        names = facts(job_name="relax", executable="vasp").names.row(0)
        assert names[layout.CLUSTER] is not None
        assert [g for g in range(layout.GROUPS) if names[g] is not None] == [layout.CLUSTER]

    def test_jobs_are_ordered_by_cluster_number_and_submission(self):
        jobs = labelled(
            {"job_id": 10},
            {"job_id": 9, "submit_time": after(5)},
            {"job_id": 9},
            {"job_id": 1, "cluster": "beta"},
        )
        assert facts_of(jobs, zone="UTC").order.tolist() == [3, 2, 1, 4]
