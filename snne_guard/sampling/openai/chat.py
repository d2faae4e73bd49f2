"""The Chat Completions API: what a request asks for, what an answer says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from snne_guard.sampling.logprobs import read_logprobs
from snne_guard.sampling.openai.api import (
    ApiObject,
    Body,
    cost_of,
    fields_of,
    items_of,
    mapping_of,
    provider_error,
    string_of,
    text_of,
)
from snne_guard.sampling.reading import (
    canonical_calls,
    is_complete,
    is_refused,
    without_reasoning,
)
from snne_guard.sampling.replies import Reply
from snne_guard.similarity.tokens import is_visible
from snne_guard.types import Sample

__all__ = ["ChatApi"]

_KNOWN_PARTS = frozenset(
    {"output_text", "reasoning", "redacted_thinking", "refusal", "text", "thinking"}
)


class ChatApi:
    """Requests and answers of ``chat.completions.create``."""

    name = "chat"
    takes_n = True

    def messages(self, body: Body, /) -> list[Any]:
        """Return the conversation of a request."""
        return items_of(body.get("messages"))

    def asks_logprobs(self, body: Body, /) -> bool:
        """Return whether a request asks for log-probabilities."""
        return bool(body.get("logprobs"))

    def with_logprobs(self, body: Body, /) -> dict[str, Any]:
        """Return a request that asks for log-probabilities too."""
        return {**body, "logprobs": True}

    def remove_logprobs(self, part: ApiObject, /) -> None:
        """Remove log-probabilities from a completion or a chunk."""
        for choice in items_of(getattr(part, "choices", None)):
            if getattr(choice, "logprobs", None) is not None:
                choice.logprobs = None

    def read(self, answer: object, /) -> Reply:
        """Read the choices of a completion in the order of their index.

        Raises:
            SamplingError: The completion holds an error in place of choices.
        """
        fields = fields_of(answer)
        choices = [mapping_of(choice) for choice in items_of(fields.get("choices"))]
        if not choices and fields.get("error"):
            raise provider_error(fields["error"])
        choices.sort(key=_index)
        samples = tuple(_read_choice(choice, fields) for choice in choices)
        usage = mapping_of(fields.get("usage"))
        cost = cost_of(
            usage, samples, read="prompt_tokens", written="completion_tokens"
        )
        return Reply(samples=samples, cost=cost, raw=answer)

    def join(self, parts: Sequence[Any], /) -> dict[str, Any]:
        """Return the fields of the completion that chunks make up, its first choice."""
        choice: dict[str, Any] = {"index": 0, "message": {}, "logprobs": {}}
        head: dict[str, Any] = {}
        for fields in map(fields_of, parts):
            given = fields.items()
            head |= {name: value for name, value in given if value is not None}
            for piece in map(mapping_of, items_of(fields.get("choices"))):
                if not _index(piece):
                    _extend(choice, piece)
        return {**head, "choices": [choice] if "choices" in head else []}


def _read_choice(choice: Mapping[str, Any], fields: Mapping[str, Any]) -> Sample:
    message = mapping_of(choice.get("message"))
    content = message.get("content")
    text = without_reasoning(text_of(content))
    finish = string_of(choice.get("finish_reason"))
    entries = mapping_of(choice.get("logprobs")).get("content")
    values, tokens = read_logprobs(entries, text=text)
    refused = bool(message.get("refusal")) or is_refused(finish)
    calls = canonical_calls(_calls(message))
    said = calls is not None or refused or is_visible(text)
    kinds = [mapping_of(part).get("type") for part in items_of(content)]
    return Sample(
        text=text,
        token_logprobs=values,
        tokens=tokens,
        finish_reason=finish,
        truncated=not refused and not is_complete(finish),
        model=string_of(fields.get("model")),
        tool_calls=calls,
        refused=refused,
        unreadable=not said
        or bool(message.get("audio") or message.get("images"))
        or not _KNOWN_PARTS.issuperset(kinds),
        response_id=string_of(fields.get("id")),
    )


def _calls(message: Mapping[str, Any]) -> list[tuple[object, object]]:
    calls = [mapping_of(call) for call in items_of(message.get("tool_calls"))]
    called = [mapping_of(call.get("custom") or call.get("function")) for call in calls]
    if message.get("function_call"):  # the form before there were tools
        called.append(mapping_of(message["function_call"]))
    return [
        (call.get("name"), call.get("input", call.get("arguments"))) for call in called
    ]


def _extend(choice: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of a stream to the choice that it belongs to."""
    message, delta = choice["message"], mapping_of(piece.get("delta"))
    _append(message, delta, ("content", "refusal"))
    for name in ("audio", "images", "function_call"):
        message[name] = delta.get(name) or message.get(name)
    calls: dict[object, dict[str, Any]] = message.setdefault("calls", {})
    for call in map(mapping_of, items_of(delta.get("tool_calls"))):
        kind = "custom" if call.get("custom") else "function"
        known = calls.setdefault(call.get("index", len(calls)), {kind: {}})
        said = mapping_of(call.get(kind))
        called = known.setdefault(kind, {})
        called["name"] = said.get("name") or called.get("name")
        _append(called, said, ("arguments", "input"))
    message["tool_calls"] = list(calls.values())
    entries = items_of(mapping_of(piece.get("logprobs")).get("content"))
    choice["logprobs"].setdefault("content", []).extend(entries)
    choice["finish_reason"] = piece.get("finish_reason") or choice.get("finish_reason")


def _append(whole: dict[str, Any], piece: Body, names: Sequence[str]) -> None:
    for name in names:
        if isinstance(piece.get(name), str):
            whole[name] = (whole.get(name) or "") + piece[name]


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0
