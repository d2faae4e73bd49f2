"""One guarded call in LangChain's terms: what the engine gets, what the user gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManager,
    CallbackManagerForLLMRun,
)
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import (
    InputTokenDetails,
    OutputTokenDetails,
    UsageMetadata,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig

from snne_guard.call import GuardState, Outcome, Request
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.errors import as_model_error
from snne_guard.sampling.langchain.messages import question_of, sample_of
from snne_guard.sampling.langchain.providers import answer_settings_of, capabilities
from snne_guard.sampling.langchain.sender import LangChainSender
from snne_guard.sampling.langchain.wrappers import all_options, retries_itself
from snne_guard.sampling.options import asks_for_schema, may_act
from snne_guard.sampling.replies import Reply
from snne_guard.types import Cost

if TYPE_CHECKING:
    from snne_guard.langchain.guard import SNNEGuard

__all__ = [
    "child_config",
    "message_of",
    "prepare",
    "result_of",
    "streamed",
]

_KEY = "snne_guard"
_Run = CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None


# -- In --------------------------------------------------------------------------------


def prepare(
    guard: SNNEGuard,
    messages: list[BaseMessage],
    stop: list[str] | None = None,
    run: _Run = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    answer: AIMessage | str | None = None,
) -> tuple[Request, LangChainSender]:
    """Return what a driver needs: the engine's request, and its sender.

    Args:
        guard: The guard that is called.
        messages: The conversation.
        stop: Texts at which the answer ends.
        run: The guard's run, None outside a run.
        kwargs: Options of the model for this call.
        answer: An answer that exists already.
    """
    options = {**(kwargs or {})}
    if stop is not None:
        options["stop"] = stop
    model, state = guard.guarded, guard.shared
    levels = all_options(model, options)
    request = Request(
        settings=guard.settings,
        state=state,
        capabilities=capabilities(model, options, rejected=state.rejected),
        question=_question(guard, messages, run),
        tools_bound=any(level.get("tools") for level in levels),
        structured=guard.structured,
        context=guard.settings.context_of(messages),
        schema=any(map(asks_for_schema, levels)),
        side_effects=any(map(may_act, levels)),
        retry=not retries_itself(model),
        answer=None if answer is None else _reply(as_message(answer)),
        answer_settings=answer_settings_of(model, options),
        run_id=None if run is None else str(run.run_id),
    )
    sender = LangChainSender(model, messages, kwargs=options, rejected=state.rejected)
    return request, sender


def _reply(message: AIMessage) -> Reply:
    return Reply(samples=(sample_of(message),), raw=message)


def _question(guard: SNNEGuard, messages: list[BaseMessage], run: _Run) -> str | None:
    """Return what the user asks in this call."""
    chosen = None if run is None else (run.metadata or {}).get("snne_guard_question")
    if chosen is None and guard.question is not None:
        chosen = guard.question(messages)
    state: GuardState = guard.shared
    return state.question(chosen, question_of(messages))


# -- Out -------------------------------------------------------------------------------


def as_message(value: object) -> AIMessage:
    """Return what a fallback or ``on_uncertain`` gave as a message.

    Raises:
        ConfigurationError: It is neither a message nor a text.
    """
    if isinstance(value, AIMessage):
        return value
    if isinstance(value, str):
        return AIMessage(value)
    msg = (
        "expected a message or a text from the fallback, or a message from the "
        f"function on_uncertain, got {type(value).__name__}"
    )
    raise ConfigurationError(msg)


def message_of(guard: SNNEGuard, outcome: Outcome) -> AIMessage | None:
    """Return what is delivered, None where the fallback has to say it.

    Raises:
        BaseException: What is raised in place of an answer.
    """
    match outcome.delivery:
        case "fallback":
            return None
        case "replacement":
            return as_message(outcome.replacement)
        case "refusal":
            return AIMessage(guard.refusal, response_metadata={"finish_reason": "stop"})
        case "answer" if outcome.answer is not None:
            return as_message(outcome.answer.raw)
    assert outcome.error is not None  # noqa: S101 - it says why there is nothing
    raise as_model_error(outcome.error)


def result_of(given: object, outcome: Outcome) -> ChatResult:
    """Return what is delivered with the assessment and the usage of all draws."""
    message, assessment = as_message(given), outcome.assessment
    record = assessment.to_metadata()
    if outcome.delivery == "fallback" and _KEY in message.response_metadata:
        # The fallback is a guard itself.
        record["fallback"] = message.response_metadata[_KEY]
    metadata = {**message.response_metadata, _KEY: record}
    usage = _usage(assessment.cost) or message.usage_metadata
    update = {"response_metadata": metadata, "usage_metadata": usage}
    whole = message.model_copy(update=update)
    return ChatResult(generations=[ChatGeneration(message=whole)])


def streamed(item: ChatGenerationChunk | Outcome) -> ChatGenerationChunk:
    """Return what is delivered for a chunk of the answer, or for how the call ended.

    The chunk for the end has the assessment and the usage of all draws, so the others
    have no usage.
    """
    if not isinstance(item, Outcome):
        if getattr(item.message, "usage_metadata", None) is None:
            return item
        plain = item.message.model_copy(update={"usage_metadata": None})
        return item.model_copy(update={"message": plain})
    if item.error is not None:
        raise item.error
    end = AIMessageChunk(
        content="",
        response_metadata={_KEY: item.assessment.to_metadata()},
        usage_metadata=_usage(item.assessment.cost),
        chunk_position="last",
    )
    return ChatGenerationChunk(message=end)


def child_config(run: _Run) -> RunnableConfig:
    """Return the configuration of a fallback, whose run nests under the guard's.

    LangChain has no child managers for the run of a chat model.
    """
    if run is None:
        return {"callbacks": []}
    manager = CallbackManager(
        handlers=list(run.inheritable_handlers),
        inheritable_handlers=list(run.inheritable_handlers),
        parent_run_id=run.run_id,
        inheritable_tags=run.inheritable_tags,
        inheritable_metadata=run.inheritable_metadata,
    )
    return {"callbacks": manager}


def _usage(cost: Cost) -> UsageMetadata | None:
    read, written = cost.prompt_tokens, cost.completion_tokens
    if not read and not written:
        return None
    usage = UsageMetadata(
        input_tokens=read, output_tokens=written, total_tokens=read + written
    )
    if cost.cached_tokens:
        details = InputTokenDetails(cache_read=cost.cached_tokens)
        usage["input_token_details"] = details
    if cost.reasoning_tokens:
        usage["output_token_details"] = OutputTokenDetails(
            reasoning=cost.reasoning_tokens
        )
    return usage
