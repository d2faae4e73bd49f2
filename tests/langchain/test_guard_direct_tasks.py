"""Guards that are cancelled, or out of time, in a model that takes no notice of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from snne_guard import SNNEGuard
from snne_guard.errors import GuardTimeoutError

POLICIES = pytest.mark.parametrize("policy", ["flag", "refuse"])


class Doing(BaseChatModel):
    """Does what a test wants before it answers."""

    do: Callable[[], Awaitable[None]]

    @property
    def _llm_type(self) -> str:
        return "doing"

    def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        del messages, stop, run_manager, kwargs
        await self.do()
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Paris"))])


class Stubborn:
    """Waits once for ever, and when it is cancelled carries on as if nothing were."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.asked = 0

    async def __call__(self) -> None:
        self.asked += 1
        if self.waits.is_set():
            return
        self.waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return


@POLICIES
async def test_a_model_that_swallows_its_cancellation_keeps_nobody(policy: Any) -> None:
    stubborn = Stubborn()
    guard = SNNEGuard(
        Doing(do=stubborn),
        n=3,
        threshold=0.5,
        on_uncertain=policy,
        schedule="answer_first",
    )
    call = asyncio.create_task(guard.ainvoke("x"))
    await stubborn.waits.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert stubborn.asked == 1


@POLICIES
async def test_nor_does_it_past_the_time_limit(policy: Any) -> None:
    guard = SNNEGuard(
        Doing(do=Stubborn()),
        n=3,
        threshold=0.5,
        on_uncertain=policy,
        schedule="answer_first",
        timeout=0.05,
    )
    with pytest.raises(GuardTimeoutError):
        await guard.ainvoke("x")
