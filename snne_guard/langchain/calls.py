"""One call of a guard, in each of the ways in which LangChain makes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, closing
from copy import copy
from functools import partial
from typing import Annotated, Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
)
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from pydantic import Field, PrivateAttr

from snne_guard import engine
from snne_guard.engine import GuardState, Request, Response, request_of
from snne_guard.engine.tasks import in_thread
from snne_guard.langchain.delivery import (
    Run,
    child_config,
    chunk_of,
    message_of,
    result_of,
    started_run,
)
from snne_guard.langchain.messages import as_chunk, as_message, reply_of
from snne_guard.langchain.others import check_forms, tree_of
from snne_guard.langchain.sender import LangChainSender
from snne_guard.langchain.structured import asking_step
from snne_guard.langchain.wrappers import ModelTree
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment

Frozen = Annotated[Any, Field(frozen=True)]
"""A field that cannot be set."""


class GuardedCalls(BaseChatModel):
    """A chat model that answers by guarded calls; ``SNNEGuard`` says what they are."""

    guarded: Frozen
    # The other models, with what ``bind_tools`` or ``with_structured_output`` bound.
    others: Frozen = Field(default=(), repr=False)
    provider: Frozen = None
    # Whether calls are a form of the answer, as of ``with_structured_output``, or the
    # names of those that are.
    structured: Frozen = False
    # What the calls of a guard and of its copies have in common.
    shared: Frozen = Field(default=None, repr=False)

    _settings: GuardSettings = PrivateAttr()
    _inside: ModelTree = PrivateAttr()
    _run: Run = PrivateAttr(default=None)

    @property
    def settings(self) -> GuardSettings:
        """The options, validated."""
        return self._settings

    @property
    def model_name(self) -> str | None:
        """Name of the guarded model, None where it has none."""
        return self._inside.named.get("model")

    def prepared(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run: Run = None,
        options: Mapping[str, Any] | None = None,
        *,
        answer: AIMessage | str | None = None,
        context: Any = None,
    ) -> tuple[Request, LangChainSender]:
        """Return the parts that a driver needs for a call; an ``answer`` may exist."""
        given = {**(options or {}), **({} if stop is None else {"stop": stop})}
        inside = ModelTree(self.guarded, given, provider=self.provider)
        names = self._settings.other_models
        pairs = zip(names, self.others, strict=True)
        others = {name: tree_of(each, given) for name, each in pairs}
        if others and self.structured is not True:
            check_forms(inside, others)
        run = run or self._run
        metadata = {} if run is None else run.metadata or {}
        human = [message for message in messages if isinstance(message, HumanMessage)]
        drawn = None
        if answer is not None:
            message = as_message(answer)
            drawn = Response(replies=(reply_of(message),), raw=message)
        request = request_of(
            messages,
            settings=self._settings,
            state=self.shared,
            question=metadata.get("snne_guard_question"),
            last=str(human[-1].text) if human else None,
            context=metadata.get("snne_guard_context") if context is None else context,
            structured=self.structured,
            others_retried=frozenset(
                name for name, other in others.items() if not other.retries_itself
            ),
            answer=drawn,
            run_id=None if run is None else str(run.run_id),
            **inside.asks,
        )
        rejections = self.shared.rejections
        sender = LangChainSender(inside, messages, others=others, rejections=rejections)
        return request, sender

    async def _aprepared(
        self, prepare: Callable[[], tuple[Request, LangChainSender]]
    ) -> tuple[Request, LangChainSender]:
        """Return the same; functions of the user hold up no loop."""
        return await in_thread(prepare) if self._settings.asks_functions else prepare()

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
            config = child_config(run_manager or self._run)
            message = as_message(self._settings.fallback.invoke(messages, config))
        return result_of(message, outcome, model=call[0].model)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prepare = partial(self.prepared, messages, stop, run_manager, kwargs)
        call = await self._aprepared(prepare)
        outcome = await engine.arun(*call)
        message = message_of(outcome, refusal=self._settings.refusal)
        if message is None:
            config = child_config(run_manager or self._run)
            given = await self._settings.fallback.ainvoke(messages, config)
            message = as_message(given)
        return result_of(message, outcome, model=call[0].model)

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
        with closing(engine.stream(*call)) as items:
            yield from map(chunk_of, items)

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
        prepare = partial(self.prepared, messages, stop, run_manager, kwargs)
        call = await self._aprepared(prepare)
        async with aclosing(engine.astream(*call)) as items:
            async for item in items:
                yield chunk_of(item)

    # LangChain gives no run to ``_stream``, not even where ``invoke`` comes to it for a
    # stream of events. A copy of the guard that lasts as long as a call knows its run.

    def _in_run(self, run: Run) -> Self:
        guard = copy(self)
        guard._run = run  # noqa: SLF001 - our own
        return guard

    def stream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[AIMessageChunk]:
        """Stream what the guard delivers, as any chat model does."""
        run, config = started_run(config)
        guard = self._in_run(run)
        yield from BaseChatModel.stream(guard, input, config, **kwargs)

    async def astream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AIMessageChunk]:
        """Do what ``stream`` does without blocking the event loop."""
        run, config = started_run(config)
        guard = self._in_run(run)
        given: Any = BaseChatModel.astream(guard, input, config, **kwargs)
        async with aclosing(given) as chunks:
            async for chunk in chunks:
                yield chunk

    def _generate_with_cache(self, *args: Any, **kwargs: Any) -> ChatResult:
        guard = self._in_run(kwargs.get("run_manager"))
        return BaseChatModel._generate_with_cache(guard, *args, **kwargs)  # noqa: SLF001 - there is no public place

    async def _agenerate_with_cache(self, *args: Any, **kwargs: Any) -> ChatResult:
        guard = self._in_run(kwargs.get("run_manager"))
        return await BaseChatModel._agenerate_with_cache(guard, *args, **kwargs)  # noqa: SLF001 - as above

    def assessments(self) -> AbstractContextManager[list[Assessment]]:
        """Collect the assessment of every call in a list, as the calls end.

        It sees the calls of this guard and its copies, those of
        ``with_structured_output`` among them, in any task or thread.

        Example:
            >>> from snne_guard import SNNEGuard
            >>> from langchain_core.language_models import FakeListChatModel
            >>> guard = SNNEGuard(FakeListChatModel(responses=["Paris"]))
            >>> with guard.assessments() as seen:
            ...     _ = guard.invoke("What is the capital of France?")
            >>> len(seen)
            1
        """
        state: GuardState = self.shared
        return state.collected()

    def assess(
        self,
        messages: LanguageModelInput,
        answer: AIMessage | str | None = None,
        *,
        schema: Any = None,
        context: Any = None,
    ) -> Assessment:
        """Return everything about one call, the samples and the matrix included.

        It never withholds an answer, nor raises because one is uncertain: ``decision``
        says what the guard would do. No callback handler sees the call.

        Args:
            messages: What the model takes.
            answer: An answer that you already have; only samples are drawn then.
            schema: What ``with_structured_output`` takes, for an answer as of that.
            context: The documents of this call, in place of the guard's own: a text, or
                a list of texts or ``Document`` objects.

        Raises:
            Exception: The model's own error, if it fails to answer.
        """
        call = self._prepared_by(messages, answer, schema, context)
        return engine.run(*call).assessed()

    async def aassess(
        self,
        messages: LanguageModelInput,
        answer: AIMessage | str | None = None,
        *,
        schema: Any = None,
        context: Any = None,
    ) -> Assessment:
        """Do what ``assess`` does without blocking the event loop."""
        prepare = partial(self._prepared_by, messages, answer, schema, context)
        call = await self._aprepared(prepare)
        return (await engine.arun(*call)).assessed()

    def _prepared_by(
        self,
        messages: LanguageModelInput,
        answer: AIMessage | str | None,
        schema: Any,
        context: Any,
    ) -> tuple[Request, LangChainSender]:
        conversation = self._convert_input(messages).to_messages()
        guard: Any = self
        options: Mapping[str, Any] = {}
        if schema is not None:
            guard, options = asking_step(self.with_structured_output(schema))
        call: tuple[Request, LangChainSender] = guard.prepared(
            conversation, options=options, answer=answer, context=context
        )
        return call
