"""LangChain messages read as replies, wherever a provider's class puts what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import BaseModel, ValidationError

from snne_guard.engine import read_reply
from snne_guard.engine.reading import (
    holds_more,
    is_given,
    items_of,
    kind_of,
    mapping_of,
)
from snne_guard.engine.vocabulary import PARTS
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.providers import (
    CALL_BLOCKS,
    ENDING_KEYS,
    MODEL_KEYS,
)
from snne_guard.types import Reply

M = TypeVar("M", bound=BaseMessage)


def is_refusal(message: BaseMessage) -> bool:
    """Recognise a refusal that a guard put in place of the model's answer.

    Example:
        >>> is_refusal(AIMessage("Paris"))
        False
    """
    record = message.response_metadata.get("snne_guard")
    if not isinstance(record, Mapping):
        return False
    from_fallback = mapping_of(record.get("fallback"))
    return "refuse" in {record.get("decision"), from_fallback.get("decision")}


def reply_of(message: BaseMessage, *, reports_finish_reason: bool = False) -> Reply:
    """Return the part of a message to compare: the text that an application gets.

    Where the provider always says how a reply ended, one that says nothing counts as
    truncated; else it counts as complete, as those of fake models do.
    """
    metadata, extra = message.response_metadata, message.additional_kwargs
    # Gemini's, of a prompt that it does not answer.
    feedback: Any = metadata.get("prompt_feedback")
    blocked = feedback.get("block_reason") if isinstance(feedback, Mapping) else None
    says_how_it_ended = any(key in metadata for key in ENDING_KEYS)
    calls = _tool_calls(message)
    kinds: set[str | None] = set()
    unread = False
    if extra or not isinstance(message.content, str):
        # langchain-openai's first output version keeps there what is no text or call.
        blocks = [*items_of(message.content), *items_of(extra.get("tool_outputs"))]
        kinds = {*map(_kind_of, blocks)}
        read = ("tool_outputs", "function_call") if calls else ("tool_outputs",)
        texts = [one for one in map(mapping_of, blocks) if one.get("type") == "text"]
        # LangChain gives no text of other types; a compaction is of what was before.
        readable = PARTS | {"text", "compaction"} | (CALL_BLOCKS if calls else set())
        unread = (
            not kinds <= readable
            or holds_more(extra, *read)
            or any(holds_more(text, "text") for text in texts)
        )
    return read_reply(
        text=str(message.text),
        finish_reason=_first_string(metadata.get("incomplete_details"), ("reason",))
        or _first_string(metadata, ENDING_KEYS)
        or _first_string(feedback, ("block_reason",)),
        logprobs=logprob_entries(message),
        calls=calls,
        # A refusal by a guard was not drawn from the model either.
        refusal="refusal" in kinds
        or bool(extra.get("refusal") or blocked)
        or is_refusal(message),
        other_content=unread,
        complete_if_unsaid=not (reports_finish_reason or says_how_it_ended),
        model=_first_string(metadata, MODEL_KEYS),
        response_id=_first_string(metadata, ("id",)),
    )


def as_message(value: object) -> AIMessage:
    """Return the result of a fallback or ``on_uncertain`` as a message.

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


def replies_in(
    result: ChatResult, *, reports_finish_reason: bool
) -> tuple[BaseMessage | None, list[Reply]]:
    """Return the first message of a response, None if it has none, and its replies."""
    messages = [whole_message(each, result) for each in result.generations]
    read = partial(reply_of, reports_finish_reason=reports_finish_reason)
    return next(iter(messages), None), [*map(read, messages)]


def whole_message(generation: ChatGeneration, result: ChatResult) -> BaseMessage:
    """Return a reply with all its metadata on the message, as ``invoke`` does.

    Of several replies of one response, all but the first have their place in their id.
    """
    metadata = {
        **(result.llm_output or {}),
        **(generation.generation_info or {}),
        **generation.message.response_metadata,
    }
    ids = map(id, result.generations)
    place = next(n for n, each in enumerate(ids) if each == id(generation))
    if place and metadata.get("id"):
        metadata["id"] = f"{metadata['id']}/{place}"
    return generation.message.model_copy(update={"response_metadata": metadata})


def as_chunk(message: BaseMessage) -> ChatGenerationChunk:
    """Return a whole message as the only chunk of a stream."""
    fields = {**dict(message), "type": "AIMessageChunk", "chunk_position": "last"}
    return ChatGenerationChunk(message=AIMessageChunk(**fields))


def with_parsed(message: BaseMessage, schema: type[BaseModel] | None) -> BaseMessage:
    """Attach the parsed reply where the parser of ``ChatOpenAI`` expects it."""
    if schema is None:
        return message
    try:
        parsed = schema.model_validate_json(str(message.text))
    except ValidationError:
        return message
    extra = {**message.additional_kwargs, "parsed": parsed}
    return message.model_copy(update={"additional_kwargs": extra})


def without_logprobs(message: M) -> M:
    """Return the message without log-probabilities in its metadata, but their place."""
    metadata = message.response_metadata
    if not is_given(metadata.get("logprobs")):
        return message
    without = {**metadata, "logprobs": None}
    return message.model_copy(update={"response_metadata": without})


def _tool_calls(message: BaseMessage) -> list[tuple[object, object]]:
    if not isinstance(message, AIMessage):
        return []
    given = [*message.tool_calls, *message.invalid_tool_calls]
    if not message.tool_calls and str(message.text).strip():
        return []  # what the application takes for the answer is the text
    return [(call["name"], call["args"]) for call in given]


def _kind_of(block: object) -> str | None:
    """Return the type of a content block, None where it has none."""
    if not isinstance(block, Mapping):
        return "text"
    if block.get("type") == "non_standard":  # LangChain's wrapper for unknown ones
        block = mapping_of(block.get("value"))
    elif block.keys() <= {"id", "index"}:  # what ends a block of a stream
        return "text"
    return kind_of(block)


def logprob_entries(message: BaseMessage) -> list[Any]:
    """Return log-probabilities in OpenAI's form, wherever a provider puts them."""
    given = message.response_metadata.get("logprobs")
    if isinstance(given, Mapping):
        given = given.get("content")
    entries = items_of(given) if given else []
    if entries and isinstance(entries[0], BaseModel):  # of Ollama's client
        return [dict(entry) for entry in entries]
    return entries


def _first_string(metadata: Any, keys: Sequence[str]) -> str | None:
    given = metadata if isinstance(metadata, Mapping) else {}
    values = (given.get(key) for key in keys)
    found = next((value for value in values if isinstance(value, str) and value), None)
    # A stream that says it twice comes to "stopstop": LangChain joins texts of chunks.
    return found and found[: (found + found).index(found, 1)]
