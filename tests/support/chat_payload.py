"""Replies as the JSON and the event stream of the Chat Completions protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from tests.support.chat_protocol import Reply, Request, ToolCall, Usage

__all__ = ["chunks", "completion", "error_body", "usage_of"]

T = TypeVar("T")
JSON = dict[str, Any]


def completion(request: Request, reply: Reply) -> JSON:
    """Return the JSON object of a reply that is not streamed."""
    found = _choices(request, reply)
    if reply.order is not None:
        found = [found[position] for position in reply.order]
    return {
        **_head(request, reply, "chat.completion"),
        "choices": found,
        **_usage_field(request, reply),
    }


def chunks(request: Request, reply: Reply) -> Iterator[JSON]:
    """Yield the JSON objects of a streamed reply, its choices interleaved."""
    head = _head(request, reply, "chat.completion.chunk")
    streams = [list(_deltas(choice)) for choice in _choices(request, reply)]
    for step in range(max((len(stream) for stream in streams), default=0)):
        for stream in streams:
            if step < len(stream):
                yield {**head, "choices": [stream[step]]}
    if request.include_usage and reply.usage is not None:
        yield {**head, "choices": [], **_usage_field(request, reply)}


def error_body(reply: Reply) -> str:
    """Return the body of a reply whose status says that something is wrong."""
    if isinstance(reply.body, str):
        return reply.body
    fallback = {"error": {"message": f"status {reply.status}", "type": "test_error"}}
    return json.dumps(fallback if reply.body is None else reply.body)


def usage_of(request: Request, reply: Reply) -> Usage:
    """Return what a reply costs, also where the client is not told."""
    if isinstance(reply.usage, Usage):
        return reply.usage
    prompt = sum(len(text.split()) for text in request.texts)
    written = sum(_tokens_in(choice["message"]) for choice in _choices(request, reply))
    return Usage(prompt=max(1, prompt), completion=written)


def _tokens_in(message: JSON) -> int:
    texts = [message["content"], message["refusal"], message.get("reasoning_content")]
    texts += [call["function"]["arguments"] for call in message.get("tool_calls", [])]
    return max(1, sum(len((text or "").split()) for text in texts))


def _head(request: Request, reply: Reply, kind: str) -> JSON:
    return {
        "id": f"chatcmpl-{request.index}",
        "object": kind,
        "created": 1_700_000_000,
        "model": reply.model or str(request.body.get("model") or "test-model"),
    }


def _usage_field(request: Request, reply: Reply) -> JSON:
    if reply.usage is None:
        return {}
    usage = usage_of(request, reply)
    return {
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.prompt + usage.completion,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }
    }


def _pick(values: Sequence[T] | None, index: int) -> T | None:
    return values[index % len(values)] if values else None


def _choices(request: Request, reply: Reply) -> list[JSON]:
    count = request.n if reply.choices is None else reply.choices
    return [_choice(request, reply, index) for index in range(count)]


def _choice(request: Request, reply: Reply, index: int) -> JSON:
    calls = _pick(reply.tool_calls, index) or ()
    refusal = _pick(reply.refusals, index)
    text = request.prompt if reply.texts is None else _pick(reply.texts, index)
    if refusal is not None or (calls and reply.texts is None):
        text = None
    message: JSON = {"role": "assistant", "content": text, "refusal": refusal}
    reasoning = _pick(reply.reasoning, index)
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [
            _call(call, f"call_{request.index}_{index}_{position}")
            for position, call in enumerate(calls)
        ]
    default = "tool_calls" if calls else "stop"
    return {
        "index": index,
        "message": message,
        "logprobs": _logprobs(request, reply, text or "", index),
        "finish_reason": _pick(reply.finish_reasons, index) or default,
    }


def _call(call: ToolCall, default_id: str) -> JSON:
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = json.dumps(dict(arguments))
    return {
        "id": call.id or default_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _words(text: str) -> list[str]:
    """Cut a text into words that keep the space before them, as tokens do."""
    return re.findall(r"\s*\S+|\s+$", text)


def _logprobs(request: Request, reply: Reply, text: str, index: int) -> JSON | None:
    if not request.logprobs or reply.logprobs is None:
        return None
    words = list(_pick(reply.tokens, index) or _words(text))
    values: Sequence[float] | None = [-0.1] * len(words)
    if reply.logprobs != "auto":
        values = _pick(reply.logprobs, index)
    if values is None:
        return None
    tokens = words if len(words) == len(values) else ["?"] * len(values)
    content: list[JSON] = [
        {"token": token, "logprob": value, "bytes": None, "top_logprobs": []}
        for token, value in zip(tokens, values, strict=True)
    ]
    return {"content": content, "refusal": None}


def _deltas(choice: JSON) -> Iterator[JSON]:
    message = choice["message"]
    yield _delta(choice, {"role": "assistant", "content": ""})
    for field in ("reasoning_content", "refusal"):
        for word in _words(message.get(field) or ""):
            yield _delta(choice, {field: word})
    words = _words(message["content"] or "")
    entries: list[JSON] = (choice["logprobs"] or {}).get("content", [])
    for position, word in enumerate(words):
        # Where there are more entries than words, the last word carries the rest.
        last = position == len(words) - 1
        part = entries[position:] if last else entries[position : position + 1]
        yield _delta(choice, {"content": word}, part)
    for position, call in enumerate(message.get("tool_calls", [])):
        yield from _call_deltas(choice, call, position)
    yield {**_delta(choice, {}), "finish_reason": choice["finish_reason"]}


def _call_deltas(choice: JSON, call: JSON, position: int) -> Iterator[JSON]:
    function = call["function"]
    start = {**call, "index": position, "function": {**function, "arguments": ""}}
    yield _delta(choice, {"tool_calls": [start]})
    arguments = function["arguments"]
    half = len(arguments) // 2
    for part in (arguments[:half], arguments[half:]):
        piece = {"index": position, "function": {"arguments": part}}
        yield _delta(choice, {"tool_calls": [piece]})


def _delta(choice: JSON, delta: JSON, logprobs: Sequence[JSON] = ()) -> JSON:
    found: JSON = {"content": list(logprobs), "refusal": None}
    return {
        "index": choice["index"],
        "delta": delta,
        "logprobs": found if logprobs else None,
        "finish_reason": None,
    }
