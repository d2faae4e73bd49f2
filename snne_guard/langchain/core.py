"""What all calls of one guard share, and what one call starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.runnables import Runnable, RunnableConfig

from snne_guard import errors
from snne_guard.assess import CHOSEN_SKIPS, Assessor, Brief, withholding_error
from snne_guard.decision import Policy, Verdict
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.errors import (
    GuardTimeoutError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.langchain.messages import (
    as_message,
    delivered,
    model_names,
    refusal_message,
    stream_chunk,
    usage_of,
)
from snne_guard.sampling.langchain_messages import (
    last_question,
    to_messages,
    without_logprobs,
)
from snne_guard.sampling.langchain_models import (
    Candidate,
    ChatRunnable,
    has_choices,
    pin,
    quiet_copy,
    resolve,
)
from snne_guard.sampling.langchain_quiet import quiet_config, quiet_context
from snne_guard.sampling.langchain_route import Route
from snne_guard.sampling.langchain_runs import ANSWER_TAG, run_id_of, said_in
from snne_guard.sampling.options import together
from snne_guard.sampling.settings import rejects_logprobs
from snne_guard.types import Assessment, Cost

__all__ = ["GuardCore", "Request"]


@dataclass(frozen=True, kw_only=True)
class GuardCore:
    """The parts of a guard that its calls use; immutable, shared by all threads.

    Attributes:
        model: The guarded model.
        assessor: Sampling, scoring and decision.
        fallback: Who answers instead, None if nobody does.
        refusal: What the application shows instead of a withheld answer.
        trace_samples: Whether callback handlers may see the texts of samples.
        structured: Whether a parser follows, which no refusal would pass.
    """

    model: ChatRunnable
    assessor: Assessor
    fallback: Runnable[Any, Any] | None = None
    refusal: str = ""
    trace_samples: bool = True
    structured: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Travel without what was found out of the model: copies find it out anew."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def fixed(self) -> tuple[ChatRunnable, Route] | None:
        """The model and its route where neither depends on the call."""
        if has_choices(self.model):
            return None
        return self.model, self._route(self.model)

    @cached_property
    def quiet_model(self) -> ChatRunnable:
        """The model without the handlers that the user hung on it."""
        return quiet_copy(self.model)

    @cached_property
    def quiet_candidate(self) -> Candidate:
        """The chat model that is asked first, without the user's handlers."""
        return resolve(self.quiet_model)[0]

    @property
    def required_fallback(self) -> Runnable[Any, Any]:
        """The fallback, in a call that needs one."""
        if self.fallback is None:
            msg = "the policy of this answer hands over, and there is no fallback"
            raise ConfigurationError(msg)
        return self.fallback

    def routed(self, config: RunnableConfig) -> tuple[ChatRunnable, Route]:
        """Return the model and its route under the configuration of a call."""
        if self.fixed is not None:
            return self.fixed
        pinned = pin(self.model, config)
        return pinned, self._route(pinned)

    def _route(self, pinned: ChatRunnable) -> Route:
        return Route.of(pinned, self.assessor.plan)

    @staticmethod
    def on_uncertain(
        policy: Policy, assessment: Assessment, answer: BaseMessage | None
    ) -> Any:
        """Ask the user's callable, which sees the answer as the model gave it."""
        decide: Any = policy.on_uncertain  # a word is never asked
        return decide(replace(assessment, raw=answer))

    def chosen(self, result: object) -> tuple[Verdict, AIMessage | None]:
        """Read what a user's ``on_uncertain`` returned: an action, or a message.

        Raises:
            ConfigurationError: If it is neither, or a fallback that there is not.
        """
        if isinstance(result, BaseMessage):
            return Verdict(decision="fallback", action="fallback"), as_message(result)
        verdict = self.assessor.judge.policy.chosen(result)
        if verdict.action == "fallback" and self.fallback is None:
            msg = "on_uncertain returned 'fallback' but the guard has no fallback"
            raise ConfigurationError(msg)
        return verdict, None

    @staticmethod
    def undecided(assessment: Assessment) -> Assessment:
        """Return the record of a call whose ``on_uncertain`` raised."""
        reasons = (*assessment.reasons, "on_uncertain_failed")
        return replace(assessment, decision="unscored", reasons=reasons)

    def error(
        self,
        assessment: Assessment,
        policy: Policy,
        causes: tuple[BaseException, ...] = (),
    ) -> errors.SnneGuardError:
        """Return the error in place of an answer; it holds no text of it."""
        return withholding_error(
            assessment,
            policy,
            causes=causes,
            unscored=SamplingError,
            uncertain=UncertainAnswerError,
        )


