"""What goes back to clients: JSON, and streams of server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from snne_guard.server.errors import Fault

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
        media_type: str | None = None,
    ) -> None:
        super().__init__(parts, status, media_type=media_type)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._close()


async def event_stream(
    events: AsyncGenerator[bytes], *, fault_of: Callable[[Exception], Fault]
) -> ClosingStream:
    """Return a stream of events, and of comments where none comes for ten seconds.

    The first is waited for, so that an early fault can set the HTTP status.
    """
    parts = _kept_alive(events)
    first = await anext(parts)

    async def sent() -> AsyncGenerator[bytes]:
        yield first
        try:
            async for part in parts:
                yield part
        except Exception as error:  # noqa: BLE001 - the client is told of it
            fault = fault_of(error)
            # Clients of one API look for ``error``, those of the other for ``message``.
            said = {"message": str(fault)}
            fields = {**said, "error": said, **fault.body, "type": "error"}
            yield event_of(fields)

    stream = ClosingStream(sent(), close=parts.aclose, media_type="text/event-stream")
    stream.headers["cache-control"] = "no-store"
    return stream


async def _kept_alive(events: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield events as they come, and a comment after ten seconds without one.

    Each is waited for in a task of its own, so that no timeout interrupts the guard.
    """
    coming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            if not (await asyncio.wait({coming}, timeout=PATIENCE))[0]:
                yield _ALIVE
            elif (event := coming.result()) is None:
                return
            else:
                yield event
                coming = asyncio.ensure_future(anext(events, None))
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        await events.aclose()
