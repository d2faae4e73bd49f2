"""Checks each request first: who may call, how many at once, and at which path."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Collection
from contextlib import ExitStack
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from snne_guard.server.config import requires_keys
from snne_guard.server.errors import SERVER_ERROR, Fault, fault_of
from snne_guard.server.records import CURRENT, GONE, Records, RequestRecord
from snne_guard.server.replies import JSON
from snne_guard.server.tracing import request_span

SECONDS_A_PART = 60.0
"""How long a part of a request's body may take; the request holds a slot meanwhile."""

_PATH = re.compile(rb"(/[\w.:@~+-]+)+")
"""Paths that every server on the way parses alike: no encoded or empty segments."""

_REQUEST_ID = re.compile(r"[\w.:@/+=-]{1,128}", re.ASCII)
"""Ids of a client's that are kept: they go to the logs, and so hold no line breaks."""


class Gate:
    """Lets requests in, gives each an id, and turns every error into an answer.

    With ``local`` only this machine may call. The ``Host`` must be local too, or a web
    page could call by a domain of its own that resolves to this machine.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        records: Records,
        local: bool,
        limit: int = 200,
        origins: Collection[str] = (),
    ) -> None:
        self._app, self._records = app, records
        self._local, self._limit = local, limit
        self._origins = origins
        self._in_flight: set[ExitStack] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        kept = given if _REQUEST_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"
        record = RequestRecord(id=kept, method=scope["method"])
        CURRENT.set(record)
        started = False

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started, record.status = True, message["status"]
                record.route = _route(scope)
                MutableHeaders(scope=message).setdefault("x-request-id", record.id)
            elif not message.get("more_body"):
                slot.close()  # a client may send its next request now
                await self._records.end(record)
            await send(message)

        with ExitStack() as slot, request_span(record, headers):
            try:
                self._check(scope)
                self._take_slot(slot, scope)
                await self._while_there(scope, receive, answer)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - nobody is shown a traceback
                fault = fault_of(error)
                if fault.status >= SERVER_ERROR:
                    record.error = record.error or type(error).__name__
                if not started:  # else the server closes the connection
                    response = JSON(fault.body, fault.status, fault.headers)
                    await response(scope, receive, answer)
            finally:
                if not record.ended and record.error is None:
                    record.status, record.route = GONE, _route(scope)
                await self._records.end(record)

    async def _while_there(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and stop if its client disconnects."""
        messages: asyncio.Queue[Message] = asyncio.Queue(1)

        async def listen() -> None:
            seconds: float | None = SECONDS_A_PART
            while True:
                async with asyncio.timeout(seconds):
                    message = await receive()
                if message["type"] == "http.disconnect":
                    return
                if not message.get("more_body"):
                    seconds = None  # only a disconnect can follow
                await messages.put(message)

        serving = asyncio.ensure_future(self._app(scope, messages.get, send))
        tasks = {serving, asyncio.create_task(listen())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _check(self, scope: Scope) -> None:
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        about = path == b"/" and scope["method"] in {"GET", "HEAD"}
        if not (about or _PATH.fullmatch(path)) or {b".", b".."} & {*path.split(b"/")}:
            raise Fault(404, "this address is not served")
        if not self._local:
            return
        address, port = scope.get("server") or ("", None)
        host = urlsplit(f"//{Headers(scope=scope).get('host', '')}").hostname or ""
        # A socket file has no port.
        if requires_keys(host) or (port is not None and requires_keys(address)):
            message = "without keys, only this machine may call, by a local name"
            raise Fault(403, message, code="local_only")
        origin = Headers(scope=scope).get("origin")
        if origin is None or {origin, "*"} & {*self._origins}:
            return
        if requires_keys(urlsplit(origin).hostname or ""):
            message = "a web page from elsewhere may call only with --cors-origin"
            raise Fault(403, message, code="local_only")

    def _take_slot(self, slot: ExitStack, scope: Scope) -> None:
        if not scope["path"].startswith("/v1/") and scope["method"] != "POST":
            return
        if len(self._in_flight) >= self._limit:
            message = f"{self._limit} requests are in flight, which is the limit"
            wait = {"retry-after": "1"}
            raise Fault(429, message, code="too_many_requests", headers=wait)
        self._in_flight.add(slot)
        slot.callback(self._in_flight.discard, slot)


def _route(scope: Scope) -> str:
    """Return the address as the server knows it, without what the client chose."""
    route: str = getattr(scope.get("route"), "path", "other")
    return route
