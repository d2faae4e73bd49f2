"""What becomes of a request to each address."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import httpx2
import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response as OpenAIResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from snne_guard.drivers.threads import in_daemon_thread
from snne_guard.openai import AsyncGuardedOpenAI, guard_client
from snne_guard.scorers import score
from snne_guard.server.faults import Fault, fault_of, upstream_status
from snne_guard.server.metrics import Metrics
from snne_guard.server.passthrough import PASSED, forward
from snne_guard.server.policies import Access, KeyTable, ServerConfig
from snne_guard.server.streams import (
    ClientGoneError,
    EventStream,
    event_of,
    until_gone,
)
from snne_guard.server.upstream import UpstreamClient
from snne_guard.server.wire import json_response, read_object
from snne_guard.settings import GuardSettings
from snne_guard.types import Score

__all__ = ["SECONDS_TO_SEND", "Service"]

_SENT_UP = ("idempotency-key", "x-client-request-id", "x-request-id")
_OF_AN_ACCOUNT = ("OpenAI-Organization", "OpenAI-Project")
_LONGEST = 20_000
"""Characters of an answer that a client may have compared: the time grows with them."""

_LONGEST_TOGETHER = 60_000
_LONGEST_NAME = 256
SECONDS_TO_SEND = 30.0
"""How long the body of a request may take; it holds a slot meanwhile."""

_Answer = Annotated[str, Field(max_length=_LONGEST)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Api:
    """One of the two guarded addresses."""

    path: str
    cast_to: Any
    stream_cls: Any
    end: bytes


_CHAT = _Api(
    path="/chat/completions",
    cast_to=ChatCompletion,
    stream_cls=openai.AsyncStream[ChatCompletionChunk],
    end=b"data: [DONE]\n\n",
)
_RESPONSES = _Api(
    path="/responses",
    cast_to=OpenAIResponse,
    stream_cls=openai.AsyncStream[ResponseStreamEvent],
    end=b"",
)


class _ToScore(BaseModel):
    """The body of ``/snne/score``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    answers: Annotated[list[_Answer], Field(min_length=1, max_length=20)]
    question: _Answer | None = None
    token_logprobs: list[list[float] | None] | None = None
    self_check: float | Literal["unknown"] | None = None


