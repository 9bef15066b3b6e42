from __future__ import annotations

import itertools
from datetime import UTC, datetime

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from premortem.errors import InvalidInput
from premortem.jobs.fields import BY_NAME, FIELDS
from premortem.testing.synthetic import SyntheticCluster

NEVER_STARTED = pl.col("start_time").is_null()


def all_jobs(cluster: SyntheticCluster, batch: int = 50_000) -> pl.DataFrame:
    return pl.concat(cluster.frames(batch))


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    return all_jobs(SyntheticCluster(jobs=20_000, seed=0))


@pytest.mark.parametrize("count", [1, 2, 99, 1000])
@pytest.mark.parametrize("seed", [0, 7])
def test_there_are_exactly_as_many_jobs_as_asked_for(count: int, seed: int) -> None:
    assert all_jobs(SyntheticCluster(jobs=count, seed=seed)).height == count


def test_no_jobs_are_no_frames() -> None:
    assert list(SyntheticCluster(jobs=0).frames()) == []


def test_a_seed_gives_the_same_jobs_again_and_another_gives_others(jobs: pl.DataFrame) -> None:
    assert_frame_equal(jobs, all_jobs(SyntheticCluster(jobs=20_000, seed=0)))
    assert not jobs.equals(all_jobs(SyntheticCluster(jobs=20_000, seed=1)))


@pytest.mark.parametrize("batch", [1, 7, 65_536, 100_000])
def test_the_batch_changes_nothing_but_where_frames_end(batch: int) -> None:
    cluster = SyntheticCluster(jobs=100 if batch == 1 else 140_000, seed=3)
    frames = cluster.frames(batch)
    if batch == 7:
        frames = itertools.islice(frames, 1000)
    sizes, parts = zip(*((frame.height, frame) for frame in frames), strict=True)
    whole = pl.concat(parts)
    assert set(sizes[:-1]) <= {batch}
    assert 1 <= sizes[-1] <= batch
    assert_frame_equal(whole, all_jobs(cluster).head(whole.height))


def test_frames_come_one_by_one() -> None:
    frames = SyntheticCluster(jobs=1_000_000_000, seed=2).frames(batch=10)
    assert next(frames).height == 10


def test_jobs_come_in_order_of_submission_with_rising_ids() -> None:
    jobs = all_jobs(SyntheticCluster(jobs=150_000, seed=5))
    assert jobs["submit_time"].is_sorted()
    assert (jobs["job_id"].diff().drop_nulls() > 0).all()


def test_columns_are_job_fields_in_their_order_with_their_types(jobs: pl.DataFrame) -> None:
    known = [field.name for field in FIELDS]
    assert jobs.columns == sorted(jobs.columns, key=known.index)
    assert all(jobs.schema[name] == BY_NAME[name].kind.dtype for name in jobs.columns)
    for name in ("executable", "reservation", "source", "seen_at"):
        assert name not in jobs.columns


def test_numbers_keep_within_the_bounds_of_their_fields(jobs: pl.DataFrame) -> None:
    for field in FIELDS:
        if field.least is not None and field.most is not None and field.name in jobs.columns:
            inside = jobs[field.name].is_between(field.least, field.most)
            assert inside.drop_nulls().all(), field.name


@pytest.mark.parametrize("seed", range(3))
def test_times_agree(seed: int) -> None:
    jobs = all_jobs(SyntheticCluster(jobs=20_000, seed=seed))
    submit, eligible, start, end = (
        pl.col(f"{moment}_time") for moment in ("submit", "eligible", "start", "end")
    )
    wrong = jobs.filter(
        (submit > eligible)
        | (eligible > pl.coalesce(start, end))
        | (pl.coalesce(start, submit) > end)
        | end.is_null()
        | ((end - start).dt.total_seconds() != pl.col("elapsed_s"))
        | (start.is_not_null() & eligible.is_null())
        | (NEVER_STARTED & (pl.col("elapsed_s") != 0))
        | (submit.dt.microsecond() != 0)
        | (pl.col("cpu_total_s") > pl.col("elapsed_s") * pl.col("req_cpus") + 0.001)
    )
    assert wrong.is_empty(), wrong


