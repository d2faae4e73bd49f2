"""The documents that a model was given, as one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from snne_guard.checks import check_function
from snne_guard.errors import ConfigurationError
from snne_guard.types import ContextFrom

_TOOL_MESSAGES: Final = "tool_messages"
CLIENT: Final = "client"
"""The option ``context`` where only what comes with a call counts."""

_ASKING = frozenset({"human", "user"})
_RETURNING = frozenset({"tool", "function", "function_call_output"})


def source_of(option: object, /) -> ContextFrom:
    """Return where documents come from by the option ``context``."""
    if option == _TOOL_MESSAGES:
        return _TOOL_MESSAGES
    if option == CLIENT:
        return CLIENT
    return "function" if callable(option) else "text"


def check_documents(option: object, /) -> None:
    """Raise ConfigurationError for an option ``context`` that makes no sense."""
    if callable(option):
        check_function(option, what="context, unless it is a text,")
    else:
        context_text(option)


def documents_of(
    option: object, messages: Sequence[Any], given: object = None, /
) -> str | None:
    """Return the documents that the model was given, None if unknown.

    Args:
        option: The option ``context`` of a guard.
        messages: The conversation.
        given: What came with this call, which takes the place of the option.

    Raises:
        ConfigurationError: They are neither a text nor a list of texts.
    """
    if given is None and option != CLIENT:
        given = option
        if option == _TOOL_MESSAGES:
            given = tool_texts(messages)
        elif callable(option):
            given = option(messages)
    return context_text(given)


def context_text(given: object, /) -> str | None:
    r"""Return documents as one text, None where there are none.

    Args:
        given: A text, or a list of texts or of objects with ``page_content``.

    Raises:
        ConfigurationError: It is something else.

    Example:
        >>> context_text(["It is oak.", "It is old."])
        'It is oak.\n\nIt is old.'
    """
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, list | tuple):
        found = [getattr(each, "page_content", each) for each in given]
        texts = [text for text in found if isinstance(text, str)]
        if len(texts) == len(found):
            return "\n\n".join(texts)
    msg = (
        "expected the context to be a text, or a list of texts or Documents, got "
        f"{type(given).__name__}"
    )
    raise ConfigurationError(msg)


def tool_texts(messages: Sequence[Any], /) -> list[str]:
    """Return what tools returned since the user's last message, without errors.

    Args:
        messages: Of LangChain, or of a request to OpenAI's API.
    """
    texts: list[str] = []
    for message in reversed(messages):
        role = _of(message, "role") or _of(message, "type")
        if role in _ASKING:
            break
        if role in _RETURNING and _of(message, "status") != "error":
            texts.insert(0, _text(_of(message, "content") or _of(message, "output")))
    return texts


def _of(message: object, name: str) -> Any:  # noqa: ANN401 - of any framework
    if isinstance(message, Mapping):
        return message.get(name)
    return getattr(message, name, None)


def _text(content: Any) -> str:  # noqa: ANN401 - a text or blocks
    if isinstance(content, list | tuple):
        return "\n".join(
            each if isinstance(each, str) else str(_of(each, "text") or "")
            for each in content
        )
    return content if isinstance(content, str) else ""
