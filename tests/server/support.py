"""The server under test, run by uvicorn on a port of its own."""

from __future__ import annotations

import hashlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import openai
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from snne_guard.server import create_app, load_config
from tests.support.asgi import listening

__all__ = ["Echo", "Running", "echo", "key", "port_of", "process", "raw", "serving"]


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
    with listening(create_app(load_config(upstream=upstream, **settings))) as port:
        yield Running(port=port)


@contextmanager
def process(
    *options: str, program: Sequence[str] = ("-m", "snne_guard")
) -> Iterator[tuple[subprocess.Popen[str], Running]]:
    """Run the command until it says where it listens."""
    command = [sys.executable, *program, "serve", "--port", "0", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as running:  # noqa: S603 - our own
        try:
            yield running, Running(port=port_of(running))
        finally:
            running.kill()


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

    async def answer(request: Request) -> Response:
        target = request.url.path
        if request.url.query:
            target += f"?{request.url.query}"
        headers, body = request.headers.items(), await request.body()
        seen = {"method": request.method, "path": target, "headers": headers}
        owner.seen.append({**seen, "body": body})
        content = b'{"ok":true}' if owner.body is None else owner.body
        length = {"content-length": str(len(content) + 10 * owner.cut)}
        return Response(content, owner.status, {**length, **owner.headers})

    methods = ["GET", "POST", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", answer, methods=methods)])
    with listening(app) as port:
        owner.url = f"http://127.0.0.1:{port}/v1"
        yield owner
