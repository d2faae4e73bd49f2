"""The copy of a LangChain model that draws samples: hot, in one piece, unseen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel

from snne_guard.sampling.langchain_providers import provider_of, takes_temperature

__all__ = ["NESTED", "nested_fields", "sampling_copy", "without_retries"]

NESTED = (
    "additional_model_request_fields",
    "extra_body",
    "generation_config",
    "inferenceConfig",
    "inference_config",
    "model_kwargs",
    "options",
)
"""Options that hold further options, which go into the request as they are."""

_OFF: Mapping[str, object] = {"streaming": False, "store": False}
"""Fields that would garble samples or leave traces."""


def sampling_copy(
    model: BaseChatModel,
    *,
    temperature: float,
    max_tokens: int | None,
    clean: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
) -> BaseChatModel:
    """Return a copy of a chat model that draws samples.

    Its cache, streaming, callbacks and own retries are off, it stores nothing, and
    the temperature is set where the model takes one. ``clean`` takes out of its nested
    options what samples must not carry. The user's object is untouched, and the copy
    shares its connections.
    """
    stand_in = provider_of(model).stand_in
    if stand_in is not None:
        model = stand_in(model)
    row, fields = provider_of(model), type(model).model_fields
    update: dict[str, Any] = {
        "cache": False,
        "disable_streaming": True,
        "callbacks": None,
        "verbose": False,
    }
    wanted = {**_OFF, **row.off, **dict.fromkeys(("seed", row.seed_name))}
    update |= {
        name: off
        for name, off in wanted.items()
        if name in fields and getattr(model, name)
    }
    if row.temperature is not None and row.temperature in fields:
        hot = row.within(temperature) if takes_temperature(model) else None
        update[row.temperature] = hot
    if "n" in fields:
        update["n"] = fields["n"].default
    update |= {place: clean(inner) for place, inner in nested_fields(model).items()}
    if max_tokens is not None:
        update |= {name: max_tokens for name in row.limits if name in fields}
    clients = {} if row.clients is None else row.clients(model)
    return model.model_copy(update=update | clients)


def without_retries(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of a chat model for those who retry by themselves.

    It shares the connections of the model, which is untouched.
    """
    row, fields = provider_of(model), type(model).model_fields
    update = {
        name: off
        for name, off in row.off.items()
        if name in fields and getattr(model, name)
    }
    clients = {} if row.clients is None else row.clients(model)
    return model.model_copy(update=update | clients)


def nested_fields(model: BaseChatModel) -> dict[str, Any]:
    """Return the fields of a model that hold further options, where they are set."""
    places = [place for place in NESTED if place in type(model).model_fields]
    return {place: found for place in places if (found := getattr(model, place))}
