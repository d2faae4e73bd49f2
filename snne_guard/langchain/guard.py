"""SNNEGuard: a LangChain chat model that guards another one."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from os import PathLike
from typing import Annotated, Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import ConfigDict, Field, PrivateAttr

from snne_guard.call import GuardState
from snne_guard.decision import Calibration
from snne_guard.drivers import tasks, threads
from snne_guard.errors import ConfigurationError
from snne_guard.langchain import conversion
from snne_guard.langchain.conversion import prepare
from snne_guard.langchain.structured import structured_output
from snne_guard.limiter import Limiter
from snne_guard.sampling.langchain.messages import as_chunk
from snne_guard.sampling.langchain.providers import answer_settings_of, model_name_of
from snne_guard.sampling.langchain.wrappers import ChatRunnable, models_in, rebuild
from snne_guard.scorers import Method
from snne_guard.self_check import SelfCheck
from snne_guard.settings import REFUSAL, GuardSettings
from snne_guard.types import (
    Assessment,
    Observer,
    OnError,
    OnUncertain,
    Prices,
    Schedule,
    Similarity,
    SpanSimilarity,
    ToolCalls,
)
from snne_guard.views import View

__all__ = ["SNNEGuard"]

Frozen = Annotated[Any, Field(frozen=True)]
"""A field that cannot be set; ``GuardSettings`` checks what is in it."""


class SNNEGuard(BaseChatModel):
    """Asks a chat model several times and acts on how far its answers differ.

    The guard is a chat model itself. Put it wherever the model stands: in a chain, an
    agent or a graph. It returns what the model would, an ``AIMessage``, with the
    assessment in ``response_metadata["snne_guard"]`` and the usage of all calls summed.

    Without a threshold the guard only measures. If an answer can only be accepted or
    flagged, its chunks stream as they arrive, and the last one carries the assessment.
    Otherwise there is a single chunk, after the decision.

    Args:
        model: Any chat model, bare or inside ``bind``, ``bind_tools``, ``with_config``,
            ``with_retry`` or ``with_fallbacks``. It is never changed.
        n: Calls to the model: the answer, its samples, and the self-check if there is
            one. At least 2.
        threshold: Largest ``u`` to accept, in [0, 1]. With a pair ``(accept, refuse)``,
            ``on_uncertain`` decides between the two, and every answer above the second
            is refused. None only measures.
        calibration: What ``snne-guard calibrate`` made, or the path of its file, in
            place of a threshold. A guard with another model or other settings refuses
            to start.
        on_uncertain: What to do with an answer that is not accepted: ``"flag"``,
            ``"refuse"``, ``"fallback"`` or ``"raise"``; or a function that gets the
            ``Assessment`` and returns one of these words, or a message to deliver
            instead.
        fallback: A runnable that takes the same messages. It also answers when the
            model raises an error.
        refusal: The text in place of a refused answer; None raises
            ``UncertainAnswerError`` instead.
        on_error: What to do if fewer than ``min_samples`` replies can be scored:
            ``"uncertain"`` treats the answer like an uncertain one, ``"accept"``
            delivers it, ``"raise"`` raises.
        method: A name in ``METHODS``, a ``Method`` of your own, or ``"auto"``: WSNNE
            if the provider gives log-probabilities, else SNNE. The choice is made once
            for a guard.
        similarity: What compares the replies: a name in ``SIMILARITIES``,
            ``"nli:MODEL"``, ``"embedding:MODEL"`` or a function; None takes the
            method's own. Tool calls and structured answers are always compared value by
            value.
        temperature: Sampling temperature of the samples, above 0.
        question: A function that returns the user's question from the messages, for
            prompts that hold retrieved text as well. For a single call, set it by
            ``config={"metadata": {"snne_guard_question": "..."}}``. None takes the
            user's last message.
        tool_calls: ``"skip"`` delivers an answer that calls bound tools without a
            score; ``"score"`` compares the calls value by value.
        min_samples: Fewest replies to score; None means half of those asked for, but
            at least two.
        schedule: ``"concurrent"`` draws the samples together with the answer,
            ``"answer_first"`` after it, so that they can use the provider's prompt
            cache.
        timeout: Seconds for the whole call, after which the replies that have arrived
            are scored; without an answer, ``GuardTimeoutError`` is raised. It covers
            neither a fallback nor a live stream.
        sample_timeout: Seconds from the start of the call after which the replies that
            have arrived are scored.
        max_concurrency: Most requests in flight for this guard, all calls together.
        sample_rate: Share of the calls to guard, in [0, 1].
        prices: Prices of the model's tokens, for ``cost.money``.
        observers: Objects with ``on_assessment``, which get the assessment of every
            call, texts included.
        self_check: Whether to spend one of the ``n`` calls on asking the model if its
            answer is correct. A ``SelfCheck`` sets another prompt or weight.
        views: Ways of putting the question that the samples take in turn:
            ``"plain"``, ``"examples"``, ``"reasoning"``, or a ``View`` of your own.
        spans: Whether to give each sentence of a delivered text an uncertainty of its
            own. True compares words, ``"nli:MODEL"`` uses a model, and ``"judge"`` asks
            the guarded model in one more call; or a ``SpanSimilarity`` of your own.
        span_threshold: Largest uncertainty of a sentence that is not marked. The
            assessment carries it; it withholds nothing.
        context: The text that the model was given to answer from, or a function that
            returns it from the messages. Each sentence then says how far it is
            ``grounded`` in it.

    Raises:
        ConfigurationError: An option makes no sense, or differs from what the
            calibration was made for.
        InputError: The calibration's file is damaged.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> guard = SNNEGuard(model, n=3, threshold=0.4, on_uncertain="refuse")
        >>> message = guard.invoke("What is the capital of France?")
        >>> message.content, message.response_metadata["snne_guard"]["decision"]
        ('Paris', 'accept')
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    guarded: Frozen
    n: Frozen
    threshold: Frozen
    calibration: Frozen
    on_uncertain: Frozen
    fallback: Frozen
    refusal: Frozen
    on_error: Frozen
    method: Frozen
    similarity: Frozen
    temperature: Frozen
    question: Frozen
    tool_calls: Frozen
    min_samples: Frozen
    schedule: Frozen
    timeout: Frozen
    sample_timeout: Frozen
    max_concurrency: Frozen
    sample_rate: Frozen
    prices: Frozen
    observers: Frozen
    self_check: Frozen
    views: Frozen
    spans: Frozen
    span_threshold: Frozen
    context: Frozen
    # Not options: ``paper`` sets the first one, ``with_structured_output`` the second,
    # and all copies of a guard share the third.
    include_answer: Frozen = True
    structured: Frozen = False
    shared: Frozen = Field(default=None, repr=False)

    _settings: GuardSettings = PrivateAttr()

    def __init__(
        self,
        model: ChatRunnable | None = None,
        *,
        n: int = 5,
        threshold: float | tuple[float, float] | None = None,
        calibration: Calibration | str | PathLike[str] | None = None,
        on_uncertain: OnUncertain | Callable[[Assessment], Any] = "flag",
        fallback: Runnable[Any, Any] | None = None,
        refusal: str | None = REFUSAL,
        on_error: OnError = "uncertain",
        method: str | Method = "auto",
        similarity: str | Similarity | None = None,
        temperature: float = 1.0,
        question: Callable[[list[BaseMessage]], str | None] | None = None,
        tool_calls: ToolCalls = "skip",
        min_samples: int | None = None,
        schedule: Schedule = "concurrent",
        timeout: float | None = None,
        sample_timeout: float | None = None,
        max_concurrency: int | None = None,
        sample_rate: float = 1.0,
        prices: Prices | None = None,
        observers: Sequence[Observer] = (),
        self_check: bool | SelfCheck = False,
        views: Sequence[str | View] = (),
        spans: bool | str | SpanSimilarity = False,
        span_threshold: float | None = None,
        context: str | Callable[[list[BaseMessage]], str | None] | None = None,
        **fields: Any,
    ) -> None:
        named = {**locals(), **fields}
        names = [option.name for option in dataclasses.fields(GuardSettings)]
        options = {name: named[name] for name in names if name in named}
        settings = GuardSettings(**options)
        if not isinstance(options["fallback"], Runnable | None):
            msg = f"expected fallback to be a runnable, got {type(fallback).__name__}"
            raise ConfigurationError(msg)
        guarded: Any = fields.get("guarded") if model is None else model
        first = models_in(guarded)[0]
        shared = fields.get("shared")
        if shared is None or shared.limiter.size != settings.max_concurrency:
            shared = GuardState(Limiter(settings.max_concurrency))
        values = {
            # Taken from the guarded model unless given.
            "profile": getattr(first, "profile", None),
            "output_version": getattr(first, "output_version", None),
            **options,
            **fields,
            "guarded": guarded,
            "calibration": settings.calibration,
            "cache": False,  # a cached assessment would describe other draws
            "shared": shared,
        }
        super().__init__(**values)
        self._settings = settings
        drawn_with = answer_settings_of(self.guarded)
        settings.check_calibration({**drawn_with, **model_name_of(self.guarded)})

    @classmethod
    def paper(cls, model: ChatRunnable, **options: Any) -> Self:
        """Return a guard with the settings of the paper (arXiv 2506.00245, section 4).

        It scores ten samples without the answer, by SNNE with tau = 1 on ROUGE-L with
        the tokens of rouge-score, which sees only the letters a to z and digits.

        Args:
            model: The chat model.
            **options: Further options of ``SNNEGuard``.
        """
        paper = {
            "n": 10,
            "include_answer": False,
            "method": "snne",
            "similarity": "rouge_l_paper",
        }
        return cls(model, **{**paper, **options})

    @classmethod
    def from_calibration(
        cls,
        model: ChatRunnable,
        calibration: Calibration | str | PathLike[str],
        **options: Any,
    ) -> Self:
        """Return a guard with the settings and the threshold of a calibration.

        Args:
            model: The chat model that the calibration was made for.
            calibration: What ``snne-guard calibrate`` made, or the path of its file.
            **options: Further options of ``SNNEGuard``.

        Raises:
            ConfigurationError: An option differs from the calibration; the message
                names all that do.
            InputError: The file holds no calibration, or was changed.
        """
        if not isinstance(calibration, Calibration):
            calibration = Calibration.load(calibration)
        return cls(model, **{**calibration.guard_settings(), **options})

    @property
    def settings(self) -> GuardSettings:
        """The options, validated."""
        return self._settings

    # -- What LangChain asks of a chat model -------------------------------------------

    @property
    def _llm_type(self) -> str:
        return "snne-guard"

    @property
    def model_name(self) -> str | None:
        """Name of the guarded model, None where it has none."""
        return model_name_of(self.guarded).get("model")

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        inner = models_in(self.guarded)[0]
        return inner._get_ls_params(stop=stop, **kwargs)  # noqa: SLF001 - tracers want the real model's

    def get_num_tokens(self, text: str) -> int:
        """Return the number of tokens as the guarded model counts them."""
        return models_in(self.guarded)[0].get_num_tokens(text)

    def get_num_tokens_from_messages(self, *args: Any, **kwargs: Any) -> int:
        """Return the number of tokens of messages as the guarded model counts them."""
        inner = models_in(self.guarded)[0]
        return inner.get_num_tokens_from_messages(*args, **kwargs)

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Self:
        """Return a copy with other options, checked as at construction.

        It shares the limit on requests and what was learnt about the provider.
        """
        del deep  # what is inside is never changed
        return type(self)(**{**dict(self), **(update or {})})

    def copy(self, *, update: Mapping[str, Any] | None = None, **_: Any) -> Self:
        """Do what ``model_copy`` does; pydantic's own ``copy`` validates nothing."""
        return self.model_copy(update=update)

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the guard with tools bound, in the guarded model's own form.

        If the fallback is a chat model, the tools are bound to it too.
        """
        if tool_choice is not None:
            kwargs = {**kwargs, "tool_choice": tool_choice}
        guard = self
        if isinstance(self.fallback, BaseChatModel):
            fallback = self.fallback.bind_tools(tools, **kwargs)
            guard = self.model_copy(update={"fallback": fallback})
        bound = rebuild(self.guarded, lambda model: model.bind_tools(tools, **kwargs))
        if isinstance(bound, RunnableBinding) and bound.bound is self.guarded:
            # As with any chat model, the binding is visible and can be overridden.
            return guard.bind(**bound.kwargs)
        return guard.model_copy(update={"guarded": bound})

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """Return the model's structured output, guarded before any parser sees it.

        Replies are compared value by value. A refusal would not fit the schema, so a
        refused answer raises ``UncertainAnswerError``.
        """
        return structured_output(self, schema, include_raw=include_raw, **kwargs)

    # -- One call ----------------------------------------------------------------------

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        outcome = threads.run(*prepare(self, messages, stop, run_manager, kwargs))
        message = conversion.message_of(self, outcome)
        if message is None:
            config = conversion.child_config(run_manager)
            message = self.fallback.invoke(messages, config)
        return conversion.result_of(message, outcome)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        outcome = await tasks.run(*prepare(self, messages, stop, run_manager, kwargs))
        message = conversion.message_of(self, outcome)
        if message is None:
            config = conversion.child_config(run_manager)
            message = await self.fallback.ainvoke(messages, config)
        return conversion.result_of(message, outcome)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        if self.settings.withholds:
            result = self._generate(messages, stop, run_manager, **kwargs)
            yield as_chunk(result.generations[0].message)
            return
        prepared = prepare(self, messages, stop, run_manager, kwargs)
        with closing(threads.stream(*prepared)) as items:
            for item in items:
                yield conversion.streamed(item)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if self.settings.withholds:
            result = await self._agenerate(messages, stop, run_manager, **kwargs)
            yield as_chunk(result.generations[0].message)
            return
        prepared = prepare(self, messages, stop, run_manager, kwargs)
        async with aclosing(tasks.stream(*prepared)) as items:
            async for item in items:
                yield conversion.streamed(item)

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
        prepared = prepare(self, conversation, answer=answer)
        return threads.run(*prepared).assessed()

    async def aassess(
        self, messages: LanguageModelInput, answer: AIMessage | str | None = None
    ) -> Assessment:
        """Do what ``assess`` does without blocking the event loop."""
        conversation = self._convert_input(messages).to_messages()
        prepared = prepare(self, conversation, answer=answer)
        return (await tasks.run(*prepared)).assessed()
