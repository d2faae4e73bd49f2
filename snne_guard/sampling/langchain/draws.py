"""The draws of one guarded call, sent to a LangChain model."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableBinding, RunnableWithFallbacks
from langchain_core.runnables.retry import RunnableRetry

from snne_guard.sampling.langchain.hooks import (
    NoReplyError,
    agenerate,
    aopen_stream,
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
from snne_guard.sampling.langchain.requests import Request, request_for
from snne_guard.sampling.langchain.wrappers import ChatRunnable, bound_models
from snne_guard.sampling.replies import Draw, Reply
from snne_guard.sampling.retrying import (
    Steps,
    carry_out,
    carry_out_in_task,
    without_rejected,
)

__all__ = ["LangChainDraws"]

_ANSWER = Draw(role="answer")

Sent = tuple[Request, Any]
"""The request that was answered, and its ``ChatResult`` or opened stream."""

Ask = Callable[[BaseChatModel, Mapping[str, Any]], Steps[Sent]]


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
        self._chunks: list[ChatGenerationChunk] = []
        self._opened: tuple[Request, int] | None = None

    def send(self, draw: Draw) -> Reply:
        """Send one draw and wait for its reply; the model's own error is raised."""
        (request, result), failed = carry_out(self._steps(draw), generate)
        return self._reply(draw, request, result, failed)

    async def asend(self, draw: Draw) -> Reply:
        """Send one draw from a task."""
        sent = await carry_out_in_task(self._steps(draw), agenerate)
        (request, result), failed = sent
        return self._reply(draw, request, result, failed)

    def stream(self) -> Iterator[ChatGenerationChunk]:
        """Stream the answer, one chunk where the model does not stream.

        Call it once; ``join`` makes a reply of the chunks.
        """
        sent = carry_out(self._steps(_ANSWER, stream=True), open_stream)
        (request, (first, rest)), failed = sent
        self._opened = request, failed
        with closing(rest):
            yield self._passed_on(first, request)
            for chunk in rest:
                yield self._passed_on(chunk, request)

    async def astream(self) -> AsyncIterator[ChatGenerationChunk]:
        """Stream the answer from a task."""
        steps = self._steps(_ANSWER, stream=True)
        (request, (first, rest)), failed = await carry_out_in_task(steps, aopen_stream)
        self._opened = request, failed
        async with aclosing(rest):
            yield self._passed_on(first, request)
            async for chunk in rest:
                yield self._passed_on(chunk, request)

    def join(self, chunks: Iterable[ChatGenerationChunk]) -> Reply:
        """Return the whole answer once its chunks have passed by."""
        del chunks  # they lack the log-probabilities that only the guard asked for
        assert self._opened is not None  # noqa: S101 - or no chunk would have passed
        request, failed = self._opened
        whole = self._chunks[0] + self._chunks[1:]
        generation = ChatGeneration(
            message=message_chunk_to_message(whole.message),
            generation_info=whole.generation_info,
        )
        result = ChatResult(generations=[generation])
        return self._reply(_ANSWER, request, result, failed)

    def _passed_on(
        self, chunk: ChatGenerationChunk, request: Request
    ) -> ChatGenerationChunk:
        """Keep a chunk for ``join``; return it as the application gets it."""
        self._chunks.append(chunk)
        if "logprobs" not in request.optional:
            return chunk
        info = chunk.generation_info or {}
        return ChatGenerationChunk(
            message=without_logprobs(chunk.message),
            generation_info={k: v for k, v in info.items() if k != "logprobs"} or None,
        )

    def _steps(self, draw: Draw, *, stream: bool = False) -> Steps[Sent]:
        """Return how to carry out a draw."""

        def ask(model: BaseChatModel, kwargs: Mapping[str, Any]) -> Steps[Sent]:
            make = partial(
                request_for,
                draw,
                model,
                self._messages,
                kwargs,
                temperature=self._temperature,
                logprobs=self._logprobs,
                stream=stream,
            )
            return without_rejected(make, self._rejected.of(model))

        return _steps(self._model, self._kwargs, ask)

    def _reply(
        self, draw: Draw, request: Request, result: ChatResult, failed: int
    ) -> Reply:
        messages = [whole_message(each, result) for each in result.generations]
        names_ending = request.provider.names_ending
        samples = tuple(sample_of(each, names_ending=names_ending) for each in messages)
        first = messages[0] if messages else None
        cost = replace(cost_of(first, samples, result.llm_output), attempts=failed)
        if draw.role == "sample":
            return Reply(
                samples=samples, cost=cost, temperature_set=request.temperature_set
            )
        if first is None:
            raise NoReplyError
        raw = with_parsed(first, request)
        raw = without_logprobs(raw) if "logprobs" in request.optional else raw
        return Reply(samples=samples[:1], cost=cost, raw=raw)


def _steps(runnable: ChatRunnable, kwargs: Mapping[str, Any], ask: Ask) -> Steps[Sent]:
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
