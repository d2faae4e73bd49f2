"""What an application gets: an answer, or what stands in its place."""

from __future__ import annotations

import sys
from typing import Any, Self

from langchain_core.callbacks import CallbackManager, CallbackManagerForLLMRun
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import (
    InputTokenDetails,
    OutputTokenDetails,
    UsageMetadata,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_callback_manager_for_config,
)
from langchain_core.utils._merge import merge_dicts
from langchain_core.utils.uuid import uuid7

from snne_guard.engine import Outcome
from snne_guard.langchain.errors import as_model_error
from snne_guard.langchain.messages import as_message
from snne_guard.langchain.request import Run
from snne_guard.types import Cost

__all__ = [
    "KEY",
    "Record",
    "child_config",
    "message_of",
    "result_of",
    "started_run",
    "usage_of",
]

KEY = "snne_guard"
"""Where the assessment stands in ``response_metadata``."""


class Record(dict[str, Any]):
    """An assessment in a message; of two chunks that are added, the last one's stays.

    LangChain would merge the values one by one, and raises where two numbers differ.
    """

    def copy(self) -> Self:
        """Return a copy; LangChain gets an empty one to merge the right side into."""
        merges = sys._getframe(1).f_code is merge_dicts.__code__  # noqa: SLF001 - nothing else tells who asks
        return type(self)({} if merges else self)


def message_of(outcome: Outcome, *, refusal: str | None) -> AIMessage | None:
    """Return what is delivered, None where the fallback has to say it.

    Args:
        outcome: How the call ended.
        refusal: What a refusal says.

    Raises:
        BaseException: What is raised in place of an answer.
    """
    match outcome.delivery:
        case "fallback":
            return None
        case "replacement":
            return as_message(outcome.replacement)
        case "refusal":
            return AIMessage(str(refusal), response_metadata={"finish_reason": "stop"})
        case "answer" if outcome.answer is not None:
            answer: AIMessage = outcome.answer.raw
            return answer
    assert outcome.error is not None  # noqa: S101 - it says why there is nothing
    raise as_model_error(outcome.error)


def result_of(message: AIMessage, outcome: Outcome) -> ChatResult:
    """Return what is delivered with the assessment and the usage of all draws."""
    assessment = outcome.assessment
    record = Record(assessment.to_metadata())
    if outcome.delivery == "fallback" and KEY in message.response_metadata:
        # The fallback is a guard itself.
        record["fallback"] = message.response_metadata[KEY]
    metadata = {**message.response_metadata, KEY: record}
    usage = usage_of(assessment.cost) or message.usage_metadata
    update = {"response_metadata": metadata, "usage_metadata": usage}
    whole = message.model_copy(update=update)
    return ChatResult(generations=[ChatGeneration(message=whole)])


def started_run(config: RunnableConfig | None) -> tuple[Run, RunnableConfig]:
    """Return the run that a call with a configuration will have, and its configuration.

    Args:
        config: What the caller gives.
    """
    config = ensure_config(config)
    manager = get_callback_manager_for_config(config)
    run_id = config.get("run_id") or uuid7()
    run = CallbackManagerForLLMRun(
        run_id=run_id,
        handlers=manager.handlers,
        inheritable_handlers=manager.inheritable_handlers,
        tags=manager.tags,
        inheritable_tags=manager.inheritable_tags,
        metadata=manager.metadata,
        inheritable_metadata=manager.inheritable_metadata,
    )
    return run, {**config, "callbacks": manager, "run_id": run_id}


def child_config(run: Run) -> RunnableConfig:
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


def usage_of(cost: Cost) -> UsageMetadata | None:
    """Return the usage of all draws together, None where none is known."""
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
