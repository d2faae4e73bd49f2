"""The APIs that OpenAI's servers have: what a request asks for, what an answer says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from snne_guard.engine import Response, read_cost, read_reply
from snne_guard.engine.reading import (
    holds_more,
    is_given,
    items_of,
    kind_of,
    mapping_of,
    string_of,
)
from snne_guard.engine.vocabulary import PARTS, TEXTS
from snne_guard.types import Reply

ApiObject = Any
"""An answer as the ``openai`` package gives it, or a part of a stream.

Servers put in it what they like, so that the package's own types do not say what is
there.
"""

Body = Mapping[str, Any]
"""The JSON body of a request."""

_LOGPROBS = "message.output_text.logprobs"
"""How log-probabilities are asked for, in the option ``include``."""
_CALLS = frozenset({"custom_tool_call", "function_call"})
_OUTPUT_ITEMS = _CALLS | {"compaction", "message", "reasoning"}
_OUTPUT_PARTS = TEXTS | {"refusal"}


# -- Chat Completions ------------------------------------------------------------------


class ChatApi:
    """Requests and answers of ``chat.completions.create``."""

    name = "chat"
    path = "/chat/completions"
    conversation = "messages"
    parameters = frozenset({"logprobs", "n", "temperature", "top_logprobs"})

    def messages(self, body: Body, /) -> list[Any]:
        """Return the conversation of a request."""
        return items_of(body.get("messages"))

    def with_logprobs(self, body: Body, /) -> dict[str, Any]:
        """Return a request that asks for log-probabilities too."""
        return {**body, "logprobs": True}

    def read(self, answer: object, /) -> Response:
        """Read the choices of a completion in the order in which they come."""
        fields = fields_of(answer)
        choices = [mapping_of(choice) for choice in items_of(fields.get("choices"))]
        replies = tuple(
            _read_choice(choice, fields, place) for place, choice in enumerate(choices)
        )
        cost = read_cost(replies, fields.get("usage"))
        return Response(replies=replies, cost=cost, raw=answer)

    def logprobs(self, answer: object, /) -> object:
        """Return the log-probabilities of a completion's first choice as they came."""
        choices = items_of(fields_of(answer).get("choices"))
        return _choice_logprobs(mapping_of(choices[0] if choices else None))

    def join(self, parts: Sequence[Any], /) -> dict[str, Any]:
        """Return the fields of the completion that the chunks of a choice make up."""
        choice: dict[str, Any] = {"index": 0, "message": {}, "logprobs": {}}
        head: dict[str, Any] = {}
        for fields in map(fields_of, parts):
            head |= {k: value for k, value in fields.items() if value is not None}
            for piece in map(mapping_of, items_of(fields.get("choices"))):
                _extend(choice, piece)
        return {**head, "choices": [choice] if "choices" in head else []}


def _read_choice(
    choice: Mapping[str, Any], fields: Mapping[str, Any], place: int
) -> Reply:
    message = mapping_of(choice.get("message"))
    content, calls = message.get("content"), _calls(message)
    parts = [mapping_of(part) for part in items_of(content)]
    kinds = [*map(kind_of, parts)]
    response_id = string_of(fields.get("id"))
    return read_reply(
        text=text_of(content),
        finish_reason=string_of(choice.get("finish_reason")),
        logprobs=_choice_logprobs(choice),
        calls=calls,
        refusal=bool(message.get("refusal")) or "refusal" in kinds,
        other_content=holds_more(message, "content")
        or any(holds_more(part, "text") for part in _texts(parts))
        or (is_given(message.get("tool_calls")) and not calls)
        or not isinstance(content, str | Sequence | None)
        or not (PARTS | TEXTS).issuperset(kinds),
        model=string_of(fields.get("model")),
        response_id=f"{response_id}/{place}" if response_id and place else response_id,
    )


def _choice_logprobs(choice: Mapping[str, Any]) -> object:
    return mapping_of(choice.get("logprobs")).get("content")


def _calls(message: Mapping[str, Any]) -> list[tuple[object, object]]:
    calls = [mapping_of(call) for call in items_of(message.get("tool_calls"))]
    return [_called(call) for call in calls]


def _called(call: Mapping[str, Any]) -> tuple[object, object]:
    """Return name and arguments of a call; some servers leave the other kind empty."""
    custom, function = mapping_of(call.get("custom")), mapping_of(call.get("function"))
    if call.get("type") != "function" and is_given(custom):
        return custom.get("name"), custom.get("input")
    arguments = function.get("arguments")
    if arguments is None and not is_given({**function, "name": None, "custom": custom}):
        arguments = ""  # some leave them out where there are none
    return function.get("name"), arguments


