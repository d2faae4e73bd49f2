"""Connections to the upstream, and requests that are forwarded unchanged."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Collection, Generator
from contextlib import aclosing, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, TypeVar

import httpx2
import openai
from starlette.requests import Request

from snne_guard.server.keys import Access
from snne_guard.server.replies import ClosingStream
from snne_guard.server.tracing import upstream_context

_log = logging.getLogger("snne_guard.server")

T = TypeVar("T")

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
"""What is passed through: paths, and the methods that each takes."""

MAX_REPLY = 64 * 2**20
"""Bytes that a reply may have once it is decompressed; what passes through may more."""

_POOLS = 16
_AT_ONCE = 16
"""Requests that one pool takes before the next one is filled."""

_OF_ONE_HOP = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
    *(b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
}
_NOT_SENT_UP = {b"authorization", b"expect", b"host"}
_SENT_WITH_OWN_KEY = {
    *(b"accept", b"accept-encoding", b"content-encoding", b"content-length"),
    *(b"content-type", b"idempotency-key", b"openai-beta", b"range"),
    *(b"user-agent", b"x-client-request-id", b"x-request-id"),
}
"""Headers that are safe with the server's own upstream key: none selects an account."""
_SENT_WITH_DRAWS = ("idempotency-key", "x-client-request-id", "x-request-id")
_ACCOUNTS = ("OpenAI-Organization", "OpenAI-Project")  # as the package spells them


