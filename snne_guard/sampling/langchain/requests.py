"""What one request to a LangChain model is made of, and whether it acts on the world.

A request is a copy of the model and options of the call: the user's own model is never
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from snne_guard.sampling.langchain.providers import (
    Provider,
    provider_of,
    takes_temperature,
)
from snne_guard.sampling.langchain.wrappers import ChatRunnable, bound_models
from snne_guard.sampling.reading import mapping_of
from snne_guard.sampling.replies import TOP_LOGPROBS, Draw
from snne_guard.views import EXTRA_TOKENS

__all__ = ["ModelRequest", "has_side_effects", "request_for", "wants_schema"]

_NESTED = (
    "additional_model_request_fields",
    "extra_body",
    "generation_config",
    "inferenceConfig",
    "inference_config",
    "model_kwargs",
    "options",
    "toolConfig",
    "tool_config",
)
"""Options and fields that hold further options of the request."""

_REPLACE_FIELDS = frozenset({"inferenceConfig", "inference_config", "options"})
"""Those that take the place of a model's fields: Bedrock's and Ollama's."""

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
        "top_logprobs",
    }
)
"""Options that a sample does not take over from the user, wherever they are."""

_STREAMS = frozenset({"stream", "stream_options"})
"""Options of a streamed request alone."""

_STOPS = ("stop", "stop_sequences", "stopSequences")

_LIMITS = frozenset(
    {
        "maxTokens",
        "max_completion_tokens",
        "max_new_tokens",
        "max_output_tokens",
        "max_tokens",
        "num_predict",
    }
)
"""What the token limit of a reply is called."""

_NOT_CHECKED = frozenset(
    {
        "format",
        "function_call",
        "functions",
        "parallel_tool_calls",
        "response_format",
        "response_mime_type",
        "response_schema",
        "strict",
        *_STOPS,
        "toolConfig",
        "tool_choice",
        "tool_config",
        "tools",
    }
)
"""Options that a self-check leaves out: it asks for a word, by no tool or schema."""

_SCHEMAS_OF_ANSWERS = (
    "format",
    "response_format",
    "response_mime_type",
    "response_schema",
)
_NO_SCHEMA = (None, "", "text/plain", {"type": "text"})

_FOR_TRACERS = ("ls_structured_output_format", "structured_output_format")
"""Options that LangChain takes out before the provider sees them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request that can be sent as it is.

    Attributes:
        model: Copy of the model that is asked; the user's own is untouched.
        messages: The whole conversation.
        options: Options of ``_generate`` and ``_stream``.
        stop: Texts at which a reply ends, None where none are given.
        provider: Row of the model in the table.
        optional: Parameters that the guard has added, and that may be left out where
            the provider rejects them.
        temperature_set: Whether a sample is drawn at the temperature asked for.
        schema: Class that a structured reply is to be parsed into, None for others.
    """

    model: BaseChatModel
    messages: Sequence[BaseMessage]
    options: dict[str, Any]
    stop: list[str] | None
    provider: Provider
    optional: frozenset[str]
    temperature_set: bool
    schema: type[BaseModel] | None


def request_for(
    draw: Draw,
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    kwargs: Mapping[str, Any],
    *,
    temperature: float,
    logprobs: bool,
    left_out: frozenset[str],
    stream: bool = False,
) -> ModelRequest:
    """Return the request for a draw.

    The answer keeps the user's own settings. A sample is drawn at the temperature asked
    for, without streaming and without a seed, and is not stored. A self-check asks a
    question about the answer, without tools, schema and stop texts. A sample of which
    only a part is compared has more tokens, and no stop texts that could cut it short.

    Args:
        draw: What is wanted.
        model: The model.
        messages: The whole conversation.
        kwargs: Options of the call, bound ones included.
        temperature: Temperature of samples, moved into the provider's range.
        logprobs: Whether log-probabilities are wanted.
        left_out: Parameters that the model rejects.
        stream: Whether the answer is streamed.
    """
    row = provider_of(model, kwargs)
    sample, check = draw.role == "sample", draw.role == "check"
    has_logprobs = kwargs.get("logprobs", getattr(model, "logprobs", None))
    wants_logprobs = check or (logprobs and (sample or not has_logprobs))
    adds = {
        "logprobs": wants_logprobs and bool(row.logprobs),
        "top_logprobs": check and row.top_logprobs is not None,
        "n": draw.n > 1 and row.n is not None,
        "temperature": sample and takes_temperature(model, row, kwargs),
    }
    optional = frozenset(name for name in adds if adds[name]) - left_out
    sample_temperature = row.clamped(temperature) if "temperature" in optional else None
    options = {name: kwargs[name] for name in kwargs if name not in _FOR_TRACERS}
    fields: dict[str, Any] = {"cache": False, "callbacks": None, "verbose": False}
    if check:
        answer, question = draw.turns
        messages = (*messages, AIMessage(answer), HumanMessage(question))
        options = {k: v for k, v in options.items() if k not in _NOT_CHECKED}
        fields |= {k: None for k in _STOPS if k in type(model).model_fields}
    if sample or check:
        options = _sampled(options, sample_temperature) | (
            {"store": False} if row.stores else {}
        )
        fields |= _sample_fields(model, row, sample_temperature)
    if draw.view is not None and draw.view.extract is not None:
        options = _with_room(options)
        names = type(model).model_fields.keys() & {*_STOPS, *_LIMITS, *_NESTED}
        held = {name: fields.get(name, getattr(model, name)) for name in names}
        fields |= dict.fromkeys(names & {*_STOPS}) | _with_room(held)
    if "logprobs" in optional:
        options |= row.logprobs
        if "top_logprobs" in optional:
            options[str(row.top_logprobs)] = TOP_LOGPROBS
    if "n" in optional:
        options[str(row.n)] = draw.n
    if not stream:
        options = {k: v for k, v in options.items() if k not in _STREAMS}
        if "streaming" in type(model).model_fields:
            fields["streaming"] = False
    _make_clients(model)
    copy = model.model_copy(update=fields)
    stop = options.pop("stop", None)
    options, schema = _without_parser(copy, options, row)
    return ModelRequest(
        model=copy,
        messages=messages,
        options=options,
        stop=[stop] if isinstance(stop, str) else stop and list(stop),
        provider=row,
        optional=optional,
        temperature_set="temperature" in optional and sample_temperature == temperature,
        schema=schema,
    )


