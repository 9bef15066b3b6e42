"""Slurm's JSON of every API version, from accounting and from the controller."""

import gzip
import json
from datetime import UTC, datetime

import pytest

from premortem.errors import InvalidInput
from premortem.sources import slurm_json
from premortem.sources.files import InputFile
from premortem.sources.port import Context
from premortem.sources.slurm_json import SlurmJsonSource

NOW = datetime(2026, 1, 10, tzinfo=UTC)
SUBMIT, START, END = 1767600000, 1767600060, 1767600660


def load(tmp_path, document, **context):
    """Jobs without what is absent, rejects, and notes."""
    path = tmp_path / "jobs.json"
    if not isinstance(document, bytes):
        text = document if isinstance(document, str) else json.dumps(document)
        document = text.encode()
    path.write_bytes(document)
    with InputFile(path) as file:
        source = SlurmJsonSource(file, Context(now=NOW, seen_at=NOW, **context))
        batches = list(source.batches())
    jobs = [job for batch in batches for job in batch.jobs.rows(named=True)]
    jobs = [{name: value for name, value in job.items() if value is not None} for job in jobs]
    return jobs, [reject for batch in batches for reject in batch.rejects.rows()], source.notes


def one(tmp_path, record):
    [job], rejects, notes = load(tmp_path, {"jobs": [record]})
    assert (rejects, notes) == ([], [])
    return job


def some(number):
    """A number as newer versions write it."""
    return {"set": True, "infinite": False, "number": number}


UNSET = {"set": False, "infinite": False, "number": 0}
INFINITE = {"set": False, "infinite": True, "number": 0}


def tres(**counts):
    names = {"gpu": ("gres", "gpu"), "disk": ("fs", "disk")}
    return [
        {
            "type": names.get(n, (n, ""))[0],
            "name": names.get(n, (n, ""))[1],
            "id": 1,
            "count": count,
        }
        for n, count in counts.items()
    ]


def accounting(**changes):
    """A job of /slurmdb in the spelling of v0.0.40 and later."""
    return {
        "job_id": 100,
        "cluster": "lab",
        "user": "ada",
        "group": "staff",
        "account": "physics",
        "partition": "long",
        "qos": "normal",
        "name": "relax",
        "nodes": "n[1-2]",
        "working_directory": "/home/ada",
        "submit_line": "sbatch a.sh",
        "constraints": "haswell",
        "reservation": {"id": 3, "name": "maint"},
        "association": {"account": "physics", "cluster": "lab", "user": "ada"},
        "array": {"job_id": 90, "task_id": some(7)},
        "het": {"job_id": 0, "job_offset": UNSET},
        "priority": some(1234),
        "state": {"current": ["FAILED"], "reason": "NonZeroExitCode"},
        "exit_code": {
            "status": ["ERROR"],
            "return_code": some(3),
            "signal": {"id": UNSET, "name": ""},
        },
        "derived_exit_code": {
            "status": ["SIGNALED"],
            "return_code": some(0),
            "signal": {"id": some(9), "name": "KILL"},
        },
        "time": {
            "submission": SUBMIT,
            "eligible": SUBMIT,
            "start": START,
            "end": END,
            "elapsed": 600,
            "limit": some(90),
            "user": {"seconds": 5, "microseconds": 500000},
            "system": {"seconds": 1, "microseconds": 0},
            "total": {"seconds": 6, "microseconds": 500000},
        },
        "required": {"CPUs": 8, "memory_per_cpu": some(512), "memory_per_node": UNSET},
        "tres": {
            "requested": tres(cpu=8, mem=4096, node=2, gpu=2),
            "allocated": tres(cpu=8, mem=8192, node=2, gpu=2, energy=1500),
        },
        "steps": [],
    } | changes


