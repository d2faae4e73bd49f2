"""Which blocks of a reply's content are read, or carry none of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

__all__ = ["REASONING_BLOCKS", "has_unread", "is_unread"]

REASONING_BLOCKS = frozenset(
    {"reasoning", "reasoning_content", "redacted_thinking", "thinking"}
)
"""Types of content blocks that hold reasoning."""

_TEXT = frozenset({"message", "output_text", "refusal", "text"})

# Read as calls, wherever they are listed besides.
_CALLS = frozenset(
    {
        "custom_tool_call",
        "function_call",
        "function_call_signature",
        "input_json_delta",
        "invalid_tool_call",
        "tool_call",
        "tool_call_chunk",
        "tool_use",
    }
)

# What tools did at the provider: what is found so is told in the text. Calls that the
# application is to carry out (of a computer, a shell, a patch) are not among them.
_TOOLS_AT_PROVIDER = frozenset(
    {
        "code_execution_result",
        "code_interpreter_call",
        "custom_tool_call_output",
        "executable_code",
        "file_search_call",
        "function_call_output",
        "mcp_call",
        "mcp_list_tools",
        "mcp_tool_listing",
        "mcp_tool_use",
        "program",
        "program_output",
        "server_tool_call",
        "server_tool_call_chunk",
        "server_tool_result",
        "server_tool_use",
        "tool_result",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
_RESULT = "_tool_result"
"""How Anthropic's kinds of results end: of a search, of code, of a server's tool."""

_NOTES = frozenset(
    {
        "additional_tools",
        "annotation",
        "citation",
        "citations",
        "compaction",
        "fallback",
        "non_standard_annotation",
        "reference",
        "search_result",
    }
)
"""Where something comes from, and how the provider went about it."""

_READ = _TEXT | REASONING_BLOCKS | _CALLS | _TOOLS_AT_PROVIDER | _NOTES
_NO_CONTENT = frozenset({"id", "index"})


def is_unread(block: Mapping[str, Any]) -> bool:
    """Return whether a block may hold a part of the answer that nothing compares.

    What is not known is unread: the text beside an image, a file or an application's
    own action may be the smallest part of an answer.

    Example:
        >>> is_unread({"type": "text", "text": "Paris"})
        False
        >>> is_unread({"type": "image", "url": "https://example.org/paris.png"})
        True
    """
    kind = block.get("type")
    if kind == "non_standard":  # LangChain's wrapper for what it does not know
        inner = block.get("value")
        return not isinstance(inner, Mapping) or is_unread(
            cast("Mapping[str, Any]", inner)
        )
    if kind == "code_interpreter_call" and _shows(block.get("outputs")):
        return True
    if isinstance(kind, str) and kind:
        return kind not in _READ and not kind.endswith(_RESULT)
    return not _NO_CONTENT.issuperset(block)  # what ends a block of a stream


def has_unread(content: object) -> bool:
    """Return whether there is such a block among a list of them."""
    if not isinstance(content, Sequence) or isinstance(content, str | bytes):
        return False
    return any(
        is_unread(cast("Mapping[str, Any]", block))
        for block in cast("Sequence[object]", content)
        if isinstance(block, Mapping)
    )


def _shows(outputs: object) -> bool:
    """Return whether code drew something."""
    if not isinstance(outputs, list):
        return False
    return any(
        isinstance(output, Mapping)
        and cast("Mapping[str, Any]", output).get("type") == "image"
        for output in cast("list[object]", outputs)
    )
