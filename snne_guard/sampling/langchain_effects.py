"""Whether one more draw from a LangChain model would do more than answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from snne_guard.sampling.langchain_copies import NESTED
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_providers import PROVIDERS, UNKNOWN, provider_of

__all__ = ["side_effects"]

_ACTING = frozenset(name for row in (UNKNOWN, *PROVIDERS) for name in row.acting)
"""Options with which one of the providers does more than answer."""
_PROPOSED = frozenset(
    {"function", "functionDeclarations", "function_declarations", "toolSpec"}
)
"""Keys of tools that the provider only proposes to call."""
_PROPOSED_TYPES = (
    "apply_patch",
    "bash_",
    "computer_",
    "custom",
    "function",
    "local_shell",
    "memory_",
    "text_editor_",
)
"""How the types begin of tools that run where the application does."""
_SCHEMAS = frozenset({"args_schema", "input_schema", "parameters", "properties"})
_HOLDERS = (*NESTED, "toolConfig", "tool_config")


def side_effects(candidate: Candidate, kwargs: Mapping[str, Any]) -> bool:
    """Return whether a further draw could do something besides answering.

    Tools that run at the provider may write, pay or send; a stored conversation would
    grow by every sample.
    """
    model = candidate.model
    acting = _ACTING.union(provider_of(model).acting)
    own = {
        name: getattr(model, name)
        for name in (*acting, *NESTED)
        if hasattr(model, name)
    }
    return _acts(own, acting) or _acts({**candidate.kwargs, **kwargs}, acting)


def _acts(options: Mapping[str, Any], acting: frozenset[str]) -> bool:
    if any(_is_set(options.get(name)) for name in acting):
        return True
    if any(map(_runs_at_provider, _tools_in(options))):
        return True
    return any(
        _acts(cast("Mapping[str, Any]", nested), acting)
        for place in _HOLDERS
        if isinstance(nested := options.get(place), Mapping)
    )


def _tools_in(options: Mapping[str, Any]) -> Iterator[object]:
    if isinstance(tools := options.get("tools"), Sequence):
        yield from cast("Sequence[object]", tools)


def _is_set(value: object) -> bool:
    # An empty mapping asks for something, in its usual form; an empty list does not.
    return value is not None and value is not False and value != []


def _runs_at_provider(tool: object) -> bool:
    tool = _plain(tool)
    if not isinstance(tool, Mapping):
        return False
    given = cast("Mapping[str, object]", tool)
    if "type" in given:
        return not str(given["type"]).startswith(_PROPOSED_TYPES)
    # Tools of the user's own have a schema, at Anthropic and elsewhere too.
    if {"name", "title"} & given.keys() and _SCHEMAS & given.keys():
        return False
    return not given.keys() <= _PROPOSED


def _plain(tool: object) -> object:
    """Return a tool of one of Google's types as a mapping of what is set in it."""
    kind: Any = type(tool)
    if kind.__module__.startswith("google."):
        tool = (getattr(kind, "to_dict", None) or kind.model_dump)(tool)
    if not isinstance(tool, Mapping):
        return tool
    found = cast("Mapping[str, object]", tool)
    return {name: value for name, value in found.items() if value not in (None, [])}