def old_accounting():
    """The same job in the spelling of v0.0.37 to v0.0.39."""
    job = accounting()
    return job | {
        "array": {"job_id": 90, "task_id": 7},
        "het": {"job_id": 0, "job_offset": None},
        "priority": 1234,
        "state": {"current": "FAILED", "reason": "NonZeroExitCode"},
        "exit_code": {"status": "ERROR", "return_code": 3},
        "derived_exit_code": {
            "status": "SIGNALED",
            "return_code": 0,
            "signal": {"signal_id": 9, "name": "KILL"},
        },
        "time": job["time"] | {"limit": 90},
        "required": {"CPUs": 8, "memory": 2**63 + 512},
    }


def controller(**changes):
    """A job of /slurm in the spelling of v0.0.40 and later."""
    return {
        "job_id": 100,
        "cluster": "lab",
        "user_name": "ada",
        "user_id": 1001,
        "group_name": "staff",
        "group_id": 50,
        "account": "physics",
        "partition": "long",
        "qos": "normal",
        "name": "relax",
        "command": "/home/ada/a.sh",
        "current_working_directory": "/home/ada",
        "features": "haswell",
        "dependency": "afterok:99",
        "resv_name": "maint",
        "array_job_id": some(0),
        "array_task_id": UNSET,
        "het_job_id": some(100),
        "het_job_offset": some(0),
        "submit_time": some(SUBMIT),
        "eligible_time": some(SUBMIT),
        "start_time": some(START),
        "end_time": some(END),
        "priority": some(1234),
        "requeue": True,
        "restart_cnt": 1,
        "cpus": some(8),
        "node_count": some(2),
        "tasks": some(4),
        "memory_per_node": some(2048),
        "memory_per_cpu": UNSET,
        "tres_req_str": "cpu=8,mem=4G,node=2,billing=8,gres/gpu=2",
        "tres_alloc_str": "cpu=8,mem=4G,node=2,billing=8,gres/gpu=2",
        "time_limit": some(90),
        "nodes": "n[1-2]",
        "job_state": ["FAILED"],
        "state_reason": "NonZeroExitCode",
        "exit_code": {
            "status": ["ERROR"],
            "return_code": some(3),
            "signal": {"id": UNSET, "name": ""},
        },
        "derived_exit_code": {
            "status": ["SIGNALED"],
            "return_code": some(0),
            "signal": {"id": some(9), "name": "KILL"},
        },
    } | changes


def old_controller():
    """The same job in the spelling of v0.0.37 to v0.0.39."""
    return controller() | {
        "array_job_id": 0,
        "array_task_id": None,
        "het_job_id": 100,
        "het_job_offset": 0,
        "submit_time": SUBMIT,
        "eligible_time": SUBMIT,
        "start_time": START,
        "end_time": END,
        "priority": 1234,
        "cpus": 8,
        "node_count": 2,
        "tasks": 4,
        "memory_per_node": 2048,
        "memory_per_cpu": None,
        "time_limit": 90,
        "job_state": "FAILED",
        "exit_code": 3 << 8,
        "derived_exit_code": 9,
    }


def test_an_accounting_record(tmp_path):
    assert one(tmp_path, accounting()) == {
        "cluster": "lab", "job_id": 100, "array_job_id": 90, "array_task_id": 7,
        "submit_time": datetime(2026, 1, 5, 8, tzinfo=UTC),
        "eligible_time": datetime(2026, 1, 5, 8, tzinfo=UTC),
        "start_time": datetime(2026, 1, 5, 8, 1, tzinfo=UTC),
        "end_time": datetime(2026, 1, 5, 8, 11, tzinfo=UTC),
        "user": "ada", "group": "staff", "account": "physics", "partition": "long",
        "alloc_partition": "long", "qos": "normal", "job_name": "relax", "work_dir": "/home/ada",
        "submit_line": "sbatch a.sh", "features": "haswell", "reservation": "maint",
        "priority": 1234, "req_cpus": 8, "req_nodes": 2, "req_gpus": 2,
        "req_memory_per_cpu_mb": 512.0, "req_memory_mb": 4096.0,
        "req_tres": "cpu=8,mem=4096M,node=2,gres/gpu=2",
        "time_limit_s": 5400, "time_unlimited": False,
        "alloc_cpus": 8, "alloc_nodes": 2, "alloc_memory_mb": 8192.0, "alloc_gpus": 2,
        "alloc_tres": "cpu=8,mem=8192M,node=2,gres/gpu=2,energy=1500", "node_list": "n[1-2]",
        "state": "FAILED", "reason": "NonZeroExitCode", "exit_code": 3, "exit_signal": 0,
        "derived_exit_code": 0, "derived_exit_signal": 9, "elapsed_s": 600,
        "cpu_user_s": 5.5, "cpu_system_s": 1.0, "cpu_total_s": 6.5, "energy_j": 1500.0,
        "source": "slurmdb", "seen_at": NOW,
    }  # fmt: skip


