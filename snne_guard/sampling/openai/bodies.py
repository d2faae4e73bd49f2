"""A request to OpenAI's API, as a user sends it and as it asks for samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from snne_guard.sampling.openai.apis import Api, Body, fields_of, text_of
from snne_guard.sampling.reading import items_of, mapping_of
from snne_guard.sampling.replies import ProviderCapabilities
from snne_guard.views import EXTRA_TOKENS, View

__all__ = [
    "ApiRequest",
    "capabilities_of",
    "check_body",
    "has_side_effects",
    "reusable_options",
    "sample_body",
    "view_body",
    "wants_schema",
]

_SET_FOR_SAMPLES = frozenset(
    {
        "logprobs",
        "metadata",
        "n",
        "prediction",  # only for one answer
        "seed",  # one seed for all would draw the same sample again and again
        "stream",
        "stream_options",
        "temperature",
        "top_logprobs",
    }
)
_NOT_CHECKED = frozenset(
    {
        "function_call",
        "functions",
        "parallel_tool_calls",
        "response_format",
        "stop",
        "text",
        "tool_choice",
        "tools",
    }
)
"""Options that a self-check leaves out: it asks for a word, by no tool or schema."""

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_PROPOSED_TOOLS = frozenset({"custom", "function"})
"""Tools that the API only proposes to call; all others run at the provider."""
_STREAMING = frozenset({"stream", "stream_options"})
_ACTING = ("background", "conversation", "prompt", "web_search_options")
"""Options that store something or run tools; a stored prompt may bring some."""
_HEADERS_OF_ONE_REQUEST = ("x-stainless-", "idempotency-key")
_OPTIONS_OF_ONE_REQUEST = frozenset({"idempotency_key", "post_parser", "stream_mode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A user's request as the ``post`` method of a client gets it.

    Attributes:
        api: Which API it is for.
        path: Where it goes.
        body: Its JSON body, ``extra_body`` included.
        options: Headers, query, time limit and the like.
        cast_to: Class of the answer.
        stream_cls: Class of the stream; None: the answer comes in one piece.
    """

    api: Api
    path: str
    body: Body = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    cast_to: Any
    stream_cls: Any = None

    @property
    def model(self) -> str:
        """Name of the model, empty where the server decides."""
        return str(self.body.get("model") or "")

    @property
    def question(self) -> str | None:
        """Text of the user's last message, None where there is none."""
        for message in map(fields_of, reversed(self.api.messages(self.body))):
            if message.get("role") == "user":
                return text_of(message.get("content"))
        return None

    @property
    def answer_settings(self) -> dict[str, Any]:
        """What the answer is drawn with, by a calibration's names."""
        body = self.body
        limits = [body[name] for name in _LIMITS if body.get(name) is not None]
        stop = body.get("stop")
        return {
            "model": self.model,
            "answer_temperature": body.get("temperature"),
            "top_p": body.get("top_p"),
            "max_tokens": limits[0] if limits else None,
            "stop": [stop] if isinstance(stop, str) else stop,
        }

    def unstreamed(self) -> Self:
        """Return the same request for an answer in one piece."""
        body = {k: v for k, v in self.body.items() if k not in _STREAMING}
        return replace(self, body=body, stream_cls=None)


def sample_body(body: Body, *, temperature: float | None, store: bool) -> Body:
    """Return the body of a request for samples.

    Args:
        body: That of the user's request.
        temperature: Sampling temperature; None leaves it to the model.
        store: Whether the server knows the option ``store``; samples are not stored.

    Example:
        >>> user = {"model": "m", "seed": 7, "top_p": 0.9, "temperature": 0}
        >>> sample_body(user, temperature=1.0, store=True)
        {'model': 'm', 'top_p': 0.9, 'temperature': 1.0, 'store': False}
    """
    kept = {name: body[name] for name in body if name not in _SET_FOR_SAMPLES}
    if temperature is not None:
        kept["temperature"] = temperature
    if store or "store" in kept:
        kept["store"] = False
    return kept


