"""The options of a user's request: what a draw makes of them, what they ask for.

Options are those of a LangChain call, the fields of its model, or the JSON body of a
request to OpenAI's API. Some of them hold further options.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from snne_guard.engine.protocol import Draw
from snne_guard.engine.vocabulary import (
    ACTING,
    ALIKE,
    CONTENT,
    DECLARATIONS,
    FORMS,
    LIMITS,
    NARROWING,
    NESTED,
    NO_SCHEMA,
    NOT_FOR_SAMPLES,
    OF_ONE_REQUEST,
    OWN_TOOLS,
    REPLACE_FIELDS,
    SCHEMAS,
    SEARCHING,
    SETTINGS,
    STOPS,
)
from snne_guard.views import EXTRA_TOKENS

LARGE_LIMIT = 2048
"""Enough to reason, and perhaps all that a model takes, so that nothing is added."""


def options_for(
    draw: Draw, options: Mapping[str, Any], *, temperature: float | None
) -> dict[str, Any]:
    """Return the user's options as a draw takes them over.

    The answer keeps them. A sample has the guard's temperature, None where the provider
    takes none, no seed and nothing else that narrows a draw, at any depth, and is not
    stored. A question about the answer has neither tools, schema nor stop texts. Where
    only a part of a sample is compared, it has more tokens and no stop texts.

    Example:
        >>> user = {"user": "me", "extra_body": {"top_k": 1, "temperature": 0}}
        >>> options_for(Draw(role="sample"), user, temperature=1.0)
        {'user': 'me', 'extra_body': {'temperature': 1.0}}
    """
    if draw.role == "answer":
        return {**options}
    left_out = NOT_FOR_SAMPLES
    if draw.turns:
        left_out |= FORMS
    elif draw.extracts:
        left_out |= {*STOPS}
    taken = {name: options[name] for name in options if name not in left_out}
    if draw.role == "sample":
        taken = _widened(taken, temperature)
    return {n: _value_for(draw, n, value, temperature) for n, value in taken.items()}


def narrows(name: object) -> bool:
    """Recognise an option or header that makes draws alike, however it is spelt."""
    return _plain(name) in _NARROWING


def _plain(name: object) -> str:
    return re.sub(r"[\W_]", "", str(name)).lower()


_NARROWING = {*map(_plain, NARROWING | OF_ONE_REQUEST)}
_CONTENT = {*map(_plain, CONTENT)}


def _widened(value: Any, temperature: float | None) -> Any:  # noqa: ANN401 - any option
    """Return options without what narrows a draw, at any depth."""
    if isinstance(value, list):
        return [_widened(each, temperature) for each in value]
    if not isinstance(value, Mapping):
        return value
    wide = {
        name: inner if _plain(name) in _CONTENT else _widened(inner, temperature)
        for name, inner in value.items()
        if not narrows(name)
    }
    heated = temperature is not None and "temperature" in value
    return {**wide, "temperature": temperature} if heated else wide


def _value_for(draw: Draw, name: str, value: Any, temperature: float | None) -> Any:  # noqa: ANN401 - any option
    if name in NESTED and isinstance(value, Mapping):
        inner = options_for(draw, value, temperature=temperature)
        adds = temperature is not None and name in REPLACE_FIELDS
        return {**inner, "temperature": temperature} if adds else inner
    if name in LIMITS and draw.extracts and isinstance(value, int):
        return value + EXTRA_TOKENS if 0 < value < LARGE_LIMIT else value
    return False if name == "store" else value


def option_key(levels: Iterable[Mapping[str, Any]]) -> Hashable:
    """Make a key, the same for options with which a model takes the same ones."""
    given = [
        (name, value)
        for level in levels
        for each in _levels(level)
        for name, value in each.items()
        if value is not None
    ]
    return frozenset(
        (name, hash(repr(value)) if _counts(name, value) else None)
        for name, value in given
    )


def _counts(name: str, value: object) -> bool:
    """Recognise an option whose value may decide what a model takes."""
    return name not in ALIKE and isinstance(value, str | int | float | list | Mapping)


def answer_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an answer's draw, in a calibration's names."""
    settings: dict[str, Any] = {}
    levels = [*_levels(options)]
    for name, aliases in SETTINGS.items():
        values = [each[alias] for each in levels for alias in aliases if alias in each]
        if values:
            # What stands inside of another option comes last, and takes its place.
            values = [value for value in values if value is not None]
            value = values[-1] if values else None
            text = name == "stop" and isinstance(value, str)
            settings[name] = [value] if text else value
    return settings


def asks_for_schema(options: Mapping[str, Any]) -> bool:
    """Recognise options that ask for JSON, or for an answer that fits a schema."""
    return any(
        level.get(name) not in NO_SCHEMA
        for level in _levels(options)
        for name in SCHEMAS
    )


def may_act(options: Mapping[str, Any]) -> bool:
    """Recognise options with which a sample could act on the world.

    Tools that run at the provider (search, code, MCP servers) may write, pay or send; a
    stored conversation would grow by every sample. Tools of the application are only
    proposed in a reply, so they do not count.
    """
    for level in _all_levels(options):
        # An empty mapping asks for something in its usual form; an empty list does not.
        if any(level.get(name) not in (None, False, []) for name in ACTING):
            return True
        names = str([level.get(name) for name in ("model", "model_name", "models")])
        if any(part in names for part in SEARCHING):
            return True
        tools = level.get("tools")
        if isinstance(tools, list | tuple) and any(map(_runs_at_provider, tools)):
            return True
    return False


def is_partial(options: Mapping[str, Any]) -> bool:
    """Recognise options that leave a part of the conversation to the provider."""
    return any(level.get("previous_response_id") for level in _levels(options))


def asked_of(levels: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Return the flags of a ``Request`` that options set."""
    return {
        "schema": any(map(asks_for_schema, levels)),
        "side_effects": any(map(may_act, levels)),
        "partial": any(map(is_partial, levels)),
    }


def _levels(options: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield options, and those inside of others."""
    yield options
    for name in NESTED & options.keys():
        if isinstance(options[name], Mapping):
            yield from _levels(options[name])


def _all_levels(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield options, and those inside of whatever holds some."""
    if isinstance(value, Mapping):
        yield value
        inside = value.keys() - {name for name in value if _plain(name) in _CONTENT}
        value = [value[name] for name in inside | NESTED & value.keys()]
    for each in value if isinstance(value, list) else ():
        yield from _all_levels(each)


def _runs_at_provider(tool: Any) -> bool:  # noqa: ANN401 - whatever a class takes
    if not isinstance(tool, Mapping):  # a function, a class or a BaseTool
        return isinstance(tool, str) or type(tool).__module__.startswith("google.")
    given = {name: value for name, value in tool.items() if value not in (None, [])}
    if "type" in given:
        return not str(given["type"]).startswith(OWN_TOOLS)
    named = given.keys() & {"name", "title"}
    return not (named or given.keys() <= DECLARATIONS)