def test_a_controller_record(tmp_path):
    assert one(tmp_path, controller()) == {
        "cluster": "lab", "job_id": 100, "het_job_id": 100, "het_offset": 0,
        "submit_time": datetime(2026, 1, 5, 8, tzinfo=UTC),
        "eligible_time": datetime(2026, 1, 5, 8, tzinfo=UTC),
        "start_time": datetime(2026, 1, 5, 8, 1, tzinfo=UTC),
        "end_time": datetime(2026, 1, 5, 8, 11, tzinfo=UTC),
        "user": "ada", "uid": 1001, "group": "staff", "gid": 50, "account": "physics",
        "partition": "long",
        "alloc_partition": "long", "qos": "normal", "job_name": "relax",
        "executable": "/home/ada/a.sh", "work_dir": "/home/ada", "features": "haswell",
        "dependency": "afterok:99", "reservation": "maint", "priority": 1234, "requeue": True,
        "req_cpus": 8, "req_nodes": 2, "req_tasks": 4, "req_gpus": 2,
        "req_memory_per_node_mb": 2048.0, "req_memory_mb": 4096.0,
        "req_tres": "cpu=8,mem=4G,node=2,billing=8,gres/gpu=2",
        "time_limit_s": 5400, "time_unlimited": False,
        "alloc_cpus": 8, "alloc_nodes": 2, "alloc_memory_mb": 4096.0, "alloc_gpus": 2,
        "alloc_tres": "cpu=8,mem=4G,node=2,billing=8,gres/gpu=2", "node_list": "n[1-2]",
        "restart_count": 1, "state": "FAILED", "reason": "NonZeroExitCode",
        "exit_code": 3, "exit_signal": 0, "derived_exit_code": 0, "derived_exit_signal": 9,
        "elapsed_s": 600, "source": "slurmctld", "seen_at": NOW,
    }  # fmt: skip


def test_the_old_and_the_new_spelling_tell_the_same(tmp_path):
    assert one(tmp_path, old_accounting()) == one(tmp_path, accounting())
    assert one(tmp_path, old_controller()) == one(tmp_path, controller())


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (some(90), {"time_limit_s": 5400, "time_unlimited": False}),
        (90, {"time_limit_s": 5400, "time_unlimited": False}),
        (INFINITE, {"time_unlimited": True}),
        (2**32 - 1, {"time_unlimited": True}),
        (UNSET, {}),
        (2**32 - 2, {}),
        (None, {}),
    ],
)
def test_time_limits(tmp_path, limit, expected):
    job = one(tmp_path, controller(time_limit=limit))
    assert {name: value for name, value in job.items() if name.startswith("time_")} == expected


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        ({"memory": 4096}, {"req_memory_per_node_mb": 4096}),
        ({"memory": 2**63 + 4096}, {"req_memory_per_cpu_mb": 4096}),
        ({"memory_per_node": some(4096)}, {"req_memory_per_node_mb": 4096}),
        ({"memory_per_cpu": some(4096)}, {"req_memory_per_cpu_mb": 4096}),
        ({"memory_per_cpu": UNSET, "memory_per_node": UNSET}, {}),
        ({"memory": 0}, {}),
    ],
)
def test_memory_requests(tmp_path, required, expected):
    job = one(tmp_path, accounting(required=required, tres={}))
    assert {name: value for name, value in job.items() if "memory" in name} == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (0, (0, 0)),
        (256, (1, 0)),
        (9, (0, 9)),
        (125, (0, 125)),
        (some(512), (2, 0)),
        ({"status": "SUCCESS", "return_code": 0}, (0, 0)),
        ({"status": "PENDING"}, (None, None)),
        (UNSET, (None, None)),
        (None, (None, None)),
    ],
)
def test_exit_codes(tmp_path, status, expected):
    job = one(tmp_path, controller(exit_code=status))
    assert (job.get("exit_code"), job.get("exit_signal")) == expected