def _sampled(
    options: Mapping[str, Any], sample_temperature: float | None
) -> dict[str, Any]:
    """Return options as samples take them over, those inside of others too."""
    kept = {
        name: _sampled(value, sample_temperature)
        if name in _NESTED and isinstance(value, Mapping)
        else value
        for name, value in options.items()
        if name not in _SET_FOR_SAMPLES
    }
    if "store" in kept:
        kept["store"] = False
    if sample_temperature is None:
        return kept
    for place in _REPLACE_FIELDS & kept.keys():
        if isinstance(kept[place], Mapping):
            kept[place] = {**kept[place], "temperature": sample_temperature}
    return kept | ({"temperature": sample_temperature} if "temperature" in kept else {})


def _sample_fields(
    model: BaseChatModel, row: Provider, sample_temperature: float | None
) -> dict[str, Any]:
    """Return the fields of a model that a sample sets anew."""
    fields = type(model).model_fields
    update: dict[str, Any] = {
        name: None for name in ("seed", "random_seed") if name in fields
    }
    if "n" in fields and not fields["n"].is_required():  # a guard's n is
        update["n"] = fields["n"].default
    if getattr(model, "store", None):
        update["store"] = False
    for place in _NESTED:
        if place in fields and isinstance(held := getattr(model, place), Mapping):
            update[place] = _sampled(held, sample_temperature)
    if sample_temperature is not None and row.temperature in fields:
        update[row.temperature] = sample_temperature
    return update


def _with_room(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with more tokens and without stop texts, those inside too."""
    kept = {name: value for name, value in options.items() if name not in _STOPS}
    for name, value in kept.items():
        if name in _NESTED and isinstance(value, Mapping):
            kept[name] = _with_room(value)
        elif name in _LIMITS and isinstance(value, int) and value > 0:
            kept[name] = value + EXTRA_TOKENS
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


def wants_schema(model: ChatRunnable, kwargs: Mapping[str, Any] | None = None) -> bool:
    """Return whether the answer is to fit a schema, or to be JSON.

    Args:
        model: A chat model, or wrappers around one or several.
        kwargs: Options of the call, which override bound ones.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["{}"])
        >>> wants_schema(model.bind(response_format={"type": "json_object"}))
        True
    """
    return any(
        holder.get(name) not in _NO_SCHEMA
        for one, options in bound_models(model, kwargs)
        for aside in [mapping_of(getattr(one, "model_kwargs", None))]
        for holder in (dict(one), aside, options)
        for name in _SCHEMAS_OF_ANSWERS
    )


# -- Side effects ----------------------------------------------------------------------

_OWN_TOOLS = (
    "apply_patch",
    "bash_",
    "computer_",
    "custom",
    "function",
    "local_shell",
    "memory_",
    "text_editor_",
)
"""How the types begin of tools that the application runs, not the provider."""
_SCHEMAS = frozenset({"args_schema", "input_schema", "parameters", "properties"})
_DECLARATIONS = frozenset(
    {"function", "functionDeclarations", "function_declarations", "toolSpec"}
)


def has_side_effects(
    model: ChatRunnable, kwargs: Mapping[str, Any] | None = None
) -> bool:
    """Return whether a sample could act on the world, so that none may be drawn.

    Tools that run at the provider (search, code, MCP servers) may write, pay or send; a
    stored conversation would grow by every sample. Tools of the application are only
    proposed in a reply, so they do not count.

    Args:
        model: A chat model, or wrappers around one or several.
        kwargs: Options of the call, which override bound ones.

    Raises:
        ConfigurationError: If there is anything else than a chat model inside.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> has_side_effects(model, {"tools": [{"type": "web_search"}]})
        True
    """
    for one, options in bound_models(model, kwargs):
        names = provider_of(one, options).side_effect_options
        fields = {
            name: getattr(one, name)
            for name in (*names, *_NESTED)
            if hasattr(one, name)
        }
        if _has_side_effects(fields, names) or _has_side_effects(options, names):
            return True
    return False


def _has_side_effects(options: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    # An empty mapping asks for something in its usual form; an empty list does not.
    if any(options.get(name) not in (None, False, []) for name in names):
        return True
    tools = options.get("tools")
    if isinstance(tools, list | tuple) and any(map(_runs_at_provider, tools)):
        return True
    inner = (options.get(place) for place in _NESTED)
    return any(
        _has_side_effects(each, names) for each in inner if isinstance(each, Mapping)
    )


def _runs_at_provider(tool: Any) -> bool:  # noqa: ANN401 - whatever a class takes
    if type(tool).__module__.startswith("google."):
        convert = getattr(type(tool), "to_dict", None) or type(tool).model_dump
        tool = convert(tool)
    if not isinstance(tool, Mapping):
        return False  # a function, a class or a BaseTool
    given = {name: value for name, value in tool.items() if value not in (None, [])}
    if "type" in given:
        return not str(given["type"]).startswith(_OWN_TOOLS)
    if given.keys() & {"name", "title"} and given.keys() & _SCHEMAS:
        return False
    return not given.keys() <= _DECLARATIONS
