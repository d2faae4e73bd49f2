"""A real HTTP server on 127.0.0.1 that speaks Chat Completions, for one test.

    with ChatServer(always("Paris")) as server:
        model = chat_openai(server)
        assert model.invoke("Capital of France?").content == "Paris"
        assert server.billed.requests == 1

It runs on an event loop in a thread of its own, keeps connections alive and serves
hundreds at once. ``python -m tests.support.chat_server`` runs it as a process.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import socket
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.support.chat_http import Connection
from tests.support.chat_protocol import (
    Billed,
    Gate,
    Reply,
    Request,
    Script,
    ToolCall,
    Usage,
)
from tests.support.chat_scripts import (
    always,
    cycle,
    error,
    failing,
    ignoring_n,
    in_turn,
    rejecting,
    rejecting_n,
    response,
)

__all__ = [
    "Billed",
    "ChatServer",
    "Gate",
    "Reply",
    "Request",
    "Script",
    "ToolCall",
    "Usage",
    "always",
    "chat_openai",
    "cycle",
    "error",
    "failing",
    "ignoring_n",
    "in_turn",
    "rejecting",
    "rejecting_n",
    "response",
]

PATHS = ("/chat/completions", "/responses")
_numbers = itertools.count()


class ChatServer:
    """Serves what a script decides, and remembers what it was asked.

    Args:
        script: A callable from request to reply, or replies for the requests in the
            order in which they arrive, the last one for all further requests. None:
            every choice repeats the last message.

    Attributes:
        script: May be replaced while the server runs.
        paths: How the paths end that are answered.
    """

    paths: tuple[str, ...] = PATHS

    def __init__(self, script: Script | Sequence[Reply] | None = None) -> None:
        if script is None:
            script = [Reply()]
        self.script: Script = script if callable(script) else in_turn(script)
        self._token = f"server-{next(_numbers)}"
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._billed = Billed()
        self._abandoned = self._answering = self._peak = 0
        self._faults: list[BaseException] = []
        self.connections: set[Connection] = set()
        self._ready = threading.Event()

    @property
    def url(self) -> str:
        """The base URL, with ``/v1``.

        It is new for each server: langchain-openai keeps one HTTP client for each URL,
        and a port that is used again would bring back connections of a closed loop.
        """
        return f"http://127.0.0.1:{self._port}/{self._token}/v1"

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in the order of arrival."""
        with self._lock:
            return list(self._requests)

    @property
    def billed(self) -> Billed:
        """What was counted so far."""
        with self._lock:
            return self._billed

    @property
    def abandoned(self) -> int:
        """Requests whose client hung up before the last byte of the reply."""
        with self._lock:
            return self._abandoned

    @property
    def answering(self) -> int:
        """Requests that have arrived and are not yet answered."""
        with self._lock:
            return self._answering

    @property
    def peak(self) -> int:
        """The largest number of requests that were being answered at once."""
        with self._lock:
            return self._peak

    def wait_until(
        self, *, requests: int = 0, abandoned: int = 0, seconds: float = 60.0
    ) -> None:
        """Wait until so many requests have arrived and so many clients have hung up."""
        until = time.monotonic() + seconds
        while len(self.requests) < requests or self.abandoned < abandoned:
            if time.monotonic() > until:
                seen = f"{len(self.requests)} requests, {self.abandoned} abandoned"
                message = f"expected {requests} and {abandoned}, got {seen}"
                raise AssertionError(message)
            time.sleep(0.002)

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._faults and exc is None:
            # A script that fails is the test's fault, not a fault under test.
            raise self._faults[0]

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        serving = await self._loop.create_server(
            lambda: Connection(self), sock=self._socket
        )
        self._ready.set()
        await self._stop.wait()
        serving.close()
        for connection in list(self.connections):
            connection.close()

    def arrived(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> Request:
        """Remember a request; called by the connection that read it."""
        with self._lock:
            request = Request(
                index=len(self._requests),
                method=method,
                path=path,
                headers=headers,
                body=json.loads(body) if body else {},
                arrived=time.monotonic(),
            )
            self._requests.append(request)
            self._answering += 1
            self._peak = max(self._peak, self._answering)
        return request

    def done(self, *, abandoned: bool = False, usage: Usage | None = None) -> None:
        """Settle a request, before its last byte goes out."""
        with self._lock:
            self._answering -= 1
            self._abandoned += abandoned
            if usage is not None:
                self._billed = self._billed.plus(usage)

    def decide(self, request: Request) -> Reply:
        """Ask the script; a script that fails shows when the test ends."""
        path = request.path.partition("?")[0]  # Azure's version is behind it
        if request.method != "POST" or not path.endswith(self.paths):
            return error(404, f"no such path: {request.path}")
        try:
            return self.script(request)
        except Exception as fault:  # noqa: BLE001 - raised again in __exit__
            self._faults.append(fault)
            return error(500, "the script failed")


def chat_openai(server: ChatServer, **options: Any) -> ChatOpenAI:
    """Return the real client, pointed at the server; it does not retry by default."""
    settings: dict[str, Any] = {
        "model": "test-model",
        "api_key": SecretStr("test"),
        "base_url": server.url,
        "max_retries": 0,
        "timeout": 120,
        **options,
    }
    return ChatOpenAI(**settings)


def main() -> None:
    """Serve until the standard input ends, after printing the URL."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--text", action="append", help="what the next choice says")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds a request")
    parser.add_argument("--max-n", type=int, help="refuse requests for more choices")
    options = parser.parse_args()
    script = cycle(options.text or ["Yes."], delay=options.delay)
    if options.max_n is not None:
        script = rejecting_n(script, max_n=options.max_n)
    with ChatServer(script) as server:
        print(server.url, flush=True)  # noqa: T201 - the parent process reads it
        sys.stdin.read()


if __name__ == "__main__":
    main()