@dataclass(kw_only=True)
class Request:
    """One call of a guard, before anything is drawn.

    Attributes:
        core: The guard.
        value: What the application passed in.
        config: Its configuration, the callbacks those of a child run.
        kwargs: Options of this call.
        outer_run: Whether a chat-model run around this call tells handlers of the
            answer and of all usage.
        answered_in: The run that gave the answer, if it is over.
    """

    core: GuardCore
    value: LanguageModelInput
    config: RunnableConfig
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outer_run: bool = False
    answered_in: str | None = None

    def __post_init__(self) -> None:
        self.messages = to_messages(self.value)
        self.model, self.route = self.core.routed(self.config)
        self.assessor = self._assessor()
        self.skip, self.reasons = self._skip()
        withholds = self.core.assessor.may_withhold
        self.hold = withholds and self.skip not in CHOSEN_SKIPS
        self.quiet = self.hold or self.outer_run
        self.context = quiet_context()

    @property
    def quiet_config(self) -> RunnableConfig:
        """The configuration without callbacks."""
        return quiet_config(self.config)

    @property
    def answer_config(self) -> RunnableConfig:
        """The configuration of the answer's run, by whose tag handlers know it."""
        tags = [*(self.config.get("tags") or ()), ANSWER_TAG]
        return {**self.config, "tags": tags}

    @property
    def quiet_model(self) -> ChatRunnable:
        """The model without the handlers that the user hung on it."""
        fixed = self.model is self.core.model
        return self.core.quiet_model if fixed else quiet_copy(self.model)

    @property
    def quiet_candidate(self) -> Candidate:
        """The chat model that is asked first, without the user's handlers."""
        fixed = self.model is self.core.model
        return self.core.quiet_candidate if fixed else resolve(self.quiet_model)[0]

    @property
    def keep_logprobs(self) -> bool:
        """Whether the user wants log-probabilities on the answer."""
        return self.route.user_wants_logprobs or bool(self.kwargs.get("logprobs"))

    @property
    def logprobs(self) -> bool:
        """Whether log-probabilities are asked for."""
        assessor = self.core.assessor
        wanted = assessor.judge.wants_logprobs and self.route.supports_logprobs
        return wanted and assessor.memory.logprobs is not False

    def answer_options(self) -> dict[str, Any]:
        """Return what the guard adds to the request for the answer."""
        ask = self.logprobs and self.skip is None and not self.keep_logprobs
        return dict(self.route.logprob_options) if ask else {}

    def brief(self) -> Brief:
        """Return what the assessing part is told of this call."""
        core = self.core
        tools = self.route.has_tools or bool(self.kwargs.get("tools"))
        schedule = core.assessor.plan.schedule
        if schedule is None:
            schedule = "answer_first" if tools else "concurrent"
        model, provider = self._asked()
        question, unasked = core.assessor.asked(
            self.messages, last_question(self.messages), said=said_in(self.config)
        )
        return Brief(
            question=question,
            characters=sum(len(message.text) for message in self.messages),
            batch=core.assessor.batch(supported=self.route.supports_batch),
            context=self.context,
            reasons=(*self.route.reasons(), *self.reasons, *unasked),
            skip=self.skip,
            answer_first=schedule == "answer_first",
            run_id=self.answered_in or run_id_of(self.config),
            model=model,
            provider=provider,
        )

    def log_options(self) -> dict[str, Any]:
        """Return how callback handlers are told of this call."""
        return {
            "config": self.config,
            "hold": self.hold,
            "usage": not self.outer_run,
            "texts": self.core.trace_samples,
            "told": self.answered_in is None,
        }

    def sample_options(self) -> dict[str, Any]:
        """Return what a sampler is made of."""
        return {
            "route": self.route,
            "messages": self.messages,
            "kwargs": self.kwargs,
            "plan": self.core.assessor.plan,
            "memory": self.core.assessor.memory,
            "logprobs": self.logprobs,
        }

    def is_about_logprobs(self, error: Exception, options: dict[str, Any]) -> bool:
        """Return whether the answer may have failed for what the guard added."""
        memory = self.core.assessor.memory
        if not options or memory.logprobs:
            return False
        return rejects_logprobs(error, memory) is not False

    def settled(
        self,
        answer: BaseMessage | None,
        assessment: Assessment,
        verdict: Verdict,
        replacement: AIMessage | None,
        *,
        policy: Policy,
        samples: Cost,
        causes: tuple[BaseException, ...] = (),
    ) -> Settled:
        """Return what a verdict leads to."""
        settled = Settled(
            request=self,
            record=assessment.to_metadata(),
            usage=self.usage(answer, samples),
            names={} if answer is None else model_names(answer),
        )
        if replacement is not None:
            return replace(settled, message=settled.instead(replacement))
        if verdict.action == "fallback" or answer is None:
            return settled
        if verdict.action == "raise" or (
            verdict.action == "refuse" and self.core.structured
        ):
            return replace(settled, error=self.core.error(assessment, policy, causes))
        if verdict.action == "refuse":
            message = refusal_message(
                self.core.refusal, answer=answer, assessment=assessment
            )
        else:
            message = delivered(self.own(answer), settled.record)
        return replace(settled, message=self.counted(message, settled.usage))

    def own(self, answer: BaseMessage) -> BaseMessage:
        """Return an answer without what only the guard asked for."""
        return answer if self.keep_logprobs else without_logprobs(answer)

    def counted(self, message: AIMessage, usage: UsageMetadata | None) -> AIMessage:
        """Return the message with the usage of all draws, where no run shows it."""
        if not self.outer_run:
            return message
        return message.model_copy(update={"usage_metadata": usage})

    def usage(self, answer: BaseMessage | None, samples: Cost) -> UsageMetadata | None:
        """Return the usage of all draws together, None where each has a run."""
        if not self.outer_run:
            return None
        own = answer.usage_metadata if isinstance(answer, AIMessage) else None
        total = usage_of(samples)
        return add_usage(own, total) if own else total

    def shown(self, chunk: AIMessageChunk) -> AIMessageChunk:
        """Return a chunk of the answer as the application gets it."""
        return stream_chunk(
            chunk, keep_logprobs=self.keep_logprobs, keep_usage=not self.outer_run
        )

    def timed_out(self) -> GuardTimeoutError:
        """Return the error for an answer that did not come in time."""
        timeout = self.core.assessor.plan.timeout or 0.0
        return GuardTimeoutError(
            f"no answer within the guard's timeout of {timeout} s", timeout=timeout
        )

    def _asked(self) -> tuple[str | None, str | None]:
        """Return the names of model and provider, for observers."""
        return (
            self.route.candidates[0].names(self.kwargs)
            if self.core.assessor.observers.listening
            else (None, None)
        )

    def _assessor(self) -> Assessor:
        """Return what assesses this call, which may ask another model than the rest."""
        assessor = self.core.assessor
        if assessor.judge.binding is None or (self.core.fixed and not self.kwargs):
            return assessor
        candidates = self.route.candidates
        asked = {each.names(self.kwargs)[0] for each in candidates}
        said = together(each.answer_settings(self.kwargs) for each in candidates)
        return assessor.on_models(asked, said)

    def _skip(self) -> tuple[str | None, tuple[str, ...]]:
        skip, reasons = self.core.assessor.skip(self.messages)
        return skip or self.route.unsampled(self.kwargs), reasons


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What a guarded call comes to; where nothing is delivered, without any text.

    It is made so that no frame of an error that is raised holds a withheld answer.

    Attributes:
        request: The call.
        record: The metadata of its assessment.
        usage: What all draws took together, where an outer run is to show it.
        names: The names of model and provider, for a message that has none.
        message: What is delivered, None where the fallback is to answer.
        error: What is raised instead.
    """

    request: Request
    record: dict[str, Any]
    usage: UsageMetadata | None
    names: dict[str, Any]
    message: AIMessage | None = None
    error: errors.SnneGuardError | None = None

    def instead(self, value: object) -> AIMessage:
        """Return what a fallback gave as the message that is delivered."""
        message = as_message(value)
        metadata = {**self.names, **message.response_metadata}
        message = message.model_copy(update={"response_metadata": metadata})
        total = add_usage(self.usage, message.usage_metadata)
        known = self.usage or message.usage_metadata
        return self.request.counted(
            delivered(message, self.record), total if known else None
        )
