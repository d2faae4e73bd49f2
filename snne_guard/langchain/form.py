"""Asking a fallback in the form of structured output, and fitting what it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from uuid import uuid4

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.messages.tool import tool_call
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputToolsParser
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase, coerce_to_runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.utils.json import parse_json_markdown

from snne_guard.errors import ConfigurationError
from snne_guard.langchain.messages import as_message
from snne_guard.langchain.reseat import reseat
from snne_guard.langchain.wrapped import beneath, is_model, within_wrappers
from snne_guard.sampling.langchain_models import has_choices, pin
from snne_guard.sampling.reading import as_mapping, without_thinking

__all__ = ["in_form"]

AnyRunnable = Runnable[Any, Any]


def in_form(model: Any, fallback: Any, schema: Any, options: Mapping[str, Any]) -> Any:
    """Return a fallback that answers as the parser behind a guarded model reads it.

    A model is asked for the schema in its own way, with the options bound to it. The
    message of any other, and of a model that cannot be asked so, has to hold the fields
    as JSON or as a call. Either is put into the form that the guarded model's parser
    reads; it raises where there are no fields.

    Args:
        model: The guarded model.
        fallback: Who answers instead, None if nobody does.
        schema: What ``with_structured_output`` takes.
        options: Its further options.
    """
    if fallback is None:
        return None
    form = _Form.of(model, schema, options)
    return _asked(fallback, schema, options) | RunnableLambda(form.fitted, name="form")


def _asked(fallback: Any, schema: Any, options: Mapping[str, Any]) -> Any:
    """Return a fallback that is asked for a schema as far as it can be.

    Args:
        fallback: Who answers.
        schema: What ``with_structured_output`` takes.
        options: Its further options.
    """
    if is_model(fallback) and has_choices(fallback):

        def late(_value: Any, config: RunnableConfig) -> Any:
            return _asked(pin(fallback, config), schema, options)

        return RunnableLambda(late, name="fallback")

    def made(inner: Any, kwargs: Mapping[str, Any]) -> AnyRunnable:
        return _asked_plainly(inner, kwargs, schema, options)

    return within_wrappers(fallback, made)


def _asked_plainly(
    fallback: Any, kwargs: Mapping[str, Any], schema: Any, options: Mapping[str, Any]
) -> AnyRunnable:
    make = getattr(fallback, "with_structured_output", None)
    plain: AnyRunnable = coerce_to_runnable(fallback)
    if kwargs:
        plain = plain.bind(**kwargs)
    if not callable(make):
        return plain
    try:
        asked = cast("AnyRunnable", make(schema, **{**options, "include_raw": True}))
    except Exception:  # noqa: BLE001 - each provider has its own word for "cannot"
        return plain
    try:
        return reseat(
            asked, lambda inner: beneath(inner, kwargs), around=fallback.__class__
        )
    except ConfigurationError:  # nothing to bind them to is seen in it
        return asked


Reader = Literal["calls", "json", "text", "either"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """What the parser behind a guarded model reads.

    Attributes:
        reads: Calls of tools, JSON in the text, the text in another way, or any of
            these where it cannot be told.
        name: Name of the tool that the schema is, None where it is none.
        lets_tools: Whether calls of the user's own tools pass the parser.
        lets_errors: Whether what cannot be parsed is given to the application.
    """

    reads: Reader
    name: str | None
    lets_tools: bool
    lets_errors: bool

    @classmethod
    def of(cls, model: Any, schema: Any, options: Mapping[str, Any]) -> _Form:
        """Return the form in which a model's structured output is parsed."""
        return cls(
            reads=_read_by(model, schema, options),
            name=_name(schema),
            lets_tools=bool(options.get("tools")),
            lets_errors=bool(options.get("include_raw")),
        )

    def fitted(self, answer: object) -> AIMessage:
        """Return what a fallback gave as a message that the parser reads.

        Raises:
            OutputParserException: If there are no fields in it, where the parser would
                return None, or nothing in a stream.
        """
        asked = as_mapping(answer)
        message = as_message(asked.get("raw", answer))
        called = [call["name"] for call in message.tool_calls]
        if self.lets_tools and called and self.name not in called:
            return message
        fields = _fields(message, asked.get("parsed"))
        self._check(fields, asked.get("parsing_error"))
        if self.reads != "calls":
            message = self._as_text(message, fields)
        if self.reads in {"json", "text"} or self.name is None or self.name in called:
            return message
        return _as_call(message, self.name, fields)

    def _check(self, fields: Any, error: Exception | None) -> None:
        if self.lets_errors:
            return
        if error is not None:
            raise error
        if fields is None and self.reads in {"calls", "json"}:
            msg = (
                f"the fallback's answer does not hold the fields of {self.name}: it "
                "has to give them as JSON, or as a call of a tool of that name"
            )
            raise OutputParserException(msg)

    def _as_text(self, message: AIMessage, fields: Any) -> AIMessage:
        if fields is None:
            return message
        aside = dict(message.additional_kwargs)
        if self.reads != "json" and isinstance(fields, dict):
            aside.setdefault("parsed", fields)  # where OpenAI's own parser looks
        update: dict[str, Any] = {"additional_kwargs": aside}
        if _json(message.text) != fields:
            update["content"] = json.dumps(fields, ensure_ascii=False, default=str)
        if self.reads != "either":
            update["tool_calls"] = []
            aside.pop("tool_calls", None)
        return message.model_copy(update=update)


