"""The documents that a model was given, as one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from snne_guard.checks import check_function
from snne_guard.errors import ConfigurationError
from snne_guard.types import ContextFrom
from snne_guard.views import field_of, role_of

_TOOL_MESSAGES: Final = "tool_messages"
CLIENT: Final = "client"
"""The option ``context`` where only what comes with a call counts."""

_RETURNING = frozenset({"tool", "function", "function_call_output"})


def source_of(option: object, /) -> ContextFrom:
    """Return the source of documents that the option ``context`` names."""
    if option in (_TOOL_MESSAGES, CLIENT):
        return option
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

    What came with this call takes the place of the option ``context``.

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
    """Return a text, or a list of texts or Documents, as one text.

    Raises:
        ConfigurationError: It is something else, and not None.
    """
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, list | tuple):
        texts: list[Any] = [getattr(each, "page_content", each) for each in given]
        if all(isinstance(text, str) for text in texts):
            return "\n\n".join(texts)
        given = next(text for text in texts if not isinstance(text, str))
    msg = "expected the context to be a text, or a list of texts or Documents, got "
    msg += type(given).__name__
    raise ConfigurationError(msg)


def tool_texts(messages: Sequence[Any], /) -> list[str]:
    """Return the results of tools since the user's last message, without errors."""
    texts: list[str] = []
    for message in reversed(messages):
        role = role_of(message)
        if role == "user":
            break
        if role in _RETURNING and field_of(message, "status") != "error":
            said = field_of(message, "content") or field_of(message, "output")
            texts.insert(0, _text(said))
    return texts


def _text(content: Any) -> str:  # noqa: ANN401 - a text or blocks
    if isinstance(content, list | tuple):
        return "\n".join(
            each if isinstance(each, str) else str(field_of(each, "text") or "")
            for each in content
        )
    return content if isinstance(content, str) else ""
