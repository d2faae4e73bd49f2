"""Guards on a real ChatOpenAI that talks to a scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context
from functools import cache, reduce
from operator import add
from typing import Any, TypeVar

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from snne_guard import SNNEGuard
from tests.support.openai_server import Server

T = TypeVar("T")
CALLS = ("invoke", "ainvoke", "stream", "astream", "batch", "abatch")
"""Every way to call a chat model."""
WHOLE = ("invoke", "ainvoke")
"""The ways of a thread and of a task, where the others add nothing."""
MODEL = FakeListChatModel(responses=["Paris"])
"""A model that answers "Paris" to everything, without a server."""
REFUSAL = "I am not certain enough of the answer to give one."
"""The guard's own refusal."""
REFUSING: dict[str, Any] = {"threshold": 0.4, "on_uncertain": "refuse"}
"""Options of a guard that withholds what it does not accept."""


def chat_openai(server: Server, **options: Any) -> ChatOpenAI:
    """Return the real client, pointed at the server; it does not retry."""
    settings: dict[str, Any] = {
        "model": "test-model",
        "api_key": SecretStr("test"),
        "base_url": server.url,
        "max_retries": 0,
        "timeout": 60,
        **options,
    }
    return ChatOpenAI(**settings)


def guarded(server: Server, **options: Any) -> SNNEGuard:
    """Return a guard on that client."""
    return SNNEGuard(chat_openai(server), **options)


def metadata_of(message: Any) -> dict[str, Any]:
    """Return what the guard put into a message."""
    metadata: dict[str, Any] = message.response_metadata["snne_guard"]
    return metadata


def ask(
    model: Runnable[Any, Any],
    way: str,
    config: Any = None,
    *,
    messages: Any = "Where?",
) -> AIMessage:
    """Call a chat model in one of the ways and return the whole message."""
    if way.startswith("a"):
        return in_loop(_aask(model, way, config, messages))
    if way == "stream":
        return _joined(list(model.stream(messages, config)))
    if way == "batch":
        return _message(model.batch([messages], config)[0])
    return _message(model.invoke(messages, config))


async def _aask(
    model: Runnable[Any, Any], way: str, config: Any, messages: Any
) -> AIMessage:
    if way == "astream":
        return _joined([chunk async for chunk in model.astream(messages, config)])
    if way == "abatch":
        return _message((await model.abatch([messages], config))[0])
    return _message(await model.ainvoke(messages, config))


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run something in the loop that all calls share, as clients keep connections."""
    return _loop().run(work, context=copy_context())


def chunks_of(app: Any, question: str, *, asynchronous: bool) -> list[Any]:
    """Return what a LangGraph app streams in the mode ``messages``."""
    state = {"messages": [("user", question)]}

    async def astreamed() -> list[Any]:
        stream = app.astream(state, stream_mode="messages")
        return [chunk async for chunk, _ in stream]

    if asynchronous:
        return in_loop(astreamed())
    return [chunk for chunk, _ in app.stream(state, stream_mode="messages")]


@cache
def _loop() -> asyncio.Runner:
    return asyncio.Runner()


def _joined(chunks: list[Any]) -> AIMessage:
    assert [chunk.chunk_position for chunk in chunks][-1] == "last"
    return _message(reduce(add, chunks))


def _message(message: Any) -> AIMessage:
    assert isinstance(message, AIMessage)
    return message