class Service:
    """What the guarded addresses share."""

    def __init__(self, config: ServerConfig, metrics: Metrics) -> None:
        self.metrics = metrics
        self._config = config
        self._keys = KeyTable(config)
        self._upstream = config.upstream.rstrip("/")
        self._http = UpstreamClient()
        self._client = openai.AsyncOpenAI(
            base_url=self._upstream,
            api_key="set for each request",
            http_client=self._http,
        )
        self._scoring = asyncio.Semaphore(2)
        self._guards: dict[str, AsyncGuardedOpenAI] = {}
        self._settings: dict[str, GuardSettings] = {}
        for name, policy in config.policies.items():
            options = policy.guard_options(config.folder)
            options["observers"] = [metrics.observer(name)]
            self._settings[name] = GuardSettings(**options)
            self._guards[name] = guard_client(self._client, **options)

    async def close(self) -> None:
        """Close the connections to the upstream."""
        await self._http.aclose()

    def routes(self) -> list[Route]:
        """Return what is served, but for the live page."""
        gzip = [Middleware(GZipMiddleware, minimum_size=1000)]
        guarded: dict[str, Callable[..., Any]] = {
            "/v1/chat/completions": partial(self._answer, api=_CHAT),
            "/v1/responses": partial(self._answer, api=_RESPONSES),
            "/snne/score": self._score,
            "/snne/assess": self._assess,
        }
        return [
            *(
                Route(path, answer, methods=["POST"], middleware=gzip)
                for path, answer in guarded.items()
            ),
            *(Route(path, self._pass, methods=[*methods]) for path, methods in PASSED),
        ]

    # -- Answers -----------------------------------------------------------------------

    async def _answer(self, request: Request, *, api: _Api) -> Response:
        access, policy = self._enter(request)
        body = await self._body(request)
        streamed = _check(body)
        if body.get("background") and api is _RESPONSES:
            return await self._unscored(request, access, policy, body)
        post = partial(
            self._guards[policy].post,
            api.path,
            body=body,
            cast_to=api.cast_to,
            options={"headers": _headers(request, access)},
        )
        if streamed:
            events = EventStream(
                post(stream=True, stream_cls=api.stream_cls),
                encode=lambda part: event_of(_fields(part)),
                told=partial(self._told, access=access),
                end=api.end,
            )
            return await until_gone(request.receive, events.ready())
        answer = await self._result(request, access, post())
        fields = _fields(answer)
        record = fields["snne_guard"]
        headers = {
            f"x-snne-guard-{name}": str(record[name])
            for name in ("id", "decision", "uncertainty")
            if record[name] is not None
        }
        return json_response(fields, headers=headers)

    async def _unscored(
        self, request: Request, access: Access, policy: str, body: dict[str, Any]
    ) -> Response:
        """Pass on a request whose answer is fetched later, and not from here."""
        if body.get("stream") or self._settings[policy].withholds:
            raise Fault(
                400, "background answers can be neither held back nor streamed here"
            )
        headers = _headers(request, access)
        post = self._client.post(
            _RESPONSES.path,
            body=body,
            cast_to=OpenAIResponse,
            options={"headers": headers},
        )
        answer = await self._result(request, access, post)
        unscored = {"decision": "unscored", "uncertainty": None}
        fields = {**_fields(answer), "snne_guard": unscored}
        return json_response(fields, headers={"x-snne-guard-decision": "unscored"})

    async def _pass(self, request: Request) -> Response:
        access, _ = self._enter(request)
        if request.url.path.startswith("/v1/files") and not access.files:
            message = "this key may not use files, which are shared"
            raise Fault(403, message, code="files_not_allowed")
        try:
            return await forward(
                request,
                access,
                client=self._http,
                upstream=self._upstream,
                failed=self.metrics.upstream_error,
            )
        except httpx2.HTTPError as error:
            raise self._told(error, access=access, retried=False) from None

    # -- Answers that exist already ----------------------------------------------------

    async def _score(self, request: Request) -> Response:
        _, policy = self._enter(request)
        settings = self._settings[policy]
        try:
            given = _ToScore(**await self._body(request))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise Fault(400, f"{place}: {first['msg']}") from None
        if sum(map(len, given.answers)) > _LONGEST_TOGETHER:
            message = f"expected at most {_LONGEST_TOGETHER} characters of answers"
            raise Fault(400, message)

        async def scored() -> Score:
            async with self._scoring:  # in a daemon, which does not hold up an exit
                work = partial(
                    score,
                    given.answers,
                    question=given.question,
                    token_logprobs=given.token_logprobs,
                    self_check=given.self_check,
                    method=settings.method,
                    similarity=settings.similarity,
                )
                made: Score = await asyncio.wrap_future(in_daemon_thread(work))
                return made

        result = await until_gone(request.receive, scored())
        return json_response(
            {
                "value": result.value if math.isfinite(result.value) else None,
                "uncertainty": result.uncertainty,
                "disagreement": result.disagreement,
                "self_check": result.self_check,
                "method": result.method,
                "similarity": result.similarity,
                "n": result.n,
                "reasons": list(result.reasons),
            }
        )

    async def _assess(self, request: Request) -> Response:
        access, policy = self._enter(request)
        body = await self._body(request)
        _check(body)
        answer = body.pop("answer", None)
        if not (answer is None or isinstance(answer, str)):
            raise Fault(400, "expected answer to be a text")
        if len(answer or "") > _LONGEST:
            raise Fault(400, f"expected at most {_LONGEST} characters of answer")
        names = [name for name in ("messages", "input") if name in body]
        if len(names) != 1:
            raise Fault(400, "expected either messages or an input")
        rest = {k: v for k, v in body.items() if k not in {*names, "model", "stream"}}
        assess = self._guards[policy].assess(
            answer=answer,
            model=body["model"],
            **{name: body[name] for name in names},
            extra_body=rest,
            extra_headers=_headers(request, access),
        )
        assessment = await self._result(request, access, assess)
        return json_response(assessment.to_metadata())

    # -- Requests ----------------------------------------------------------------------

    def _enter(self, request: Request) -> tuple[Access, str]:
        """Return what a request may do, and the policy that it is under."""
        access = self._keys.access(request.headers.getlist("authorization"))
        if access is None:
            message = "the key is missing or unknown"
            raise Fault(401, message, code="invalid_api_key")
        named = request.headers.getlist("x-snne-guard-policy")
        if len(named) > 1:
            raise Fault(400, "expected one x-snne-guard-policy, got several")
        policy = next(filter(None, named), access.policies[0])
        if policy not in access.policies:
            message = "this key may not use that policy, or there is none of the name"
            raise Fault(403, message, code="policy_not_allowed")
        return access, policy

    async def _body(self, request: Request) -> dict[str, Any]:
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind.lower() != "application/json":  # a web page may send others unasked
            raise Fault(400, "expected a body of content-type application/json")
        most = self._config.max_body
        length = request.headers.get("content-length", "0")
        body = bytearray()
        if int(length) <= most:
            async with asyncio.timeout(SECONDS_TO_SEND):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most:
                        break
        if int(length) > most or len(body) > most:
            message = f"the body has more than {most} bytes"
            raise Fault(413, message, code="request_too_large")
        try:
            return read_object(bytes(body))
        except ValueError:
            raise Fault(400, "the body is no JSON object") from None

    async def _result(
        self, request: Request, access: Access, work: Coroutine[Any, Any, Any]
    ) -> Any:  # noqa: ANN401 - whatever the work gives
        """Return what work gives, which ends where the client goes away.

        Raises:
            Fault: What the client is told.
        """
        try:
            return await until_gone(request.receive, work)
        except ClientGoneError:
            raise
        except Exception as error:  # noqa: BLE001 - it has a place in the API
            raise self._told(error, access=access) from None

    def _told(self, error: Exception, *, access: Access, retried: bool = True) -> Fault:
        """Return what a client is told of an error; count it where it is upstream's."""
        status = upstream_status(error)
        if status is not None:
            self.metrics.upstream_error(status)
        fault = fault_of(error, secret=access.secret)
        if retried:  # one layer retries, and a client's would send all draws again
            fault.headers["x-should-retry"] = "false"
        return fault


