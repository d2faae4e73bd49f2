"""Send the draws of one guarded call through a client of the ``openai`` package."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing
from dataclasses import dataclass, field, replace
from typing import Any

from snne_guard.errors import SamplingError
from snne_guard.sampling.openai.api import (
    Api,
    ApiObject,
    ApiRequest,
    fields_of,
    sample_body,
)
from snne_guard.sampling.rejections import is_rejection, rejected_parameter
from snne_guard.sampling.replies import Draw, ProviderCapabilities, Reply

__all__ = ["OpenAIDoor", "StreamedAnswer", "capabilities_of", "reusable_options"]

_OPTIONAL = ("temperature", "logprobs", "n")
"""What the guard asks for besides, and leaves out where it is rejected."""
_HEADERS_OF_ONE_REQUEST = ("x-stainless-", "idempotency-key")
_OPTIONS_OF_ONE_REQUEST = frozenset({"idempotency_key", "post_parser", "stream_mode"})

Arguments = dict[str, Any]
"""Arguments of the client's ``post``."""


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
class _Asked:
    """What a request asks for besides what the user asks for, and what it may not."""

    temperature: bool
    logprobs: bool
    n: bool
    left_out: frozenset[str] = frozenset()


def capabilities_of(api: Api, rejected: set[str]) -> ProviderCapabilities:
    """Return what a server takes, from what it was seen to reject."""
    return ProviderCapabilities(
        n=api.takes_n and "n" not in rejected,
        logprobs="logprobs" not in rejected,
        temperature="temperature" not in rejected,
    )


class OpenAIDoor:
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

    def send(self, draw: Draw, /) -> Reply:
        """Send one request and wait for its reply.

        Raises:
            Exception: What the client raises, or a ``SamplingError`` where there is no
                reply in the answer.
        """
        if draw.role == "answer" and self._request.stream_cls is not None:
            with closing(self.stream()) as stream:
                return self._held(list(stream))
        result, asked = self._post(draw)
        return self._read(result, draw, asked)

    async def asend(self, draw: Draw, /) -> Reply:
        """Do the same without blocking the event loop."""
        if draw.role == "answer" and self._request.stream_cls is not None:
            async with aclosing(self.astream()) as stream:
                return self._held([part async for part in stream])
        result, asked = await self._apost(draw)
        return self._read(result, draw, asked)

    def stream(self) -> Generator[Any]:
        """Send the request for the answer and yield the parts of its stream."""
        stream, asked = self._post(Draw(role="answer"))
        with stream:
            self._seen.clear()  # of an attempt that failed
            for part in stream:
                yield self._noted(part, asked)

    async def astream(self) -> AsyncGenerator[Any]:
        """Do the same without blocking the event loop."""
        stream, asked = await self._apost(Draw(role="answer"))
        async with stream:
            self._seen.clear()  # of an attempt that failed
            async for part in stream:
                yield self._noted(part, asked)

    def join(self, parts: Sequence[Any], /) -> Reply:
        """Return the answer that the parts of its stream make up."""
        del parts  # they have passed by, without the log-probabilities
        return self._held(())

    def _post(self, draw: Draw) -> tuple[Any, _Asked]:
        """Return what the client gives, and what it was asked for in the end."""
        asked = self._asked(draw)
        while True:
            try:
                result = self._client.post(**self._arguments(draw, asked))
            except Exception as error:
                fewer = _leave_out(error, asked)
                if fewer is None:
                    raise
                asked = fewer
            else:
                self._rejected |= asked.left_out
                return result, asked

    async def _apost(self, draw: Draw) -> tuple[Any, _Asked]:
        asked = self._asked(draw)
        while True:
            try:
                result = await self._client.post(**self._arguments(draw, asked))
            except Exception as error:
                fewer = _leave_out(error, asked)
                if fewer is None:
                    raise
                asked = fewer
            else:
                self._rejected |= asked.left_out
                return result, asked

    def _asked(self, draw: Draw) -> _Asked:
        takes = capabilities_of(self._request.api, self._rejected)
        own = self._request.api.asks_logprobs(self._request.body)
        sample = draw.role == "sample"
        return _Asked(
            temperature=sample and takes.temperature,
            logprobs=takes.logprobs and self._logprobs and (sample or not own),
            n=draw.n > 1 and takes.n,
        )

    def _arguments(self, draw: Draw, asked: _Asked) -> Arguments:
        request, sample = self._request, draw.role == "sample"
        body = request.body
        if sample:
            temperature = self._temperature if asked.temperature else None
            body = sample_body(body, temperature=temperature, store=self._stores)
            if asked.n:
                body = {**body, "n": draw.n}
        if asked.logprobs:
            body = request.api.with_logprobs(body)
        options = reusable_options(request.options) if sample else {**request.options}
        options.pop("post_parser", None)  # nothing is parsed before the decision
        arguments: Arguments = {
            "path": request.path,
            "body": body,
            "options": options,
            "cast_to": request.cast_to,
        }
        if request.stream_cls is not None and not sample:
            arguments |= {"stream": True, "stream_cls": request.stream_cls}
        return arguments

    @property
    def _stores(self) -> bool:
        """Whether replies may be stored unless the request forbids it."""
        host = str(getattr(self._client.base_url, "host", ""))
        return self._request.api.name == "responses" or host.endswith(".openai.com")

    def _noted(self, part: ApiObject, asked: _Asked) -> ApiObject:
        self._seen.append(fields_of(part))  # log-probabilities included
        if asked.logprobs:
            self._request.api.remove_logprobs(part)
        return part

    def _held(self, parts: Sequence[Any]) -> Reply:
        fields = self._request.api.join(self._seen)
        reply = _checked(self._request.api.read(fields))
        return replace(reply, raw=StreamedAnswer(parts=parts, fields=fields))

    def _read(self, result: object, draw: Draw, asked: _Asked) -> Reply:
        reply = _checked(self._request.api.read(result))
        if draw.role == "answer":
            if asked.logprobs:
                self._request.api.remove_logprobs(result)
            return reply
        return replace(reply, raw=None, temperature_set=asked.temperature)


def _leave_out(error: Exception, asked: _Asked) -> _Asked | None:
    """Return what a rejected request may pass with, None where nothing helps."""
    present = [name for name in _OPTIONAL if getattr(asked, name)]
    name = rejected_parameter(error, present)
    if name is None and is_rejection(error) and not getattr(error, "param", None):
        # It does not say why. An answer must not fail for what only the guard wants.
        name = next((name for name in ("n", "logprobs") if name in present), None)
    if name is None:
        return None
    return replace(asked, **{name: False}, left_out=asked.left_out | {name})


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


def _checked(reply: Reply) -> Reply:
    if not reply.samples:
        msg = "the provider answered with no reply in it"
        raise SamplingError(msg)
    return reply
