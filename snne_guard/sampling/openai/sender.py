"""Send the draws of one guarded call through a client of the ``openai`` package."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from snne_guard.sampling.openai.apis import (
    Api,
    ApiObject,
    Body,
    fields_of,
    keep_first_choice,
    remove_logprobs,
    text_of,
)
from snne_guard.sampling.options import STREAMS, answer_settings, options_for
from snne_guard.sampling.replies import (
    TOP_LOGPROBS,
    Draw,
    NoReplyError,
    Reply,
    with_failed,
)
from snne_guard.sampling.retrying import Steps, arun_steps, run_steps, without_rejected
from snne_guard.self_check import read_self_check

__all__ = ["ApiRequest", "OpenAISender", "reusable_options"]

_HEADERS_OF_ONE_REQUEST = ("x-stainless-", "idempotency-key")
_OPTIONS_OF_ONE_REQUEST = frozenset({"idempotency_key", "post_parser", "stream_mode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A user's request as the ``post`` method of a client gets it.

    Attributes:
        api: Which API it is for.
        path: Where it goes.
        body: Its JSON body, ``extra_body`` included.
        options: Headers, query, time limit and the like.
        cast_to: Class of the answer.
        stream_cls: Class of the stream; None: the answer comes in one piece.
    """

    api: Api
    path: str
    body: Body = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    cast_to: Any
    stream_cls: Any = None

    @property
    def model(self) -> str:
        """Name of the model, empty where the server decides."""
        return str(self.body.get("model") or "")

    @property
    def question(self) -> str | None:
        """Text of the user's last message, None where there is none."""
        for message in map(fields_of, reversed(self.api.messages(self.body))):
            if message.get("role") == "user":
                return text_of(message.get("content"))
        return None

    @property
    def answer_settings(self) -> dict[str, Any]:
        """What the answer is drawn with, by a calibration's names."""
        unset = dict.fromkeys(("temperature", "top_p", "max_tokens", "stop"))
        return {"model": self.model, **answer_settings({**unset, **self.body})}

    def unstreamed(self) -> Self:
        """Return the same request for an answer in one piece."""
        body = {k: v for k, v in self.body.items() if k not in STREAMS}
        return replace(self, body=body, stream_cls=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Post:
    """Arguments of the client's ``post``, and the parameters that the guard added."""

    arguments: Mapping[str, Any]
    optional: frozenset[str]


class OpenAISender:
    """Sends a user's request as it is, as samples, and as a self-check.

    A server that rejects the temperature, the log-probabilities or ``n`` is asked
    again without, in the same draw; what it rejected is remembered in ``rejected``.

    Args:
        client: ``OpenAI`` or ``AsyncOpenAI``; its own retries and time limits hold.
        request: What the user asked for.
        rejected: Names of parameters that the server was seen to reject.
    """

    def __init__(
        self,
        client: Any,  # noqa: ANN401 - the two classes share no type
        request: ApiRequest,
        *,
        rejected: set[str],
    ) -> None:
        self._client = client
        self._request = request
        self._api = request.api
        self._rejected = rejected
        self._streamed_parts: list[dict[str, Any]] = []
        self._failed_before_stream = 0

    def send(self, draw: Draw, /) -> Reply:
        """Send one request and wait for its reply.

        Raises:
            Exception: What the client raises, or a ``NoReplyError`` where there is no
                reply in the answer.
        """
        (post, result), failed = run_steps(self._steps(draw), self._send_post)
        return self._reply(draw, post, result, failed)

    async def asend(self, draw: Draw, /) -> Reply:
        """Do the same without blocking the event loop."""
        carried_out = await arun_steps(self._steps(draw), self._send_post)
        (post, result), failed = carried_out
        return self._reply(draw, post, result, failed)

    def stream(self, draw: Draw, /) -> Generator[Any]:
        """Send the request for the answer and yield the parts of its stream."""
        steps = self._steps(draw)
        (post, stream), failed = run_steps(steps, self._send_post)
        self._failed_before_stream = failed
        with stream:
            for part in stream:
                yield self._keep(part, post)

    async def astream(self, draw: Draw, /) -> AsyncGenerator[Any]:
        """Do the same without blocking the event loop."""
        steps = self._steps(draw)
        (post, stream), failed = await arun_steps(steps, self._send_post)
        self._failed_before_stream = failed
        async with stream:
            async for part in stream:
                yield self._keep(part, post)

    def streamed(self) -> Reply:
        """Return the answer that the parts of its stream made up."""
        fields = self._api.join(self._streamed_parts)
        return self._read(fields, self._failed_before_stream)

    # -- Requests ----------------------------------------------------------------------

    def _steps(self, draw: Draw) -> Steps[tuple[_Post, Any]]:
        api, body = self._api, self._request.body
        if draw.view is not None or draw.turns:
            conversation = draw.conversation(api.messages(body))
            body = {**body, api.conversation: conversation}
        return without_rejected(partial(self._build_post, draw, body), self._rejected)

    def _send_post(self, post: _Post) -> Any:  # noqa: ANN401 - a task awaits it
        return self._client.post(**post.arguments)

    def _build_post(self, draw: Draw, body: Body, *, left_out: frozenset[str]) -> _Post:
        """Return the request for a draw."""
        request, api = self._request, self._api
        answer = draw.role == "answer"
        taken = api.parameters - left_out
        if answer and api.with_logprobs(body) == body:
            taken -= {"logprobs"}  # the user's own, which stay
        optional = draw.added(taken)
        temperature = draw.temperature if "temperature" in optional else None
        body = options_for(draw, body, temperature=temperature)
        options = {**request.options} if answer else reusable_options(request.options)
        if temperature is not None:
            body["temperature"] = temperature
        at_openai = ".openai.com" in str(self._client.base_url)
        if not answer and (at_openai or api.name == "responses"):
            body["store"] = False  # it may be stored unless the request forbids it
        if "n" in optional:
            body["n"] = draw.n
        if "logprobs" in optional:
            body = api.with_logprobs(body)
            if "top_logprobs" in optional:
                body["top_logprobs"] = TOP_LOGPROBS
        options.pop("post_parser", None)  # nothing is parsed before the decision
        arguments: dict[str, Any] = {
            "path": request.path,
            "body": body,
            "options": options,
            # Nobody gets a sample, and objects of the package take long to make.
            "cast_to": request.cast_to if answer else object,
        }
        if request.stream_cls is not None and answer:
            arguments |= {"stream": True, "stream_cls": request.stream_cls}
        return _Post(arguments=arguments, optional=optional)

    # -- Replies -----------------------------------------------------------------------

    def _keep(self, part: ApiObject, post: _Post) -> ApiObject:
        """Keep a part of the stream for ``streamed``; return it as the user gets it."""
        keep_first_choice(part)
        self._streamed_parts.append(fields_of(part))
        if "logprobs" in post.optional:
            remove_logprobs(part)
        return part

    def _reply(self, draw: Draw, post: _Post, result: ApiObject, failed: int) -> Reply:
        if draw.role == "answer":
            keep_first_choice(result)
        reply = self._read(result, failed)
        if draw.role == "answer":
            if "logprobs" in post.optional:
                remove_logprobs(result)
            return reply
        p_correct = None
        if draw.role == "check":
            p_correct = read_self_check(reply.first, self._api.logprobs(result))
        temperature_set = "temperature" in post.optional
        return replace(
            reply, raw=None, temperature_set=temperature_set, p_correct=p_correct
        )

    def _read(self, answer: object, failed: int) -> Reply:
        """Read an answer; count the requests that failed before it."""
        reply = self._api.read(answer)
        if not reply.samples:
            raise NoReplyError
        return with_failed(reply, failed)


def reusable_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return request options without what is about one request alone.

    Example:
        >>> reusable_options({"headers": {"Idempotency-Key": "1", "X-Mine": "2"}})
        {'headers': {'X-Mine': '2'}}
    """
    kept = {k: v for k, v in options.items() if k not in _OPTIONS_OF_ONE_REQUEST}
    headers: Mapping[str, Any] = kept.get("headers") or {}
    kept["headers"] = {
        name: value
        for name, value in headers.items()
        if not name.lower().startswith(_HEADERS_OF_ONE_REQUEST)
    }
    return kept
