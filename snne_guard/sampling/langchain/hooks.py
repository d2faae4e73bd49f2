"""Calling a chat model beneath its callbacks, cache and tracing.

``BaseChatModel.invoke`` opens a run, tells handlers and tracers of it and looks into
the cache. The hooks beneath it do none of that: ``_generate`` and ``_stream``, which
every class implements, and their asynchronous kin. What a class itself calls inside of
its hook runs without a parent run, without handlers from context variables and without
LangSmith; handlers that it adds by itself are its own affair.
"""

from __future__ import annotations

import contextvars
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables.config import var_child_runnable_config
from langsmith.run_helpers import tracing_context
from pydantic import ValidationError

from snne_guard.errors import InputError
from snne_guard.sampling.langchain.requests import Request

__all__ = [
    "NoReplyError",
    "agenerate",
    "aopen_stream",
    "generate",
    "open_stream",
    "whole_message",
    "with_parsed",
]

Chunk = ChatGenerationChunk


class NoReplyError(InputError):
    """A model returned no generation, or a stream without chunks."""

    def __init__(self) -> None:
        super().__init__("the model returned no reply: no generation and no chunk")


def generate(request: Request) -> ChatResult:
    """Send a request and wait for its replies."""
    model = request.model
    with _quiet():
        if model.rate_limiter:
            model.rate_limiter.acquire(blocking=True)
        return model._generate(  # noqa: SLF001 - the hook that classes implement
            list(request.messages), stop=request.stop, **request.options
        )


async def agenerate(request: Request) -> ChatResult:
    """Send a request from a task; LangChain runs a class without async in a thread."""
    model = request.model
    with _quiet():
        if model.rate_limiter:
            await model.rate_limiter.aacquire(blocking=True)
        return await model._agenerate(  # noqa: SLF001 - as above
            list(request.messages), stop=request.stop, **request.options
        )


def open_stream(request: Request) -> tuple[Chunk, Generator[Chunk]]:
    """Send a request; return its first chunk, once it is there, and the others.

    A model that does not stream, or is told not to, gives one chunk, and so does one
    that is to answer by a class: its parser needs the whole answer.
    """
    chunks = _stream(request)
    first = next(chunks, None)
    if first is None:
        raise NoReplyError
    return first, chunks


async def aopen_stream(request: Request) -> tuple[Chunk, AsyncGenerator[Chunk]]:
    """Send a request from a task, as ``open_stream`` does from a thread."""
    chunks = _astream(request)
    first = await anext(chunks, None)
    if first is None:
        raise NoReplyError
    return first, chunks


def whole_message(generation: ChatGeneration, result: ChatResult) -> BaseMessage:
    """Return a reply with all its metadata on the message, as ``invoke`` does."""
    metadata = {
        **(result.llm_output or {}),
        **(generation.generation_info or {}),
        **generation.message.response_metadata,
    }
    return generation.message.model_copy(update={"response_metadata": metadata})


def with_parsed(message: BaseMessage, request: Request) -> BaseMessage:
    """Put the parsed reply where ``ChatOpenAI`` puts it for its output parser."""
    if request.schema is None:
        return message
    try:
        parsed = request.schema.model_validate_json(str(message.text))
    except ValidationError:
        return message
    aside = {**message.additional_kwargs, "parsed": parsed}
    return message.model_copy(update={"additional_kwargs": aside})


@contextmanager
def _quiet() -> Iterator[None]:
    """Run without parent run, handlers of context variables and LangSmith."""
    with tracing_context(enabled=False, parent=False):
        held: list[contextvars.ContextVar[object]] = [
            variable
            for variable, value in contextvars.copy_context().items()
            if variable is var_child_runnable_config
            or isinstance(value, BaseCallbackHandler | BaseCallbackManager)
        ]
        tokens = [(variable, variable.set(None)) for variable in held]
        try:
            yield
        finally:
            for variable, token in tokens:
                variable.reset(token)


def _streams(request: Request, *, async_api: bool) -> bool:
    options = {**request.options, "stream": True}
    return request.schema is None and request.model._should_stream(  # noqa: SLF001 - LangChain's own rule
        async_api=async_api, **options
    )


def _stream(request: Request) -> Generator[Chunk]:
    """Yield chunks; only the waiting for them is quiet, not the consumer."""
    if not _streams(request, async_api=False):
        yield _only_chunk(request, generate(request))
        return
    model = request.model
    if model.rate_limiter:
        model.rate_limiter.acquire(blocking=True)
    chunks = model._stream(  # noqa: SLF001 - the hook that classes implement
        list(request.messages), stop=request.stop, **request.options
    )
    try:
        while True:
            with _quiet():
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield chunk
    finally:
        if isinstance(chunks, Generator):
            chunks.close()


async def _astream(request: Request) -> AsyncGenerator[Chunk]:
    if not _streams(request, async_api=True):
        yield _only_chunk(request, await agenerate(request))
        return
    model = request.model
    if model.rate_limiter:
        await model.rate_limiter.aacquire(blocking=True)
    chunks = model._astream(  # noqa: SLF001 - as above
        list(request.messages), stop=request.stop, **request.options
    )
    try:
        while True:
            with _quiet():
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


def _only_chunk(request: Request, result: ChatResult) -> Chunk:
    if not result.generations:
        raise NoReplyError
    message = with_parsed(whole_message(result.generations[0], result), request)
    names = [name for name in AIMessage.model_fields if name != "type"]
    fields: dict[str, Any] = {name: getattr(message, name, None) for name in names}
    last: dict[str, Any] = {"chunk_position": "last"}
    return Chunk(message=AIMessageChunk(**fields, **last))