def test_a_pending_job_knows_nothing_of_its_start(tmp_path):
    job = one(tmp_path, controller(job_state=["PENDING"], state_reason="Priority"))
    assert (job["state"], job["reason"]) == ("PENDING", "Priority")
    assert not {"start_time", "end_time", "alloc_cpus", "node_list", "exit_code"} & set(job)


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        ({"tres_per_job": "gres/gpu:3"}, 3),
        ({"tres_per_node": "gres/gpu:a100:2"}, 4),
        ({"tres_per_node": "gres:gpu:2"}, 4),
        ({"tres_per_task": "gres/gpu=1"}, 4),
        ({"tres_per_node": "gres/gpu:a100:1,gres/gpu:v100:2"}, 6),
        ({}, None),
    ],
)
def test_gpus_asked_for_where_the_cluster_does_not_track_them(tmp_path, asked, gpus):
    job = one(tmp_path, controller(tres_req_str="cpu=8,node=2", **asked))
    assert job.get("req_gpus") == gpus


def test_gpus_by_type_are_added_up(tmp_path):
    requested = [
        {"type": "gres", "name": "gpu:a100", "count": 2},
        {"type": "gres", "name": "gpu:v100", "count": 1},
    ]
    job = one(tmp_path, accounting(tres={"requested": requested}))
    assert job["req_gpus"] == 3


def step(state, cpu, memory, read, write, energy):
    return {
        "state": state,
        "time": {"total": {"seconds": cpu, "microseconds": 250000}},
        "statistics": {"energy": {"consumed": energy}},
        "tres": {
            "requested": {
                "max": tres(mem=memory),
                "average": tres(disk=read),
            },
            "consumed": {"average": tres(disk=write)},
        },
    }


def test_steps_tell_what_their_job_used(tmp_path):
    mib = 2**20
    steps = [
        step("OUT_OF_MEMORY", 10, 100 * mib, 5 * mib, -2, some(20)),
        step(["COMPLETED"], 20, 300 * mib, 2 * mib, 7 * mib, 30),
        step("COMPLETED", 0, -1, -1, -1, UNSET),
    ]
    time = accounting()["time"] | {"total": {"seconds": 0, "microseconds": 0}}
    job = one(tmp_path, accounting(steps=steps, time=time, tres={}))
    assert job["step_state"] == "OUT_OF_MEMORY"
    assert (job["cpu_total_s"], job["energy_j"]) == (30.75, 50)
    assert (job["max_rss_mb"], job["avg_disk_read_mb"], job["avg_disk_write_mb"]) == (300, 5, 7)


def test_unknown_fields_are_ignored_and_missing_ones_absent(tmp_path):
    job = one(
        tmp_path,
        {
            "job_id": 5,
            "state": {"current": ["COMPLETED"], "mood": "fine"},
            "time": {"submission": SUBMIT, "teatime": 17},
            "sluid": "s123",
        },
    )
    assert set(job) == {"cluster", "job_id", "submit_time", "state", "source", "seen_at"}