def _as_call(message: AIMessage, name: str, fields: Any) -> AIMessage:
    """Return a message that calls a tool, in a way that no parser takes if it cannot.

    Without any call the parsers would return None.
    """
    aside = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    calls: list[ToolCall] = []
    if isinstance(fields, dict):
        args = cast("dict[str, Any]", fields)
        calls = [tool_call(name=name, args=args, id=f"call_{uuid4().hex}")]
    else:
        said = f"not the fields of {name}: {message.text}"
        function = {"name": name, "arguments": said}
        aside["tool_calls"] = [{"type": "function", "id": "", "function": function}]
    update = {"tool_calls": calls, "additional_kwargs": aside}
    return message.model_copy(update=update)


def _read_by(model: Any, schema: Any, options: Mapping[str, Any]) -> Reader:
    """Return what the parser behind a model's structured output reads."""
    if has_choices(model):
        return "either"
    while isinstance(model, RunnableBindingBase | RunnableWithFallbacks):
        several = isinstance(model, RunnableWithFallbacks)
        wrapper = cast("Any", model)
        model = wrapper.runnable if several else wrapper.bound
    make = getattr(model, "with_structured_output", None)
    chain: Any = make and make(schema, **{**options, "include_raw": False})
    steps: Sequence[object] = getattr(chain, "steps", ())
    parser = next(reversed(steps), None)
    if isinstance(parser, JsonOutputToolsParser):
        return "calls"
    if isinstance(parser, JsonOutputParser):
        return "json"
    return "either" if parser is None else "text"


def _name(schema: Any) -> str | None:
    try:
        return str(convert_to_openai_tool(schema)["function"]["name"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _fields(message: AIMessage, parsed: object) -> Any:
    """Return the fields that a message holds, None if there are none."""
    if message.tool_calls:
        return message.tool_calls[0]["args"]
    found = _json(without_thinking(str(message.text)))
    if found is not None:
        return found
    if parsed is None:
        parsed = message.additional_kwargs.get("parsed")
    dump = getattr(parsed, "model_dump", None)
    return parsed if dump is None else dump(mode="json", by_alias=True)


def _json(text: str) -> Any:
    """Return the object or list that a text is, None if it is neither."""
    try:
        found: Any = parse_json_markdown(text, parser=json.loads)
    except ValueError:
        return None
    return cast("Any", found) if isinstance(found, dict | list) else None
