"""What goes back to clients: JSON, and streams of server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
)
from contextlib import aclosing
from typing import Any, Self

from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from snne_guard.server.faults import Fault

__all__ = ["JSON", "ClosingStream", "EventStream", "event_of"]

PATIENCE = 10.0
"""Seconds without an event after which a comment keeps the connection open."""

_ALIVE = b": the answer is not decided on yet\n\n"


class JSON(JSONResponse):
    """JSON that keeps lone surrogates, which streams leave when they cut a pair."""

    def render(self, content: object) -> bytes:
        """Return the value as bytes."""
        return json.dumps(content, separators=(",", ":")).encode()


def event_of(fields: Mapping[str, Any]) -> bytes:
    """Return a chunk of a completion, or an event of a response, as an SSE event."""
    name = f"event: {fields['type']}\n" if "type" in fields else ""
    return f"{name}data: {json.dumps(fields, separators=(',', ':'))}\n\n".encode()


class ClosingStream(StreamingResponse):
    """A stream that closes something when it ends, however it ends."""

    def __init__(
        self,
        parts: AsyncIterable[bytes],
        *,
        close: Callable[[], Awaitable[None]],
        status: int = 200,
    ) -> None:
        super().__init__(parts, status)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._close()


class EventStream(ClosingStream):
    """Sends events as they arrive, and a comment after ten seconds without one.

    A separate task reads the events, so that no timeout here can interrupt the guard.

    Args:
        events: What is sent; it is closed in any case.
        told: Returns what the client is told about an error.
    """

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncGenerator[bytes], *, told: Callable[[Exception], Fault]
    ) -> None:
        super().__init__(self._sent(), close=self.stop)
        self.headers["cache-control"] = "no-store"
        self._told = told
        self._queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(16)
        self._reading = asyncio.create_task(self._read(events))
        self._first: bytes | Exception | None = None

    async def ready(self) -> Self:
        """Wait for the first event, so that an early fault can set the HTTP status.

        Raises:
            Exception: What the request fails with.
        """
        try:
            self._first = await self._next()
        except BaseException:
            await self.stop()
            raise
        if isinstance(self._first, Exception):
            raise self._first
        return self

    async def stop(self) -> None:
        """Stop reading the events."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _sent(self) -> AsyncIterator[bytes]:
        item = self._first
        while isinstance(item, bytes):
            yield item
            item = await self._next()
        if item is not None:
            fault = self._told(item)
            error = {"message": str(fault)}
            yield event_of({"error": error, **fault.body, "type": "error"})

    async def _next(self) -> bytes | Exception | None:
        try:
            return await asyncio.wait_for(self._queue.get(), PATIENCE)
        except TimeoutError:
            return _ALIVE

    async def _read(self, events: AsyncGenerator[bytes]) -> None:
        """Put events in the queue; last what ends the stream: an error, or None."""
        last: Exception | None = None
        try:
            async with aclosing(events):
                async for event in events:
                    await self._queue.put(event)
        except Exception as error:  # noqa: BLE001 - the client is told of it
            last = error
        await self._queue.put(last)
