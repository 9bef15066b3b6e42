"""A slurmrestd that hangs, lies, breaks off or refuses: clear errors without the token."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import subprocess
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from requirements import require
from staged_server import Reply, complaint, document, staged

from premortem.errors import InvalidInput, NotFound, PremortemError, Unavailable
from premortem.sources.live.callers import Caller
from premortem.sources.live.port import Overlong
from premortem.sources.live.questions import Patience
from premortem.sources.live.rest import RestCluster
from premortem.sources.port import together

NOW = datetime.now(UTC).replace(microsecond=0)
SECRET = "s3cr3tsignature"


def token(**claims: Any) -> str:
    claims = {"sun": "monitor", "exp": int(time.time()) + 600} | claims
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJIUzI1NiJ9.{payload}.{SECRET}"


def job(number: int, **more: Any) -> dict[str, Any]:
    submit = int(NOW.timestamp()) - 60
    return {
        "job_id": number,
        "cluster": "one",
        "name": "x",
        "time": {"submission": submit, "start": submit + 1, "end": submit + 9, "elapsed": 8},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "nodes": "n1",
    } | more


def cluster(url: str, caller: Caller | None = None, **options: Any) -> RestCluster:
    options.setdefault("patience", Patience(timeout_s=0.4, attempts=3, pause_s=0.001))
    return RestCluster(url, caller or Caller(token), **options)


def no_trace_of_the_token(error: BaseException) -> None:
    """Not in its words, nor in any error behind it, nor in what its frames hold."""
    seen: BaseException | None = error
    while seen is not None:
        for frame, _ in traceback.walk_tb(seen.__traceback__):
            held = repr(frame.f_locals)
            assert SECRET not in held or frame.f_code.co_filename == __file__
        assert SECRET not in repr(seen) + repr(vars(seen))
        seen = seen.__cause__ or seen.__context__


FAULTS: list[tuple[Reply, type[PremortemError], str]] = [
    (Reply(hang_s=5), Unavailable, "too long"),
    (Reply(b"\xff\x00 garbage"), InvalidInput, "expected JSON"),
    (Reply(b'{"jobs": [{"job_id": 1'), Unavailable, "cut short"),
    (Reply(b'{"jobs": [', length=5000), Unavailable, "incomplete|closed"),
    (Reply(b"<html>login</html>", type="text/html"), InvalidInput, "login"),
    (Reply(b"", 302), InvalidInput, "status 302"),
    (Reply(b"Authentication failure", 401, "text/plain"), InvalidInput, "token"),
    (complaint(1007, "Protocol authentication error", status=511), InvalidInput, "token"),
    (complaint(1007, "Protocol authentication error"), InvalidInput, "token"),
    (
        complaint(7000, "slurmdbd connection, authentication error", status=502),
        InvalidInput,
        "token",
    ),
    (complaint(7000, "Unable to connect to database", status=502), Unavailable, "database"),
    (complaint(7000, "Unable to connect to database"), Unavailable, "database"),
    (complaint(9000, "Query empty", status=500), InvalidInput, "Query empty"),
    (complaint(-1, "Unspecified error", status=500), Unavailable, "Unspecified"),
    (Reply(b"Unable to parse query.", 400, "text/plain"), InvalidInput, "parse query"),
    (Reply(b"Unable find requested URL.", 404, "text/plain"), NotFound, "URL"),
    (Reply(b"broken", 500, "text/plain"), Unavailable, "broken"),
    (Reply(b"slower", 429, "text/plain"), Unavailable, "slower"),
    (Reply(b'{"warnings": []}'), InvalidInput, "no list of jobs"),
]


class TestFaults:
    @pytest.mark.parametrize(
        ("reply", "kind", "words"), FAULTS, ids=lambda value: getattr(value, "status", None)
    )
    def test_each_is_told_and_none_tells_the_token(
        self,
        reply: Reply,
        kind: type[PremortemError],
        words: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        with staged() as stage, cluster(stage.url, version="v0.0.42") as asked:
            stage.last = reply
            with pytest.raises(kind, match=words) as found:
                asked.live()
        assert stage.headers[0]["x-slurm-user-token"].endswith(SECRET)
        no_trace_of_the_token(found.value)
        assert SECRET not in caplog.text
        assert SECRET not in repr(asked) + repr(Caller(token))

    def test_nobody_there(self) -> None:
        with staged() as stage:
            url = stage.url
        with cluster(url) as asked, pytest.raises(Unavailable, match="refused") as found:
            asked.live()
        no_trace_of_the_token(found.value)

    def test_a_large_answer_that_is_cut_short_or_broken_inside(self) -> None:
        jobs = [job(number, comment="x" * 300) for number in range(1, 900)]
        whole = json.dumps({"jobs": jobs}).encode()
        broken = whole[:200_000] + b'"!' + whole[200_000:]
        for body in (whole[:-1], broken):
            with staged() as stage, cluster(stage.url) as asked:
                stage.last = Reply(body)
                with pytest.raises(Unavailable, match="cut short or malformed"):
                    asked.live()

    def test_a_bad_record_is_set_aside(self) -> None:
        with staged(document(jobs=[job(1), job(2, time={}), "no job"])) as stage:
            found = cluster(stage.url).live()
        assert found.jobs["job_id"].to_list() == [1]
        assert [reason for _, reason, _ in found.rejects.rows()] == [
            "no submit time",
            "a job must be an object, found str",
        ]

    def test_there_is_no_such_job(self) -> None:
        for reply in (
            complaint(2017, "Invalid job id specified", status=404),
            complaint(2017, "Invalid job id specified", status=500),
            complaint(9003, "Nothing found with query"),
        ):
            with staged(reply) as stage:
                assert cluster(stage.url).controlled(7).read == 0
                assert len(stage.asked) == 1


class TestAskingAgain:
    def test_what_fails_once_may_work_then(self) -> None:
        with staged(Reply(b"", 500), Reply(b"", 503), document(jobs=[job(1)])) as stage:
            pauses: list[float] = []
            asked = cluster(
                stage.url, patience=Patience(attempts=3, pause_s=0.5), sleep=pauses.append
            )
            assert asked.by_id([1]).jobs.height == 1
            assert asked.calls.slurmdbd == 3
        assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1.0

    def test_but_not_for_ever_and_not_where_it_is_no_use(self) -> None:
        with staged() as stage:
            stage.last = Reply(b"", 500)
            with pytest.raises(Unavailable, match="after 3 attempts"):
                cluster(stage.url).live()
            assert len(stage.asked) == 3
            stage.last = Reply(b"", 422)
            with pytest.raises(InvalidInput):
                cluster(stage.url).live()
            assert len(stage.asked) == 4


class TestTokens:
    @pytest.mark.parametrize(
        "refusal",
        [
            Reply(b"", 401),
            Reply(b"", 511),
            complaint(1007, "Protocol authentication error"),
            complaint(-1, "Unspecified error", status=500),
        ],
    )
    def test_one_that_is_refused_is_read_anew_once(self, refusal: Reply) -> None:
        tokens = iter([token(n=1), token(n=2), token(n=3)])
        given: list[str] = []

        def read() -> str:
            given.append(next(tokens))
            return given[-1]

        with staged(refusal) as stage:
            cluster(stage.url, Caller(read)).live()
            assert len(given) == 2
            assert [asked["x-slurm-user-token"] for asked in stage.headers] == given
            assert {asked["x-slurm-user-name"] for asked in stage.headers} == {"monitor"}

    def test_one_that_has_expired_is_not_even_tried(self) -> None:
        tokens = iter([token(exp=1), token(n=2)])
        with staged() as stage:
            cluster(stage.url, Caller(lambda: next(tokens)), version="v0.0.42").live()
        # The second is used whatever it says of itself: clocks may differ.
        assert len(stage.asked) == 1

    def test_no_proxy_sees_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with staged() as proxy, staged(document(jobs=[job(1)])) as stage:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("ALL_PROXY", proxy.url)
            assert cluster(stage.url).live().jobs.height == 1
            assert proxy.asked == []

    def test_no_other_address_gets_it(self) -> None:
        for address in ("ftp://x", "slurm.example:6820", "http://u:p@x", "http://x?token=1", ""):
            with pytest.raises(InvalidInput, match="slurmrestd"):
                cluster(address)

    def test_what_is_no_address_is_told_at_once(self) -> None:
        for address, words in (
            ("http://[::1", "IPv6"),
            ("http://[zz]:6820", "IPv6"),
            ("http://slurm:abc", "port"),
            ("http://slurm:0", "port"),
            ("http://slurm:65536", "port"),
            ("http://monitor:hunter2/x@slurm", "port"),
            ("http://slu\nrm:6820", "character"),
            ("http://a..b", "host"),
        ):
            with pytest.raises(
                InvalidInput, match=f"slurmrestd cannot be used: .*{words}"
            ) as found:
                cluster(address)
            told = "".join(traceback.format_exception(found.value, chain=True))
            assert "hunter2" not in told
            assert found.value.__context__ is None
        with cluster("http://[::1]:6820"), cluster("http://slurm/prefix/"):
            pass


class TestVersions:
    def test_the_newest_known_is_spoken(self) -> None:
        with staged() as stage, cluster(stage.url) as asked:
            asked.live()
            assert asked.version == "v0.0.42"
            assert stage.asked == ["/slurm/v0.0.42/jobs"]
            assert (asked.calls.slurmctld, asked.calls.slurmdbd) == (1, 0)

    def test_none_fits(self) -> None:
        with staged() as stage:
            paths = {f"/{daemon}/v0.0.99/jobs": {} for daemon in ("slurm", "slurmdb")}
            stage.openapi = document(paths=paths)
            with pytest.raises(InvalidInput, match=r"serves v0\.0\.99; known are v0\.0\.38"):
                cluster(stage.url).live()
            stage.openapi = document(paths={"/slurm/v0.0.42/jobs": {}})
            with pytest.raises(InvalidInput, match="no jobs of slurmctld and slurmdbd"):
                cluster(stage.url).live()
            stage.openapi = Reply(b"not here", 404, "text/plain")
            with pytest.raises(NotFound, match="openapi"):
                cluster(stage.url).live()

    def test_a_server_that_was_upgraded_meanwhile(self) -> None:
        gone = Reply(b"Unable find requested URL.", 404, "text/plain")
        with staged(Reply(), gone) as stage, cluster(stage.url) as asked:
            asked.live()
            paths = {f"/{daemon}/v0.0.45/jobs": {} for daemon in ("slurm", "slurmdb")}
            stage.openapi = document(paths=paths)
            asked.live()
            assert stage.asked[-1] == "/slurm/v0.0.45/jobs"

    def test_one_that_is_not_known_cannot_be_named(self) -> None:
        with pytest.raises(InvalidInput, match=r"v0\.0\.46"):
            cluster("http://127.0.0.1:1", version="v0.0.99")


class TestWindows:
    def test_they_cover_the_span_and_ask_for_what_is_whole(self) -> None:
        with staged() as stage, cluster(stage.url, window=timedelta(hours=1)) as asked:
            assert together(asked.accounted(NOW - timedelta(hours=6), NOW)).read == 0
            asked_for = [path.split("?")[1].split("&") for path in stage.asked]
            spans = [(int(a[14:]), int(b[12:])) for a, b, *_ in asked_for]
            assert spans[0][0] == NOW.timestamp() - 6 * 3600
            assert spans[-1][1] == NOW.timestamp()
            assert all(end == begin for (_, end), (begin, _) in pairwise(spans))
            # They grow where there is little to tell.
            assert len(spans) == 3
            assert "disable_truncate_usage_time=true" in asked_for[0]
            assert "skip_steps=true" in asked_for[0]

    def test_a_heavy_one_is_halved(self) -> None:
        def enormous() -> Iterator[bytes]:
            yield b'{"jobs": ['
            while True:
                yield b" " * 65536

        heavy = [Reply(pieces=enormous), Reply(hang_s=5), document(jobs=[job(1)])]
        with staged(*heavy) as stage:
            asked = cluster(stage.url, window=timedelta(hours=1), window_bytes=1 << 20)
            found = together(asked.accounted(NOW - timedelta(hours=1), NOW))
            assert found.jobs.height == 1
            widths = [_width(path) for path in stage.asked]
            assert widths[:3] == [3600, 1800, 900]

    def test_one_that_cannot_be_halved_any_more_is_an_error(self) -> None:
        with staged() as stage:
            stage.last = Reply(hang_s=5)
            asked = cluster(
                stage.url,
                window=timedelta(minutes=1),
                patience=Patience(timeout_s=0.1, attempts=2, pause_s=0.001),
            )
            with pytest.raises(Overlong, match="too long"):
                list(asked.accounted(NOW - timedelta(minutes=1), NOW))
            assert len(stage.asked) == 2

    def test_the_shortest_is_taken_whatever_its_size(self) -> None:
        with staged(_standing(5000)) as stage:
            asked = cluster(stage.url, window=timedelta(minutes=1), window_bytes=1 << 10)
            found = together(asked.accounted(NOW - timedelta(minutes=1), NOW))
            assert found.jobs.height == 1
            assert len(stage.asked) == 1

    @pytest.mark.parametrize("size", [3000, 900])
    def test_they_are_not_halved_in_vain(self, size: int) -> None:
        """Jobs that wait or run are in all of them."""
        with staged() as stage:
            stage.last = _standing(size)
            asked = cluster(stage.url, window=timedelta(hours=1), window_bytes=1 << 10)
            for day in (2, 1):
                since = NOW - timedelta(days=day)
                together(asked.accounted(since, since + timedelta(days=1)))
            widths = [_width(path) for path in stage.asked]
            assert widths[:2] == [3600, 1800]
            assert set(widths[1:]) == {1800}
            assert len(widths) < 2 * 48 + 4

    def test_those_not_halved_for_their_size_are_if_they_are_slow(self) -> None:
        large = _standing(3000)
        with staged(large, large, Reply(hang_s=5), document(jobs=[])) as stage:
            asked = cluster(stage.url, window=timedelta(hours=1), window_bytes=1 << 10)
            together(asked.accounted(NOW - timedelta(hours=1), NOW))
            assert [_width(path) for path in stage.asked][:4] == [3600, 1800, 1800, 900]

    def test_an_answer_that_drips_has_a_deadline_too(self) -> None:
        def drips() -> Iterator[bytes]:
            while True:
                time.sleep(0.02)
                yield b" "

        with staged() as stage:
            stage.last = Reply(pieces=drips)
            began = time.monotonic()
            with pytest.raises(Overlong, match="too long"):
                cluster(stage.url, patience=Patience(timeout_s=0.3, attempts=1)).live()
            assert time.monotonic() - began < 3

    def test_many_numbers_go_into_few_questions_and_fewer_if_need_be(self) -> None:
        with staged(Reply(hang_s=5)) as stage:
            cluster(stage.url).by_id(range(1, 211))
            counts = [path.count("step=") for path in stage.asked]
            assert counts == [200, 100, 100, 10]
        with staged() as stage:
            cluster(stage.url, version="v0.0.38").by_id([1, 2, 2, 3])
            assert stage.asked == ["/slurmdb/v0.0.38/jobs?step=1%2C2%2C3"]
        with pytest.raises(InvalidInput, match="not a number Slurm gives"):
            cluster("http://127.0.0.1:1").by_id([0])


class TestScripts:
    def test_they_come_without_secrets(self) -> None:
        script = "#!/bin/sh\nexport API_KEY=hunter2\n"
        with staged(document(jobs=[job(1, script=script), job(2, script="")])) as stage:
            found = cluster(stage.url).scripts([1, 2])
        assert found == {1: "#!/bin/sh\nexport API_KEY=[redacted]\n"}
        with staged(document(jobs=[job(1, script=script), {"script": script}])) as stage:
            batch = cluster(stage.url).by_id([1, 2])
        assert batch.jobs["script"].to_list() == [found[1]]
        assert "hunter2" not in str(batch.rejects.rows())


class TestEncryption:
    def test_a_certificate_is_checked(self, tmp_path: Path) -> None:
        require(shutil.which("openssl") is not None, "openssl makes the certificate")
        key, own = tmp_path / "key.pem", tmp_path / "own.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-keyout", key, "-out", own, "-subj", "/CN=lab"),
                *("-addext", "subjectAltName=IP:127.0.0.1"),
            ],
            check=True,
            capture_output=True,
        )
        with staged(document(jobs=[job(1)]), certificate=(own, key)) as stage:
            with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
                cluster(stage.url).live()
            assert stage.headers == []
            assert cluster(stage.url, certificates=own).live().jobs.height == 1

    def test_a_file_that_holds_none(self, tmp_path: Path) -> None:
        (tmp_path / "none.pem").write_text("nothing")
        with pytest.raises(InvalidInput, match="no certificates"):
            cluster("https://127.0.0.1:1", certificates=tmp_path / "none.pem")


def _standing(size: int) -> Reply:
    """An answer of about so many bytes."""
    return document(jobs=[job(1, comment="x" * (size - 300))])


def _width(path: str) -> int:
    begin, end = (part.split("=uts")[1] for part in path.split("?")[1].split("&")[:2])
    return int(end) - int(begin)
