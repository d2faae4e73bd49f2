"""What every request passes first: who may come in, how many, and by which address."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from snne_guard.server.faults import Fault, fault_of
from snne_guard.server.policies import requires_keys
from snne_guard.server.streams import ClientGoneError

__all__ = ["Gate"]

_PATH = re.compile(rb"(/[\w.:@~+-]+)+")
"""Addresses that every server on the way reads alike: nothing encoded or empty."""

_REQUEST_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)


class Gate:
    """Lets requests in, gives each an id, and turns every error into an answer.

    Args:
        app: What serves them.
        local: Whether only this machine may call. The name that it is called by counts
            too, or a web page could reach it by a name of its own that leads here.
        limit: How many calls may be in flight at once.
        origins: Of web pages from elsewhere that may call; ``*``: all.
    """

    def __init__(
        self, app: ASGIApp, *, local: bool, limit: int, origins: Collection[str] = ()
    ) -> None:
        self._app, self._local, self._limit = app, local, limit
        self._origins = origins
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False
        given = Headers(scope=scope).get("x-request-id", "")
        known = _REQUEST_ID.fullmatch(given) is not None
        request_id = given if known else f"req_{uuid.uuid4().hex}"

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message).setdefault("x-request-id", request_id)
            await send(message)

        try:
            await self._serve(scope, receive, answer)
        except (ClientDisconnect, ClientGoneError):
            pass
        except Exception as error:  # noqa: BLE001 - nobody is shown a traceback
            fault = fault_of(error)
            if not started:  # else the server closes the connection
                await fault.response()(scope, receive, answer)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check(scope)
        if not _is_call(scope):
            await self._app(scope, receive, send)
            return
        if self._in_flight >= self._limit:
            message = f"{self._limit} requests are in flight, which is the limit"
            wait = {"retry-after": "1"}
            raise Fault(429, message, code="too_many_requests", headers=wait)
        self._in_flight += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight -= 1

    def _check(self, scope: Scope) -> None:
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        if not _PATH.fullmatch(path) or {b".", b".."} & {*path.split(b"/")}:
            raise Fault(404, "this address is not served")
        if self._local and not (_here(scope.get("server")) and _named_here(scope)):
            message = "without keys, only this machine may call by its own name"
            raise Fault(403, message, code="local_only")
        if self._local and not self._known_origin(scope):
            message = "a web page from elsewhere may call only by --cors-origin"
            raise Fault(403, message, code="local_only")

    def _known_origin(self, scope: Scope) -> bool:
        origin = Headers(scope=scope).get("origin")
        if origin is None or {origin, "*"} & {*self._origins}:
            return True
        return not requires_keys(urlsplit(origin).hostname or "")


def _is_call(scope: Scope) -> bool:
    path: str = scope["path"]
    return path.startswith("/v1/") or scope["method"] == "POST"


def _here(server: tuple[str, int | None] | None) -> bool:
    # A socket that is a file has a path and no port.
    return server is None or server[1] is None or not requires_keys(server[0])


def _named_here(scope: Scope) -> bool:
    host = Headers(scope=scope).get("host", "").lower()
    name = re.sub(r":\d*$", "", host).removeprefix("[").removesuffix("]")
    return bool(name) and not requires_keys(name)
