"""Server-sent events whose sender may have to wait, and clients that go away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from snne_guard.server.faults import Fault
from snne_guard.server.wire import to_bytes

__all__ = ["ClientGoneError", "EventStream", "event_of", "until_gone"]

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds after which proxies are told that the connection lives."""

_ALIVE = b": the answer is not decided on yet\n\n"


class ClientGoneError(Exception):
    """The client closed the connection before it had its answer."""


async def until_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Return what work returns; cancel it where the client goes away.

    Args:
        receive: Of the request, whose body has been read.
        work: What is done for the client.

    Raises:
        ClientGoneError: The client went away.
    """
    doing = asyncio.create_task(work)
    leaving = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientGoneError
        return doing.result()
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def event_of(fields: Mapping[str, Any]) -> bytes:
    """Return a chunk of a completion, or an event of a response, as an event."""
    name = f"event: {fields['type']}\n".encode() if "type" in fields else b""
    return name + b"data: " + to_bytes(fields) + b"\n\n"


class EventStream(Response):
    """Sends events as they come, and a comment where none comes for ten seconds.

    A task of its own reads them: no wait here may cut short what the guard does there.

    Args:
        opening: Gives the parts of the stream.
        encode: Returns a part as an event.
        told: Returns what the client is told of an error.
        end: What ends the stream.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        opening: Awaitable[AsyncIterable[Any]],
        *,
        encode: Callable[[Any], bytes],
        told: Callable[[Exception], Fault],
        end: bytes = b"",
    ) -> None:
        super().__init__(headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._encode, self._told, self._end = encode, told, end
        self._events: asyncio.Queue[bytes | Fault | None] = asyncio.Queue(16)
        self._reading = asyncio.create_task(self._read(opening))
        self._first: bytes | Fault | None = None

    async def ready(self) -> EventStream:
        """Wait a while for the first event, so that a fault has a status of its own.

        Raises:
            Fault: What the request fails with.
        """
        try:
            self._first = await self._next()
        except BaseException:
            await self._close()
            raise
        if isinstance(self._first, Fault):
            raise self._first
        return self

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send the stream; end it where the client goes away."""
        with suppress(ClientGoneError):
            await until_gone(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        try:
            await send({**start, "headers": self.raw_headers})
            item = self._first
            while isinstance(item, bytes):
                await _send_body(send, item, more=True)
                item = await self._next()
            last = self._end if item is None else _error_event(item)
            await _send_body(send, last, more=False)
        finally:
            await self._close()

    async def _next(self) -> bytes | Fault | None:
        try:
            return await asyncio.wait_for(self._events.get(), PATIENCE)
        except TimeoutError:
            return _ALIVE

    async def _read(self, opening: Awaitable[AsyncIterable[Any]]) -> None:
        """Put events in the queue; last what ends the stream: a fault, or None."""
        last: Fault | None = None
        try:
            stream: Any = await opening
            try:
                async for part in stream:
                    await self._events.put(self._encode(part))
            finally:
                await stream.close()
        except Exception as error:  # noqa: BLE001 - the client is told of it
            last = self._told(error)
        await self._events.put(last)

    async def _close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


def _error_event(fault: Fault) -> bytes:
    error = fault.body.get("error") or {"message": str(fault), "code": fault.code}
    return event_of({"type": "error", "error": error})


async def _send_body(send: Send, body: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
