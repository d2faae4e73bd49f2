"""A real HTTP server on 127.0.0.1 that takes what tracing tools send, and keeps it."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

__all__ = ["Collector", "Received"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request, its body unpacked.

    Attributes:
        method: For example ``"POST"``.
        path: Without the query.
        headers: Names in lower case.
        body: What it carried.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """Return the body as a JSON value."""
        return json.loads(self.body)


class Collector:
    """Answers every request alike, from a thread for each.

    Args:
        answers: Whether it answers at all; what it takes in it keeps all the same.
        status: With which HTTP status.
        replies: Bodies as JSON values, by how a path ends; ``{}`` for others.
    """

    def __init__(
        self,
        *,
        answers: bool = True,
        status: int = 200,
        replies: Mapping[str, Any] | None = None,
    ) -> None:
        self.answers, self.status = answers, status
        self.replies: dict[str, Any] = dict(replies or {})
        self._received: list[Received] = []
        self._came = threading.Condition()
        self._closing = threading.Event()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> list[Received]:
        """Everything that came so far."""
        with self._came:
            return list(self._received)

    def bodies(self, path: str) -> list[bytes]:
        """Return what came to one path."""
        return [each.body for each in self.requests if each.path == path]

    def wait_for(self, path: str, *, count: int = 1, seconds: float = 60.0) -> None:
        """Wait until so many requests have come to a path."""
        with self._came:
            came = self._came.wait_for(
                lambda: sum(each.path == path for each in self._received) >= count,
                timeout=seconds,
            )
        assert came, f"expected {count} at {path}, got {self.requests}"

    def take(self, received: Received) -> tuple[int, bytes] | None:
        """Keep a request and return what is answered, None where nothing is."""
        with self._came:
            self._received.append(received)
            self._came.notify_all()
        if not self.answers:
            self._closing.wait()
            return None
        endings = (each for each in self.replies if received.path.endswith(each))
        reply = self.replies.get(next(endings, ""), {})
        return self.status, json.dumps(reply).encode()

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:  # the client has had enough
                self.close_connection = True

        def _answer(self) -> None:
            body = self._body()
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            taken = collector.take(
                Received(
                    method=self.command,
                    path=urlsplit(self.path).path,
                    headers={
                        name.lower(): value for name, value in self.headers.items()
                    },
                    body=body,
                )
            )
            if taken is None:
                self.close_connection = True
                return
            status, reply = taken
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("content-length") or 0))
            whole = b""
            while size := int(self.rfile.readline(), 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole

        do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815 - the base class's

    return Handler
