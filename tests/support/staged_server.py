"""A tiny HTTP server on loopback that answers as told: the faults of networks and servers."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

VERSIONS = ("v0.0.40", "v0.0.42")
OPENAPI = {
    "paths": {
        f"/{daemon}/{version}/jobs/": {} for daemon in ("slurm", "slurmdb") for version in VERSIONS
    }
}


@dataclass(slots=True)
class Reply:
    """What to answer, `hang_s` later; `length` is told instead of its own, `pieces` never end."""

    body: bytes = b'{"jobs": []}'
    status: int = 200
    type: str = "application/json"
    hang_s: float = 0.0
    length: int | None = None
    pieces: Callable[[], Iterator[bytes]] | None = None


def document(**content: Any) -> Reply:
    return Reply(json.dumps(content).encode())


def complaint(number: int, words: str, *, status: int = 200) -> Reply:
    errors = [{"error_number": number, "error": words}]
    return Reply(json.dumps({"errors": errors, "jobs": []}).encode(), status)


@dataclass(slots=True)
class Stage:
    """The server: its address, the replies still to give, and what was asked."""

    url: str
    openapi: Reply
    replies: list[Reply] = field(default_factory=list)
    # What is asked when no reply is left.
    last: Reply = field(default_factory=Reply)
    # What answers instead of the replies, by the path that is asked for.
    answer: Callable[[str], Reply] | None = None
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def staged(*replies: Reply, certificate: tuple[Path, Path] | None = None) -> Iterator[Stage]:
    """A server that gives these replies to questions about jobs, in order, and then empty ones.

    With a certificate and its key, it is an encrypted one.
    """
    stage = Stage("", document(**OPENAPI), list(replies))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/openapi/v3":
                reply = stage.openapi
            else:
                stage.asked.append(self.path)
                stage.headers.append({name.lower(): value for name, value in self.headers.items()})
                if stage.answer is not None:
                    reply = stage.answer(self.path)
                else:
                    reply = stage.replies.pop(0) if stage.replies else stage.last
            stage.over.wait(reply.hang_s)
            try:
                self._give(reply)
            except OSError:
                self.close_connection = True

        def _give(self, reply: Reply) -> None:
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.type)
            if reply.pieces is None:
                length = len(reply.body) if reply.length is None else reply.length
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(reply.body)
                self.close_connection = length != len(reply.body)
                return
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            for piece in reply.pieces():
                if stage.over.is_set():
                    return
                self.wfile.write(piece)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *about: None  # type: ignore[method-assign]
    scheme = "https" if certificate else "http"
    stage.url = f"{scheme}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield stage
    finally:
        stage.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
