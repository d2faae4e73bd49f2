"""How a request to each path is handled."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import httpx2
import openai
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from snne_guard.engine.threads import in_daemon_thread
from snne_guard.errors import ConfigurationError
from snne_guard.openai import AsyncGuardedOpenAI, guard_client
from snne_guard.openai.request import CONTEXT_FIELD
from snne_guard.scorers import score
from snne_guard.server.answers import ANSWERS, answer_events, answer_fields
from snne_guard.server.bodies import BodyReader, read_body
from snne_guard.server.config import ServerConfig, guard_options
from snne_guard.server.errors import SERVER_ERROR, UPSTREAM_ERRORS, Fault, fault_of
from snne_guard.server.keys import Access, KeyTable
from snne_guard.server.records import CURRENT, Records, asked_fields, policy_fields
from snne_guard.server.replies import JSON, event_stream
from snne_guard.server.upstream import PASSED, UpstreamClient, draw_headers, forward
from snne_guard.settings import GuardSettings
from snne_guard.spans.documents import CLIENT, context_text
from snne_guard.types import Score

_LONGEST = 60_000
"""Most characters that a client may have compared: the time grows with them."""


class _ToScore(BaseModel):
    """The body of ``/snne/score``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    answers: Annotated[list[str], Field(min_length=1, max_length=20)]
    question: str | None = None
    token_logprobs: list[list[float] | None] | None = None
    self_check: float | Literal["unknown"] | None = None