def test_jobs_that_never_started_have_no_allocation(jobs: pl.DataFrame) -> None:
    granted = [name for name in jobs.columns if name.startswith("alloc_")] + ["node_list"]
    absent = jobs.select(pl.all_horizontal(pl.col(granted).is_null()), never=NEVER_STARTED)
    assert absent.to_series(0).equals(absent["never"].alias(absent.columns[0]))
    assert jobs.filter(NEVER_STARTED)["state"].unique().sort().to_list() == [
        "CANCELLED",
        "DEADLINE",
    ]


@pytest.mark.parametrize("seed", range(4))
def test_every_way_to_end_is_there(seed: int) -> None:
    jobs = all_jobs(SyntheticCluster(jobs=20_000, seed=seed))
    assert set(jobs["state"]) == {
        "COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "CANCELLED", "PREEMPTED",
        "DEADLINE",
    }  # fmt: skip
    cancelled = jobs.filter(state="CANCELLED")
    assert cancelled.filter(NEVER_STARTED).height > 50
    assert cancelled.filter(~NEVER_STARTED).height > 50
    in_a_step = jobs.filter(state="FAILED", step_state="OUT_OF_MEMORY")
    assert in_a_step.height > 20
    assert set(in_a_step["derived_exit_signal"]) == {125}
    ends = set(jobs.filter(state="FAILED").select("exit_code", "exit_signal").iter_rows())
    assert ends >= {(1, 0), (2, 0), (126, 0), (127, 0), (0, 11)}


@pytest.mark.parametrize("seed", range(4))
def test_about_one_job_in_six_fails(seed: int) -> None:
    jobs = all_jobs(SyntheticCluster(jobs=20_000, seed=seed))
    failed = ~jobs["state"].is_in(["COMPLETED", "PREEMPTED"])
    assert 0.1 < failed.mean() < 0.3


def test_jobs_out_of_time_had_used_it_and_no_other_had(jobs: pl.DataFrame) -> None:
    over = pl.col("elapsed_s") - pl.col("time_limit_s")
    assert jobs.filter(state="TIMEOUT").select(over.is_between(0, 30).all()).item()
    assert jobs.filter(pl.col("state") == "COMPLETED").select((over <= 0).all()).item()
    assert jobs.filter("time_unlimited").select(pl.col("time_limit_s").is_null().all()).item()
    assert jobs.filter("time_unlimited").height > 20


def test_jobs_out_of_memory_had_filled_it(jobs: pl.DataFrame) -> None:
    share = pl.col("max_rss_mb") / (pl.col("req_memory_mb") / pl.col("req_nodes"))
    killed = jobs.filter(step_state="OUT_OF_MEMORY").select(share.alias("share"))["share"]
    assert killed.is_between(0.85, 1.0).all()
    assert jobs.filter(~NEVER_STARTED).select((share <= 1).all()).item()


def test_memory_is_asked_for_by_node_or_by_cpu_and_adds_up(jobs: pl.DataFrame) -> None:
    by_node = pl.col("req_memory_per_node_mb") * pl.col("req_nodes")
    by_cpu = pl.col("req_memory_per_cpu_mb") * pl.col("req_cpus")
    total = jobs.select(asked=pl.coalesce(by_node, by_cpu), total="req_memory_mb")
    assert total["asked"].equals(total["total"].alias("asked"))
    assert jobs.select((by_node.is_null() != by_cpu.is_null()).all()).item()


def test_a_failure_foretells_another_of_the_same_user_and_name(jobs: pl.DataFrame) -> None:
    alone = jobs.filter(pl.col("array_job_id").is_null(), pl.col("dependency").is_null())
    history = alone.with_columns(failed=pl.col("state") != "COMPLETED").with_columns(
        before=pl.col("failed").shift().over("user", "job_name")
    )
    rate = dict(history.drop_nulls("before").group_by("before").agg(pl.col("failed").mean()).rows())
    assert rate[True] > 2 * history["failed"].mean()
    assert 0.01 < rate[False] < rate[True] < 0.9


def test_failed_work_is_tried_again_both_as_it_was_and_with_more(jobs: pl.DataFrame) -> None:
    alone = jobs.filter(pl.col("array_job_id").is_null()).with_columns(
        later=pl.col("time_limit_s").shift(-1).over("user", "job_name")
    )
    next_after = alone.filter(pl.col("state") == "TIMEOUT").drop_nulls("later")
    raised = next_after.filter(pl.col("later") > pl.col("time_limit_s")).height
    same = next_after.filter(pl.col("later") == pl.col("time_limit_s")).height
    assert min(raised, same) > 20


