"""What a guard delivers: the answer or what stands in for it, with the assessment."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    CallbackManager,
    CallbackManagerForLLMRun,
)
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig

from snne_guard import errors
from snne_guard.call import Outcome, uncertain_answer_error
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.errors import as_model_error
from snne_guard.types import Assessment, Cost

__all__ = [
    "as_message",
    "assessment_of",
    "child_config",
    "is_refusal",
    "message_of",
    "only_chunk",
    "result_of",
    "streamed",
]

_KEY = "snne_guard"


def is_refusal(message: BaseMessage) -> bool:
    """Return whether a guard put a refusal in place of the model's answer.

    Example:
        >>> is_refusal(AIMessage("Paris"))
        False
    """
    carried = message.response_metadata.get(_KEY) or {}
    return carried.get("decision") == "refuse"


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
        "a fallback, and a function as on_uncertain, must give a message or a text; "
        f"got {type(value).__name__}"
    )
    raise ConfigurationError(msg)


def message_of(outcome: Outcome, *, refusal: str | None) -> AIMessage | None:
    """Return what is delivered, None where the fallback has to say it.

    Args:
        outcome: How the call ended.
        refusal: Text in place of a refused answer; None raises instead.

    Raises:
        BaseException: What is raised in place of an answer.
    """
    if outcome.error is not None:
        raise as_model_error(outcome.error)
    if outcome.delivery == "fallback":
        return None
    if outcome.delivery == "refusal" and refusal is None:
        raise as_model_error(uncertain_answer_error(outcome.assessment))
    if outcome.delivery == "refusal":
        return AIMessage(refusal or "", response_metadata={"finish_reason": "stop"})
    if outcome.delivery == "replacement":
        return as_message(outcome.replacement)
    assert outcome.answer is not None  # noqa: S101 - it is delivered, so there is one
    return as_message(outcome.answer.raw)


def result_of(message: AIMessage, outcome: Outcome) -> ChatResult:
    """Return a message with the assessment and the usage of all draws."""
    assessment = outcome.assessment
    metadata = {**message.response_metadata, _KEY: assessment.to_metadata()}
    usage = _usage(assessment.cost) or message.usage_metadata
    update = {"response_metadata": metadata, "usage_metadata": usage}
    whole = message.model_copy(update=update)
    return ChatResult(generations=[ChatGeneration(message=whole)])


def only_chunk(result: ChatResult) -> ChatGenerationChunk:
    """Return a whole message as the only chunk of a stream."""
    message = as_message(result.generations[0].message)
    if isinstance(message, AIMessageChunk):
        return ChatGenerationChunk(message=message)
    chunk = AIMessageChunk(
        content=message.content,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        tool_calls=message.tool_calls,
        invalid_tool_calls=message.invalid_tool_calls,
        usage_metadata=message.usage_metadata,
        id=message.id,
        name=message.name,
        chunk_position="last",
    )
    return ChatGenerationChunk(message=chunk)


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
        raise as_model_error(item.error)
    end = AIMessageChunk(
        content="",
        response_metadata={_KEY: item.assessment.to_metadata()},
        usage_metadata=_usage(item.assessment.cost),
        chunk_position="last",
    )
    return ChatGenerationChunk(message=end)


def assessment_of(outcome: Outcome) -> Assessment:
    """Return the assessment, or raise what ended the call before one was made."""
    own = (errors.UncertainAnswerError, errors.SamplingError)
    if outcome.error is not None and not isinstance(outcome.error, own):
        raise as_model_error(outcome.error)
    return outcome.assessment


def child_config(
    run: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
) -> RunnableConfig:
    """Return the configuration of a fallback, whose run nests under the guard's.

    LangChain has no child managers for the run of a chat model.
    """
    if run is None:
        return {"callbacks": []}
    is_async = isinstance(run, AsyncCallbackManagerForLLMRun)
    kind: Any = AsyncCallbackManager if is_async else CallbackManager
    manager = kind(
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
    return usage
