"""The options of a user's request: what a draw makes of them, what they ask for.

Options are those of a LangChain call, the fields of its model, or the JSON body of a
request to OpenAI's API. Some of them hold further options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from snne_guard.engine.protocol import Draw
from snne_guard.views import EXTRA_TOKENS

__all__ = [
    "FIELDS",
    "STREAMS",
    "answer_settings",
    "asks_for_schema",
    "may_act",
    "options_for",
]

_LIMITS = (
    "max_tokens",
    "maxTokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "num_predict",
)
"""What the token limit of a reply is called by providers."""

_LARGE_LIMIT = 2048
"""Enough to reason, and perhaps all that a model takes, so that nothing is added."""

_STOPS = ("stop", "stop_sequences", "stopSequences")
"""What the texts are called at which a reply ends."""

STREAMS = frozenset({"stream", "stream_options"})
"""Options of a streamed request alone."""

_ACTING = frozenset(
    {
        "background",
        "code_execution",
        "compound_custom",
        "conversation",
        "mcp_servers",
        "prompt",  # may bring tools
        "search_parameters",
        "search_settings",
        "web_search_options",
    }
)
"""Options with which a provider stores or runs something."""

_SETTINGS = {
    "answer_temperature": ("temperature",),
    "top_p": ("top_p",),
    "max_tokens": _LIMITS,
    "stop": _STOPS,
}
"""What a calibration knows of an answer, and what providers call it."""

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
"""Options that hold further options."""

_REPLACE_FIELDS = frozenset({"inferenceConfig", "inference_config", "options"})
"""Those that take the place of a model's fields: Bedrock's and Ollama's."""

# One seed for all would draw the same sample again and again.
_SEEDS = frozenset({"random_seed", "seed"})

_NOT_FOR_SAMPLES = frozenset(
    {
        *_SEEDS,
        *STREAMS,
        "candidate_count",
        "logprobs",
        "metadata",  # of what is stored
        "n",
        "prediction",  # only for one answer
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
        # of vLLM and llama.cpp
        "grammar",
        "json_schema",
        "structured_outputs",
    }
)
"""Options that ask for an answer that fits a schema, or is JSON."""

_NO_SCHEMA = (None, "", "text/plain", {"type": "text"})

_FORMS = frozenset(
    {
        *_SCHEMAS,
        *_STOPS,
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
"""Options that questions about an answer leave out, for a reply in plain words."""

FIELDS = _NESTED | _SEEDS | _FORMS | {*_LIMITS, "n", "store"}
"""Fields of a LangChain model that a draw treats as options."""

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
_DECLARATIONS = frozenset(
    {"function", "functionDeclarations", "function_declarations", "toolSpec"}
)


def options_for(
    draw: Draw, options: Mapping[str, Any], *, temperature: float | None
) -> dict[str, Any]:
    """Return the user's options as a draw takes them over.

    The answer keeps them. A sample has another temperature, no seed, and is not stored.
    A question about the answer has neither tools, schema nor stop texts. A sample of
    which only a part is compared has more tokens, and no stop texts that could cut it
    short.

    Args:
        draw: What is wanted.
        options: Those of the user.
        temperature: Takes the place of the user's, where there is one; None leaves it.

    Example:
        >>> user = {"top_p": 0.9, "extra_body": {"seed": 7, "temperature": 0}}
        >>> options_for(Draw(role="sample"), user, temperature=1.0)
        {'top_p': 0.9, 'extra_body': {'temperature': 1.0}}
    """
    if draw.role == "answer":
        return {**options}
    left_out = _NOT_FOR_SAMPLES
    if draw.turns:
        left_out |= _FORMS
    elif draw.extracts:
        left_out |= {*_STOPS}
    return {
        name: _value_for(draw, name, value, temperature)
        for name, value in options.items()
        if name not in left_out
    }


def _value_for(draw: Draw, name: str, value: Any, temperature: float | None) -> Any:  # noqa: ANN401 - any option
    if name in _NESTED and isinstance(value, Mapping):
        inner = options_for(draw, value, temperature=temperature)
        adds = temperature is not None and name in _REPLACE_FIELDS
        return {**inner, "temperature": temperature} if adds else inner
    if name == "temperature" and temperature is not None:
        return temperature
    if name in _LIMITS and draw.extracts and isinstance(value, int):
        return value + EXTRA_TOKENS if 0 < value < _LARGE_LIMIT else value
    return False if name == "store" else value


def answer_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what options say that an answer is drawn with, by a calibration's names.

    Example:
        >>> answer_settings({"model": "m", "max_new_tokens": 9, "stop": "."})
        {'max_tokens': 9, 'stop': ['.']}
    """
    settings: dict[str, Any] = {}
    for name, aliases in _SETTINGS.items():
        values = [options[alias] for alias in aliases if alias in options]
        if values:
            value = next((value for value in values if value is not None), None)
            text = name == "stop" and isinstance(value, str)
            settings[name] = [value] if text else value
    return settings


def asks_for_schema(options: Mapping[str, Any]) -> bool:
    """Return whether options ask for an answer that fits a schema, or is JSON.

    Example:
        >>> asks_for_schema({"response_format": {"type": "json_object"}})
        True
        >>> asks_for_schema({"text": {"format": {"type": "text"}}})
        False
    """
    return any(
        level.get(name) not in _NO_SCHEMA
        for level in _levels(options)
        for name in _SCHEMAS
    )


def may_act(options: Mapping[str, Any]) -> bool:
    """Return whether a sample with such options could act on the world.

    Tools that run at the provider (search, code, MCP servers) may write, pay or send; a
    stored conversation would grow by every sample. Tools of the application are only
    proposed in a reply, so they do not count.

    Example:
        >>> may_act({"tools": [{"type": "function", "name": "f"}]})
        False
        >>> may_act({"tools": [{"type": "web_search"}]})
        True
    """
    for level in _levels(options):
        # An empty mapping asks for something in its usual form; an empty list does not.
        if any(level.get(name) not in (None, False, []) for name in _ACTING):
            return True
        tools = level.get("tools")
        if isinstance(tools, list | tuple) and any(map(_runs_at_provider, tools)):
            return True
    return False


def _levels(options: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield options, and those inside of others."""
    yield options
    for name in _NESTED & options.keys():
        if isinstance(options[name], Mapping):
            yield from _levels(options[name])


def _runs_at_provider(tool: Any) -> bool:  # noqa: ANN401 - whatever a class takes
    if not isinstance(tool, Mapping):  # a function, a class or a BaseTool
        return isinstance(tool, str) or type(tool).__module__.startswith("google.")
    given = {name: value for name, value in tool.items() if value not in (None, [])}
    if "type" in given:
        return not str(given["type"]).startswith(_OWN_TOOLS)
    named = given.keys() & {"name", "title"}
    return not (named or given.keys() <= _DECLARATIONS)
