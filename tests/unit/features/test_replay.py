"""What a caller of the replay could get wrong: a second log, a wrong file, a late event."""

import os
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from job_strategies import frame

from premortem.errors import InvalidInput, NotFound
from premortem.features.catalogue import CATALOGUE
from premortem.features.layout import ROW_WIDTH
from premortem.features.points import START, SUBMIT, running
from premortem.features.replay import Replay
from premortem.jobs.labels import LabelPolicy

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
PLACES = {feature.name: place for place, feature in enumerate(CATALOGUE)}


def after(seconds):
    return NOON + timedelta(seconds=seconds)


def job(number, submit, **fields):
    told = {"cluster": "alpha", "job_id": number, "submit_time": after(submit), "user": "ada"}
    return {"state": "PENDING", "req_cpus": 4} | told | fields


def log(*records):
    return LabelPolicy().label(frame(list(records)))


def ran(number, submit, start, end, state="COMPLETED"):
    times = {"start_time": after(start), "end_time": after(end), "elapsed_s": max(end - start, 0)}
    return job(number, submit, state=state, **times)


def feature(rows, place, name):
    return rows.values[rows.jobs.tolist().index(place), PLACES[name]]


class TestBatch:
    def test_an_empty_log_has_no_rows(self):
        for point in (SUBMIT, START, running(120)):
            rows = Replay().rows(log(), point)
            assert rows.values.shape == (0, ROW_WIDTH)
            assert len(rows.jobs) == len(rows.moments) == 0

    def test_an_outcome_enters_when_the_job_ended_and_not_in_that_very_second(self):
        failed = ran(1, 0, 10, 100, "FAILED")
        rows = Replay().rows(log(failed, job(2, 99), job(3, 100), job(4, 101)), SUBMIT)
        assert [feature(rows, place, "user_ended") for place in range(4)] == [0, 0, 0, 1]
        assert feature(rows, 3, "user_last_outcome") == 1
        assert feature(rows, 3, "user_since_failure_s") == 1

    def test_a_job_that_did_not_wait_still_knows_the_request_before_it(self):
        earlier, other = job(1, 0), ran(2, 60, 60, 100)
        rows = Replay().rows(log(earlier, other), START)
        assert feature(rows, 1, "user_since_submit_s") == 60
        assert feature(rows, 1, "user_cpus_change") == 0

    def test_jobs_without_wait_times_know_the_request_before_them(self):
        runs = [job(n, 60 * n, state="COMPLETED", elapsed_s=30, alloc_cpus=1) for n in (1, 2)]
        rows = Replay().rows(log(*runs), START)
        assert feature(rows, 1, "user_since_submit_s") == 60

    @pytest.mark.parametrize("slipped", [(0, 60, 50), (0, -30, 50), (0, -30, -10)])
    def test_a_clock_put_back_leaves_no_job_behind_in_the_queue(self, slipped):
        rows = Replay().rows(log(ran(1, *slipped), job(2, 500)), SUBMIT)
        assert feature(rows, 1, "user_pending") == 0
        assert feature(rows, 1, "user_running") == 0
        assert feature(rows, 1, "user_ended") == 1

    def test_a_node_is_the_same_however_its_list_is_written(self):
        crash = ran(1, 0, 10, 100, "FAILED") | {"node_list": "n[01-04]"}
        rows = Replay().rows(log(crash, ran(2, 150, 200, 300) | {"node_list": "n01"}), START)
        assert feature(rows, 1, "node_ended") == 1

    def test_asking_for_all_memory_leaves_no_infinite_number_behind(self):
        greedy = ran(1, 0, 10, 100) | {"req_memory_mb": 0.0, "max_rss_mb": 50.0}
        usual = ran(2, 0, 10, 100) | {"req_memory_mb": 100.0, "max_rss_mb": 50.0}
        rows = Replay().rows(log(greedy, usual, job(3, 500)), SUBMIT)
        assert feature(rows, 2, "user_usual_memory_share") == 0.5
        assert not np.isinf(rows.values).any()

    @pytest.mark.parametrize("point", [SUBMIT, START], ids=str)
    def test_a_log_played_twice_is_not_its_own_past(self, point):
        jobs = log(ran(1, 0, 10, 100, "FAILED"), ran(2, 200, 210, 300))
        replay = Replay()
        replay.rows(jobs, SUBMIT)
        again = replay.rows(jobs, point)
        assert again.values.tobytes() == Replay().rows(jobs, point).values.tobytes()


