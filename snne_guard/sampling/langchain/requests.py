"""What one request to a LangChain model is made of, and whether it acts on the world.

A request is a copy of the model and options of the call: the user's own model is never
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from snne_guard.sampling.langchain.providers import (
    LIMITS,
    STOPS,
    Provider,
    provider_of,
    takes_temperature,
)
from snne_guard.sampling.langchain.wrappers import ChatRunnable, bound_models
from snne_guard.sampling.replies import TOP_LOGPROBS, Draw
from snne_guard.views import EXTRA_TOKENS

__all__ = ["ModelRequest", "has_side_effects", "request_for", "wants_schema"]

_NESTED = frozenset(
    {
        "additional_model_request_fields",
        "extra_body",
        "generation_config",
        "inferenceConfig",
        "inference_config",
        "model_kwargs",
        "options",
        "outputConfig",
        "output_config",
        "text",
        "toolConfig",
        "tool_config",
    }
)
"""Options and fields that hold further options of the request."""

_REPLACE_FIELDS = frozenset({"inferenceConfig", "inference_config", "options"})
"""Those that take the place of a model's fields: Bedrock's and Ollama's."""

_SEEDS = frozenset({"random_seed", "seed"})
_STREAMS = frozenset({"stream", "stream_options"})
"""Options of a streamed request alone."""

_SET_FOR_SAMPLES = frozenset(
    {
        *_SEEDS,
        *_STREAMS,
        "candidate_count",
        "logprobs",
        "metadata",  # of what is stored
        "n",
        "response_logprobs",
        "stream_usage",
        "top_logprobs",
    }
)
"""Options that a sample does not take over from the user."""

_SCHEMAS = frozenset(
    {
        "format",
        "output_format",
        "response_format",
        "response_json_schema",
        "response_mime_type",
        "response_schema",
        "textFormat",
    }
)
"""Options that ask for an answer that fits a schema, or is JSON."""

_NO_SCHEMA = (None, "", "text/plain", {"type": "text"})

_FORMS = frozenset(
    {
        *_SCHEMAS,
        *STOPS,
        "function_call",
        "functions",
        "parallel_tool_calls",
        "strict",
        "toolConfig",
        "tool_choice",
        "tool_config",
        "tools",
    }
)
"""Options that a self-check leaves out: it asks for a word, by no tool or schema."""

_FIELDS = _NESTED | _SEEDS | _FORMS | {*LIMITS, "n", "store"}
"""Fields of models that a draw may set anew."""

_FOR_TRACERS = frozenset({"ls_structured_output_format", "structured_output_format"})
"""Options that LangChain takes out before the provider sees them."""

Options = dict[str, Any]
Change = Callable[[Options], Options]


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
        messages: The whole conversation, as the draw has it.
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
    not_sent = _FOR_TRACERS if stream else _FOR_TRACERS | _STREAMS
    options = {name: kwargs[name] for name in kwargs if name not in not_sent}
    changes = _changes(draw, sample_temperature)
    options = _changed(options, changes)
    fields = {
        **_changed_fields(model, changes),
        "cache": False,
        "callbacks": None,
        "verbose": False,
    }
    if sample_temperature is not None and row.temperature in type(model).model_fields:
        fields[row.temperature] = sample_temperature
    if not stream and "streaming" in type(model).model_fields:
        fields["streaming"] = False
    if draw.role != "answer" and row.stores:
        options["store"] = False
    if "logprobs" in optional:
        options |= row.logprobs
        if "top_logprobs" in optional:
            options[str(row.top_logprobs)] = TOP_LOGPROBS
    if "n" in optional:
        options[str(row.n)] = draw.n
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


def _changes(draw: Draw, temperature: float | None) -> list[Change]:
    """Return what a draw changes in the options of the user."""
    changes: list[Change] = []
    if draw.role == "check":
        changes.append(_without_form)
    if draw.role != "answer":
        changes.append(partial(_sampled, temperature=temperature))
    if draw.view is not None and draw.view.extract is not None:
        changes.append(_with_room)
    return changes


def _changed(options: Mapping[str, Any], changes: Sequence[Change]) -> Options:
    """Return options as functions change them, those inside of others too."""
    changed = {
        name: _changed(value, changes)
        if name in _NESTED and isinstance(value, Mapping)
        else value
        for name, value in options.items()
    }
    for change in changes:
        changed = change(changed)
    return changed


def _changed_fields(model: BaseChatModel, changes: Sequence[Change]) -> Options:
    """Return fields as functions change them; what they leave out has its default."""
    fields = type(model).model_fields
    names = [
        name
        for name in _FIELDS & fields.keys()
        if not fields[name].is_required()  # a guard's n is, and means something else
    ]
    given = {name: getattr(model, name) for name in names}
    held = {name: value for name, value in given.items() if value is not None}
    changed = _changed(held, changes)
    left_out = held.keys() - changed.keys()
    defaults = {n: fields[n].get_default(call_default_factory=True) for n in left_out}
    return defaults | changed


def _without_form(options: Options) -> Options:
    """Return options without tools, schemas and stop texts, for a self-check."""
    return {name: value for name, value in options.items() if name not in _FORMS}


def _sampled(options: Options, temperature: float | None) -> Options:
    """Return options as samples take them over."""
    kept = {k: value for k, value in options.items() if k not in _SET_FOR_SAMPLES}
    if "store" in kept:
        kept["store"] = False
    if temperature is None:
        return kept
    for place in _REPLACE_FIELDS & kept.keys():
        if isinstance(kept[place], Mapping):
            kept[place] = {**kept[place], "temperature": temperature}
    return kept | ({"temperature": temperature} if "temperature" in kept else {})


def _with_room(options: Options) -> Options:
    """Return options with more tokens and without stop texts."""
    kept = {name: value for name, value in options.items() if name not in STOPS}
    for name in kept.keys() & {*LIMITS}:
        if isinstance(kept[name], int) and kept[name] > 0:
            kept[name] += EXTRA_TOKENS
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
        level.get(name) not in _NO_SCHEMA
        for one, options in bound_models(model, kwargs)
        for level in (*_levels(dict(one)), *_levels(options))
        for name in _SCHEMAS
    )


def _levels(options: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield options, and those inside of others."""
    yield options
    for name in _NESTED & options.keys():
        if isinstance(options[name], Mapping):
            yield from _levels(options[name])


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
_ARGUMENTS = frozenset({"args_schema", "input_schema", "parameters", "properties"})
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
        levels = (*_levels(dict(one)), *_levels(options))
        if any(_acts(level, names) for level in levels):
            return True
    return False


def _acts(options: Mapping[str, Any], names: Sequence[str]) -> bool:
    # An empty mapping asks for something in its usual form; an empty list does not.
    if any(options.get(name) not in (None, False, []) for name in names):
        return True
    tools = options.get("tools")
    return isinstance(tools, list | tuple) and any(map(_runs_at_provider, tools))


def _runs_at_provider(tool: Any) -> bool:  # noqa: ANN401 - whatever a class takes
    if type(tool).__module__.startswith("google."):
        convert = getattr(type(tool), "to_dict", None) or type(tool).model_dump
        tool = convert(tool)
    if not isinstance(tool, Mapping):
        return False  # a function, a class or a BaseTool
    given = {name: value for name, value in tool.items() if value not in (None, [])}
    if "type" in given:
        return not str(given["type"]).startswith(_OWN_TOOLS)
    if given.keys() & {"name", "title"} and given.keys() & _ARGUMENTS:
        return False
    return not given.keys() <= _DECLARATIONS
