"""Send the draws of one guarded call to a LangChain model, beneath its callbacks.

``BaseChatModel.invoke`` opens a run, tells handlers and tracers of it and looks into
the cache. The hooks beneath it do none of that: ``_generate`` and ``_stream``, which
every class implements, and their async counterparts. What a class itself calls inside
of its hook runs without a parent run, without handlers from context variables and
without LangSmith, but with the rest of the run's configuration; handlers that the class
itself adds are not suppressed.
"""

from __future__ import annotations

import contextvars
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import (
    BaseMessage,
    convert_to_messages,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langsmith.run_helpers import tracing_context

from snne_guard.engine import Draw, NoReplyError, Response, read_cost
from snne_guard.engine.protocol import with_failed
from snne_guard.engine.rejections import (
    Rejections,
    Steps,
    arun_steps,
    run_steps,
    without_rejected,
)
from snne_guard.langchain.messages import (
    as_chunk,
    logprob_entries,
    replies_in,
    whole_message,
    with_parsed,
    without_logprobs,
)
from snne_guard.langchain.request import ModelRequest, request_for
from snne_guard.langchain.wrappers import ModelTree, Target
from snne_guard.self_check import form_of, read_self_check

Chunk = ChatGenerationChunk
Sent = tuple[ModelRequest, Any]
"""The request that was answered, and its ``ChatResult`` or opened stream."""


class LangChainSender:
    """Sends the draws of one guarded call to a LangChain model.

    No callback handler, tracer or cache sees a draw. ``with_retry`` and
    ``with_fallbacks`` around the model are carried out for each draw. A parameter that
    a provider rejects is left out, and remembered for the guard.

    ``Response.raw`` of an answer is its ``AIMessage``, without log-probabilities that
    only the guard asked for.
    """

    def __init__(
        self,
        model: ModelTree,
        messages: Sequence[BaseMessage],
        *,
        others: Mapping[str, ModelTree] | None = None,
        rejections: Rejections | None = None,
    ) -> None:
        self._model = model
        self._others = others or {}
        self._messages = tuple(messages)
        self._rejections = rejections or Rejections()
        self._chunks: list[Chunk] = []
        self._opened: tuple[ModelRequest, int] | None = None

    def send(self, draw: Draw) -> Response:
        """Send one draw and wait for its response; the model's own error is raised."""
        return self._response(*run_steps(self._steps(draw), _call_model))

    async def asend(self, draw: Draw) -> Response:
        """Send one draw from a task."""
        return self._response(*await arun_steps(self._steps(draw), _acall_model))

    def stream(self, draw: Draw) -> Generator[Chunk]:
        """Stream the answer, once; in one chunk where the model does not stream."""
        sent = run_steps(self._steps(draw, stream=True), _open_stream)
        (request, (first, rest)), failed = sent
        self._opened = request, failed
        with closing(rest):
            yield self._passed_on(first, request)
            for chunk in rest:
                yield self._passed_on(chunk, request)

    async def astream(self, draw: Draw) -> AsyncGenerator[Chunk]:
        """Stream the answer from a task."""
        sent = await arun_steps(self._steps(draw, stream=True), _aopen_stream)
        (request, (first, rest)), failed = sent
        self._opened = request, failed
        async with aclosing(rest):
            yield self._passed_on(first, request)
            async for chunk in rest:
                yield self._passed_on(chunk, request)

    def streamed_answer(self) -> Response:
        """Return the whole answer, once its chunks have passed."""
        assert self._opened is not None  # noqa: S101 - or no chunk would have passed
        request, failed = self._opened
        whole = self._chunks[0] + self._chunks[1:]
        generation = ChatGeneration(
            message=message_chunk_to_message(whole.message),
            generation_info=whole.generation_info,
        )
        result = ChatResult(generations=[generation])
        return self._response((request, result), failed)

    def _passed_on(self, chunk: Chunk, request: ModelRequest) -> Chunk:
        """Keep a chunk, and return it as the application gets it."""
        self._chunks.append(chunk)
        if "logprobs" not in request.optional:
            return chunk
        info = chunk.generation_info or {}
        return Chunk(
            message=without_logprobs(chunk.message),
            generation_info={k: v for k, v in info.items() if k != "logprobs"} or None,
        )

    def _steps(self, draw: Draw, *, stream: bool = False) -> Steps[Sent]:
        """Return the requests that a draw takes, one after another.

        The tree carries out the wrappers; for each model inside ``without_rejected``
        yields requests; ``run_steps`` sends what is yielded, and waits.
        """
        messages: Sequence[BaseMessage] = self._messages
        if draw.view is not None or draw.turns:
            messages = convert_to_messages(draw.conversation(messages))

        def ask(target: Target) -> Steps[Sent]:
            make = partial(request_for, draw, target, messages, stream=stream)
            return without_rejected(make, self._rejections, target.key)

        other = draw.other_model
        return (self._model if other is None else self._others[other]).steps(ask)

    def _response(self, sent: Sent, failed: int) -> Response:
        request, result = sent
        reported = request.provider.reports_finish_reason
        first, replies = replies_in(result, reports_finish_reason=reported)
        if first is None:
            raise NoReplyError
        usage = getattr(first, "usage_metadata", None)
        read = Response(
            replies=tuple(replies),
            cost=read_cost(replies, usage),
            temperature_set=request.temperature_set,
            rejected=request.rejected,
            greedy=request.provider.greedy and not request.temperature_set,
        )
        response = with_failed(read, failed)
        if request.draw.role == "self_check":
            form = form_of(request.draw.turns[-1])
            p_correct = read_self_check(replies[0], logprob_entries(first), form=form)
            return replace(response, p_correct=p_correct)
        if request.draw.role != "answer":
            return response
        raw = first if request.schema is None else with_parsed(first, request.schema)
        raw = without_logprobs(raw) if "logprobs" in request.optional else raw
        return replace(response, replies=response.replies[:1], raw=raw)


# -- Beneath the callbacks -----------------------------------------------------------


def _call_model(request: ModelRequest) -> ChatResult:
    """Send a request and wait for its replies."""
    model = request.model
    with _quiet():
        if model.rate_limiter:
            model.rate_limiter.acquire(blocking=True)
        hook = model._generate  # noqa: SLF001 - what classes implement
        return hook(list(request.messages), **request.options)


async def _acall_model(request: ModelRequest) -> ChatResult:
    """Send a request from a task; LangChain runs a class without async in a thread."""
    model = request.model
    with _quiet():
        if model.rate_limiter:
            await model.rate_limiter.aacquire(blocking=True)
        hook = model._agenerate  # noqa: SLF001 - as above
        return await hook(list(request.messages), **request.options)


def _open_stream(request: ModelRequest) -> tuple[Chunk, Generator[Chunk]]:
    """Send a request; return its first chunk, once it is there, and the others.

    A model that does not stream, or is told not to, gives one chunk, and so does one
    that is to answer by a class: its parser needs the whole answer.
    """
    chunks = _chunks(request)
    first = next(chunks, None)
    if first is None:
        raise NoReplyError
    return first, chunks


async def _aopen_stream(request: ModelRequest) -> tuple[Chunk, AsyncGenerator[Chunk]]:
    """Send a request from a task, as ``_open_stream`` does from a thread."""
    chunks = _achunks(request)
    first = await anext(chunks, None)
    if first is None:
        raise NoReplyError
    return first, chunks


def _chunks(request: ModelRequest) -> Generator[Chunk]:
    """Yield chunks; only the waiting for them is quiet, not the consumer."""
    model = request.model
    if not _streams(request, async_api=False):
        yield _as_single_chunk(request, _call_model(request))
        return
    if model.rate_limiter:
        model.rate_limiter.acquire(blocking=True)
    with _quiet():
        hook = model._stream  # noqa: SLF001 - as above
        chunks = hook(list(request.messages), **request.options)
    while True:
        with _quiet():
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk


async def _achunks(request: ModelRequest) -> AsyncGenerator[Chunk]:
    model = request.model
    if not _streams(request, async_api=True):
        yield _as_single_chunk(request, await _acall_model(request))
        return
    if model.rate_limiter:
        await model.rate_limiter.aacquire(blocking=True)
    with _quiet():
        hook = model._astream  # noqa: SLF001 - as above
        chunks = hook(list(request.messages), **request.options)
    try:
        while True:
            with _quiet():
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk
    finally:
        if isinstance(chunks, AsyncGenerator):  # a class may return any iterator
            await chunks.aclose()


def _streams(request: ModelRequest, *, async_api: bool) -> bool:
    options = {**request.options, "stream": True}
    return request.schema is None and request.model._should_stream(  # noqa: SLF001 - LangChain's own rule
        async_api=async_api, **options
    )


def _as_single_chunk(request: ModelRequest, result: ChatResult) -> Chunk:
    if not result.generations:
        raise NoReplyError
    message = whole_message(result.generations[0], result)
    return as_chunk(with_parsed(message, request.schema))


@contextmanager
def _quiet() -> Iterator[None]:
    """Run without parent run, handlers of context variables and LangSmith."""
    with tracing_context(enabled=False, parent=False):
        values: dict[contextvars.ContextVar[Any], Any] = {
            variable: None
            for variable, value in contextvars.copy_context().items()
            if isinstance(value, BaseCallbackHandler | BaseCallbackManager)
        }
        if config := var_child_runnable_config.get():
            values[var_child_runnable_config] = _without_listeners(config)
        tokens = [(variable, variable.set(value)) for variable, value in values.items()]
        try:
            yield
        finally:
            for variable, token in tokens:
                variable.reset(token)


def _without_listeners(config: RunnableConfig) -> RunnableConfig:
    """Return the configuration of a run without its handlers and LangGraph's streams.

    What LangGraph has in it would stream and store what a graph inside a draw does. Its
    runtime stays, since that is where nodes find the context of a run.
    """
    given = config.get("configurable") or {}
    kept = {name: given[name] for name in given if not name.startswith("__pregel_")}
    if runtime := given.get("__pregel_runtime"):
        kept["__pregel_runtime"] = runtime.override(stream_writer=lambda _: None)
    return {**config, "callbacks": None, "configurable": kept}
