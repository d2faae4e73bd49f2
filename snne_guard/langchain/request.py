"""What a draw asks of a model.

It is asked by a copy with options of the call: the user's own is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from snne_guard.engine import Draw, options_for
from snne_guard.engine.options import narrows
from snne_guard.engine.protocol import TOP_LOGPROBS
from snne_guard.engine.reading import strings_in
from snne_guard.engine.vocabulary import FIELDS, STREAMS
from snne_guard.langchain.providers import FOR_TRACERS, Provider
from snne_guard.langchain.wrappers import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request that can be sent as it is.

    Attributes:
        draw: What it asks for.
        model: Copy of the model that is asked; the user's own is untouched.
        messages: The whole conversation.
        options: Options of ``_generate`` and ``_stream``, ``stop`` among them.
        provider: Row of the model in the table.
        optional: Parameters that the guard has added, and that may be left out where
            the provider rejects them.
        rejected: Parameters that the guard would have added, but for the provider.
        temperature_set: Whether a sample is drawn at the temperature asked for.
        schema: Class that a structured reply is to be parsed into, None for others.
    """

    draw: Draw
    model: BaseChatModel
    messages: Sequence[BaseMessage]
    options: dict[str, Any]
    provider: Provider
    optional: frozenset[str]
    rejected: frozenset[str]
    temperature_set: bool
    schema: type[BaseModel] | None

    @property
    def texts(self) -> list[str]:
        """What is said in it."""
        said = [str(message.text) for message in self.messages]
        # An application may pass other texts of its users on, such as their names.
        return [*said, *strings_in({**self.options, "include": None, "model": None})]


def request_for(
    draw: Draw,
    target: Target,
    messages: Sequence[BaseMessage],
    *,
    left_out: frozenset[str],
    stream: bool = False,
) -> ModelRequest:
    """Return the request for a draw; ``options_for`` says what it changes."""
    model, kwargs, provider = target.model, target.options, target.provider
    # Another model has its own settings and the call's stop texts, which some reject.
    stops = frozenset({"stop"} & kwargs.keys())
    wanted = draw.added(target.parameters) if draw.other_model is None else stops
    optional = wanted - left_out
    if draw.role == "answer" and kwargs.get("logprobs", getattr(model, "logprobs", 0)):
        optional -= {"logprobs"}  # the user's own, which stay
    temperature = None
    if draw.temperature is not None and "temperature" in optional:
        temperature = provider.clamped(draw.temperature)
    not_sent = FOR_TRACERS if stream else FOR_TRACERS | STREAMS
    given = {name: kwargs[name] for name in kwargs if name not in not_sent}
    if draw.other_model is None:
        options = options_for(draw, given, temperature=temperature)
        fields = {} if draw.role == "answer" else _fields_for(draw, model, temperature)
    else:
        options, fields = _own_settings(model, given, left_out)
    if temperature is not None and provider.temperature in type(model).model_fields:
        fields[provider.temperature] = temperature
    if not stream and "streaming" in type(model).model_fields:
        fields["streaming"] = False
    if draw.role != "answer" and provider.stores:
        options["store"] = False
    if "logprobs" in optional:
        options["logprobs"] = True
        if "top_logprobs" in optional:
            options["top_logprobs"] = TOP_LOGPROBS
    if "n" in optional:
        options[str(provider.n)] = draw.n
    copy = model.model_copy(update=fields)
    parses = provider.client_parses and options.get("response_format") is not None
    options, schema = (
        _without_parser(copy, options, provider) if parses else (options, None)
    )
    return ModelRequest(
        draw=draw,
        model=copy,
        messages=messages,
        options=options,
        provider=provider,
        optional=optional,
        rejected=wanted & left_out,
        temperature_set=temperature == draw.temperature,
        schema=schema,
    )


def _fields_for(
    draw: Draw, model: BaseChatModel, temperature: float | None
) -> dict[str, Any]:
    """Return fields as a sample takes them over; what it leaves out is None."""
    names = [
        name
        for name, field in type(model).model_fields.items()
        if (name in FIELDS or narrows(name))
        and not field.is_required()  # a guard's n is, and means something else
    ]
    given = {name: getattr(model, name) for name in names}
    held = {name: value for name, value in given.items() if value is not None}
    taken = options_for(draw, held, temperature=temperature)
    left_out: dict[str, Any] = dict.fromkeys(held.keys() - taken.keys())
    if "n" in left_out:  # classes count with it
        left_out["n"] = 1
    return left_out | taken


def _own_settings(
    model: BaseChatModel, options: Mapping[str, Any], left_out: frozenset[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options and fields of another model: its own, but nothing is stored."""
    taken = {name: options[name] for name in options if name not in left_out}
    taken |= dict.fromkeys({"store"} & taken.keys(), False)
    return taken, {"store": False} if getattr(model, "store", None) else {}


def _without_parser(
    model: BaseChatModel, options: dict[str, Any], provider: Provider
) -> tuple[dict[str, Any], type[BaseModel] | None]:
    """Ask OpenAI for a structured reply that its client does not parse.

    The client raises where a reply does not fit the schema or was cut off: that reply,
    and all others of the request, would be lost before anybody could assess them.
    """
    schema, wanted = None, options["response_format"]
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
