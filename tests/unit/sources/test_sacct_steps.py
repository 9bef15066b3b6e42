"""Steps of a dump, folded into their jobs."""

from datetime import UTC, datetime

import pytest

from premortem.sources import files
from premortem.sources.files import InputFile
from premortem.sources.port import Context
from premortem.sources.sacct import SacctSource

NOW = datetime(2026, 1, 10, tzinfo=UTC)
HEADER = "JobID|Submit|State|UserCPU|TotalCPU|MaxRSS|AveDiskRead|ConsumedEnergyRaw"
USAGE = ("cpu_user_s", "cpu_total_s", "max_rss_mb", "avg_disk_read_mb", "energy_j")


def line(id, state="COMPLETED", cpu="", rss="", read="", energy=""):
    return f"{id}|2026-01-05T08:00:00|{state}|{cpu}|{cpu}|{rss}|{read}|{energy}"


def load(tmp_path, *lines):
    path = tmp_path / "dump"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    with InputFile(path) as file:
        batches = list(SacctSource(file, Context(now=NOW, seen_at=NOW)).batches())
    jobs = [job for batch in batches for job in batch.jobs.rows(named=True)]
    return jobs, [reject for batch in batches for reject in batch.rejects.rows()]


def used(job):
    return tuple(job[name] for name in USAGE)


def test_steps_tell_what_their_job_used(tmp_path):
    [first, second], rejects = load(
        tmp_path,
        line("100", cpu="00:00:00"),
        line("100.batch", cpu="00:01:00", rss="2048K", read="1M", energy="10"),
        line("100.0", cpu="00:02:00", rss="1024K", read="3M", energy="20"),
        line("101", cpu="00:00:00"),
        line("101.batch", cpu="00:00:05", rss="1M"),
    )
    assert rejects == []
    assert used(first) == (180, 180, 2, 3, 30)
    assert used(second) == (5, 5, 1, None, None)


def test_a_jobs_own_figures_count_before_its_steps(tmp_path):
    [job], _ = load(
        tmp_path,
        line("100", cpu="00:10:00", energy="99"),
        line("100.0", cpu="00:01:00", energy="5"),
    )
    assert (job["cpu_total_s"], job["energy_j"]) == (600, 99)


def test_what_no_step_tells_stays_absent_and_zero_stays_zero(tmp_path):
    [silent, idle], _ = load(
        tmp_path,
        line("100"),
        line("100.0"),
        line("101", cpu="00:00:00"),
        line("101.0", cpu="00:00:00"),
    )
    assert used(silent) == (None,) * 5
    assert idle["cpu_total_s"] == 0


@pytest.mark.parametrize(
    ("steps", "telling"),
    [
        (["COMPLETED", "OUT_OF_MEMORY", "FAILED"], "OUT_OF_MEMORY"),
        (["OUT_OF_MEMORY", "COMPLETED"], "OUT_OF_MEMORY"),
        (["COMPLETED", "CANCELLED by 7"], "CANCELLED"),
        (["FAILED", "CANCELLED"], "FAILED"),
        (["TIMEOUT", "FAILED"], "TIMEOUT"),
        (["COMPLETED"], "COMPLETED"),
    ],
)
def test_the_most_telling_step_is_kept(tmp_path, steps, telling):
    lines = [line(f"100.{number}", state) for number, state in enumerate(steps)]
    [job], _ = load(tmp_path, line("100", "FAILED"), *lines)
    assert (job["state"], job["step_state"]) == ("FAILED", telling)


def test_a_job_without_steps_has_no_step_state(tmp_path):
    [with_step, without], _ = load(tmp_path, line("1"), line("1.batch"), line("2"))
    assert (with_step["step_state"], without.get("step_state")) == ("COMPLETED", None)


def test_steps_of_array_tasks_and_components_find_their_job(tmp_path):
    jobs, rejects = load(
        tmp_path,
        line("100_1"),
        line("100_1.batch", cpu="00:00:01"),
        line("100_2"),
        line("100_2.batch", cpu="00:00:02"),
        line("200+1"),
        line("200+1.extern", cpu="00:00:03"),
    )
    assert rejects == []
    assert [job["cpu_total_s"] for job in jobs] == [1, 2, 3]


def test_a_step_without_its_job_is_set_aside(tmp_path):
    jobs, rejects = load(
        tmp_path,
        line("99.batch", cpu="01:00:00"),
        line("100"),
        line("101.batch", cpu="01:00:00"),
        line("100.0", cpu="00:00:07"),
    )
    [job] = jobs
    assert job["cpu_total_s"] == 7
    reason = "a step whose job is not on a line before it"
    assert [(number, why) for number, why, _ in rejects] == [(2, reason), (4, reason)]


def test_an_unreadable_step_is_set_aside_and_tells_nothing(tmp_path):
    [job], rejects = load(
        tmp_path,
        line("100"),
        line("100.0", cpu="00:00:07"),
        line("100.1", cpu="long", rss="9G"),
        "100.2|cut short",
    )
    assert used(job)[:3] == (7, 7, None)
    assert [(number, why) for number, why, _ in rejects] == [
        (4, "UserCPU is 'long', expected a duration such as 1-12:00:00"),
        (5, "8 columns expected, 2 found"),
    ]


def test_the_steps_of_a_bad_job_go_with_it(tmp_path):
    [job], rejects = load(
        tmp_path, line("100", "ASLEEP"), line("100.0", cpu="00:01:00"), line("101")
    )
    assert (job["job_id"], job["cpu_total_s"]) == (101, None)
    assert [number for number, _, _ in rejects] == [2]


@pytest.mark.parametrize("size", [10, 40, 61, 100, 300])
def test_a_job_and_its_steps_may_lie_in_several_blocks(tmp_path, monkeypatch, size):
    lines = []
    for number in range(1, 15):
        lines.append(line(number))
        lines += [line(f"{number}.{step}", cpu="00:00:10") for step in range(number % 4)]
    lines.append(line("99.0"))
    whole = load(tmp_path, *lines)
    monkeypatch.setattr(files, "BLOCK_BYTES", size)
    jobs, rejects = load(tmp_path, *lines)
    assert [job["cpu_total_s"] or 0 for job in jobs] == [n % 4 * 10 for n in range(1, 15)]
    assert [job["job_id"] for job in jobs] == [job["job_id"] for job in whole[0]]
    assert rejects == whole[1]
