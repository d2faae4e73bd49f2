"""How a request to each path is handled."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import httpx2
import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response as OpenAIResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from snne_guard.engine.threads import in_daemon_thread
from snne_guard.errors import ConfigurationError
from snne_guard.openai import AsyncGuardedOpenAI, guard_client
from snne_guard.openai.other_models import clients_of
from snne_guard.openai.request import CONTEXT_FIELD
from snne_guard.scorers import score
from snne_guard.server.bodies import BodyReader, read_body
from snne_guard.server.config import ServerConfig, guard_options
from snne_guard.server.errors import UPSTREAM_ERRORS, Fault, fault_of, without
from snne_guard.server.keys import Access, KeyTable
from snne_guard.server.metrics import Metrics
from snne_guard.server.replies import JSON, event_of, event_stream
from snne_guard.server.upstream import (
    PASSED,
    UpstreamClient,
    UpstreamStream,
    draw_headers,
    forward,
    readable,
)
from snne_guard.settings import GuardSettings
from snne_guard.spans.documents import CLIENT, context_text
from snne_guard.types import Score

_Chunks = UpstreamStream[ChatCompletionChunk]
_Events = UpstreamStream[ResponseStreamEvent]
_APIS: dict[str, tuple[type[Any], type[Any], bytes]] = {
    "/chat/completions": (ChatCompletion, _Chunks, b"data: [DONE]\n\n"),
    "/responses": (OpenAIResponse, _Events, b""),
}
"""Class of an answer, class of its stream, and what ends the stream."""

_LONGEST = 60_000
"""Most characters that a client may have compared: the time grows with them."""

Handle = Callable[[Request, Access], Awaitable[Response]]


class _ToScore(BaseModel):
    """The body of ``/snne/score``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    answers: Annotated[list[str], Field(min_length=1, max_length=20)]
    question: str | None = None
    token_logprobs: list[list[float] | None] | None = None
    self_check: float | Literal["unknown"] | None = None


