"""Whether a further draw would do more than answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snne_guard.sampling.langchain.providers import provider_of
from snne_guard.sampling.langchain.wrappers import ChatRunnable, bound_models

__all__ = ["NESTED", "has_side_effects"]

NESTED = (
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
        acts = provider_of(one, options).acts
        fields = {
            name: getattr(one, name) for name in (*acts, *NESTED) if hasattr(one, name)
        }
        if _acts(fields, acts) or _acts(options, acts):
            return True
    return False


def _acts(options: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    # An empty mapping asks for something in its usual form; an empty list does not.
    if any(options.get(name) not in (None, False, []) for name in names):
        return True
    tools = options.get("tools")
    if isinstance(tools, list | tuple) and any(map(_runs_at_provider, tools)):
        return True
    inner = (options.get(place) for place in NESTED)
    return any(_acts(each, names) for each in inner if isinstance(each, Mapping))


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