def _extend(choice: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of a stream to the choice that it belongs to."""
    message, delta = choice["message"], mapping_of(piece.get("delta"))
    before, content = message.get("content"), delta.get("content")
    if isinstance(before, list) or isinstance(content, list | Mapping):
        message["content"] = [*_parts(before), *_parts(content)]
    else:
        _append(message, delta, ("content",))
    _append(message, delta, ("refusal",))
    read = {"content", "refusal", "tool_calls"}
    message |= {k: v for k, v in delta.items() if is_given(v) and k not in read}
    calls: dict[object, dict[str, Any]] = choice.setdefault("calls", {})
    for call in map(mapping_of, items_of(delta.get("tool_calls"))):
        kind = "custom" if is_given(call.get("custom")) else "function"
        whole = calls.setdefault(call.get("index", len(calls)), {})
        addition, called = mapping_of(call.get(kind)), whole.setdefault(kind, {})
        called["name"] = addition.get("name") or called.get("name")
        _append(called, addition, ("arguments", "input"))
    message["tool_calls"] = list(calls.values())
    entries = items_of(mapping_of(piece.get("logprobs")).get("content"))
    choice["logprobs"].setdefault("content", []).extend(entries)
    choice["finish_reason"] = piece.get("finish_reason") or choice.get("finish_reason")


def _parts(content: object) -> list[Any]:
    """Return a message's content as a list of parts."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [content] if isinstance(content, Mapping) else items_of(content)


def _append(whole: dict[str, Any], piece: Body, names: Sequence[str]) -> None:
    for name in names:
        if isinstance(piece.get(name), str):
            whole[name] = (whole.get(name) or "") + piece[name]


# -- Responses -------------------------------------------------------------------------


class ResponsesApi:
    """Requests and answers of ``responses.create``."""

    name = "responses"
    path = "/responses"
    conversation = "input"
    parameters = frozenset({"logprobs", "temperature", "top_logprobs"})

    def messages(self, body: Body, /) -> list[Any]:
        """Return the conversation of a request."""
        given = body.get("input")
        return (
            [{"role": "user", "content": given}]
            if isinstance(given, str)
            else items_of(given)
        )

    def with_logprobs(self, body: Body, /) -> dict[str, Any]:
        """Return a request that asks for log-probabilities too."""
        included = items_of(body.get("include"))
        if _LOGPROBS in included:
            return {**body}
        return {**body, "include": [*included, _LOGPROBS]}

    def read(self, answer: object, /) -> Response:
        """Read the output of a response."""
        fields = fields_of(answer)
        known = isinstance(fields.get("output"), list)
        replies = (_read_output(fields),) if known else ()
        cost = read_cost(replies, fields.get("usage"))
        return Response(replies=replies, cost=cost, raw=answer)

    def logprobs(self, answer: object, /) -> object:
        """Return the log-probabilities of a response as they came."""
        return _entries(_output_parts(fields_of(answer)))

    def join(self, parts: Sequence[Any], /) -> dict[str, Any]:
        """Return the fields of the response that the last events carry."""
        responses = (fields_of(part).get("response") for part in reversed(parts))
        return next((mapping_of(last) for last in responses if last is not None), {})


def _read_output(fields: Mapping[str, Any]) -> Reply:
    output = [mapping_of(item) for item in fields["output"]]
    parts = _output_parts(fields)
    kinds = {*map(kind_of, parts)}
    messages = [item for item in output if item.get("type") == "message"]
    why = mapping_of(fields.get("incomplete_details")).get("reason")
    return read_reply(
        text=text_of(parts),
        finish_reason=string_of(why) or string_of(fields.get("status")),
        logprobs=_entries(parts),
        calls=[
            (item.get("name"), item.get("arguments", item.get("input")))
            for item in output
            if item.get("type") in _CALLS
        ],
        refusal="refusal" in kinds,
        other_content=not _OUTPUT_ITEMS.issuperset(item.get("type") for item in output)
        or not all(isinstance(item.get("content"), list | None) for item in output)
        or not _OUTPUT_PARTS.issuperset(kinds)
        or any(holds_more(message, "content") for message in messages)
        or any(holds_more(part, "text") for part in _texts(parts)),
        model=string_of(fields.get("model")),
        response_id=string_of(fields.get("id")),
    )


def _output_parts(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of the messages that a response says."""
    items = map(mapping_of, fields["output"])
    messages = [item for item in items if item.get("type") == "message"]
    return [
        mapping_of(part)
        for message in messages
        for part in items_of(message.get("content"))
    ]


def _entries(parts: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [entry for part in parts for entry in items_of(part.get("logprobs"))]


Api = ChatApi | ResponsesApi
"""One of the two ways in which OpenAI's API answers."""


# -- What both have --------------------------------------------------------------------


def fields_of(value: object) -> dict[str, Any]:
    """Return the fields of an object of the ``openai`` package, or a mapping."""
    dump = getattr(value, "model_dump", None)
    return mapping_of(dump(warnings=False) if callable(dump) else value)


def keep_first_choice(part: ApiObject) -> None:
    """Remove the choices that nobody asked for: the first alone is assessed."""
    choices = items_of(getattr(part, "choices", None))
    if choices:
        part.choices = [each for each in choices if not getattr(each, "index", None)]


def remove_logprobs(part: ApiObject) -> None:
    """Remove log-probabilities from an answer or a part of a stream."""
    for each in part if isinstance(part, list) else [part]:
        for name, value in [*getattr(each, "__dict__", {}).items()]:
            if name == "logprobs" and getattr(value, "content", value):
                setattr(each, name, [] if isinstance(value, list) else None)
            else:
                remove_logprobs(value)


def _texts(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for part in parts if part.get("type") in TEXTS]


def text_of(content: object) -> str:
    """Return the text of a message's content, its parts joined."""
    if isinstance(content, str):
        return content
    parts = [fields_of(part) for part in items_of(content)]
    texts = [part.get("text") for part in _texts(parts)]
    return "".join(text for text in texts if isinstance(text, str))