class TestLive:
    def test_a_row_for_someone_new_is_that_of_an_empty_log(self):
        (record,) = log(job(1, 0)).to_dicts()
        row = Replay().row(record, SUBMIT, NOON)
        assert row.dtype == np.float32
        assert row.shape == (ROW_WIDTH,)
        assert row.tobytes() == Replay().rows(log(job(1, 0)), SUBMIT).values[0].tobytes()

    def test_asking_changes_nothing(self):
        first, second = log(ran(1, 0, 10, 100, "FAILED"), job(2, 200)).to_dicts()
        replay = Replay()
        replay.observe("submit", first, after(0))
        replay.observe("start", first, after(10))
        replay.observe("end", first, after(100))
        rows = [replay.row(second, SUBMIT, after(200)).tobytes() for _ in range(3)]
        assert len(set(rows)) == 1

    def test_events_of_the_very_second_are_not_seen(self):
        first, second = log(ran(1, 0, 10, 200, "FAILED"), job(2, 200)).to_dicts()
        replay = Replay()
        replay.observe("submit", first, after(0))
        replay.observe("start", first, after(10))
        before = replay.row(second, SUBMIT, after(200))
        replay.observe("end", first, after(200))
        replay.observe("submit", second, after(200))
        assert replay.row(second, SUBMIT, after(200)).tobytes() == before.tobytes()
        later = replay.row(second, SUBMIT, after(201))
        assert later[PLACES["user_last_outcome"]] == 1


class TestSaved:
    def test_an_untouched_replay_is_saved_and_restored(self, tmp_path):
        Replay(zone="Europe/Zurich").save(tmp_path / "state")
        assert Replay.restore(tmp_path / "state").zone == "Europe/Zurich"
        assert os.listdir(tmp_path) == ["state"]

    def test_saving_twice_gives_the_same_bytes(self, tmp_path):
        (record,) = log(ran(1, 0, 10, 100)).to_dicts()
        replay = Replay()
        replay.observe("submit", record, NOON)
        replay.save(tmp_path / "one")
        Replay.restore(tmp_path / "one").save(tmp_path / "two")
        with np.load(tmp_path / "one") as one, np.load(tmp_path / "two") as two:
            assert one.files == two.files
            assert all(one[name].tobytes() == two[name].tobytes() for name in one.files)

    def test_a_missing_file_is_not_found(self, tmp_path):
        with pytest.raises(NotFound, match="no saved state"):
            Replay.restore(tmp_path / "nothing")

    @pytest.mark.parametrize("content", [b"", b"not a state", b"PK\x03\x04garbage"])
    def test_another_file_is_refused(self, tmp_path, content):
        (tmp_path / "state").write_bytes(content)
        with pytest.raises(InvalidInput, match="not a saved state"):
            Replay.restore(tmp_path / "state")

    def test_a_state_cut_short_is_refused(self, tmp_path):
        Replay().save(tmp_path / "state")
        whole = (tmp_path / "state").read_bytes()
        for length in range(0, len(whole), 97):
            (tmp_path / "state").write_bytes(whole[:length])
            with pytest.raises(InvalidInput, match="not a saved state"):
                Replay.restore(tmp_path / "state")

    def test_an_array_of_something_else_is_refused(self, tmp_path):
        with (tmp_path / "state").open("wb") as file:
            np.save(file, np.zeros(3))
        with pytest.raises(InvalidInput, match="not a saved state"):
            Replay.restore(tmp_path / "state")

    def test_a_state_of_another_shape_is_refused(self, tmp_path):
        Replay().save(tmp_path / "state")
        with np.load(tmp_path / "state") as stored:
            arrays = dict(stored)
        arrays["memory"] = arrays["memory"][:, :-1]
        with (tmp_path / "state").open("wb") as file:
            np.savez(file, **arrays)
        with pytest.raises(InvalidInput, match="another version"):
            Replay.restore(tmp_path / "state")
