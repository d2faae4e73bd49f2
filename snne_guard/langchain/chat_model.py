"""The guard as a chat model, for agents and whatever else insists on one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    BaseCallbackHandler,
    CallbackManager,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer
from pydantic import ConfigDict

from snne_guard.langchain.acall import AsyncGuardedCall
from snne_guard.langchain.call import GuardedCall
from snne_guard.langchain.core import Request
from snne_guard.langchain.form import in_form
from snne_guard.langchain.guard import SNNEGuard
from snne_guard.langchain.reseat import structured
from snne_guard.langchain.wrapped import tools_instead, with_tools
from snne_guard.sampling.langchain_models import has_choices, pin, resolve
from snne_guard.sampling.langchain_runs import said_in

__all__ = ["GuardedChatModel"]


class GuardedChatModel(BaseChatModel):
    """A chat model whose answers are guarded.

    It decides what its guard decides. Its ``usage_metadata`` is the sum over the
    answer and all samples, since callback handlers see it as one run. Tracers see the
    runs of answer and samples nested under it, without usage of their own.

    Streaming follows the guard: chunks as they come where an answer can only be
    accepted or flagged, one chunk after the decision in every other case. LangChain
    does not tell a streaming model which run it belongs to, so samples that are drawn
    beside a stream have no runs in a trace.

    Args:
        guard: The guard, on the model to be guarded.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from snne_guard import SNNEGuard
        >>> inner = FakeListChatModel(responses=["Paris"])
        >>> model = GuardedChatModel(SNNEGuard(inner, threshold=0.4))
        >>> answer = model.invoke("What is the capital of France?")
        >>> answer.response_metadata["snne_guard"]["decision"]
        'accept'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    guard: SNNEGuard

    def __init__(self, guard: SNNEGuard, **kwargs: Any) -> None:
        fields: dict[str, Any] = {"profile": _profile(guard), **kwargs}
        # A cached assessment would be of other draws, and of another guard's policy.
        fields |= {"guard": guard, "cache": False}
        super().__init__(**fields)

    @property
    def _llm_type(self) -> str:
        return "snne-guard"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"guard": repr(self.guard)}

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return False: LangChain refuses to load classes of other packages."""
        return False

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        if has_choices(self.guard.model):
            return {}
        inner = resolve(self.guard.model)[0].model
        return inner._get_ls_params(stop=stop, **kwargs)  # noqa: SLF001 - tracers want the real model's

    def invoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Return the answer, or what stands in for it; see ``SNNEGuard.invoke``."""
        return super(GuardedChatModel, self._under(config)).invoke(
            input, config, **kwargs
        )

    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Do what ``invoke`` does without blocking the event loop."""
        return await super(GuardedChatModel, self._under(config)).ainvoke(
            input, config, **kwargs
        )

    def stream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[AIMessageChunk]:
        """Yield the answer in chunks; see ``SNNEGuard.stream``."""
        return super(GuardedChatModel, self._under(config)).stream(
            input, config, **kwargs
        )

    async def astream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AIMessageChunk]:
        """Do what ``stream`` does without blocking the event loop."""
        chunks = super(GuardedChatModel, self._under(config)).astream(
            input, config, **kwargs
        )
        async for chunk in chunks:
            yield chunk

    def _under(self, config: RunnableConfig | None) -> GuardedChatModel:
        """Return this model with what the configuration chooses and says.

        LangChain does not tell a chat model of its configuration any later.
        """
        said, chooses = said_in(config), has_choices(self.guard.model)
        if said is None and not chooses:
            return self
        model = pin(self.guard.model, config) if chooses else self.guard.model
        # Whether a calibration is for the chosen model shows in its replies, as where
        # the guard itself is called.
        options: dict[str, Any] = {"chosen": chooses or self.guard.chosen}
        if said is not None:
            options["question"] = _always(said)
        return self.model_copy(update={"guard": self.guard.on(model, **options)})

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return this model with tools bound to it, in the inner model's own form.

        And to its guard's fallback, in the form of that one.
        """
        options = (
            kwargs if tool_choice is None else {"tool_choice": tool_choice, **kwargs}
        )
        guard = self.guard
        bound = with_tools(guard.model, tools, options)
        if guard.fallback is None:
            return self._on(bound)
        instead = tools_instead(guard.fallback, guard.model, tools, options)
        copy = self.model_copy(
            update={"guard": guard.on(guard.model, fallback=instead)}
        )
        return copy._on(bound)  # noqa: SLF001 - a copy of this

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """Return the inner model's structured output, guarded.

        Replies are compared field by field. A refusal would not fit the schema, so an
        answer that is refused raises ``UncertainAnswerError``. A fallback that is a
        model is asked for the same schema, in its own provider's form; another has to
        give the fields as JSON or as a call.
        """
        options = {"include_raw": include_raw, **kwargs}
        guard = self.guard.on(
            self.guard.model,
            tool_calls="score",
            structured=True,
            chosen=self.guard.chosen or has_choices(self.guard.model),
            fallback=in_form(self.guard.model, self.guard.fallback, schema, options),
        )
        copy = self.model_copy(update={"guard": guard})
        return structured(guard.model, schema, options, guarded=copy._on)  # noqa: SLF001 - a copy of this

    def _on(self, bound: Runnable[Any, Any]) -> Runnable[Any, Any]:
        """Return this model on another form of the model that it guards."""
        kwargs = getattr(bound, "kwargs", None)
        if kwargs is not None and getattr(bound, "bound", None) is self.guard.model:
            # As for any chat model: what is bound stays visible, and can be bound over.
            return self.bind(**kwargs)
        return self.model_copy(update={"guard": self.guard.on(bound)})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        config = _child(CallbackManager, run_manager)
        message = GuardedCall(self._request(messages, config, stop, kwargs)).run()
        return _result(message)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        config = _child(AsyncCallbackManager, run_manager)
        request = self._request(messages, config, stop, kwargs)
        return _result(await AsyncGuardedCall(request).run())

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        config = _child(CallbackManager, run_manager)
        call = GuardedCall(self._request(messages, config, stop, kwargs))
        for chunk in call.stream():
            yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        config = _child(AsyncCallbackManager, run_manager)
        call = AsyncGuardedCall(self._request(messages, config, stop, kwargs))
        async for chunk in call.stream():
            yield ChatGenerationChunk(message=chunk)

    def _request(
        self,
        messages: list[BaseMessage],
        config: RunnableConfig,
        stop: list[str] | None,
        kwargs: dict[str, Any],
    ) -> Request:
        options = kwargs if stop is None else {**kwargs, "stop": stop}
        return self.guard.request(messages, config, options, outer_run=True)


