"""From a LangChain call to what the engine is asked, and who sends its draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.messages import AIMessage, BaseMessage

from snne_guard.call import Call, GuardState, Request
from snne_guard.drivers.limits import Limiter
from snne_guard.engine import guarded_call, wants_logprobs
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.messages import as_message
from snne_guard.sampling.langchain import (
    LangChainDraws,
    RejectedParameters,
    bound_models,
    capabilities,
    has_side_effects,
    question_of,
    sample_of,
)
from snne_guard.sampling.langchain.answer_settings import answer_settings_of
from snne_guard.sampling.replies import Reply
from snne_guard.settings import GuardSettings

if TYPE_CHECKING:
    from snne_guard.langchain.guard import SNNEGuard

__all__ = ["SharedState", "prepare"]

_Run = CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None


@dataclass(frozen=True, kw_only=True)
class SharedState:
    """What the copies of one guard have in common."""

    state: GuardState
    limiter: Limiter
    rejected: RejectedParameters

    @classmethod
    def of(cls, settings: GuardSettings, original: SharedState | None) -> SharedState:
        """Return that of a new guard, or of a copy with perhaps another limit."""
        size = settings.max_concurrency
        if original is not None and original.limiter.size == size:
            return original
        return cls(
            state=GuardState() if original is None else original.state,
            limiter=Limiter(size),
            rejected=RejectedParameters() if original is None else original.rejected,
        )


def prepare(
    guard: SNNEGuard,
    messages: list[BaseMessage],
    stop: list[str] | None,
    run: _Run,
    kwargs: dict[str, Any],
    *,
    answer: AIMessage | str | None = None,
) -> tuple[Call, LangChainDraws]:
    """Return one call of the engine, and what sends its draws.

    Args:
        guard: The guard that is called.
        messages: The conversation.
        stop: Texts at which the answer ends.
        run: The guard's run, None outside a run.
        kwargs: Options of the model for this call.
        answer: An answer that exists already.
    """
    options = kwargs if stop is None else {**kwargs, "stop": stop}
    model, shared = guard.guarded, guard.shared
    bound = [given for _, given in bound_models(model, options)]
    request = Request(
        settings=guard.settings,
        state=shared.state,
        capabilities=capabilities(model, options, rejected=shared.rejected),
        question=_question(guard, messages, run),
        tools_bound=any(one.get("tools") or one.get("functions") for one in bound),
        structured=guard.structured,
        side_effects=has_side_effects(model, options),
        answer=None if answer is None else _reply(as_message(answer)),
        answer_settings=answer_settings_of(model, options),
        run_id=None if run is None else str(run.run_id),
    )
    draws = LangChainDraws(
        model,
        messages,
        stop=stop,
        kwargs=kwargs,
        temperature=guard.settings.temperature,
        logprobs=wants_logprobs(request),
        rejected=shared.rejected,
    )
    return guarded_call(request), draws


def _reply(message: AIMessage) -> Reply:
    return Reply(samples=(sample_of(message),), raw=message)


def _question(guard: SNNEGuard, messages: list[BaseMessage], run: _Run) -> str | None:
    """Return what the user asks in this call."""
    said = None if run is None else (run.metadata or {}).get("snne_guard_question")
    if said is None and guard.question is not None:
        said = guard.question(messages)
    if said is not None:
        if not isinstance(said, str):
            msg = f"expected the question as a text, got {type(said).__name__}"
            raise ConfigurationError(msg)
        return said
    found = question_of(messages)
    guard.shared.state.warn_if_long(found)
    return found
