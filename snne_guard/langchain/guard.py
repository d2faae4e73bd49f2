"""SNNEGuard: a LangChain chat model that guards another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, Self

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import ConfigDict

from snne_guard.checks import check_names
from snne_guard.cost import Prices
from snne_guard.decision import Calibration
from snne_guard.engine import GuardState, Limiter
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.calls import Frozen, GuardedCalls
from snne_guard.langchain.others import bound_to_each, check_others, names_of
from snne_guard.langchain.providers import Provider
from snne_guard.langchain.structured import guarded_chain, structured_step
from snne_guard.langchain.wrappers import ChatRunnable, ModelTree, labels_of, rebuild
from snne_guard.scorers import Method
from snne_guard.self_check import SelfCheck
from snne_guard.settings import REFUSAL, GuardSettings
from snne_guard.types import (
    Assessment,
    DecideOn,
    Grounding,
    Observer,
    OnError,
    OnUncertain,
    Schedule,
    Similarity,
    SpanSimilarity,
    ToolCalls,
)
from snne_guard.views import View


class SNNEGuard(GuardedCalls):
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
        n: Replies that the guard pays for: the answer, its samples, and the self-check
            if there is one; at least 2, and one more for each other model. None takes
            it from the calibration, else 5; in the same way ``method`` (``"auto"``),
            ``similarity``, ``temperature`` (1), ``self_check`` (no) and ``views``
            (none).
        other_models: Other chat models, bare or wrapped like ``model``. Each draws one
            of the ``n`` replies at its own settings; it is compared and never
            delivered. The conversation goes to its provider.
        threshold: Largest ``u`` to accept, in [0, 1]. With a pair ``(accept, refuse)``,
            ``on_uncertain`` decides between the two, and every answer above the second
            is refused. None only measures.
        calibration: What ``snne-guard calibrate`` made, or the path of its file, in
            place of a threshold. Options that are not given are taken from it; a guard
            with another model or other options refuses to start.
        on_uncertain: What to do with an answer that is not accepted: ``"flag"``,
            ``"refuse"``, ``"fallback"`` or ``"raise"``; or a function that gets the
            ``Assessment`` and returns one of these words, or a message to deliver
            instead.
        fallback: A runnable that takes the same messages. It also answers when the
            model raises an error.
        refusal: The text in place of a refused answer; None raises
            ``UncertainAnswerError`` instead.
        on_error: What to do if fewer than ``min_replies`` replies can be scored:
            ``"uncertain"`` treats the answer like an uncertain one, ``"accept"``
            delivers it, ``"raise"`` raises.
        method: A name in ``METHODS``, a ``Method`` of your own, or ``"auto"``: WSNNE
            if a call brings log-probabilities of every reply, else SNNE.
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
        min_replies: Fewest replies to score; None means half of those asked for, but
            at least two.
        schedule: ``"concurrent"`` draws the samples together with the answer,
            ``"answer_first"`` after it, so that they can use the provider's prompt
            cache.
        timeout: Seconds for the whole call, after which the replies that have arrived
            are scored; without an answer, ``GuardTimeoutError`` is raised. It covers
            neither a fallback nor a live stream.
        sample_timeout: Seconds from the start of the call after which the replies that
            have arrived are scored.
        max_concurrency: Most requests in flight for this guard, all calls together;
            each other model has as many of its own.
        sample_rate: Share of the calls to guard, in [0, 1].
        prices: Prices of the model's tokens, for ``cost.money``. With other models, a
            mapping from each model's name to its prices, the guarded one's too.
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
        field_threshold: Largest uncertainty of a field of a structured answer that is
            not marked in ``uncertain_fields``. It withholds nothing.
        decide_on: ``"answer"`` compares the uncertainty of the whole answer with the
            threshold, ``"worst_field"`` that of the most uncertain field. Answers
            without fields are decided on as a whole in any case.
        context: The documents that the model was given to answer from: a text, a list
            of texts or ``Document`` objects, or a function that returns one of these
            from the messages. ``"tool_messages"``: what tools returned since the user's
            last message. For a single call, set them by
            ``config={"metadata": {"snne_guard_context": ...}}``; ``"client"`` takes no
            others.
        min_grounded: Least ``grounded`` to accept, in [0, 1]: how far the documents
            support the least supported sentence of the answer. An answer without
            documents is never accepted then.
        grounding: What compares the answer with the documents: None or ``"words"``,
            ``"nli:MODEL"``, ``"cross_encoder:MODEL"``, ``"judge"`` (the guarded model,
            in one more call), or a function of the sentences and the text that returns
            a number in [0, 1] for each.
        provider: How the model's class is asked for samples, where the table of
            providers does not know it, or knows it wrongly.

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

    n: Frozen
    other_models: Frozen = ()
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
    min_replies: Frozen
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
    field_threshold: Frozen
    decide_on: Frozen
    context: Frozen
    min_grounded: Frozen
    grounding: Frozen
    include_answer: Frozen = None  # no option; ``paper`` sets it

    def __init__(
        self,
        model: ChatRunnable | None = None,
        *,
        n: int | None = None,
        other_models: Sequence[ChatRunnable] | None = None,
        threshold: float | tuple[float, float] | None = None,
        calibration: Calibration | str | PathLike[str] | None = None,
        on_uncertain: OnUncertain | Callable[[Assessment], Any] = "flag",
        fallback: Runnable[Any, Any] | None = None,
        refusal: str | None = REFUSAL,
        on_error: OnError = "uncertain",
        method: str | Method | None = None,
        similarity: str | Similarity | None = None,
        temperature: float | None = None,
        question: Callable[[list[BaseMessage]], str | None] | None = None,
        tool_calls: ToolCalls = "skip",
        min_replies: int | None = None,
        schedule: Schedule = "concurrent",
        timeout: float | None = None,
        sample_timeout: float | None = None,
        max_concurrency: int | None = None,
        sample_rate: float = 1.0,
        prices: Prices | Mapping[str, Prices] | None = None,
        observers: Sequence[Observer] = (),
        self_check: bool | SelfCheck | None = None,
        views: Sequence[str | View] | None = None,
        spans: bool | str | SpanSimilarity = False,
        span_threshold: float | None = None,
        field_threshold: float | None = None,
        decide_on: DecideOn = "answer",
        context: str | Sequence[Any] | Callable[[list[BaseMessage]], Any] | None = None,
        min_grounded: float | None = None,
        grounding: str | Grounding | None = None,
        provider: Provider | None = None,
        **fields: Any,
    ) -> None:
        check_names(fields, type(self).model_fields, what="option")
        # Those of a copy have tools or a schema bound.
        others = fields.get("others") or other_models or ()
        settings = GuardSettings.given(
            n=n,
            threshold=threshold,
            calibration=calibration,
            on_uncertain=on_uncertain,
            fallback=fallback,
            refusal=refusal,
            on_error=on_error,
            method=method,
            similarity=similarity,
            temperature=temperature,
            question=question,
            tool_calls=tool_calls,
            min_replies=min_replies,
            schedule=schedule,
            timeout=timeout,
            sample_timeout=sample_timeout,
            max_concurrency=max_concurrency,
            sample_rate=sample_rate,
            prices=prices,
            observers=observers,
            self_check=self_check,
            views=views,
            spans=spans,
            span_threshold=span_threshold,
            field_threshold=field_threshold,
            decide_on=decide_on,
            context=context,
            min_grounded=min_grounded,
            grounding=grounding,
            include_answer=fields.get("include_answer"),
            other_models=names_of(others),
        )
        if not isinstance(settings.fallback, Runnable | None):
            msg = f"expected fallback to be a runnable, got {type(fallback).__name__}"
            raise ConfigurationError(msg)
        guarded: Any = fields.get("guarded") if model is None else model
        inside = ModelTree(guarded, provider=provider)
        check_others(others, inside)
        first = inside.targets[0].model
        tags, metadata = labels_of(guarded)
        shared = fields.get("shared") or GuardState(Limiter(max_concurrency))
        if shared.limiter.size != max_concurrency:
            shared = shared.limited(max_concurrency)
        values = {
            # Taken from the guarded model unless given.
            "profile": getattr(first, "profile", None),
            "output_version": getattr(first, "output_version", None),
            **fields,
            **settings.options(),
            "guarded": guarded,
            # So that a run of the guard is found like one of the model.
            "tags": [*dict.fromkeys([*tags, *(fields.get("tags") or ())])],
            "metadata": {**metadata, **(fields.get("metadata") or {})},
            "other_models": tuple(other_models or ()),
            "others": others,
            "provider": provider,
            "cache": False,  # a cached assessment would describe other draws
            "shared": shared,
        }
        super().__init__(**values)
        self._settings = settings
        self._inside = inside
        settings.check_calibration({**inside.answer_settings, **inside.named})

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
            "n": 11,
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
        return cls(model, calibration=calibration, **options)

    # -- What LangChain asks of a chat model -------------------------------------------

    @property
    def _llm_type(self) -> str:
        return "snne-guard"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        inner = self._inside.targets[0].model
        return inner._get_ls_params(stop=stop, **kwargs)  # noqa: SLF001 - tracers want the real model's

    def get_num_tokens(self, text: str) -> int:
        """Return the number of tokens as the guarded model counts them."""
        return self._inside.targets[0].model.get_num_tokens(text)

    def get_num_tokens_from_messages(self, *args: Any, **kwargs: Any) -> int:
        """Return the number of tokens of messages as the guarded model counts them."""
        inner = self._inside.targets[0].model
        return inner.get_num_tokens_from_messages(*args, **kwargs)

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Self:
        """Return a copy with other options, checked as at construction.

        It shares the limit on requests and what was learnt about the provider.
        """
        del deep  # what is inside is never changed
        fields = {**dict(self), **(update or {})}
        if "other_models" in (update or {}):
            fields["others"] = None
        return type(self)(**fields)

    def copy(self, *, update: Mapping[str, Any] | None = None, **_: Any) -> Self:
        """Do what ``model_copy`` does; pydantic's own ``copy`` validates nothing."""
        return self.model_copy(update=update)

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the guard with tools bound, in the guarded model's own form.

        If the fallback is a chat model, the tools are bound to it too, and so they are
        to other models, without ``kwargs``.
        """
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        kwargs = {**kwargs, **chosen}
        guard = self._with_others(lambda model: model.bind_tools(tools, **chosen))
        if isinstance(self.fallback, BaseChatModel):
            fallback = self.fallback.bind_tools(tools, **kwargs)
            guard = guard.model_copy(update={"fallback": fallback})
        bound = rebuild(self.guarded, lambda model: model.bind_tools(tools, **kwargs))
        if isinstance(bound, RunnableBinding) and bound.bound is self.guarded:
            # As with any chat model, the binding is visible and can be overridden.
            return guard.bind(**bound.kwargs)
        return guard.model_copy(update={"guarded": bound})

    def _with_others(self, change: Callable[[BaseChatModel], ChatRunnable]) -> Self:
        """Return the guard with something bound to each other model, if it has any."""
        if not self.other_models:
            return self
        names = self._settings.other_models
        return self.model_copy(
            update={"others": bound_to_each(self.other_models, names, change)}
        )

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """Return the model's structured output, guarded before any parser sees it.

        Replies are compared value by value. Each other model is asked for the schema in
        its own form, without ``kwargs``. A refusal would not fit the schema, so a
        refused answer raises ``UncertainAnswerError``. With ``on_uncertain="fallback"``
        the fallback is asked for the same schema, in its own form; otherwise it is not
        asked, and a function as ``on_uncertain`` cannot choose it.
        """
        # A fallback takes the place of the whole chain, with a parser of its own.
        update: dict[str, Any] = {"structured": True, "fallback": None, "refusal": None}
        falls_back = self.on_uncertain == "fallback"
        if falls_back:
            update["on_uncertain"] = "raise"
        guard = self._with_others(partial(structured_step, schema=schema))
        inner = guard.model_copy(update=update)
        given = {"include_raw": include_raw, **kwargs}
        chain = guarded_chain(inner.guarded, inner.bind, schema, **given)
        if chain is None:
            chain = BaseChatModel.with_structured_output(inner, schema, **given)
        if not falls_back:
            return chain
        instead = self.fallback.with_structured_output(schema, include_raw=include_raw)
        return chain.with_fallbacks([instead])
