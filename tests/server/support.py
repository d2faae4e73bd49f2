"""The server under test, run by uvicorn on a port of its own."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import openai
import uvicorn

from snne_guard.server import create_app, load_config

__all__ = ["Echo", "Running", "echo", "key", "port_of", "raw", "serving"]


@dataclass(frozen=True, kw_only=True)
class Running:
    """A server that listens."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def post(
        self, path: str = "/v1/chat/completions", **options: Any
    ) -> httpx.Response:
        return httpx.post(self.url + path, timeout=30, **options)

    def client(self, key: str = "test", **options: Any) -> openai.OpenAI:
        """Return a client of the openai package that calls it."""
        options = {"max_retries": 0, **options}
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, **options)


@contextmanager
def serving(upstream: str, **settings: Any) -> Iterator[Running]:
    """Run the server in a thread."""
    config = load_config(upstream=upstream, **settings)
    options = uvicorn.Config(
        create_app(config), port=0, http="h11", ws="none", log_level="warning"
    )
    server = uvicorn.Server(options)
    work = threading.Thread(target=server.run, daemon=True)
    work.start()
    until = time.monotonic() + 10
    while not server.started:
        assert time.monotonic() < until, "the server did not start"
        time.sleep(0.01)
    listening = server.servers[0].sockets[0]
    yield Running(port=listening.getsockname()[1])
    server.should_exit = True
    work.join(10)


def port_of(process: subprocess.Popen[str]) -> int:
    """Wait until a process says where it listens."""
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    found = (re.search(r"running on http://[\d.]+:(\d+)", line) for line in lines)
    return int(next(filter(None, found))[1])


def key(secret: str, *policies: str, **fields: Any) -> dict[str, Any]:
    """Return the table of a key."""
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return {"sha256": digest, "policies": list(policies or ["default"]), **fields}


def raw(running: Running, text: str) -> str:
    """Send bytes as they are; return what comes until the connection ends."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=5) as sent:
        sent.sendall(text.replace("\n", "\r\n").encode())
        received = b""
        try:
            while chunk := sent.recv(65536):
                received += chunk
        except TimeoutError:
            pass
    return received.decode(errors="replace")


@dataclass
class Echo:
    """An upstream that says what came, and answers with what it was told to."""

    url: str = ""
    seen: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    cut: bool = False


@contextmanager
def echo() -> Iterator[Echo]:
    """Run such an upstream in a thread."""
    owner = Echo()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length)
            if self.headers.get("transfer-encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            headers = [(name.lower(), value) for name, value in self.headers.items()]
            seen = {"method": self.command, "path": self.path, "headers": headers}
            owner.seen.append({**seen, "body": body})
            answer = json.dumps({"ok": True}).encode()
            answer = answer if owner.body is None else owner.body
            self.send_response(owner.status)
            self.send_header("Content-Length", str(len(answer) + 10 * owner.cut))
            for name, value in owner.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)
            self.close_connection = owner.cut

        def do_GET(self) -> None:
            self.do_POST()

        def do_DELETE(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    owner.url = f"http://127.0.0.1:{server.server_port}/v1"
    work = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    work.start()
    yield owner
    server.shutdown()
    server.server_close()