def _child(
    kind: type[CallbackManager | AsyncCallbackManager],
    run: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
) -> RunnableConfig:
    """Return a configuration whose runs nest under a chat model's run.

    LangChain gives chat models no such thing, so the manager is made by hand. Only
    tracers are told of the nested runs: a handler that counts or prints the runs of
    chat models has seen this one.
    """
    if run is None:
        return {"callbacks": []}
    tracers: list[BaseCallbackHandler] = [
        handler
        for handler in run.inheritable_handlers
        if isinstance(handler, BaseTracer | AsyncBaseTracer)
    ]
    manager = kind(
        handlers=[*tracers],
        inheritable_handlers=[*tracers],
        parent_run_id=run.run_id,
        tags=run.inheritable_tags,
        inheritable_tags=run.inheritable_tags,
        metadata=run.inheritable_metadata,
        inheritable_metadata=run.inheritable_metadata,
    )
    # Instrumentations put a tracer of their own into every manager that is made. A new
    # one knows nothing of this run; the one that was told of it does.
    known = {type(handler): handler for handler in run.inheritable_handlers}
    for added in [each for each in manager.handlers if each not in tracers]:
        manager.remove_handler(added)
        manager.add_handler(known.get(type(added), added))
    return {"callbacks": manager}


def _always(said: object) -> Callable[[list[BaseMessage]], object]:
    """Return the function that gives one question whatever the messages are."""
    return lambda _messages: said


def _profile(guard: SNNEGuard) -> Any:
    """Return what the inner model says that it can do."""
    return (
        None if has_choices(guard.model) else getattr(guard.innermost, "profile", None)
    )


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
