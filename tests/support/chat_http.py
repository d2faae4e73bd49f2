"""HTTP/1.1 for the local chat server: reads requests, writes replies and streams."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from typing import Protocol

from tests.support.chat_payload import chunks, completion, error_body, usage_of
from tests.support.chat_protocol import Reply, Request, Usage

__all__ = ["Backend", "Connection"]

Settle = Callable[[Usage | None], None]


class Backend(Protocol):
    """What a connection needs to know of the server."""

    @property
    def connections(self) -> set[Connection]:
        """The open connections."""
        ...

    def arrived(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> Request:
        """Remember a request that was read whole."""
        ...

    def decide(self, request: Request) -> Reply:
        """Return what is answered."""
        ...

    def done(self, *, abandoned: bool = False, usage: Usage | None = None) -> None:
        """Settle a request, before its last byte goes out."""
        ...


class Connection(asyncio.Protocol):
    """One client connection: reads a request, answers it, reads the next."""

    def __init__(self, server: Backend) -> None:
        self._server = server
        self._buffer = b""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._task is None:
            self._next()

    def _next(self) -> None:
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _version = first.split(" ")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        request = self._server.arrived(method, path, headers, rest[:length])
        self._task = asyncio.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        reply = self._server.decide(request)
        settled = False

        def settle(usage: Usage | None = None) -> None:
            nonlocal settled
            settled = True
            self._server.done(usage=usage)

        try:
            await _wait(reply)
            usage = usage_of(request, reply) if reply.status < 400 else None
            if request.stream and usage is not None and reply.body is None:
                await self._stream(request, reply, usage, settle)
            else:
                self._send(request, reply, usage, settle)
        finally:
            if not settled:
                self._server.done(abandoned=True)
        self._task = None
        if self._buffer:
            self._next()

    def _send(
        self, request: Request, reply: Reply, usage: Usage | None, settle: Settle
    ) -> None:
        if usage is None or reply.body is not None:
            data = error_body(reply).encode()
        else:
            data = json.dumps(completion(request, reply)).encode()
        if reply.malformed:
            data = data[: len(data) // 2]
        whole = not (reply.broken or reply.malformed)
        settle(usage if whole else None)
        head = _head(reply, "application/json", f"Content-Length: {len(data)}")
        self._transport.write(head + (data[: len(data) // 2] if reply.broken else data))
        if reply.broken:
            self._break_off(reset=reply.reset)

    def _break_off(self, *, reset: bool) -> None:
        if not reset:
            self._transport.close()
            return
        sock = self._transport.get_extra_info("socket")
        # Closed at once and without what is still to be sent: the peer gets a reset.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    async def _stream(
        self, request: Request, reply: Reply, usage: Usage, settle: Settle
    ) -> None:
        events = [json.dumps(chunk) for chunk in chunks(request, reply)]
        if reply.broken or reply.malformed:
            events = events[: len(events) // 2]
        if reply.malformed:
            events.append(events[-1][: len(events[-1]) // 2])
        self._transport.write(
            _head(reply, "text/event-stream", "Transfer-Encoding: chunked")
        )
        for position, event in enumerate(events):
            if position:
                await asyncio.sleep(reply.chunk_delay)
            self._transport.write(_chunk(f"data: {event}\n\n"))
        if reply.broken:
            settle(None)
            self._break_off(reset=reply.reset)
            return
        settle(None if reply.malformed else usage)
        self._transport.write(_chunk("data: [DONE]\n\n") + b"0\r\n\r\n")


async def _wait(reply: Reply) -> None:
    if reply.gate is not None:
        await reply.gate.wait()
    if reply.delay:
        await asyncio.sleep(reply.delay)
    if reply.stall:
        await asyncio.Event().wait()


def _head(reply: Reply, kind: str, *lines: str) -> bytes:
    extra = [f"{name}: {value}" for name, value in reply.headers.items()]
    if "Content-Type" not in reply.headers:
        extra.append(f"Content-Type: {kind}")
    first = f"HTTP/1.1 {reply.status} {'OK' if reply.status < 400 else 'Error'}"
    return "\r\n".join([first, *lines, *extra, "", ""]).encode("latin-1")


def _chunk(text: str) -> bytes:
    data = text.encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