def test_node_failures_gather_on_a_node_for_a_while() -> None:
    jobs = all_jobs(SyntheticCluster(jobs=60_000, seed=4))
    lost = jobs.filter(pl.col("state") == "NODE_FAIL", pl.col("req_nodes") == 1)
    by_node_and_day = lost.group_by("node_list", pl.col("end_time").dt.truncate("12h")).len()
    assert by_node_and_day["len"].max() > 10


def test_arrays_share_what_an_array_shares(jobs: pl.DataFrame) -> None:
    arrays = jobs.drop_nulls("array_job_id").group_by("array_job_id")
    shared = arrays.agg(
        pl.col("submit_time", "user", "job_name", "partition", "req_memory_mb").n_unique(),
        first=pl.col("job_id").min(),
        tasks=pl.col("array_task_id").n_unique(),
        size=pl.len(),
    )
    assert shared.height > 50
    assert shared.select((pl.col("first") == pl.col("array_job_id")).all()).item()
    assert shared.select((pl.col("tasks") == pl.col("size")).all()).item()
    assert (shared["submit_time"] == 1).all()
    assert (shared["req_memory_mb"] == 1).all()
    assert shared["size"].max() > 50


def test_dependent_jobs_wait_for_the_job_they_name(jobs: pl.DataFrame) -> None:
    needed = pl.col("dependency").str.strip_prefix("afterok:").cast(pl.Int64)
    pairs = jobs.drop_nulls("dependency").with_columns(needed=needed)
    pairs = pairs.join(jobs, left_on="needed", right_on="job_id", suffix="_needed")
    well = pl.col("state_needed") == "COMPLETED"
    assert pairs.height == jobs["dependency"].count() > 100
    assert (
        pairs.filter(well)
        .select((pl.col("eligible_time") == pl.col("end_time_needed")).all())
        .item()
    )
    dropped = pairs.filter(~well)
    assert set(dropped["reason"]) == {"DependencyNeverSatisfied"}
    assert dropped["start_time"].is_null().all()


def test_activity_is_uneven_by_user_hour_and_day() -> None:
    jobs = all_jobs(SyntheticCluster(jobs=60_000, seed=6))
    share = jobs["user"].value_counts(sort=True)["count"] / jobs.height
    assert 100 <= len(share) <= 120
    assert share[0] > 0.08
    assert share.head(12).sum() > 0.4
    hour = jobs.group_by(pl.col("submit_time").dt.hour().alias("hour")).len().sort("hour")["len"]
    assert hour[10:18].sum() > 2 * (hour[0:6].sum() + hour[22:24].sum())
    weekend = jobs["submit_time"].dt.weekday().is_in([6, 7]).mean()
    assert weekend < 0.2


def test_the_period_is_the_one_asked_for() -> None:
    start = datetime(2025, 3, 3, tzinfo=UTC)
    jobs = all_jobs(SyntheticCluster(jobs=5000, seed=1, start=start, days=30, users=9, name="tiny"))
    assert start <= jobs["submit_time"].min() < datetime(2025, 3, 5, tzinfo=UTC)
    assert datetime(2025, 3, 30, tzinfo=UTC) < jobs["submit_time"].max()
    assert jobs["submit_time"].max() < datetime(2025, 4, 2, tzinfo=UTC)
    assert jobs["user"].n_unique() <= 9
    assert jobs["cluster"].unique().to_list() == ["tiny"]


@pytest.mark.parametrize(
    "wrong",
    [{"jobs": -1}, {"users": 0}, {"seed": -1}, {"days": 0}, {"start": datetime(2026, 1, 5)}],
    ids=str,
)
def test_what_no_cluster_can_be_made_of_is_refused(wrong: dict[str, int | datetime]) -> None:
    with pytest.raises(InvalidInput):
        SyntheticCluster(**({"jobs": 10} | wrong))


def test_a_batch_of_nothing_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput):
        SyntheticCluster(jobs=10).frames(batch=0)
