"""What the engine is asked in a call, and what a draw of it asks of the model.

A model is asked by a copy with options of the call: the user's own is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from snne_guard.engine import (
    Draw,
    GuardState,
    Observers,
    Request,
    Response,
    asks_for_schema,
    is_partial,
    may_act,
    options_for,
)
from snne_guard.engine.options import narrows
from snne_guard.engine.protocol import TOP_LOGPROBS
from snne_guard.engine.reading import strings_in
from snne_guard.engine.vocabulary import FIELDS, STREAMS
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.messages import as_message, question_of, reply_of
from snne_guard.langchain.providers import FOR_TRACERS, Provider
from snne_guard.langchain.wrappers import ModelTree, Target
from snne_guard.settings import GuardSettings

Run = CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None
"""The guard's own run, None outside a run."""


# -- Of the engine ---------------------------------------------------------------------


def engine_request(
    inside: ModelTree,
    messages: list[BaseMessage],
    *,
    settings: GuardSettings,
    state: GuardState,
    observers: Observers,
    others: Mapping[str, ModelTree],
    structured: bool | frozenset[str] = False,
    run: Run = None,
    answer: AIMessage | str | None = None,
) -> Request:
    """Return the engine's request for one call.

    Args:
        inside: The guarded model, with the options of the call.
        messages: The conversation.
        settings: The options of the guard.
        state: What its calls share, with those of its copies.
        observers: Who gets the assessments.
        others: The other models, by name.
        structured: Whether calls are a form of the answer, or those that are.
        run: The guard's run.
        answer: An answer that exists already.

    Raises:
        ConfigurationError: Another model lacks the tools or the schema of the model.
    """
    levels = inside.levels
    context = _of_call(run, "snne_guard_context")
    for name, other in others.items():
        lacks = [] if structured is True else _lacking(levels, other.levels)
        if lacks:
            msg = (
                f"the other model {name!r} has no {lacks[0]}, and the guarded one has: "
                "bind it by bind_tools or with_structured_output of the guard, or to "
                "both models; in create_agent, ask for a schema by ToolStrategy"
            )
            raise ConfigurationError(msg)
    return Request(
        settings=settings,
        state=state,
        capabilities=inside.capabilities,
        keys=tuple(target.key for target in inside.targets),
        question=state.question(
            _chosen_question(settings, messages, run), question_of(messages)
        ),
        tools_bound=any(level.get("tools") for level in levels),
        structured=structured,
        context=settings.context_of(messages, context),
        schema=any(map(asks_for_schema, levels)),
        side_effects=any(map(may_act, levels)),
        partial=any(map(is_partial, levels)),
        retry=not inside.retries_itself,
        others_retried=frozenset(
            name for name, other in others.items() if not other.retries_itself
        ),
        model=inside.named.get("model"),
        answer=None if answer is None else _response(as_message(answer)),
        observers=observers,
        answer_settings=inside.answer_settings | settings.settings_of_call(context),
        run_id=None if run is None else str(run.run_id),
    )


def _lacking(
    levels: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return the options bound to the guarded model and not to the other one."""
    tools = [any(level.get("tools") for level in each) for each in (levels, others)]
    schema = [any(map(asks_for_schema, each)) for each in (levels, others)]
    found = {"tools": tools, "schema": schema}
    return [name for name, has in found.items() if has == [True, False]]


def _response(message: AIMessage) -> Response:
    return Response(replies=(reply_of(message),), raw=message)


def _of_call(run: Run, name: str) -> object:
    """Return the value that the application gives a call in its metadata."""
    return None if run is None else (run.metadata or {}).get(name)


def _chosen_question(
    settings: GuardSettings, messages: list[BaseMessage], run: Run
) -> object:
    """Return the question as the application gives it, None where it does not."""
    chosen = _of_call(run, "snne_guard_question")
    if chosen is None and settings.question is not None:
        return settings.question(messages)
    return chosen


# -- Of the model ----------------------------------------------------------------------


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
    # Of another model's options, some models take no stop texts.
    added = draw.added(target.parameters)
    wanted = added if draw.other_model is None else frozenset({"stop"} & kwargs.keys())
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
        fields = _fields_for(draw, model, temperature)
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
    options, schema = _without_parser(copy, options, provider)
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
    """Return fields as a draw takes them over; what it leaves out is None."""
    if draw.role == "answer":
        return {}
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
