"""What one request to a LangChain model is made of: a copy of it, and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from snne_guard.sampling.langchain.providers import (
    Provider,
    provider_of,
    takes_temperature,
)
from snne_guard.sampling.langchain.side_effects import NESTED

__all__ = ["Request", "answer_request", "sample_request", "unstreamed"]

_SET_FOR_SAMPLES = frozenset(
    {
        "candidate_count",
        "logprobs",
        "metadata",  # of what is stored
        "n",
        "random_seed",
        "response_logprobs",
        "seed",
        "stream",
        "stream_options",
        "stream_usage",
        "temperature",
        "top_logprobs",
    }
)
"""Options that a sample does not take over from the user, wherever they are."""

_FOR_TRACERS = ("ls_structured_output_format", "structured_output_format")
"""Options that LangChain takes out before the provider sees them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request that can be sent as it is.

    Attributes:
        model: Copy of the model that is asked; the user's own is untouched.
        messages: The whole conversation.
        options: Options of ``_generate`` and ``_stream``.
        stop: Texts at which a reply ends, None where none are given.
        provider: Row of the model in the table.
        optional: Parameters that may be left out where the provider rejects them.
        temperature_set: Whether the reply is drawn at the temperature asked for.
        adds_logprobs: Whether it asks for log-probabilities that the user did not want.
        schema: Class that a structured reply is to be parsed into, None for others.
    """

    model: BaseChatModel
    messages: Sequence[BaseMessage]
    options: dict[str, Any]
    stop: list[str] | None
    provider: Provider
    optional: frozenset[str]
    temperature_set: bool = True
    adds_logprobs: bool = False
    schema: type[BaseModel] | None = None


def answer_request(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    kwargs: Mapping[str, Any],
    *,
    logprobs: bool,
    rejected: frozenset[str],
    streams: bool = False,
) -> Request:
    """Return the request for the answer, with the user's own settings.

    Args:
        model: The model.
        messages: The whole conversation.
        kwargs: Options of the call, bound ones included.
        logprobs: Whether log-probabilities are wanted.
        rejected: Parameters that the model has rejected.
        streams: Whether the answer is streamed.
    """
    row = provider_of(model, kwargs)
    options = {name: kwargs[name] for name in kwargs if name not in _FOR_TRACERS}
    wanted = kwargs.get("logprobs", getattr(model, "logprobs", None))
    adds = logprobs and not wanted and bool(row.logprobs) and "logprobs" not in rejected
    if adds:
        options |= row.logprobs
    return _request(
        model,
        options,
        {} if streams else _unstreamed(model, options),
        messages=messages,
        provider=row,
        optional=frozenset({"logprobs"} if adds else ()),
        adds_logprobs=adds,
    )


def sample_request(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    kwargs: Mapping[str, Any],
    *,
    n: int,
    temperature: float,
    logprobs: bool,
    rejected: frozenset[str],
) -> Request:
    """Return a request for samples: hot, in one piece, without seed, nothing stored.

    Args:
        model: The model.
        messages: The whole conversation.
        kwargs: Options of the call, bound ones included.
        n: Replies that are wanted.
        temperature: Temperature that is wanted, moved into the provider's range.
        logprobs: Whether log-probabilities are wanted.
        rejected: Parameters that the model has rejected.
    """
    row = provider_of(model, kwargs)
    options = _cleaned({k: v for k, v in kwargs.items() if k not in _FOR_TRACERS})
    update = _unstreamed(model, options) | _sample_fields(model, row)
    hot = row.clamped(temperature)
    optional: set[str] = set()
    if "temperature" in rejected or not takes_temperature(model, row, kwargs):
        options |= {k: v for k, v in kwargs.items() if k == "temperature"}
    else:
        optional.add("temperature")
        _heat(model, row, options, update, hot)
    if n > 1 and row.n is not None and "n" not in rejected:
        options[row.n] = n
        optional.add("n")
    if logprobs and row.logprobs and "logprobs" not in rejected:
        options |= row.logprobs
        optional.add("logprobs")
    if row.stores:
        options["store"] = False
    return _request(
        model,
        options,
        update,
        messages=messages,
        provider=row,
        optional=frozenset(optional),
        temperature_set="temperature" in optional and hot == temperature,
    )


def unstreamed(request: Request) -> Request:
    """Return a request for the whole answer at once, in place of a stream."""
    options = {**request.options}
    update = _unstreamed(request.model, options)
    model = request.model.model_copy(update=update)
    return replace(request, model=model, options=options)


def _sample_fields(model: BaseChatModel, row: Provider) -> dict[str, Any]:
    """Return the fields of a model that a sample sets anew, but for the temperature."""
    fields = type(model).model_fields
    update: dict[str, Any] = {
        name: None for name in ("seed", "random_seed") if name in fields
    }
    if "n" in fields and row.n is not None:
        update["n"] = fields["n"].default
    if getattr(model, "store", None):
        update["store"] = False
    for place in NESTED:
        if place in fields and isinstance(held := getattr(model, place), Mapping):
            update[place] = _cleaned(held)
    return update


def _heat(
    model: BaseChatModel,
    row: Provider,
    options: dict[str, Any],
    update: dict[str, Any],
    temperature: float,
) -> None:
    """Set the temperature: as a field of the class, else as an option of the call."""
    if row.temperature in type(model).model_fields:
        update[str(row.temperature)] = temperature
    else:
        options["temperature"] = temperature
    for place in row.replaces_fields:
        if isinstance(held := options.get(place), Mapping):
            options[place] = {**held, "temperature": temperature}


def _request(
    model: BaseChatModel,
    options: dict[str, Any],
    update: dict[str, Any],
    *,
    messages: Sequence[BaseMessage],
    provider: Provider,
    optional: frozenset[str],
    temperature_set: bool = True,
    adds_logprobs: bool = False,
) -> Request:
    _make_clients(model)
    quiet = {"cache": False, "callbacks": None, "verbose": False}
    copy = model.model_copy(update=quiet | update)
    stop = options.pop("stop", None)
    options, schema = _without_parser(copy, options, provider)
    return Request(
        model=copy,
        messages=messages,
        options=options,
        stop=[stop] if isinstance(stop, str) else stop and list(stop),
        provider=provider,
        optional=optional,
        temperature_set=temperature_set,
        adds_logprobs=adds_logprobs,
        schema=schema,
    )


def _unstreamed(model: BaseChatModel, options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a model that does not stream, and drop such options."""
    for name in ("stream", "stream_options"):
        options.pop(name, None)
    streaming = {"streaming": False} if "streaming" in type(model).model_fields else {}
    return {"disable_streaming": True, **streaming}


