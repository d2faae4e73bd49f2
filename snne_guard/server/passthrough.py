"""Requests that pass to the upstream and back as they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import suppress

import httpx2
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from snne_guard.server.faults import of_status
from snne_guard.server.policies import Access
from snne_guard.server.streams import ClientGoneError, until_gone

__all__ = ["PASSED", "forward"]

PASSED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("/v1/models", ("GET",)),
    ("/v1/models/{model:path}", ("GET",)),
    ("/v1/embeddings", ("POST",)),
    ("/v1/moderations", ("POST",)),
    ("/v1/audio/speech", ("POST",)),
    ("/v1/audio/transcriptions", ("POST",)),
    ("/v1/audio/translations", ("POST",)),
    ("/v1/images/generations", ("POST",)),
    ("/v1/images/edits", ("POST",)),
    ("/v1/images/variations", ("POST",)),
    ("/v1/files", ("GET", "POST")),
    ("/v1/files/{file}", ("GET", "DELETE")),
    ("/v1/files/{file}/content", ("GET",)),
)
"""What is passed through: places, and the methods that they take."""

_SECONDS_A_CHUNK = 60.0
"""How long a part of a request's body may take; it holds a slot meanwhile."""

_OF_ONE_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_NOT_SENT_UP = frozenset({"authorization", "expect", "host"})
_SENT_WITH_OWN_KEY = frozenset(
    {
        *("accept", "accept-encoding", "content-encoding", "content-length"),
        *("content-type", "idempotency-key", "openai-beta", "range", "user-agent"),
        *("x-client-request-id", "x-request-id"),
    }
)
"""Headers that choose nothing among what the server's own upstream key opens."""


async def forward(
    request: Request,
    access: Access,
    *,
    client: httpx2.AsyncClient,
    upstream: str,
    failed: Callable[[int | str], None],
) -> Response:
    """Send a request up as it is, and return the answer as it comes.

    Args:
        request: Its body has not been read.
        access: What it may do.
        client: Sends it.
        upstream: Where to, ``/v1`` included.
        failed: Is told of each failure of the upstream.
    """
    headers = _kept(request.headers.raw, _NOT_SENT_UP, prefix="x-snne-guard")
    if access.own_key:
        headers = [
            (name, value)
            for name, value in headers
            if name.decode("latin-1").lower() in _SENT_WITH_OWN_KEY
        ]
    if "transfer-encoding" in request.headers:
        headers = [each for each in headers if each[0].lower() != b"content-length"]
    if access.authorization is not None:
        headers.append((b"authorization", access.authorization.encode("latin-1")))
    place = upstream + request.scope["path"].removeprefix("/v1")
    query: bytes = request.scope["query_string"]
    url = httpx2.URL(place).copy_with(query=query or None)
    sent = asyncio.Event()
    outgoing = httpx2.Request(
        request.method,
        url,
        headers=headers,
        content=_body(request, sent) if _has_body(request) else None,
        extensions={"timeout": client.timeout.as_dict()},
    )
    if not _has_body(request):
        sent.set()

    async def receive() -> dict[str, str]:
        await sent.wait()  # until then the body is read from there
        return {**await request.receive()}

    response = await until_gone(receive, client.send(outgoing, stream=True))
    status = response.status_code
    if response.is_error:
        failed(status)
    inner = access.own_key and (status in {401, 403} or response.is_redirect)
    if inner or not 200 <= status < 600:  # noqa: PLR2004 - what HTTP knows
        await response.aclose()
        raise of_status(response, secret=access.secret)
    return _Passed(response, failed, own_key=access.own_key)


def _has_body(request: Request) -> bool:
    return not {"content-length", "transfer-encoding"}.isdisjoint(request.headers)


async def _body(request: Request, sent: asyncio.Event) -> AsyncIterator[bytes]:
    chunks = aiter(request.stream())
    while True:
        async with asyncio.timeout(_SECONDS_A_CHUNK):
            chunk = await anext(chunks, None)
        if chunk is None:
            break
        yield chunk
    sent.set()


def _kept(
    headers: list[tuple[bytes, bytes]], dropped: Collection[str], *, prefix: str
) -> list[tuple[bytes, bytes]]:
    """Return headers without those of this connection, and without those named."""
    named = {
        name.strip().lower()
        for key, value in headers
        if key.lower() == b"connection"
        for name in value.decode("latin-1").split(",")
    }
    gone = _OF_ONE_HOP.union(dropped, named)
    return [
        (key, value)
        for key, value in headers
        if (name := key.decode("latin-1").lower()) not in gone
        and not name.startswith(prefix)
    ]


class _Passed(Response):
    """An answer of the upstream, byte for byte."""

    def __init__(
        self,
        response: httpx2.Response,
        failed: Callable[[int | str], None],
        *,
        own_key: bool,
    ) -> None:
        self.status_code = response.status_code
        account = ("set-cookie", "openai-organization", "openai-project")
        dropped = ("date", *(account if own_key else ()))
        self.raw_headers = _kept(response.headers.raw, dropped, prefix="x-snne-guard")
        self.raw_headers.append((b"x-snne-guard", b"passthrough"))
        self.background = None
        self._response, self._failed = response, failed

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send it; break off where the upstream does or the client goes away."""
        try:
            with suppress(ClientGoneError):
                await until_gone(receive, self._send(send))
        except httpx2.HTTPError:
            self._failed("broken off")
        finally:
            await self._response.aclose()

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        async for chunk in self._response.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
