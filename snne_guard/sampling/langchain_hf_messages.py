"""LangChain messages to what chat templates take, and replies back to messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from snne_guard.errors import InputError
from snne_guard.sampling.hf_prompts import Message
from snne_guard.sampling.hf_settings import Completion, Token

__all__ = ["last_chunk", "text_chunk", "to_prompt", "to_result"]

_ROLES: dict[type[BaseMessage], str] = {
    HumanMessage: "user",
    AIMessage: "assistant",
    SystemMessage: "system",
}
_UNSAID = frozenset({"reasoning", "thinking", "redacted_thinking"})


def to_prompt(messages: Sequence[BaseMessage]) -> list[Message]:
    """Return messages as chat templates take them.

    Raises:
        InputError: If there is something else than text in them.
    """
    return [{"role": _role(message), "content": _text(message)} for message in messages]


def _role(message: BaseMessage) -> str:
    if isinstance(message, ChatMessage):
        return message.role
    for kind, role in _ROLES.items():
        if isinstance(message, kind):
            return role
    msg = (
        "a local model takes messages of system, user and assistant; got a "
        f"{type(message).__name__}"
    )
    raise InputError(msg)


def _text(message: BaseMessage) -> str:
    if isinstance(message, AIMessage) and message.tool_calls:
        msg = "a local model takes no tools; got an AIMessage that calls some"
        raise InputError(msg)
    if isinstance(message.content, str):
        return message.content
    parts: list[str] = []
    for block in message.content:
        if isinstance(block, str):
            parts.append(block)
        elif block.get("type") == "text":
            parts.append(str(block["text"]))
        elif block.get("type") not in _UNSAID:
            msg = (
                "a local model takes text; got a block of type "
                f"{block.get('type')!r} in a {type(message).__name__}"
            )
            raise InputError(msg)
    return "".join(parts)


def to_result(
    replies: Sequence[Completion], *, name: str, logprobs: bool
) -> ChatResult:
    """Return the replies of one request, its usage on the first one only."""
    usage = _usage(replies)
    generations = [
        ChatGeneration(
            message=AIMessage(
                content=reply.text,
                usage_metadata=None if place else usage,
                response_metadata=_metadata(reply, name)
                | (_content(reply.tokens) if logprobs else {}),
            ),
            generation_info={"finish_reason": reply.finish_reason},
        )
        for place, reply in enumerate(replies)
    ]
    return ChatResult(generations=[*generations], llm_output={"model_name": name})


def text_chunk(tokens: Sequence[Token], *, logprobs: bool) -> ChatGenerationChunk:
    """Return what some tokens add to a streamed reply."""
    message = AIMessageChunk(
        content="".join(token.text for token in tokens),
        response_metadata=_content(tokens) if logprobs else {},
    )
    return ChatGenerationChunk(message=message)


def last_chunk(reply: Completion, *, name: str) -> ChatGenerationChunk:
    """Return the end of a streamed reply: why it ended, what it took."""
    message = AIMessageChunk(
        content="",
        usage_metadata=_usage([reply]),
        response_metadata=_metadata(reply, name),
        chunk_position="last",
    )
    return ChatGenerationChunk(
        message=message, generation_info={"finish_reason": reply.finish_reason}
    )


def _metadata(reply: Completion, name: str) -> dict[str, Any]:
    return {
        "finish_reason": reply.finish_reason,
        "model_name": name,
        "model_provider": "huggingface",
    }


def _content(tokens: Sequence[Token]) -> dict[str, Any]:
    """Return log-probabilities in the form of ``ChatOpenAI``."""
    content = [
        {
            "token": token.text,
            "bytes": list(token.text.encode()),
            "logprob": token.logprob,
            "sampling_logprob": token.sampling_logprob,
            "top_logprobs": list[Any](),
        }
        for token in tokens
    ]
    return {"logprobs": {"content": content}}


def _usage(replies: Sequence[Completion]) -> UsageMetadata:
    # The prompt is read once for all of them.
    read = replies[0].prompt_tokens
    written = sum(reply.completion_tokens for reply in replies)
    return UsageMetadata(
        input_tokens=read, output_tokens=written, total_tokens=read + written
    )