def _cleaned(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as samples take them over, those inside of others too."""
    kept = {
        name: _cleaned(value)
        if name in NESTED and isinstance(value, Mapping)
        else value
        for name, value in options.items()
        if name not in _SET_FOR_SAMPLES
    }
    if "store" in kept:
        kept["store"] = False
    return kept


def _make_clients(model: BaseChatModel) -> None:
    """Let a class that makes its clients when first used make them, once for all."""
    for name in ("_client", "_async_client"):
        if isinstance(getattr(type(model), name, None), cached_property):
            getattr(model, name)


def _without_parser(
    model: BaseChatModel, options: dict[str, Any], provider: Provider
) -> tuple[dict[str, Any], type[BaseModel] | None]:
    """Ask OpenAI for a structured reply that its client does not parse.

    The client raises where a reply does not fit the schema or was cut off: that reply,
    and all others of the request, would be lost before anybody could assess them.
    """
    wanted = options.get("response_format")
    if wanted is None or not provider.client_parses:
        return options, None
    schema = None
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        schema, wanted = wanted, _json_schema(wanted)
    rest = {name: value for name, value in options.items() if name != "response_format"}
    if provider.stores:  # the Responses API, whose class parses nothing but classes
        return {**rest, "response_format": wanted}, schema
    extra = options.get("extra_body", getattr(model, "extra_body", None)) or {}
    return {**rest, "extra_body": {"response_format": wanted, **extra}}, schema


def _json_schema(wanted: type[BaseModel]) -> dict[str, Any]:
    """Return the schema that OpenAI's client would send."""
    import openai

    function = openai.pydantic_function_tool(wanted)["function"]
    schema = {"name": function["name"], "schema": function.get("parameters")}
    return {"type": "json_schema", "json_schema": {**schema, "strict": True}}