def test_a_number_that_16_bits_would_not_set_is_a_number(tmp_path):
    job = one(tmp_path, controller(job_id=65534, user_id=65534))
    assert (job["job_id"], job["uid"]) == (65534, 65534)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("job", "a job must be an object, found str"),
        ({"job_id": 7}, "neither 'state' nor 'job_state'"),
        (accounting(state={"current": ["ASLEEP"]}), "state is \"['ASLEEP']\", expected"),
        (accounting(state={}), "state is 'None', expected"),
        (controller(job_state=5), "state is '5', expected"),
        (controller(priority="high"), "'high' where a number was expected"),
        (controller(priority=True), "'True' where a number was expected"),
        (controller(priority=10**400), "'1000"),
        (controller(priority=2**63), "9.22337e+18 is beyond any count"),
        (controller(time_limit=1e19), "6e+20 is beyond any count"),
        (controller(submit_time=10**13), "10000000000000 is no time in seconds since 1970"),
        (controller(job_id=0), "no job id"),
        (controller(submit_time=0), "no submit time"),
        (controller(cpus=-1, tres_req_str=""), "req_cpus is -1, which is not between"),
        (controller(end_time=SUBMIT - 5), "the job ends before it is submitted"),
    ],
)
def test_a_bad_record_is_set_aside_with_its_number(tmp_path, bad, reason):
    jobs, rejects, notes = load(tmp_path, {"jobs": [accounting(), bad, accounting(job_id=101)]})
    assert [job["job_id"] for job in jobs] == [100, 101]
    [(number, why, text)] = rejects
    assert number == 2
    assert why.startswith(reason)
    told = bad
    if isinstance(bad, dict):
        told = {name: bad[name] for name in ("job_id", "time") if name in bad} | bad
    assert text == json.dumps(told)[:500]
    assert notes == []


def test_a_document_of_bad_records_only(tmp_path):
    jobs, rejects, _ = load(tmp_path, {"jobs": [1, None, {"job_id": 3}]})
    assert jobs == []
    assert [number for number, _, _ in rejects] == [1, 2, 3]


@pytest.mark.parametrize("odd", [5, [5], {}, None, "ASLEEP"])
def test_a_step_of_no_known_state_tells_none(tmp_path, odd):
    assert "step_state" not in one(tmp_path, accounting(steps=[{"state": odd}]))


def test_hostile_text_does_no_harm(tmp_path):
    job = one(tmp_path, controller(name="\ud800 half", tres_req_str="cpu=1.2.3,mem=,=,node=2"))
    assert job["job_name"] == r"\ud800 half"
    assert (job.get("req_cpus"), job["req_nodes"]) == (None, 2)


