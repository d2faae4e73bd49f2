"""Models that cancel their own requests, and callers who really are cancelled."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import anyio
import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda

from snne_guard import GuardedChatModel, ModelCancelledError, SNNEGuard
from tests.support.guarding import WAYS, Witness, ask, record

Cancelled = type[BaseException]
CANCELLED = pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError, concurrent.futures.CancelledError],
    ids=["asyncio", "futures"],
)
POLICIES = pytest.mark.parametrize("policy", ["flag", "refuse"])
TASKS = pytest.mark.parametrize("way", ["ainvoke", "astream", "abatch"])


class Cancelling(BaseChatModel):
    """Answers samples, and cancels its own request for the answer.

    Attributes:
        shown: What comes in a stream before it does so.
        error: What it raises then.
    """

    shown: str = ""
    error: Cancelled = asyncio.CancelledError

    @property
    def _llm_type(self) -> str:
        return "cancelling"

    def _generate(
        self, messages: list[BaseMessage], *_args: Any, **kwargs: Any
    ) -> ChatResult:
        del messages
        if kwargs.get("temperature") != 1.0:
            raise self.error
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Paris"))])

    async def _agenerate(
        self, messages: list[BaseMessage], *_args: Any, **kwargs: Any
    ) -> ChatResult:
        await asyncio.sleep(0)
        return self._generate(messages, **kwargs)

    def _stream(self, *_args: Any, **_kwargs: Any) -> Iterator[ChatGenerationChunk]:
        if self.shown:
            yield ChatGenerationChunk(message=AIMessageChunk(content=self.shown))
        raise self.error

    async def _astream(
        self, *_args: Any, **_kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream():
            yield chunk


def guarded(
    model: BaseChatModel, *, chat_model: bool = False, **options: Any
) -> Runnable[Any, Any]:
    guard = SNNEGuard(model, n=3, threshold=0.4, **options)
    return GuardedChatModel(guard) if chat_model else guard


@POLICIES
@pytest.mark.parametrize("timeout", [None, 30.0])
@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_the_fallback_answers_for_a_model_that_cancels_itself(
    way: str, chat_model: bool, timeout: float | None, policy: Any
) -> None:
    guard = guarded(
        Cancelling(),
        chat_model=chat_model,
        on_uncertain=policy,
        timeout=timeout,
        fallback=lambda _messages: AIMessage("Lyon"),
    )
    message = ask(guard, "x", way)
    assert message.content == "Lyon"
    found = record(message)
    assert found["decision"] == "fallback"
    assert "answer_failed" in found["reasons"]
    assert found["cost"]["lower_bound"]


@CANCELLED
@POLICIES
@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_without_a_fallback_it_is_an_error_and_no_cancellation(
    way: str, chat_model: bool, policy: Any, error: Cancelled
) -> None:
    witness = Witness()
    guard = guarded(
        Cancelling(error=error),
        chat_model=chat_model,
        on_uncertain=policy,
        observers=[witness],
    )
    with pytest.raises(ModelCancelledError) as caught:
        ask(guard, "x", way)
    assert isinstance(caught.value.__cause__, error)
    assert "answer_failed" in witness.last.reasons


async def test_the_rest_of_a_batch_is_not_lost() -> None:
    guard = guarded(Cancelling(), on_uncertain="refuse")
    first, second = await guard.abatch(["x", "y"], return_exceptions=True)
    assert isinstance(first, ModelCancelledError)
    assert isinstance(second, ModelCancelledError)


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_has_begun_ends_in_the_error(way: str) -> None:
    guard = guarded(
        Cancelling(shown="Par"), fallback=lambda _messages: AIMessage("Lyon")
    )
    with pytest.raises(ModelCancelledError):
        ask(guard, "x", way)


@pytest.mark.parametrize("way", WAYS)
def test_a_fallback_that_cancels_itself_is_an_error_too(way: str) -> None:
    def cancel(_messages: Any) -> AIMessage:
        raise asyncio.CancelledError

    with pytest.raises(ModelCancelledError):
        ask(guarded(Cancelling(), fallback=RunnableLambda(cancel)), "x", way)


class Waiting(Cancelling):
    """Waits for ever."""

    waits: Callable[[], object]

    async def _agenerate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        self.waits()
        await asyncio.Event().wait()
        raise AssertionError

    async def _astream(
        self, *_args: Any, **_kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        await self._agenerate()
        yield ChatGenerationChunk(message=AIMessageChunk(content="Paris"))


async def by_cancel(call: Awaitable[Any], waits: asyncio.Event) -> None:
    task = asyncio.ensure_future(call)
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def by_wait_for(call: Awaitable[Any], waits: asyncio.Event) -> None:
    del waits
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call, 0.05)


async def by_timeout(call: Awaitable[Any], waits: asyncio.Event) -> None:
    del waits
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await call


async def by_group(call: Awaitable[Any], waits: asyncio.Event) -> None:
    async def fail() -> None:
        await waits.wait()
        raise KeyError

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await call

    with pytest.raises(ExceptionGroup) as caught:
        await together()
    assert [type(error) for error in caught.value.exceptions] == [KeyError]


async def by_scope(call: Awaitable[Any], waits: asyncio.Event) -> None:
    del waits
    with anyio.move_on_after(0.05) as scope:
        await call
    assert scope.cancelled_caught


@POLICIES
@TASKS
@pytest.mark.parametrize(
    "end", [by_cancel, by_wait_for, by_timeout, by_group, by_scope]
)
async def test_a_true_cancellation_is_never_handed_over(
    end: Callable[[Awaitable[Any], asyncio.Event], Awaitable[None]],
    way: str,
    policy: Any,
) -> None:
    waits, handed = asyncio.Event(), list[Any]()

    def answer(messages: Any) -> AIMessage:
        handed.append(messages)
        return AIMessage("Lyon")

    guard = guarded(
        Waiting(waits=waits.set),
        on_uncertain=policy,
        timeout=60.0,
        fallback=answer,
    )

    async def call() -> None:
        if way == "astream":
            async for _ in guard.astream("x"):
                pass
        elif way == "abatch":
            await guard.abatch(["x", "y"], return_exceptions=True)
        else:
            await guard.ainvoke("x")

    await end(call(), waits)
    assert not handed


@CANCELLED
async def test_a_task_that_asks_in_a_thread_is_not_cancelled(error: Cancelled) -> None:
    with pytest.raises(ModelCancelledError):
        await asyncio.to_thread(guarded(Cancelling(error=error)).invoke, "x")


async def cancel_later(_assessment: Any) -> str:
    await asyncio.sleep(0)
    raise asyncio.CancelledError


def cancel_at_once(_assessment: Any) -> str:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("way", "decide"),
    [
        *((way, cancel_at_once) for way in WAYS),
        *((way, cancel_later) for way in WAYS if way.startswith("a")),
    ],
)
def test_a_function_that_cancels_itself_has_failed_as_one_that_raises(
    way: str, decide: Any
) -> None:
    witness = Witness()
    model = FakeListChatModel(responses=["Lyon", "Paris", "Nice"])
    guard = guarded(model, on_uncertain=decide, observers=[witness])
    told = "on_uncertain cancelled itself; nobody cancelled the guarded call"
    with pytest.raises(ModelCancelledError, match=told) as caught:
        ask(guard, "x", way)
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    assert "on_uncertain_failed" in witness.last.reasons


async def test_a_caller_who_cancels_while_it_decides_is_cancelled() -> None:
    begun = asyncio.Event()

    async def decide(_assessment: Any) -> str:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    model = FakeListChatModel(responses=["Lyon", "Paris", "Nice"])
    await by_cancel(guarded(model, on_uncertain=decide).ainvoke("x"), begun)
