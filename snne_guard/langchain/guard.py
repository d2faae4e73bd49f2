"""The guard as a LangChain runnable: in place of a chat model, wherever one stands."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Literal, Self

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from snne_guard.assess import PAPER, StopRule, ToolRule, calibration_of
from snne_guard.assess.observe import observers_of
from snne_guard.decision import REFUSAL, Calibration, Monitor, Threshold
from snne_guard.decision.limits import Limit
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.acall import AsyncGuardedCall
from snne_guard.langchain.build import build
from snne_guard.langchain.call import GuardedCall
from snne_guard.langchain.form import in_form
from snne_guard.langchain.measuring import Measuring
from snne_guard.langchain.reseat import structured
from snne_guard.langchain.wrapped import tools_instead, with_tools
from snne_guard.sampling import Breaker, Budget, Prices
from snne_guard.sampling.breaker import BREAKER
from snne_guard.sampling.langchain_models import ChatRunnable, has_choices
from snne_guard.types import (
    Assessment,
    Method,
    Observer,
    OnError,
    OnUncertain,
    Schedule,
    Similarity,
)

__all__ = ["REFUSAL", "SNNEGuard"]


class SNNEGuard(Measuring):
    """Asks a chat model several times and acts on how far its answers spread.

    Put it where the model stands: ``prompt | SNNEGuard(model) | parser``. It takes
    what the model takes and gives what the model gives, an ``AIMessage``, with the
    assessment in ``response_metadata["snne_guard"]``.

    Without a threshold it measures only. Streaming: where only ``flag`` or ``accept``
    can come out, the answer's chunks flow as they come, the samples are drawn beside
    them and the last chunk carries the assessment. In every other case nothing is
    shown before the decision, to handlers and events neither.

    Args:
        model: Any chat model, also inside ``bind``, ``bind_tools``, ``with_config``,
            ``with_retry``, ``with_fallbacks``, ``configurable_fields`` or from
            ``init_chat_model``. It is never changed.
        n: Members of the response set, at least 2.
        include_answer: Whether the answer is one of them; else ``n`` samples are drawn
            besides it.
        temperature: Sampling temperature of the samples.
        method: A name in ``METHODS`` or ``READINGS``, a method of your own, or
            ``"auto"``: WSNNE where the provider gives log-probabilities, else SNNE,
            settled once.
        similarity: What compares the answers: a name in ``SIMILARITIES``, ``"nli"``,
            ``"nli:MODEL"``, ``"embedding:MODEL"``, a callable of your own, or None for
            the method's default (``"content_f1"`` for SNNE and WSNNE, of which 0.7
            of the weight then lies on the delivered answer).
        tau: Temperature of the similarity's softmax, above 0; None for 1.
        threshold: Largest ``u`` that is accepted, in [0, 1]; a ``Threshold``; a pair
            ``(accept, refuse)``; or None, which measures only.
        calibration: What ``snne-guard calibrate`` made, or the path of its file, in
            place of a threshold: the guard must have its settings, which
            ``from_calibration`` takes over.
        allow_mismatch: Whether settings may differ from those of the calibration; then
            nothing is certified, and every assessment says so.
        prompt_version: What you call the prompt, to be compared with what it was called
            when the calibration was made.
        on_uncertain: What happens to an answer that is not accepted: ``"flag"``,
            ``"refuse"``, ``"fallback"``, ``"raise"``, or a callable that gets the
            ``Assessment`` and returns one of these words or a message to send instead.
            With a pair it holds between the two, above the second it is refused.
        fallback: A runnable that takes the same messages; also used where the answer
            itself fails.
        refusal: Text of the message in place of a refused answer.
        on_error: What happens where fewer than ``min_samples`` members can be scored:
            ``"uncertain"`` treats the answer like an uncertain one, ``"accept"`` lets
            it pass, ``"raise"`` raises.
        tool_calls: ``"skip"`` lets an answer that calls tools pass without a score,
            ``"score"`` compares the calls field by field, a ``Policy`` does so and
            decides by a threshold of its own; or a callable that gets the answer as a
            ``Sample`` and returns one of these.
        min_samples: Members that a scored set must have, the answer included; None for
            ``max(2, ceil(n / 2))``.
        schedule: ``"concurrent"`` draws samples beside the answer, ``"answer_first"``
            after it (for prompt caches). None: after it where tools are bound.
        rounds: Members of the response set after each round of samples, such as
            ``(3, 5, 10)`` with ``n=10``; needs a threshold. None: one round, or those
            of a ``CalibratedStop``.
        stopping: After which round no further samples are drawn. ``"certificate"``:
            when no outcome of the missing ones could change the decision, also where
            they are drawn one by one (``max_concurrency=1``). A ``CalibratedStop``:
            also where recordings show that it hardly would. A callable gets the
            ``Score`` so far and how many samples are still to come, and returns
            whether that is enough. None draws them all.
        timeout: Seconds for the whole guarded call.
        sample_timeout: Seconds after which what has arrived is scored.
        sample_max_tokens: Token limit of a sample.
        max_concurrency: Requests in flight for this guard, all calls together.
        max_attempts: Requests sent for one sample before it counts as failed.
        sample_rate: Share of calls that are sampled at all.
        sample_when: Says of a call's messages whether samples are worth their cost;
            one that fails skips nothing.
        question: Says of a call's messages what the user asks in them, for
            similarities that use it: where a prompt holds retrieved texts beside the
            question. A call can say it too, with
            ``config={"metadata": {"snne_guard_question": "..."}}``, which comes first.
            None: all of the user's last message.
        prices: What the model's tokens cost, so that ``Cost.money`` is known.
        budget: What guarded calls may spend; samples that would go over are not drawn.
        breaker: When the provider counts as failing, so that samples are shed before
            answers; None for never.
        monitor: Watches the calibration in use: picks answers for audits, and says
            when the threshold no longer fits. None for nobody.
        observers: Objects with any of ``on_sample_start``, ``on_sample_end`` and
            ``on_assessment``.
        trace_samples: Whether callback handlers, LangSmith among them, may see the
            texts of samples. Their runs and token counts they see in any case.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one, or
            differs from what the calibration was made for.
        InputError: If the file of the calibration holds none, or was changed.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris", "Paris", "Lyon"])
        >>> guard = SNNEGuard(model, n=3, schedule="answer_first")
        >>> message = guard.invoke("What is the capital of France?")
        >>> message.content
        'Paris'
        >>> message.response_metadata["snne_guard"]["n_used"]
        3
    """

    def __init__(
        self,
        model: ChatRunnable,
        *,
        n: int = 5,
        include_answer: bool = True,
        temperature: float = 1.0,
        method: str | Method = "auto",
        similarity: str | Similarity | None = None,
        tau: float | None = None,
        threshold: float | Threshold | tuple[Limit, Limit] | None = None,
        calibration: Calibration | str | PathLike[str] | None = None,
        allow_mismatch: bool = False,
        prompt_version: str | None = None,
        on_uncertain: OnUncertain | Callable[[Assessment], Any] = "flag",
        fallback: Runnable[Any, Any] | Callable[..., Any] | None = None,
        refusal: str = REFUSAL,
        on_error: OnError = "uncertain",
        tool_calls: ToolRule = "skip",
        min_samples: int | None = None,
        schedule: Schedule | None = None,
        rounds: Sequence[int] | None = None,
        stopping: Literal["certificate"] | StopRule | None = "certificate",
        timeout: float | None = None,
        sample_timeout: float | None = None,
        sample_max_tokens: int | None = None,
        max_concurrency: int | None = None,
        max_attempts: int = 4,
        sample_rate: float = 1.0,
        sample_when: Callable[[list[BaseMessage]], bool] | None = None,
        question: Callable[[list[BaseMessage]], str | None] | None = None,
        prices: Prices | None = None,
        budget: Budget | None = None,
        breaker: Breaker | None = BREAKER,
        monitor: Monitor | None = None,
        observers: Sequence[Observer] = (),
        trace_samples: bool = True,
        **internal: Any,
    ) -> None:
        given = {
            name: value
            for name, value in locals().items()
            if name in type(self).model_fields
        }
        given["observers"] = observers_of(observers)
        unknown = sorted(set(internal) - set(type(self).model_fields))
        if unknown:
            msg = f"SNNEGuard has no option {', '.join(map(repr, unknown))}"
            raise ConfigurationError(msg)
        if calibration is not None:
            # Read once: a guard that is made from this one has the same.
            given["calibration"] = calibration_of(calibration)
        options: dict[str, Any] = {
            "structured": False,
            "chosen": False,
            **given,
            **internal,
        }
        core, options["shared"] = build(options, internal.get("shared"))
        super().__init__(**options)
        self._core = core

    @classmethod
    def paper(cls, model: ChatRunnable, **options: Any) -> SNNEGuard:
        """Return a guard that does exactly what the paper does.

        Ten samples without the answer, SNNE with tau = 1, rouge-score's tokens, which
        see the letters a to z and digits only (arXiv 2506.00245, section 4).

        Args:
            model: The chat model.
            **options: Options of ``SNNEGuard`` that the paper is silent on.
        """
        return cls(model, **{**PAPER, **options})

    @classmethod
    def from_calibration(
        cls,
        model: ChatRunnable,
        calibration: Calibration | str | PathLike[str],
        **options: Any,
    ) -> SNNEGuard:
        """Return a guard with the settings and the threshold of a calibration.

        Args:
            model: The chat model that it was made for.
            calibration: What ``snne-guard calibrate`` made, or the path of its file.
            **options: Options of ``SNNEGuard``; one that differs from the calibration
                is refused, unless ``allow_mismatch=True`` is among them.

        Raises:
            ConfigurationError: If the model or an option differs from what it was made
                for; the message lists all that do.
            InputError: If the file holds no calibration, or was changed.
            OSError: If the file cannot be read.
        """
        made = calibration_of(calibration)
        return cls(model, **{**made.guard_settings(), **options})

    def invoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Return the answer with its assessment, or what stands in for it.

        Args:
            input: What the model takes.
            config: LangChain's configuration, carried through.
            **kwargs: Options of the model for this call, samples included.

        Raises:
            UncertainAnswerError: If the answer is withheld and ``"raise"`` was chosen.
            SamplingError: If it could not be scored and ``on_error="raise"``.
            GuardTimeoutError: If it did not come within ``timeout``.
        """
        return self._call_with_config(_Run(self, kwargs), input, config)

    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Do what ``invoke`` does without blocking the event loop."""
        return await self._acall_with_config(_AsyncRun(self, kwargs), input, config)

    def stream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[AIMessage]:
        """Yield the answer in chunks, the assessment in the last one."""

        def chunks(
            inputs: Iterator[LanguageModelInput],
            run_manager: object,
            config: RunnableConfig,
        ) -> Iterator[AIMessage]:
            del run_manager
            for value in inputs:
                yield from GuardedCall(self.request(value, config, kwargs)).stream()

        yield from self._transform_stream_with_config(iter([input]), chunks, config)

    async def astream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AIMessage]:
        """Do what ``stream`` does without blocking the event loop."""

        async def inputs() -> AsyncIterator[LanguageModelInput]:
            yield input

        async def chunks(
            inputs: AsyncIterator[LanguageModelInput],
            run_manager: object,
            config: RunnableConfig,
        ) -> AsyncIterator[AIMessage]:
            del run_manager
            async for value in inputs:
                call = AsyncGuardedCall(self.request(value, config, kwargs))
                async for chunk in call.stream():
                    yield chunk

        guarded = self._atransform_stream_with_config(inputs(), chunks, config)
        async for chunk in guarded:
            yield chunk

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> SNNEGuard:
        """Return a guard on the model with tools bound to it, and to its fallback."""
        instead = tools_instead(self.fallback, self.model, tools, kwargs)
        return self.on(with_tools(self.model, tools, kwargs), fallback=instead)

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """Return the model's structured output, guarded.

        Replies are compared field by field. A refusal would not fit the schema, so an
        answer that is refused raises ``UncertainAnswerError``. A fallback that is a
        model is asked for the same schema, in its own provider's form; another has to
        give the fields as JSON or as a call.
        """
        options = {"include_raw": include_raw, **kwargs}
        instead = in_form(self.model, self.fallback, schema, options)
        guard = self.on(
            self.model,
            tool_calls="score",
            structured=True,
            chosen=self.chosen or has_choices(self.model),
            fallback=instead,
        )
        return structured(self.model, schema, options, guarded=guard.on)

    def on(self, model: ChatRunnable, **options: Any) -> Self:
        """Return the same guard on another model, with other options if given.

        Both share their limits and what they learnt.
        """
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        changed: dict[str, Any] = {**kept, "model": model, **options}
        return type(self)(**changed)

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Self:
        """Return a copy with other options, checked as at construction."""
        del deep  # what is inside is never changed
        return self.on(self.model, **(update or {}))


def _takes(
    value: LanguageModelInput, run_manager: object, config: RunnableConfig
) -> None:
    """Have the signature by which LangChain tells what to pass."""


@dataclass(frozen=True)
class _Call:
    """What LangChain runs; it need not work out the signature at each call."""

    __signature__: ClassVar = inspect.signature(_takes)
    guard: SNNEGuard
    kwargs: dict[str, Any]


class _Run(_Call):
    """A call in threads."""

    def __call__(
        self, value: LanguageModelInput, run_manager: object, config: RunnableConfig
    ) -> AIMessage:
        del run_manager
        return GuardedCall(self.guard.request(value, config, self.kwargs)).run()


class _AsyncRun(_Call):
    """A call in tasks."""

    async def __call__(
        self, value: LanguageModelInput, run_manager: object, config: RunnableConfig
    ) -> AIMessage:
        del run_manager
        request = self.guard.request(value, config, self.kwargs)
        return await AsyncGuardedCall(request).run()
