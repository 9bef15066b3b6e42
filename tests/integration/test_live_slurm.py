"""A real Slurm asked in every way there is: each way tells the same of the same jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from slurm_lab import submit, wait_for
from slurm_work import NAME, Work, differences

from premortem.errors import InvalidInput, PremortemError, Unavailable
from premortem.lab import Lab
from premortem.sources.live.callers import Caller, caller_from
from premortem.sources.live.commands import CommandCluster
from premortem.sources.live.questions import Patience
from premortem.sources.live.rest import RestCluster
from premortem.sources.port import Batch, together

pytestmark = pytest.mark.alone

RELEASES = ("slurm", "slurm_2205")
WAYS = ("rest", "commands", "text")
SERVED = [("slurm", number) for number in (40, 41, 42)] + [("slurm_2205", n) for n in (37, 38)]
QUICK = Patience(timeout_s=20, attempts=2, pause_s=0.01)
Reach = Callable[..., Any]
SCRIPT = "#!/bin/bash\nexport API_KEY=[redacted]\nsrun true\n"


@pytest.fixture(scope="module")
def work(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Work]]:
    """The jobs of a release, submitted when first asked for."""
    made: dict[str, Work] = {}

    def of(release: str) -> Work:
        if release not in made:
            made[release] = Work(request.getfixturevalue(release))
        return made[release]

    yield of
    for one in made.values():
        one.end()


@pytest.fixture
def reached() -> Iterator[Reach]:
    """A cluster reached in one of the ways."""
    with ExitStack() as opened:

        def reach(lab: Lab, way: str, **options: Any) -> Any:
            if way == "rest":
                token = lab.command("scontrol", "token")
                caller = options.pop("caller", None) or caller_from(command=token, environment={})
                cluster: RestCluster | CommandCluster = RestCluster(
                    lab.rest_url, caller, patience=QUICK, **options
                )
            else:
                cluster = CommandCluster(lab.command(), json=way == "commands", **options)
            opened.callback(cluster.close)
            return cluster

        yield reach


def only(batch: Batch, ids: list[int]) -> pl.DataFrame:
    named = [name for name in ("job_id", "array_job_id") if name in batch.jobs.columns]
    return batch.jobs.filter(pl.any_horizontal(pl.col(named).is_in(ids)))


@pytest.mark.parametrize("release", RELEASES)
class TestOneStory:
    @pytest.mark.parametrize("way", ["commands", "text"])
    def test_of_slurmctld(
        self, reached: Reach, work: Callable[[str], Work], release: str, way: str
    ) -> None:
        jobs = work(release)
        left, right = (only(reached(jobs.lab, one).live(), jobs.all) for one in ("rest", way))
        assert left.height == len(jobs.all) + 1
        assert differences(left, right) == []
        for job in (jobs.running, jobs.held_array, jobs.odd, jobs.failed):
            left, right = (reached(jobs.lab, one).controlled(job).jobs for one in ("rest", way))
            assert left.height == 1
            assert differences(left, right) == []

    @pytest.mark.parametrize("way", ["commands", "text"])
    def test_of_slurmdbd(
        self, reached: Reach, work: Callable[[str], Work], release: str, way: str
    ) -> None:
        jobs = work(release)
        plain = [job for job in jobs.all if job != jobs.odd]
        left, right = (reached(jobs.lab, one).by_id(plain) for one in ("rest", way))
        assert (left.jobs.height, left.rejects.height) == (len(plain) + 1, 0)
        assert differences(left.jobs, right.jobs) == []
        now = datetime.now(UTC)
        left, right = (
            together(reached(jobs.lab, one).accounted(jobs.began, now)) for one in ("rest", way)
        )
        ended = [jobs.done, jobs.failed, jobs.signalled, jobs.hungry, jobs.array, jobs.running]
        assert only(left, ended).height == len(ended) + 1
        assert differences(only(left, ended), only(right, ended)) == []
        # Who never was eligible is in no window.
        assert only(left, [jobs.held, jobs.cancelled]).height == 0

    def test_of_both(self, reached: Reach, work: Callable[[str], Work], release: str) -> None:
        jobs = work(release)
        cluster = reached(jobs.lab, "rest")
        ours = [job for job in jobs.all if job not in (jobs.odd, jobs.held_array)]
        live = only(cluster.live(), ours)
        # slurmdbd tells of the account's share of memory and of steps what slurmctld does not.
        assert differences(live, cluster.by_id(ours).jobs, "eligible_time") == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("way", WAYS)
class TestEachWay:
    def test_jobs_are_what_they_were_meant_to_be(
        self, reached: Reach, work: Callable[[str], Work], release: str, way: str
    ) -> None:
        jobs = work(release)
        cluster = reached(jobs.lab, way)
        known = {row["job_id"]: row for row in cluster.by_id(jobs.all).jobs.rows(named=True)}
        done, hungry, cancelled = (known[job] for job in (jobs.done, jobs.hungry, jobs.cancelled))
        assert (done["state"], done["user"], done["account"]) == (
            "COMPLETED",
            "user02",
            "chemistry",
        )
        assert (done["job_name"], done["cluster"]) == (NAME, "lab")
        assert (hungry["state"], hungry["step_state"]) == ("FAILED", "OUT_OF_MEMORY")
        assert hungry["req_memory_mb"] == 50
        assert known[jobs.failed]["time_limit_s"] == 420
        # Of 22.05, only the commands tell.
        told = None if (way, release) == ("rest", "slurm_2205") else 3
        assert (known[jobs.failed]["exit_code"], known[jobs.failed]["exit_signal"]) == (told, 0)
        assert known[jobs.signalled]["exit_signal"] == 9
        assert (cancelled["state"], cancelled["start_time"]) == ("CANCELLED", None)
        assert (known[jobs.held]["state"], known[jobs.held]["req_cpus"]) == ("PENDING", 2)
        assert (known[jobs.running]["alloc_gpus"], known[jobs.running]["state"]) == (1, "RUNNING")
        tasks = [row for row in known.values() if row["array_job_id"] == jobs.array]
        assert sorted(row["state"] for row in tasks) == ["COMPLETED", "FAILED"]

    def test_names_of_any_bytes(
        self, reached: Reach, work: Callable[[str], Work], release: str, way: str
    ) -> None:
        jobs = work(release)
        [row] = reached(jobs.lab, way).controlled(jobs.odd).jobs.rows(named=True)
        assert row["job_name"] == "\\xff\\xfe line\nend \x01 <\"'\\>"
        accounted = reached(jobs.lab, way).by_id([jobs.odd])
        # Accounting keeps no such bytes and no double quotes, and text no ends of lines.
        assert accounted.jobs["job_name"][0].startswith("?? line")
        assert accounted.jobs["state"].to_list() == ["PENDING"]

    def test_a_window_does_not_cut_a_job(
        self, reached: Reach, work: Callable[[str], Work], release: str, way: str
    ) -> None:
        jobs = work(release)
        cluster = reached(jobs.lab, way)
        [whole] = cluster.controlled(jobs.running).jobs["start_time"]
        now = datetime.now(UTC)
        late = together(cluster.accounted(now - timedelta(seconds=1), now))
        assert only(late, [jobs.running])["start_time"].to_list() == [whole]

    def test_scripts(
        self, reached: Reach, work: Callable[[str], Work], release: str, way: str
    ) -> None:
        jobs = work(release)
        cluster = reached(jobs.lab, way)
        if (way, release) == ("rest", "slurm_2205"):
            assert cluster.scripts([jobs.done]) == {}
            return
        deadline = time.monotonic() + 30
        while jobs.done not in (told := cluster.scripts([jobs.done, jobs.array, 9_999_999])):
            assert time.monotonic() < deadline, "the script follows some seconds after the job"
            time.sleep(0.5)
        assert told[jobs.done] == SCRIPT
        assert told[jobs.array] == "#!/bin/bash\nexit $SLURM_ARRAY_TASK_ID\n"
        assert 9_999_999 not in told
        if way == "rest":
            assert cluster.by_id([jobs.done]).jobs["script"].to_list() == [SCRIPT]

    def test_partitions_and_nodes(
        self, reached: Reach, work: Callable[[str], Work], release: str, way: str
    ) -> None:
        jobs = work(release)
        cluster = reached(jobs.lab, way)
        count = jobs.lab.record.plan.nodes
        partitions = {one.name: one for one in cluster.partitions()}
        assert list(partitions) == ["normal", "short", "low", "high", "gpu"]
        short = partitions["short"]
        assert (short.max_time_s, short.default_time_s, short.is_up) == (300, 60, True)
        assert (short.default_memory_per_cpu_mb, short.max_memory_per_node_mb) == (200, None)
        assert (short.total_nodes, short.total_memory_mb) == (count, 8000 * count)
        assert (partitions["gpu"].total_gpus, partitions["gpu"].nodes) == (2, f"n{count}")
        nodes = cluster.nodes()
        assert [node.name for node in nodes] == [f"n{n + 1}" for n in range(count)]
        assert (nodes[-1].cpus, nodes[-1].memory_mb, nodes[-1].gpus) == (8, 8000, 2)
        assert (nodes[-1].states, nodes[-1].alloc_cpus) == (("MIXED",), 1)
        assert nodes == reached(jobs.lab, "rest").nodes()

    def test_nothing_is_found_and_calls_are_counted(
        self, reached: Reach, work: Callable[[str], Work], release: str, way: str
    ) -> None:
        cluster = reached(work(release).lab, way)
        assert cluster.controlled(9_999_999).read == 0
        assert cluster.calls.slurmctld in (1, 2)
        assert cluster.by_id([9_999_999]).read == 0
        assert cluster.by_id([]).read == 0
        assert cluster.calls.slurmdbd in (1, 2)
        old = datetime(2020, 1, 1, tzinfo=UTC)
        assert together(cluster.accounted(old, old + timedelta(hours=1))).read == 0


class TestRequeued:
    @pytest.mark.parametrize("release", RELEASES)
    def test_each_run_is_told(
        self, reached: Reach, request: pytest.FixtureRequest, release: str
    ) -> None:
        lab: Lab = request.getfixturevalue(release)
        job = submit(lab, "sleep 600", "--requeue", "--nodelist=n1")
        wait_for(lab, job, "RUNNING")
        # A second run within the second of the first would be the same job to Slurm.
        time.sleep(1.2)
        lab.run("scontrol", "requeue", str(job))
        try:
            for way in WAYS:
                deadline = time.monotonic() + 20
                while True:
                    runs = reached(lab, way).by_id([job]).jobs.sort("submit_time")
                    if runs["state"].to_list() == ["REQUEUED", "PENDING"]:
                        break
                    assert time.monotonic() < deadline, runs["state"].to_list()
                    time.sleep(0.3)
                now = datetime.now(UTC)
                span = together(reached(lab, way).accounted(now - timedelta(minutes=5), now))
                assert "REQUEUED" in only(span, [job])["state"].to_list()
        finally:
            lab.run("scancel", str(job))


class TestVersions:
    @pytest.mark.parametrize(("release", "number"), SERVED)
    def test_each_tells_the_same(
        self, reached: Reach, work: Callable[[str], Work], release: str, number: int
    ) -> None:
        jobs = work(release)
        newest, asked = (
            reached(jobs.lab, "rest"),
            reached(jobs.lab, "rest", version=f"v0.0.{number}"),
        )
        # v0.0.37 tells when a job became eligible as its start, and no default time.
        wrong = ("start_time",) if number == 37 else ()
        left, right = (cluster.by_id(jobs.all) for cluster in (newest, asked))
        assert differences(left.jobs, right.jobs, *wrong) == []
        assert right.jobs["api_version"].unique().to_list() == [f"v0.0.{number}"]
        left, right = (only(cluster.live(), jobs.all) for cluster in (newest, asked))
        assert differences(left, right) == []
        assert newest.nodes() == asked.nodes()
        if number != 37:
            assert newest.partitions() == asked.partitions()

    @pytest.mark.parametrize(("release", "version"), [("slurm", 42), ("slurm_2205", 38)])
    def test_the_newest_is_chosen(
        self, reached: Reach, request: pytest.FixtureRequest, release: str, version: int
    ) -> None:
        cluster = reached(request.getfixturevalue(release), "rest")
        assert cluster.version == f"v0.0.{version}"
        assert cluster.calls.slurmctld == cluster.calls.slurmdbd == 0


@pytest.mark.parametrize("release", RELEASES)
class TestTokens:
    def test_one_that_ends_meanwhile_is_replaced(
        self, reached: Reach, request: pytest.FixtureRequest, release: str
    ) -> None:
        lab: Lab = request.getfixturevalue(release)
        command = lab.command("scontrol", "token", "username=user01", "lifespan=1")
        caller = caller_from(command=command, environment={})
        cluster = reached(lab, "rest", caller=caller)
        for _ in range(3):
            assert cluster.nodes()
            cluster.by_id([1])
            time.sleep(1.1)

    @pytest.mark.parametrize("daemon", ["slurmctld", "slurmdbd"])
    @pytest.mark.parametrize("kind", ["expired", "garbage"])
    def test_one_that_is_refused(
        self, reached: Reach, request: pytest.FixtureRequest, release: str, daemon: str, kind: str
    ) -> None:
        lab: Lab = request.getfixturevalue(release)
        token = lab.token("user01", lifespan_s=1) if kind == "expired" else "no.such.token"
        if kind == "expired":
            time.sleep(2.1)
        cluster = reached(lab, "rest", caller=Caller(lambda: token, user="user01"))
        # slurmctld of 22.05 does not say what it does not like.
        vague = (release, daemon) == ("slurm_2205", "slurmctld")
        with pytest.raises(Unavailable if vague else InvalidInput) as found:
            cluster.nodes() if daemon == "slurmctld" else cluster.by_id([1])
        seen: BaseException | None = found.value
        while seen:
            assert token not in str(seen) + repr(vars(seen))
            seen = seen.__cause__ or seen.__context__


@pytest.mark.parametrize("release", RELEASES)
class TestOutages:
    def test_slurmrestd_goes_and_comes_back(
        self, reached: Reach, request: pytest.FixtureRequest, release: str
    ) -> None:
        lab: Lab = request.getfixturevalue(release)
        cluster = reached(lab, "rest")
        before = cluster.partitions()
        lab.kill("slurmrestd")
        try:
            with pytest.raises(Unavailable):
                cluster.partitions()
        finally:
            lab.up()
        assert cluster.partitions() == before

    @pytest.mark.parametrize("way", WAYS)
    def test_slurmdbd_goes_and_comes_back(
        self, reached: Reach, request: pytest.FixtureRequest, release: str, way: str
    ) -> None:
        lab: Lab = request.getfixturevalue(release)
        cluster = reached(lab, way)
        lab.kill("slurmdbd")
        try:
            with pytest.raises(PremortemError, match=r"onnect|attempts") as found:
                cluster.by_id([1])
            assert isinstance(found.value, Unavailable)
            assert cluster.nodes()
        finally:
            lab.up()
        cluster.by_id([1])