class Service:
    """What the guarded addresses share.

    Raises:
        ConfigurationError: A policy or a key makes no sense.
    """

    def __init__(self, config: ServerConfig, metrics: Metrics) -> None:
        self._metrics = metrics
        self._keys = KeyTable(config)
        self._upstream = config.upstream.rstrip("/")
        self._http = UpstreamClient()
        self._bodies = BodyReader()
        self._scoring = asyncio.Semaphore(2)
        self._guards: dict[str, AsyncGuardedOpenAI] = {}
        self._settings: dict[str, GuardSettings] = {}
        client = openai.AsyncOpenAI(
            base_url=self._upstream,
            api_key="set for each request",
            http_client=self._http,
        )
        for name, policy in config.policies.items():
            try:
                options = guard_options(policy, self._http)
                others = options.get("other_models") or ()
                self._settings[name] = GuardSettings.given(
                    **{**options, "other_models": [*clients_of(others, client)]}
                )
                count = partial(metrics.count, name)
                options["observers"] = [SimpleNamespace(on_assessment=count)]
                self._guards[name] = guard_client(client, **options)
            except (TypeError, ValueError) as error:
                msg = f"policy {name}: {error}"
                raise ConfigurationError(msg) from None

    async def close(self) -> None:
        """Close the connections to the upstream."""
        await self._http.aclose()

    def routes(self) -> list[Route]:
        """Return all routes except those of the live page."""
        guarded: dict[str, Handle] = {
            **{f"/v1{path}": self._answer for path in _APIS},
            "/snne/score": self._score,
            "/snne/assess": self._assess,
        }
        gzip = [Middleware(GZipMiddleware, minimum_size=1000)]
        answered = [
            Route(path, self._endpoint(handle), methods=["POST"], middleware=gzip)
            for path, handle in guarded.items()
        ]
        passed = self._endpoint(self._pass)
        return answered + [
            Route(path, passed, methods=[*methods]) for path, methods in PASSED
        ]

    def _endpoint(self, handle: Handle) -> Callable[[Request], Awaitable[Response]]:
        """Return what serves the requests to a path, if their keys may do so."""

        async def serve(request: Request) -> Response:
            access = self._keys.access(request.headers)
            try:
                return await handle(request, access)
            except Exception as error:  # noqa: BLE001 - it has a place in the API
                raise self._fault(error, access) from None

        return serve

    def _fault(self, error: Exception, access: Access) -> Fault:
        """Return what a client is told of an error; count it where it is upstream's."""
        fault = fault_of(error, secret=access.secret)
        if isinstance(error, UPSTREAM_ERRORS):
            self._metrics.upstream_error(fault.status)
        if not isinstance(error, httpx2.HTTPError):  # else nothing has been retried
            # One layer retries, and a client's would send all draws again.
            fault.headers["x-should-retry"] = "false"
        return fault

    # -- Answers -----------------------------------------------------------------------

    async def _answer(self, request: Request, access: Access) -> Response:
        path = request.url.path.removeprefix("/v1")
        content = await read_body(request)
        body = await self._bodies.read(content, key=access.key)
        self._check_context(body, access)
        if body.get("background") and path == "/responses":
            if self._settings[access.policy].withholds:
                raise Fault(400, "background answers cannot be held back")
            return await self._pass(request, access, content)
        answer_cls, stream_cls, end = _APIS[path]
        post = partial(
            self._guards[access.policy].post,
            path,
            body=body,
            cast_to=answer_cls,
            options={"headers": draw_headers(request, access)},
        )
        if body.get("stream"):
            opening = post(stream=True, stream_cls=stream_cls)
            events = _events(opening, end, access.secret)
            fault = partial(self._fault, access=access)
            return await event_stream(events, fault_of=fault)
        fields = _fields(await post(), access.secret)
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
            context_text(body[CONTEXT_FIELD])
        except ConfigurationError as error:
            raise Fault(400, f"{CONTEXT_FIELD}: {error}") from None

    async def _pass(
        self, request: Request, access: Access, body: bytes | None = None
    ) -> Response:
        """Pass on a request that asks for no answer, or for one to be fetched later."""
        if request.url.path.startswith("/v1/files") and not access.files:
            message = "this key may not use files, which are shared"
            raise Fault(403, message, code="files_not_allowed")
        passed = await forward(
            request, access, client=self._http, upstream=self._upstream, body=body
        )
        if passed.status_code >= 400:  # noqa: PLR2004 - as HTTP has it
            self._metrics.upstream_error(passed.status_code)
        return passed

    # -- Answers that exist already ----------------------------------------------------

    async def _score(self, request: Request, access: Access) -> Response:
        content = await read_body(request)
        given = _ToScore(**await self._bodies.read(content, key=access.key))
        if sum(map(len, [*given.answers, given.question or ""])) > _LONGEST:
            raise Fault(400, f"expected at most {_LONGEST} characters to compare")
        settings = self._settings[access.policy]
        work = partial(
            score,
            **given.model_dump(),
            method=settings.method,
            similarity=settings.similarity,
        )
        async with self._scoring:  # in a daemon, which does not hold up an exit
            found: Score = await asyncio.wrap_future(in_daemon_thread(work))
        names = ("uncertainty", "disagreement", "self_check", "method", "similarity")
        return JSON(
            {
                "value": found.value if math.isfinite(found.value) else None,
                **{name: getattr(found, name) for name in (*names, "n", "reasons")},
            }
        )

    async def _assess(self, request: Request, access: Access) -> Response:
        content = await read_body(request)
        body = await self._bodies.read(content, key=access.key)
        self._check_context(body, access)
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


async def _events(
    opening: Awaitable[Any], end: bytes, secret: str | None
) -> AsyncGenerator[bytes]:
    async with await opening as stream:
        async for part in stream:
            yield event_of(_fields(part, secret))
    yield end


def _fields(answer: Any, secret: str | None) -> dict[str, Any]:  # noqa: ANN401 - of whatever API
    """Return an answer or a part of one as it goes out."""
    with readable():
        fields: dict[str, Any] = answer.to_dict(mode="json", warnings=False)
    record = fields.get("snne_guard")
    for place in (fields, fields.get("response") or {}):
        if place.get("error"):
            place["error"] = without(secret, place["error"])
        if record is not None:
            _sum_up(place.get("usage"), record)
    return fields


_COUNTED = ("cached_tokens", "completion_tokens", "prompt_tokens", "reasoning_tokens")


def _sum_up(usage: Any, record: Mapping[str, Any]) -> None:  # noqa: ANN401 - upstream's
    """Set the usage of an answer, details included, to that of its model's draws."""
    cost = {**record["cost"]}
    for other in record.get("other_models", {}).values():
        cost |= {name: cost[name] - other.get(name, 0) for name in _COUNTED}
    counts = {name: cost[name] for name in ("cached_tokens", "reasoning_tokens")}
    counts["prompt_tokens"] = counts["input_tokens"] = cost["prompt_tokens"]
    counts["completion_tokens"] = counts["output_tokens"] = cost["completion_tokens"]
    counts["total_tokens"] = cost["prompt_tokens"] + cost["completion_tokens"]
    # The usage on a fallback's answer is its own, which is no part of the cost.
    falls_back = record["decision"] == "fallback"
    for name, count in usage.items() if isinstance(usage, dict) else ():
        if name in counts and isinstance(count, int):
            usage[name] = counts[name] + falls_back * count
        else:
            _sum_up(count, record)
