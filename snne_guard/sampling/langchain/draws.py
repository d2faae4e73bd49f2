"""The draws of one guarded call, sent to a LangChain model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessageChunk,
    BaseMessage,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableBinding, RunnableWithFallbacks
from langchain_core.runnables.retry import RunnableRetry

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.langchain.hooks import (
    NoReplyError,
    agenerate,
    aopen_stream,
    close,
    generate,
    open_stream,
    whole_message,
    with_parsed,
)
from snne_guard.sampling.langchain.messages import (
    cost_of,
    sample_of,
    without_logprobs,
)
from snne_guard.sampling.langchain.providers import RejectedParameters
from snne_guard.sampling.langchain.requests import (
    Request,
    answer_request,
    sample_request,
)
from snne_guard.sampling.langchain.wrappers import ChatRunnable, bound_models
from snne_guard.sampling.rejections import rejected_parameter
from snne_guard.sampling.replies import Draw, Reply

__all__ = ["LangChainDraws"]

_ANSWER = Draw(role="answer")


class _Sent(NamedTuple):
    """A request and what came of it: a ``ChatResult``, or an opened stream.

    ``repeats`` counts the requests before it that failed.
    """

    request: Request
    result: Any
    repeats: int = 0


Steps = Generator[Request | float, Any, _Sent]
"""Yields requests to send and seconds to wait; is sent results and thrown errors."""

Ask = Callable[[BaseChatModel, Mapping[str, Any]], Steps]


class LangChainDraws:
    """The draws of one guarded call, for a driver's ``send`` or ``asend``.

    No callback handler, tracer or cache sees a draw. ``with_retry`` and
    ``with_fallbacks`` around the model are carried out for each draw. A parameter that
    a provider rejects is left out, and remembered for the guard.

    ``Reply.cost.attempts`` counts the failed requests before the answered one.
    ``Reply.raw`` of an answer is its ``AIMessage``, without log-probabilities that only
    the guard asked for.

    Args:
        model: A chat model, or wrappers around one or several.
        messages: The whole conversation.
        stop: Texts at which a reply ends.
        kwargs: Options of the call, which override bound ones.
        temperature: Temperature of samples; the answer keeps the user's own settings.
        logprobs: Whether log-probabilities are asked for, answer and samples alike.
        rejected: What the models have rejected; one object a guard.

    Raises:
        ConfigurationError: If there is anything else than a chat model inside.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.messages import HumanMessage
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> draws = LangChainDraws(model, [HumanMessage("The capital of France?")])
        >>> draws.send(Draw(role="answer")).samples[0].text
        'Paris'
    """

    def __init__(
        self,
        model: ChatRunnable,
        messages: Sequence[BaseMessage],
        *,
        stop: Sequence[str] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        temperature: float = 1.0,
        logprobs: bool = False,
        rejected: RejectedParameters | None = None,
    ) -> None:
        bound_models(model)  # raises where one is no chat model
        self._model = model
        self._messages = tuple(messages)
        self._kwargs = dict(kwargs or {})
        if stop is not None:
            self._kwargs["stop"] = list(stop)
        self._temperature = temperature
        self._logprobs = logprobs
        self._rejected = RejectedParameters() if rejected is None else rejected
        self._streamed: _Sent | None = None
        self._held_back: list[ChatGenerationChunk] = []

    def send(self, draw: Draw) -> Reply:
        """Send one draw and wait for its reply; the model's own error is raised."""
        return self._reply(draw, _run(self._steps(draw), generate))

    async def asend(self, draw: Draw) -> Reply:
        """Send one draw from a task."""
        return self._reply(draw, await _arun(self._steps(draw), agenerate))

    def stream(self) -> Iterator[ChatGenerationChunk]:
        """Stream the answer, one chunk where the model does not stream.

        Call it once; ``join`` makes a reply of the chunks.
        """
        self._streamed = _run(self._steps(None), open_stream)
        first, rest = self._streamed.result
        try:
            yield self._visible(first)
            yield from map(self._visible, rest)
        finally:
            close(rest)

    async def astream(self) -> AsyncIterator[ChatGenerationChunk]:
        """Stream the answer from a task."""
        self._streamed = await _arun(self._steps(None), aopen_stream)
        first, rest = self._streamed.result
        try:
            yield self._visible(first)
            async for chunk in rest:
                yield self._visible(chunk)
        finally:
            await rest.aclose()

    def join(self, chunks: Iterable[ChatGenerationChunk]) -> Reply:
        """Return the whole answer from the chunks of ``stream`` or ``astream``."""
        received = [*chunks, *self._held_back]
        if self._streamed is None:
            msg = "join takes the chunks of stream or astream, which was not called"
            raise ConfigurationError(msg)
        whole = received[0] + received[1:]
        generation = ChatGeneration(
            message=message_chunk_to_message(whole.message),
            generation_info=whole.generation_info,
        )
        result = ChatResult(generations=[generation])
        return self._reply(_ANSWER, self._streamed._replace(result=result))

    def _visible(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk:
        """Hold back log-probabilities that only the guard asked for, until ``join``."""
        info = chunk.generation_info or {}
        metadata = {**info, **chunk.message.response_metadata}
        added = self._streamed and self._streamed.request.adds_logprobs
        if not added or "logprobs" not in metadata:
            return chunk
        aside = {"logprobs": metadata["logprobs"]}
        held_back = AIMessageChunk(content="", response_metadata=aside)
        self._held_back.append(ChatGenerationChunk(message=held_back))
        return ChatGenerationChunk(
            message=without_logprobs(chunk.message),
            generation_info={k: v for k, v in info.items() if k != "logprobs"} or None,
        )

    def _steps(self, draw: Draw | None) -> Steps:
        """Return how to carry out a draw; None is the answer as a stream."""

        def ask(model: BaseChatModel, kwargs: Mapping[str, Any]) -> Steps:
            while True:
                request = self._request(draw, model, kwargs)
                try:
                    result = yield request
                except Exception as error:
                    parameter = rejected_parameter(error, request.optional)
                    if parameter is None:
                        raise
                    self._rejected.add(model, parameter)
                else:
                    return _Sent(request, result)

        return _steps(self._model, self._kwargs, ask)

    def _request(
        self, draw: Draw | None, model: BaseChatModel, kwargs: Mapping[str, Any]
    ) -> Request:
        rejected = self._rejected.of(model)
        if draw is not None and draw.role == "sample":
            return sample_request(
                model,
                self._messages,
                kwargs,
                n=draw.n,
                temperature=self._temperature,
                logprobs=self._logprobs,
                rejected=rejected,
            )
        return answer_request(
            model,
            self._messages,
            kwargs,
            logprobs=self._logprobs,
            rejected=rejected,
            streams=draw is None,
        )

    def _reply(self, draw: Draw, sent: _Sent) -> Reply:
        request, result, repeats = sent
        output = result.llm_output or {}
        name = output.get("model_name") or output.get("model")
        messages = [whole_message(each, result) for each in result.generations]
        samples = tuple(
            sample_of(each, names_ending=request.provider.names_ending, model=name)
            for each in messages
        )
        first = messages[0] if messages else None
        cost = replace(cost_of(first, samples, output), attempts=repeats)
        if draw.role == "sample":
            return Reply(
                samples=samples, cost=cost, temperature_set=request.temperature_set
            )
        if first is None:
            raise NoReplyError
        raw = with_parsed(first, request)
        raw = without_logprobs(raw) if request.adds_logprobs else raw
        return Reply(samples=samples[:1], cost=cost, raw=raw)


def _steps(runnable: ChatRunnable, kwargs: Mapping[str, Any], ask: Ask) -> Steps:
    """Carry out wrappers: which model is asked, after which error, how often."""
    if isinstance(runnable, RunnableWithFallbacks):
        errors: list[BaseException] = []
        for each in runnable.runnables:
            try:
                return (yield from _steps(each, kwargs, ask))
            except runnable.exceptions_to_handle as error:
                errors.append(error)
        raise errors[0]
    if isinstance(runnable, RunnableRetry):
        waits: list[float] = []
        attempts = runnable._sync_retrying(  # noqa: SLF001 - its settings, in one place
            reraise=True, sleep=waits.append
        )
        for attempt in attempts:
            if waits:
                yield float(waits.pop())
            with attempt:
                return (yield from _steps(runnable.bound, kwargs, ask))
    if isinstance(runnable, RunnableBinding):
        return (yield from _steps(runnable.bound, {**runnable.kwargs, **kwargs}, ask))
    if isinstance(runnable, BaseChatModel):
        return (yield from ask(runnable, kwargs))
    raise TypeError(type(runnable).__name__)  # bound_models has refused it before


def _run(steps: Steps, send: Callable[[Request], Any]) -> _Sent:
    """Carry out steps in a thread."""
    result, sends = None, 0
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, Request):
                    sends += 1
                    result = send(step)
                else:
                    time.sleep(step)
            except BaseException as error:  # noqa: BLE001 - the generator raises it
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        sent: _Sent = end.value
        return sent._replace(repeats=sends - 1)


async def _arun(steps: Steps, send: Callable[[Request], Awaitable[Any]]) -> _Sent:
    """Carry out steps in a task."""
    result, sends = None, 0
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, Request):
                    sends += 1
                    result = await send(step)
                else:
                    await asyncio.sleep(step)
            except BaseException as error:  # noqa: BLE001 - the generator raises it
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        sent: _Sent = end.value
        return sent._replace(repeats=sends - 1)