class _Reply(httpx2.Response):
    """A reply of limited size, however small it was compressed."""

    async def aiter_bytes(
        self, chunk_size: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of the reply."""
        size = 0
        async with aclosing(super().aiter_bytes(chunk_size)) as parts:
            async for part in parts:
                size += len(part)
                if size > MAX_REPLY:
                    message = "the upstream's reply is too large"
                    raise openai.OpenAIError(message)
                yield part

    def json(self, **options: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return the value of the reply."""
        with readable():
            return super().json(**options)


class UpstreamStream(openai.AsyncStream[T]):
    """A stream in which what the upstream says of an error is raised."""

    async def __aiter__(self) -> AsyncGenerator[T]:
        """Yield the parts."""
        with readable():
            async for part in super().__aiter__():
                said: Any = part
                # Some send the error itself, which the package takes for a part.
                if isinstance(getattr(said, "message", None), str):
                    body = said.to_dict(mode="json", warnings=False)
                    request = self.response.request
                    raise openai.APIError(said.message, request, body=body)
                yield part


@contextmanager
def readable() -> Generator[None]:
    """Raise what counts as the upstream's failure where its JSON makes no sense."""
    try:
        yield
    except (ValueError, RecursionError) as error:  # broken, deep, or of long numbers
        message = "the upstream's reply cannot be read"
        raise openai.OpenAIError(message) from error


class UpstreamClient(httpx2.AsyncClient):
    """Sends requests by several pools of connections.

    A pool looks at all its connections for each request, so a single pool with hundreds
    of them takes a third of the server's time. A few requests need only the first pool.
    """

    def __init__(self) -> None:
        options: dict[str, Any] = {
            "limits": httpx2.Limits(
                max_connections=None, max_keepalive_connections=1000 // _POOLS
            ),
            "timeout": httpx2.Timeout(600, connect=30),
            "verify": httpx2.create_ssl_context(),
        }
        # Cookies that came for one client must not go up with another's request.
        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        super().__init__(**options)
        self._pools = [
            httpx2.AsyncClient(**options, cookies=cookies) for _ in range(_POOLS)
        ]
        self._opening = 0

    async def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        **options: Any,  # noqa: ANN401 - those of the class above
    ) -> httpx2.Response:
        """Send a request, as the class above does."""
        pool = self._pools[self._opening // _AT_ONCE % _POOLS]
        self._opening += 1
        began = time.monotonic()
        try:
            reply = await pool.send(request, stream=True, **options)
            reply.__class__ = _Reply
            if reply.is_error:
                _log_failure(request, began, status=reply.status_code)
            if not stream:
                await reply.aread()
        except Exception as error:
            _log_failure(request, began, error=type(error).__name__)
            raise
        else:
            return reply
        finally:
            self._opening -= 1

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            await pool.aclose()


def _log_failure(request: httpx2.Request, began: float, **what: object) -> None:
    """Log which upstream failed, after how long and how; a path may name a file."""
    seconds = round(time.monotonic() - began, 4)
    host = request.url.netloc.decode("ascii")
    fields = {"upstream": host, "seconds": seconds, **what}
    _log.warning("the upstream failed", extra={"fields": fields})


def draw_headers(request: Request, access: Access) -> dict[str, Any]:
    """Return the headers that go up with each draw; nothing else of the client's."""
    given = request.headers
    headers: dict[str, Any] = {
        name: given[name] for name in _SENT_WITH_DRAWS if name in given
    }
    headers["Authorization"] = access.authorization or openai.Omit()
    for name in _ACCOUNTS:
        chosen = given.get(name) if access.secret is None else None
        headers[name] = chosen or openai.Omit()
    return headers | upstream_context(given)


async def forward(
    request: Request,
    access: Access,
    *,
    client: httpx2.AsyncClient,
    upstream: str,
    body: bytes | None = None,
) -> ClosingStream:
    """Forward a request unchanged, and stream the answer back.

    ``body`` is the request's where it has been read. What the upstream says of an error
    is raised where it could reveal something about the server's own key.
    """
    headers = _kept(request.headers.raw, _NOT_SENT_UP)
    own_key = access.secret is not None
    if own_key:
        headers = [each for each in headers if each[0] in _SENT_WITH_OWN_KEY]
    if chunked := "transfer-encoding" in request.headers:
        headers = [each for each in headers if each[0] != b"content-length"]
    context = upstream_context(request.headers)
    headers = [each for each in headers if each[0].decode("latin-1") not in context]
    headers += [(name.encode(), value.encode()) for name, value in context.items()]
    if access.authorization is not None:
        headers.append((b"authorization", access.authorization.encode("latin-1")))
    place = upstream + request.scope["path"].removeprefix("/v1")
    query: bytes = request.scope["query_string"]
    has_body = chunked or "content-length" in request.headers
    outgoing = httpx2.Request(
        request.method,
        httpx2.URL(place).copy_with(query=query or None),
        headers=headers,
        content=(body or request.stream()) if has_body else None,
        extensions={"timeout": client.timeout.as_dict()},
    )
    response = await client.send(outgoing, stream=True)
    if own_key and (response.is_error or response.is_redirect):
        await response.aread()  # it may quote the key
        response.raise_for_status()
    status, parts = response.status_code, response.aiter_raw()
    passed = ClosingStream(parts, close=response.aclose, status=status)
    dropped = {b"date"}
    if own_key:
        dropped |= {b"set-cookie", *(name.lower().encode() for name in _ACCOUNTS)}
    passed.raw_headers = _kept(response.headers.raw, dropped)
    if access.secret:
        key = access.secret.encode()
        passed.raw_headers = [
            (name, value.replace(key, b"***")) for name, value in passed.raw_headers
        ]
    passed.raw_headers.append((b"x-snne-guard", b"passthrough"))
    return passed


def _kept(
    headers: list[tuple[bytes, bytes]], dropped: Collection[bytes]
) -> list[tuple[bytes, bytes]]:
    """Return headers without those of this connection, and without those named."""
    found = [(name.lower(), value) for name, value in headers]
    named = {
        each.strip()
        for name, value in found
        if name == b"connection"
        for each in value.lower().split(b",")
    }
    gone = _OF_ONE_HOP.union(dropped, named)
    return [
        (name, value)
        for name, value in found
        if name not in gone and not name.startswith(b"x-snne-guard")
    ]
