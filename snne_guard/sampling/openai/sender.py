"""Send the draws of one guarded call through a client of the ``openai`` package."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from snne_guard.errors import SamplingError
from snne_guard.sampling.openai.apis import ApiObject, fields_of
from snne_guard.sampling.openai.requests import (
    ApiRequest,
    reusable_options,
    sample_body,
)
from snne_guard.sampling.replies import Draw, Reply
from snne_guard.sampling.steps import (
    Steps,
    carry_out,
    carry_out_in_task,
    without_rejected,
)

__all__ = ["OpenAISender", "StreamedAnswer"]

_ANSWER = Draw(role="answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedAnswer:
    """An answer that came as a stream.

    Attributes:
        parts: Its chunks or events; empty where they were passed on already.
        fields: The fields of the answer that they make up.
    """

    parts: Sequence[Any] = field(repr=False)
    fields: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Post:
    """One request that can be sent as it is.

    Attributes:
        arguments: Arguments of the client's ``post``.
        optional: Parameters that the guard has added, and that may be left out where
            the server rejects them.
    """

    arguments: Mapping[str, Any]
    optional: frozenset[str]


class OpenAISender:
    """Sends a user's request as it is, and as samples.

    A server that rejects the temperature, the log-probabilities or ``n`` is asked
    again without, in the same draw; what it rejected is remembered in ``rejected``.

    Args:
        client: ``OpenAI`` or ``AsyncOpenAI``; its own retries and time limits hold.
        request: What the user asked for.
        temperature: Sampling temperature of the samples.
        logprobs: Whether log-probabilities are wanted.
        rejected: Names of parameters that the server was seen to reject.
    """

    def __init__(
        self,
        client: ApiObject,
        request: ApiRequest,
        *,
        temperature: float,
        logprobs: bool,
        rejected: set[str],
    ) -> None:
        self._client = client
        self._request = request
        self._temperature = temperature
        self._logprobs = logprobs
        self._rejected = rejected
        self._seen: list[dict[str, Any]] = []
        self._failed = 0

    def send(self, draw: Draw, /) -> Reply:
        """Send one request and wait for its reply.

        Raises:
            Exception: What the client raises, or a ``SamplingError`` where there is no
                reply in the answer.
        """
        if draw.role == "answer" and self._request.stream_cls is not None:
            with closing(self.stream()) as stream:
                return self._joined(list(stream))
        (post, result), failed = carry_out(self._requests(draw), self._sent)
        return self._read(result, draw, post, failed)

    async def asend(self, draw: Draw, /) -> Reply:
        """Do the same without blocking the event loop."""
        if draw.role == "answer" and self._request.stream_cls is not None:
            async with aclosing(self.astream()) as stream:
                return self._joined([part async for part in stream])
        sent = await carry_out_in_task(self._requests(draw), self._sent)
        (post, result), failed = sent
        return self._read(result, draw, post, failed)

    def stream(self) -> Generator[Any]:
        """Send the request for the answer and yield the parts of its stream."""
        steps = self._requests(_ANSWER)
        (post, stream), self._failed = carry_out(steps, self._sent)
        with stream:
            self._seen.clear()  # of an attempt that failed
            for part in stream:
                yield self._passed_on(part, post)

    async def astream(self) -> AsyncGenerator[Any]:
        """Do the same without blocking the event loop."""
        steps = self._requests(_ANSWER)
        (post, stream), self._failed = await carry_out_in_task(steps, self._sent)
        async with stream:
            self._seen.clear()  # of an attempt that failed
            async for part in stream:
                yield self._passed_on(part, post)

    def streamed(self) -> Reply:
        """Return the answer that the parts of its stream made up."""
        return self._joined(())

    def _requests(self, draw: Draw) -> Steps[tuple[_Post, Any]]:
        return without_rejected(partial(self._post, draw), self._rejected)

    def _sent(self, post: _Post) -> ApiObject:
        """Return what the client gives, which is awaited in a task."""
        return self._client.post(**post.arguments)

    def _post(self, draw: Draw, *, left_out: frozenset[str]) -> _Post:
        """Return the request for a draw."""
        request, sample = self._request, draw.role == "sample"
        api, body, options = request.api, request.body, {**request.options}
        adds = {
            "temperature": sample,
            "logprobs": self._logprobs and (sample or not api.asks_logprobs(body)),
            "n": api.takes_n and draw.n > 1,
        }
        optional = frozenset(name for name in adds if adds[name]) - left_out
        if sample:
            sample_temperature = (
                self._temperature if "temperature" in optional else None
            )
            body = sample_body(body, temperature=sample_temperature, store=self._stores)
            options = reusable_options(options)
        if "n" in optional:
            body = {**body, "n": draw.n}
        if "logprobs" in optional:
            body = api.with_logprobs(body)
        options.pop("post_parser", None)  # nothing is parsed before the decision
        arguments: dict[str, Any] = {
            "path": request.path,
            "body": body,
            "options": options,
            "cast_to": request.cast_to,
        }
        if request.stream_cls is not None and not sample:
            arguments |= {"stream": True, "stream_cls": request.stream_cls}
        return _Post(arguments=arguments, optional=optional)

    @property
    def _stores(self) -> bool:
        """Whether replies may be stored unless the request forbids it."""
        host = str(getattr(self._client.base_url, "host", ""))
        return self._request.api.name == "responses" or host.endswith(".openai.com")

    def _passed_on(self, part: ApiObject, post: _Post) -> ApiObject:
        """Keep a part of the stream for ``streamed``; return it as the user gets it."""
        self._seen.append(fields_of(part))
        if "logprobs" in post.optional:
            self._request.api.remove_logprobs(part)
        return part

    def _joined(self, parts: Sequence[Any]) -> Reply:
        fields = self._request.api.join(self._seen)
        reply = self._counted(fields, self._failed)
        return replace(reply, raw=StreamedAnswer(parts=parts, fields=fields))

    def _read(self, result: object, draw: Draw, post: _Post, failed: int) -> Reply:
        reply = self._counted(result, failed)
        if draw.role == "sample":
            sample_temperature = "temperature" in post.optional
            return replace(reply, raw=None, temperature_set=sample_temperature)
        if "logprobs" in post.optional:
            self._request.api.remove_logprobs(result)
        return reply

    def _counted(self, answer: object, failed: int) -> Reply:
        """Read an answer; count the requests that failed before it."""
        reply = self._request.api.read(answer)
        if not reply.samples:
            msg = "the provider answered with no reply in it"
            raise SamplingError(msg)
        return replace(reply, cost=replace(reply.cost, attempts=failed))
