"""What an application gets: an answer, or what stands in its place."""

from __future__ import annotations

import sys
from typing import Any, Self, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManager,
    CallbackManagerForLLMRun,
)
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_callback_manager_for_config,
)
from langchain_core.utils._merge import merge_dicts
from langchain_core.utils.uuid import uuid7

from snne_guard.cost import Cost
from snne_guard.engine import Outcome
from snne_guard.langchain.errors import as_model_error
from snne_guard.langchain.messages import as_message

Run = CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None
"""The guard's own run, None outside a run."""
KEY = "snne_guard"
"""Where the assessment stands in ``response_metadata``."""
NAME = "model_name"
"""Where LangChain's counters look for the model."""


class Record(dict[str, Any]):
    """An assessment in a message; of two chunks that are added, the last one's stays.

    LangChain would merge the values one by one, and raises where two numbers differ.
    """

    def copy(self) -> Self:
        """Return a copy; LangChain gets an empty one to merge the right side into."""
        merges = sys._getframe(1).f_code is merge_dicts.__code__  # noqa: SLF001 - nothing else tells who asks
        return type(self)({} if merges else self)


def message_of(outcome: Outcome, *, refusal: str | None) -> AIMessage | None:
    """Return the message to deliver, None if the fallback has to give it.

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


def result_of(message: AIMessage, outcome: Outcome, *, model: str | None) -> ChatResult:
    """Return the delivered message with its assessment and the usage of all draws.

    That usage is the model's, so the message has the model's name too, whoever wrote
    it: by this name LangChain counts tokens. Those of a fallback belong to its own run.
    """
    assessment, metadata = outcome.assessment, message.response_metadata
    record = Record(assessment.to_metadata())
    usage = usage_of(assessment.own_cost)
    if outcome.delivery == "fallback":
        # Of another guard it is what that one decided.
        spoken = {"model": metadata.get(NAME), "usage": message.usage_metadata}
        told = {name: value for name, value in spoken.items() if value is not None}
        if found := metadata.get(KEY, told):
            record["fallback"] = found
    if outcome.delivery != "answer":
        drawn = {} if outcome.answer is None else outcome.answer.raw.response_metadata
        rest = {name: value for name, value in metadata.items() if name != NAME}
        name = drawn.get(NAME, model)
        metadata = rest if name is None else {**rest, NAME: name}
    update = {"response_metadata": {**metadata, KEY: record}, "usage_metadata": usage}
    whole = message.model_copy(update=update)
    return ChatResult(generations=[ChatGeneration(message=whole)])


def chunk_of(item: ChatGenerationChunk | Outcome) -> ChatGenerationChunk:
    """Return the chunk to deliver for one of the answer, or for the call's end.

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
        response_metadata={KEY: Record(item.assessment.to_metadata())},
        usage_metadata=usage_of(item.assessment.own_cost),
        chunk_position="last",
    )
    return ChatGenerationChunk(message=end)


def started_run(config: RunnableConfig | None) -> tuple[Run, RunnableConfig]:
    """Return the run that a call will have, and its configuration."""
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

    LangChain has no child managers for the run of a chat model. LangGraph must not
    stream what the guard itself is going to deliver.
    """
    if run is None:
        return {"callbacks": []}
    manager = CallbackManager(
        handlers=list(run.inheritable_handlers),
        inheritable_handlers=list(run.inheritable_handlers),
        parent_run_id=run.run_id,
    )
    manager.add_tags([*run.inheritable_tags, "nostream"])
    manager.add_metadata(run.inheritable_metadata)
    return {"callbacks": manager}


def usage_of(cost: Cost) -> UsageMetadata | None:
    """Return the usage of requests together, None where none is known."""
    read, written = cost.prompt_tokens, cost.completion_tokens
    if not read and not written:
        return None
    usage: dict[str, Any] = {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
    }
    counted = {
        "input_token_details.cache_read": cost.cached_tokens,
        "output_token_details.reasoning": cost.reasoning_tokens,
        **cost.details,
    }
    for path, count in counted.items():
        side, _, name = path.partition(".")
        if count:
            usage.setdefault(side, {})[name] = count
    return cast("UsageMetadata", usage)