def test_batches_change_nothing(tmp_path, monkeypatch):
    document = {"jobs": [accounting(job_id=n) if n % 3 else {"job_id": n} for n in range(1, 12)]}
    whole = load(tmp_path, document)
    monkeypatch.setattr(slurm_json, "_BATCH", 2)
    jobs, rejects, _ = load(tmp_path, document)
    assert jobs == whole[0]
    assert rejects == whole[1]
    assert [number for number, _, _ in rejects] == [3, 6, 9]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_truncated_document_keeps_what_came_before(tmp_path, indent):
    text = json.dumps({"jobs": [accounting(job_id=n) for n in range(1, 6)]}, indent=indent)
    jobs, rejects, _ = load(tmp_path, text[: len(text) * 3 // 5])
    assert [job["job_id"] for job in jobs] == [1, 2]
    [(number, reason, _)] = rejects
    assert number == 3
    assert reason.startswith("the JSON is cut short or malformed")


def test_a_truncated_compressed_document_keeps_what_came_before(tmp_path):
    document = {"jobs": [accounting(job_id=n) for n in range(1, 500)]}
    data = gzip.compress(json.dumps(document).encode())
    jobs, [(number, reason, _)], _ = load(tmp_path, data[: len(data) // 2])
    assert len(jobs) > 100
    assert [job["job_id"] for job in jobs] == list(range(1, number))
    assert "gzip data is cut short" in reason


def test_malformed_json_in_the_middle_ends_the_reading(tmp_path):
    text = f'{{"jobs": [{json.dumps(accounting())}, {{"job_id": oops}}, 5]}}'
    jobs, rejects, _ = load(tmp_path, text)
    assert len(jobs) == 1
    assert [number for number, _, _ in rejects] == [2]


@pytest.mark.parametrize("text", ['{"jo', "{1: 2}", "{[1]: 2}", "nothing", '{"a" 1}'])
def test_what_is_no_json_is_refused(tmp_path, text):
    with pytest.raises(InvalidInput, match="the JSON is cut short or malformed"):
        load(tmp_path, text)


def test_json_nested_beyond_reason_is_refused(tmp_path):
    with pytest.raises(InvalidInput):
        load(tmp_path, '{"jobs": [' + "[" * 200_000)


def test_a_number_of_thousands_of_digits_ends_the_reading(tmp_path):
    jobs, rejects, _ = load(tmp_path, f'{{"jobs": [{json.dumps(accounting())}, {"9" * 5000}]}}')
    assert len(jobs) == 1
    assert [number for number, _, _ in rejects] == [2]


def test_a_document_without_jobs_is_told(tmp_path):
    with pytest.raises(InvalidInput, match="no list of jobs; it holds nodes"):
        load(tmp_path, {"nodes": [], "meta": {}, "errors": []})
    with pytest.raises(InvalidInput, match="no list of jobs; it holds nothing"):
        load(tmp_path, {"meta": {}})
    assert load(tmp_path, {"jobs": []}) == ([], [], [])


def test_an_answer_of_errors_alone_is_an_error(tmp_path):
    errors = [{"description": "Authentication failure", "error": "Protocol error"}]
    with pytest.raises(InvalidInput, match="Authentication failure"):
        load(tmp_path, {"jobs": [], "errors": errors})


def test_documents_one_behind_another_are_all_read(tmp_path):
    text = "\n".join(json.dumps({"jobs": [accounting(job_id=n)]}) for n in (1, 2, 3))
    jobs, rejects, _ = load(tmp_path, text)
    assert ([job["job_id"] for job in jobs], rejects) == ([1, 2, 3], [])
    jobs, rejects, _ = load(tmp_path, text + " and more")
    assert [job["job_id"] for job in jobs] == [1, 2, 3]
    assert len(rejects) == 1


def test_a_record_reads_the_same_alone_and_in_company(tmp_path):
    cancelled = controller(
        job_id=2, job_state=["CANCELLED"], nodes="", tres_alloc_str="",
        start_time=1767600100, end_time=1767600100, submit_time=1767600000,
    )  # fmt: skip
    alone = load(tmp_path, {"jobs": [cancelled]})[0][0]
    together = load(tmp_path, {"jobs": [controller(job_id=1), cancelled, accounting(job_id=3)]})[0]
    assert alone.get("start_time") is None
    assert {k: v for k, v in together[1].items() if v is not None} == {
        k: v for k, v in alone.items() if v is not None
    }


def test_a_half_written_accounting_record_does_not_fix_the_request(tmp_path):
    filler = accounting(name="allocation", group="root", priority=0)
    filler["state"] = {"current": ["PENDING"], "reason": "None"}
    job = load(tmp_path, {"jobs": [filler]})[0][0]
    assert job["state"] == "PENDING"
    assert job.get("job_name") is None
    assert job.get("time_limit_s") is None


@pytest.mark.parametrize(
    ("errors", "notes"),
    [
        (
            [{"description": "Unable to query", "error": "Timed out", "error_number": 5004}],
            ["Slurm reported an error: Unable to query: Timed out"],
        ),
        (["slurmdbd is away"], ["Slurm reported an error: slurmdbd is away"]),
        ([], []),
        (None, []),
        (5, []),
    ],
)
def test_slurms_own_errors_become_notes(tmp_path, errors, notes):
    jobs, _, found = load(tmp_path, {"jobs": [accounting()], "errors": errors})
    assert len(jobs) == 1
    assert found == notes


def test_a_bare_list_of_jobs(tmp_path):
    jobs, rejects, notes = load(tmp_path, [accounting(), controller(job_id=101)])
    assert [(job["job_id"], job["source"]) for job in jobs] == [
        (100, "slurmdb"),
        (101, "slurmctld"),
    ]
    assert (rejects, notes) == ([], [])


OLD_META = {"plugin": {"type": "openapi/dbv0.0.37", "name": "REST DB"}, "Slurm": {"release": "21"}}
NEW_META = {"plugin": {"type": "openapi/slurmdbd", "data_parser": "data_parser/v0.0.43"}}


@pytest.mark.parametrize(("meta", "version"), [(OLD_META, "v0.0.37"), (NEW_META, "v0.0.43")])
@pytest.mark.parametrize("count", [1, 100], ids=["small", "large"])
def test_the_version_is_found_before_and_behind_the_jobs(tmp_path, meta, version, count):
    jobs = [accounting(job_id=n) for n in range(1, count + 1)]
    for document in ({"meta": meta, "jobs": jobs}, {"jobs": jobs, "meta": meta}):
        text = json.dumps(document)
        assert (len(text) > 64 << 10) == (count == 100)
        loaded, _, _ = load(tmp_path, text)
        assert {job["api_version"] for job in loaded} == {version}


def test_a_document_that_names_no_version(tmp_path):
    assert "api_version" not in one(tmp_path, accounting(submit_line="sbatch --x=v0.0.40"))


@pytest.mark.parametrize(
    ("record", "meta", "context", "expected"),
    [
        (accounting(), {}, {}, "lab"),
        (accounting(cluster=None), {}, {}, "lab"),
        (accounting(), {}, {"cluster": "told"}, "told"),
        (controller(cluster=""), {"slurm": {"cluster": "meta"}}, {}, "meta"),
        (controller(cluster=""), {}, {"fallback_cluster": "other"}, "other"),
    ],
)
def test_the_name_of_the_cluster(tmp_path, record, meta, context, expected):
    [job], _, _ = load(tmp_path, {"meta": meta, "jobs": [record]}, **context)
    assert job["cluster"] == expected


@pytest.mark.parametrize(
    ("state", "own", "expected"),
    [
        ("FAILED", "SUCCESS", (None, 0, None)),
        ("COMPLETED", "SUCCESS", (0, 0, None)),
        ("FAILED", "ERROR", (0, 0, None)),
    ],
)
def test_old_accounting_calls_every_exit_a_success(tmp_path, state, own, expected):
    job = one(
        tmp_path,
        old_accounting()
        | {
            "state": {"current": state, "reason": "None"},
            "exit_code": {"status": own, "return_code": 0},
            "derived_exit_code": {"status": "SUCCESS", "return_code": 0},
        },
    )
    codes = (job.get("exit_code"), job.get("exit_signal"), job.get("derived_exit_code"))
    assert codes == expected


def test_a_run_that_was_put_back_is_no_pending_job(tmp_path):
    run = one(tmp_path, accounting(state={"current": ["PENDING", "REQUEUED"], "reason": "None"}))
    assert (run["state"], run["elapsed_s"], run["node_list"]) == ("REQUEUED", 600, "n[1-2]")
    waiting = accounting(state={"current": ["PENDING", "REQUEUED"], "reason": "None"})
    waiting["time"] = waiting["time"] | {"start": 0, "end": 0}
    assert one(tmp_path, waiting)["state"] == "PENDING"


def test_bytes_that_are_not_utf8_cost_no_record(tmp_path):
    text = json.dumps({"jobs": [controller(name="a?b"), controller(job_id=2)]}).encode()
    jobs, rejects, _ = load(tmp_path, text.replace(b"a?b", b"\xff \xc3\xa9"))
    assert [job["job_name"] for job in jobs] == ["\\xff \u00e9", "relax"]
    assert rejects == []


def test_no_reservation_is_not_one_called_0(tmp_path):
    assert "reservation" not in one(tmp_path, accounting(reservation={"id": 0, "name": 0}))


@pytest.mark.parametrize("record", [accounting, controller])
def test_a_submit_line_is_kept_without_secrets(tmp_path, record):
    job = one(tmp_path, record(submit_line="sbatch --export=ALL,API_KEY=hunter2 x.sh"))
    assert job["submit_line"] == "sbatch --export=ALL,API_KEY=[redacted] x.sh"
    assert "submit_line" not in one(tmp_path, record(submit_line=""))
