"""Other models that are asked for a second opinion, by the same client or another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import openai

from snne_guard.engine import may_act
from snne_guard.engine.vocabulary import LIMITS, STOPS
from snne_guard.errors import ConfigurationError
from snne_guard.openai.request import ApiRequest

_SAID = ("messages", "input", "instructions", "functions", "function_call", "tools")
_TAKEN = frozenset({*_SAID, "tool_choice", "parallel_tool_calls", "response_format"})
"""What another model gets of a request; besides, its limit and what ends it."""


@dataclass(frozen=True, slots=True)
class OtherModel:
    """A model that another client asks, for ``other_models`` of ``guard_client``.

    It is asked by the same API as the guarded model, chat completions or responses.

    Attributes:
        client: ``OpenAI`` or ``AsyncOpenAI``, as the guarded client is; its own key,
            headers and retries hold, and nothing of the guarded client's.
        model: Name of the model.

    Example:
        >>> other = openai.OpenAI(base_url="http://127.0.0.1:8080/v1", api_key="...")
        >>> OtherModel(other, "qwen3-8b").model
        'qwen3-8b'
    """

    client: Any = field(repr=False)
    model: str


def clients_of(
    others: Iterable[str | OtherModel],
    client: Any,  # noqa: ANN401 - of either kind
    /,
) -> list[tuple[str, Any]]:
    """Return name and client of each other model; None: the guarded one's.

    Raises:
        ConfigurationError: They are a text, of which each letter would be a name, a
            client is not of the guarded one's kind, or a model has tools that run at
            its provider.
    """
    if isinstance(others, str):
        msg = "expected other_models to be a list, got str"
        raise ConfigurationError(msg)
    tasks = isinstance(client, openai.AsyncOpenAI)
    kind = openai.AsyncOpenAI if tasks else openai.OpenAI
    found: list[tuple[str, Any]] = []
    for given in others:
        own = given.client if isinstance(given, OtherModel) else None
        name: Any = given.model if isinstance(given, OtherModel) else given
        if may_act({"model": name}):
            msg = (
                f"the other model {name!r} has tools that run at its provider, so that "
                "its sample could act on the world"
            )
            raise ConfigurationError(msg)
        bare = isinstance(own, kind) and not hasattr(own, "_snne_guard")
        if own is not None and not bare:
            msg = (
                f"expected the client of the other model {name!r} to be {kind.__name__}"
                f" as the guarded one is, and bare, got {type(own).__name__}"
            )
            raise ConfigurationError(msg)
        found.append((name, own))
    return found


def request_to(request: ApiRequest, model: str, *, client: Any) -> ApiRequest:  # noqa: ANN401 - of either kind
    """Return the other model's request: the conversation and the answer's form.

    Its limit of tokens and what ends its answer are left out where it does not take
    them. Without a client of its own the headers of the call are sent as well.
    """
    body = {
        name: value
        for name, value in request.body.items()
        if name in _TAKEN or name in LIMITS or name in STOPS
    }
    form = request.body.get("text")
    if isinstance(form, Mapping) and form.get("format"):
        body["text"] = {"format": form["format"]}
    another = request.another()
    options = another.options
    if client is not None:
        options = {name: options[name] for name in options if name == "timeout"}
    return replace(
        another,
        path=request.path if client is None else request.api.path,
        body={**body, "model": model},
        options=options,
        optional=frozenset(body.keys() & {*LIMITS, *STOPS}),
    )