class Shared:
    """What outlives a change of the configuration."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.http = UpstreamClient()
        self.bodies = BodyReader()
        self.scoring = asyncio.Semaphore(2)


class Service:
    """What the guarded addresses do under one configuration."""

    def __init__(self, config: ServerConfig, shared: Shared) -> None:
        self._shared, self._metrics = shared, shared.records.metrics
        self._keys = KeyTable(config)
        self.upstream = config.upstream.rstrip("/")
        self._guards: dict[str, AsyncGuardedOpenAI] = {}
        self._settings: dict[str, GuardSettings] = {}
        self._fields: dict[str, dict[str, Any]] = {}
        client = openai.AsyncOpenAI(
            base_url=self.upstream,
            api_key="set for each request",
            http_client=shared.http,
        )
        for name, policy in config.policies.items():
            try:
                options = guard_options(policy, shared.http)
                options["observers"] = [shared.records]
                self._guards[name] = guard = guard_client(client, **options)
                self._settings[name] = settings = guard.guard_settings
                self._fields[name] = policy_fields(settings)
            except (TypeError, ValueError) as error:
                msg = f"policy {name}: {error}"
                raise ConfigurationError(msg) from None
            except OSError as error:
                msg = f"policy {name}: cannot read {error.filename}: {error.strerror}"
                raise ConfigurationError(msg) from None

    @property
    def thresholds(self) -> dict[str, float]:
        """The largest u that each policy accepts, where it has a threshold."""
        found = {name: each.policy.threshold for name, each in self._settings.items()}
        return {name: limit for name, limit in found.items() if limit is not None}

    async def serve(self, handle: Handle, request: Request) -> Response:
        """Serve a request if its key may do so."""
        access = self._keys.access(request.headers)
        CURRENT.get().policy = access.policy
        try:
            return await handle(self, request, access)
        except Exception as error:  # noqa: BLE001 - it has a place in the API
            raise self._fault(error, access) from None

    def _fault(self, error: Exception, access: Access) -> Fault:
        """Return the client's response to an error; count it if it is upstream's."""
        fault = fault_of(error, secret=access.secret)
        upstreams = isinstance(error, UPSTREAM_ERRORS)
        if upstreams:
            self._metrics.upstream_errors.labels(fault.status).inc()
        if upstreams or fault.status >= SERVER_ERROR:
            CURRENT.get().error = type(error).__name__
        if not isinstance(error, httpx2.HTTPError):  # else nothing has been retried
            # One layer retries, and a client's would send all draws again.
            fault.headers["x-should-retry"] = "false"
        return fault

    # -- Answers -----------------------------------------------------------------------

    async def answer(self, request: Request, access: Access) -> Response:
        """Give a guarded answer."""
        path = request.url.path.removeprefix("/v1")
        content = await read_body(request)
        body = await self._read(content, access)
        if body.get("background") and path == "/responses":
            if self._settings[access.policy].withholds:
                raise Fault(400, "background answers cannot be held back")
            return await self.forward(request, access, content)
        answer_cls, stream_cls, end = ANSWERS[path]
        post = partial(
            self._guards[access.policy].post,
            path,
            body=body,
            cast_to=answer_cls,
            options={"headers": draw_headers(request, access)},
        )
        if body.get("stream"):
            opening = post(stream=True, stream_cls=stream_cls)
            events = answer_events(opening, end, access.secret)
            fault = partial(self._fault, access=access)
            return await event_stream(events, fault_of=fault)
        fields = answer_fields(await post(), access.secret)
        record = fields["snne_guard"]
        headers = {
            f"x-snne-guard-{name}": str(record[name])
            for name in ("id", "decision", "uncertainty")
            if record[name] is not None
        }
        if doubts := [field["uncertainty"] for field in record.get("fields", ())]:
            headers["x-snne-guard-worst-field"] = str(max(doubts))
        return JSON(fields, headers=headers)

    def _check_context(self, body: Mapping[str, Any], access: Access) -> None:
        """Refuse documents of a client that could support its answers by itself."""
        if CONTEXT_FIELD not in body:
            return
        if self._settings[access.policy].context != CLIENT:
            raise Fault(400, f"policy {access.policy} takes no {CONTEXT_FIELD}")
        try:
            documents = context_text(body[CONTEXT_FIELD])
        except ConfigurationError as error:
            raise Fault(400, f"{CONTEXT_FIELD}: {error}") from None
        CURRENT.get().fields["context"] = documents

    async def forward(
        self, request: Request, access: Access, body: bytes | None = None
    ) -> Response:
        """Pass on a request that asks for no answer, or for one to be fetched later."""
        if request.url.path.startswith("/v1/files") and not access.files:
            message = "this key may not use files, which are shared"
            raise Fault(403, message, code="files_not_allowed")
        passed = await forward(
            request, access, client=self._shared.http, upstream=self.upstream, body=body
        )
        if passed.status_code >= 400:  # noqa: PLR2004 - as HTTP has it
            self._metrics.upstream_errors.labels(passed.status_code).inc()
        return passed

    async def _read(self, content: bytes, access: Access) -> dict[str, Any]:
        """Return the body of a request to be guarded; note what it asks for."""
        body = await self._shared.bodies.read(content, key=access.key)
        CURRENT.get().fields = asked_fields(body, self._fields[access.policy])
        self._check_context(body, access)
        return body

    # -- Answers that exist already ----------------------------------------------------

    async def score(self, request: Request, access: Access) -> Response:
        """Score answers that the client sends."""
        content = await read_body(request)
        given = _ToScore(**await self._shared.bodies.read(content, key=access.key))
        if sum(map(len, [*given.answers, given.question or ""])) > _LONGEST:
            raise Fault(400, f"expected at most {_LONGEST} characters to compare")
        settings = self._settings[access.policy]
        work = partial(
            score,
            **given.model_dump(),
            method=settings.method,
            similarity=settings.similarity,
        )
        async with self._shared.scoring:  # in a daemon, which does not hold up an exit
            found: Score = await asyncio.wrap_future(in_daemon_thread(work))
        names = ("uncertainty", "disagreement", "self_check", "method", "similarity")
        return JSON(
            {
                "value": found.value if math.isfinite(found.value) else None,
                **{name: getattr(found, name) for name in (*names, "n", "reasons")},
            }
        )

    async def assess(self, request: Request, access: Access) -> Response:
        """Assess an answer that the client may send."""
        content = await read_body(request)
        body = await self._read(content, access)
        answer = body.pop("answer", None)
        if not isinstance(answer, str | None):
            raise Fault(400, "expected answer to be a text")
        name = "messages" if "messages" in body else "input"
        if name not in body:
            raise Fault(400, "expected messages or an input")
        assessment = await self._guards[access.policy].assess(
            answer=answer,
            **{each: body.pop(each, None) for each in (name, "model")},
            extra_body=body,
            extra_headers=draw_headers(request, access),
        )
        return JSON(assessment.to_metadata())


Handle = Callable[[Service, Request, Access], Awaitable[Response]]


def guarded_routes(current: Callable[[], Service]) -> list[Route]:
    """Return the routes of the API.

    ``current`` returns the service of the configuration that holds now; a request has
    the same one to its end.
    """

    def endpoint(handle: Handle) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            return await current().serve(handle, request)

        return serve

    answered: dict[str, Handle] = {
        **{f"/v1{path}": Service.answer for path in ANSWERS},
        "/snne/score": Service.score,
        "/snne/assess": Service.assess,
    }
    gzip = [Middleware(GZipMiddleware, minimum_size=1000)]
    passed = endpoint(Service.forward)
    return [
        *(
            Route(path, endpoint(handle), methods=["POST"], middleware=gzip)
            for path, handle in answered.items()
        ),
        *(Route(path, passed, methods=[*methods]) for path, methods in PASSED),
    ]