def check_body(api: Api, body: Body, turns: tuple[str, str]) -> dict[str, Any]:
    """Return the body of a request for a self-check, without tools, schema and stops.

    Args:
        api: Which API it is for.
        body: That of the user's request.
        turns: The answer, and the question about it.

    Example:
        >>> user = {"messages": [{"role": "user", "content": "2 + 2?"}], "stop": "."}
        >>> from snne_guard.sampling.openai.apis import ChatApi
        >>> asked = check_body(ChatApi(), user, ("4", "Right?"))
        >>> [message["content"] for message in asked["messages"]]
        ['2 + 2?', '4', 'Right?']
    """
    roles = zip(("assistant", "user"), turns, strict=True)
    asked = [{"role": role, "content": content} for role, content in roles]
    kept = {name: body[name] for name in body if name not in _NOT_CHECKED}
    return {**kept, api.conversation: [*api.messages(body), *asked]}


def view_body(api: Api, body: Body, view: View) -> Body:
    """Return the body of a request in a view.

    A reply of which only a part is compared has more tokens, and no stop texts.

    Args:
        api: Which API it is for.
        body: That of the user's request.
        view: The view.

    Raises:
        SamplingError: The view failed.

    Example:
        >>> from snne_guard.sampling.openai.apis import ChatApi
        >>> from snne_guard.views import VIEWS
        >>> turn = {"role": "user", "content": "2 + 2?"}
        >>> user = {"messages": [turn], "stop": ".", "max_tokens": 9}
        >>> view_body(ChatApi(), user, VIEWS["reasoning"])["max_tokens"]
        521
    """
    body = {**body, api.conversation: view.rewritten(api.messages(body))}
    if view.extract is None:
        return body
    body.pop("stop", None)
    for name in _LIMITS:
        if isinstance(body.get(name), int):
            body[name] += EXTRA_TOKENS
    return body


def wants_schema(body: Body) -> bool:
    """Return whether the answer is to fit a schema, or to be JSON.

    Example:
        >>> wants_schema({"response_format": {"type": "json_object"}})
        True
        >>> wants_schema({"text": {"format": {"type": "text"}}})
        False
    """
    wanted = (body.get("response_format"), mapping_of(body.get("text")).get("format"))
    kinds = {mapping_of(each).get("type") for each in wanted}
    return not kinds <= {None, "text"}


def has_side_effects(body: Body) -> bool:
    """Return whether a further draw could act on the world.

    Tools that run at the provider may write, pay or send; a stored conversation would
    grow by every sample.

    Example:
        >>> has_side_effects({"tools": [{"type": "function", "name": "f"}]})
        False
        >>> has_side_effects({"tools": [{"type": "web_search"}]})
        True
    """
    if any(body.get(name) not in (None, False) for name in _ACTING):
        return True
    kinds = [mapping_of(tool).get("type") for tool in items_of(body.get("tools"))]
    return not _PROPOSED_TOOLS.issuperset(kinds)


def capabilities_of(api: Api, rejected: set[str]) -> ProviderCapabilities:
    """Return what a server takes, from what it was seen to reject."""
    return ProviderCapabilities(
        n=api.takes_n and "n" not in rejected,
        logprobs="logprobs" not in rejected,
        temperature="temperature" not in rejected,
    )


def reusable_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return request options without what is about one request alone.

    Example:
        >>> reusable_options({"headers": {"Idempotency-Key": "1", "X-Mine": "2"}})
        {'headers': {'X-Mine': '2'}}
    """
    kept = {k: v for k, v in options.items() if k not in _OPTIONS_OF_ONE_REQUEST}
    headers: Mapping[str, Any] = kept.get("headers") or {}
    kept["headers"] = {
        name: value
        for name, value in headers.items()
        if not name.lower().startswith(_HEADERS_OF_ONE_REQUEST)
    }
    return kept
