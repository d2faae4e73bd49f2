"""One call of a guard, in each of the ways in which LangChain makes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, closing
from typing import Annotated, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field, PrivateAttr

from snne_guard import engine
from snne_guard.engine import Observers, Request
from snne_guard.langchain.delivery import child_config, message_of, result_of
from snne_guard.langchain.messages import as_chunk, as_message
from snne_guard.langchain.request import Run, engine_request
from snne_guard.langchain.sender import LangChainSender
from snne_guard.langchain.streams import astreamed, streamed
from snne_guard.langchain.wrappers import ModelTree
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment

__all__ = ["Frozen", "GuardedCalls"]


Frozen = Annotated[Any, Field(frozen=True)]
"""A field that cannot be set."""


class GuardedCalls(BaseChatModel):
    """A chat model that answers by guarded calls; ``SNNEGuard`` says what they are."""

    guarded: Frozen
    provider: Frozen = None
    # Whether calls are a form of the answer: ``with_structured_output`` sets it.
    structured: Frozen = False
    # What the calls of a guard and of its copies have in common.
    shared: Frozen = Field(default=None, repr=False)

    _settings: GuardSettings = PrivateAttr()
    _observers: Observers = PrivateAttr()

    @property
    def settings(self) -> GuardSettings:
        """The options, validated."""
        return self._settings

    def prepared(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run: Run = None,
        options: Mapping[str, Any] | None = None,
        *,
        answer: AIMessage | str | None = None,
    ) -> tuple[Request, LangChainSender]:
        """Return what a driver needs to carry out a call.

        Args:
            messages: The conversation.
            stop: Texts at which the answer ends.
            run: The guard's run.
            options: Options of the model for this call.
            answer: An answer that exists already.
        """
        given = {**(options or {}), **({} if stop is None else {"stop": stop})}
        inside = ModelTree(self.guarded, given, provider=self.provider)
        request = engine_request(
            inside,
            messages,
            settings=self._settings,
            state=self.shared,
            observers=self._observers,
            structured=self.structured,
            run=run,
            answer=answer,
        )
        rejections = self.shared.rejections
        return request, LangChainSender(inside, messages, rejections=rejections)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self.prepared(messages, stop, run_manager, kwargs)
        outcome = engine.run(*call)
        message = message_of(outcome, refusal=self._settings.refusal)
        if message is None:
            config = child_config(run_manager)
            message = as_message(self._settings.fallback.invoke(messages, config))
        return result_of(message, outcome)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self.prepared(messages, stop, run_manager, kwargs)
        outcome = await engine.arun(*call)
        message = message_of(outcome, refusal=self._settings.refusal)
        if message is None:
            config = child_config(run_manager)
            given = await self._settings.fallback.ainvoke(messages, config)
            message = as_message(given)
        return result_of(message, outcome)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        if self._settings.withholds:
            result = self._generate(messages, stop, run_manager, **kwargs)
            yield as_chunk(result.generations[0].message)
            return
        call = self.prepared(messages, stop, run_manager, kwargs)
        with closing(streamed(*call)) as chunks:
            yield from chunks

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if self._settings.withholds:
            result = await self._agenerate(messages, stop, run_manager, **kwargs)
            yield as_chunk(result.generations[0].message)
            return
        call = self.prepared(messages, stop, run_manager, kwargs)
        async with aclosing(astreamed(*call)) as chunks:
            async for chunk in chunks:
                yield chunk

    def assess(
        self, messages: LanguageModelInput, answer: AIMessage | str | None = None
    ) -> Assessment:
        """Return everything about one call, the samples and the matrix included.

        It never withholds an answer, nor raises because one is uncertain: ``decision``
        says what the guard would do. No callback handler sees the call.

        Args:
            messages: What the model takes.
            answer: An answer that you already have; only samples are drawn then.

        Raises:
            Exception: The model's own error, if it fails to answer.
        """
        conversation = self._convert_input(messages).to_messages()
        call = self.prepared(conversation, answer=answer)
        return engine.run(*call).assessed()

    async def aassess(
        self, messages: LanguageModelInput, answer: AIMessage | str | None = None
    ) -> Assessment:
        """Do what ``assess`` does without blocking the event loop."""
        conversation = self._convert_input(messages).to_messages()
        call = self.prepared(conversation, answer=answer)
        return (await engine.arun(*call)).assessed()