def _check(body: dict[str, Any]) -> bool:
    """Refuse what no guarded answer can have; return whether it is to be streamed."""
    if body.pop("n", None) not in (None, 1):
        raise Fault(400, "expected n to be 1: of several answers only one is guarded")
    model = body.get("model")
    if not isinstance(model, str) or len(model) > _LONGEST_NAME:
        message = f"expected model to be a name of at most {_LONGEST_NAME} characters"
        raise Fault(400, message)
    streamed = body.get("stream")
    if not (streamed is None or isinstance(streamed, bool)):
        raise Fault(400, "expected stream to be true or false")
    return bool(streamed)


def _headers(request: Request, access: Access) -> dict[str, Any]:
    """Return the headers that go up with each draw; nothing else of the client's."""
    given = request.headers
    headers: dict[str, Any] = {name: given[name] for name in _SENT_UP if name in given}
    headers["Authorization"] = access.authorization or openai.Omit()
    for name in _OF_AN_ACCOUNT:
        chosen = None if access.own_key else given.get(name)
        headers[name] = chosen or openai.Omit()
    return headers


def _fields(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - of whatever API
    """Return an answer or a part of one as it goes out."""
    fields: dict[str, Any] = answer.to_dict(mode="json", warnings=False)
    record = fields.get("snne_guard")
    if record is not None:
        for place in (fields, fields.get("response") or {}):
            _sum_up(place.get("usage"), record)
    return fields


def _sum_up(usage: Any, record: Mapping[str, Any]) -> None:  # noqa: ANN401 - upstream's
    """Make the usage of an answer that of all draws."""
    if not isinstance(usage, dict):
        return
    cost, fallback = record["cost"], record["decision"] == "fallback"
    read = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    written = usage.get("completion_tokens_details") or usage.get(
        "output_tokens_details"
    )
    tokens = cost["prompt_tokens"], cost["completion_tokens"]
    counts = [
        (usage, "prompt_tokens", tokens[0]),
        (usage, "input_tokens", tokens[0]),
        (usage, "completion_tokens", tokens[1]),
        (usage, "output_tokens", tokens[1]),
        (usage, "total_tokens", sum(tokens)),
        (read, "cached_tokens", cost["cached_tokens"]),
        (written, "reasoning_tokens", cost["reasoning_tokens"]),
    ]
    for place, name, count in counts:
        if isinstance(place, dict) and isinstance(place.get(name), int):
            # The usage on a fallback's answer is its own, which is no part of the cost.
            place[name] = count + (place[name] if fallback else 0)
