"""Which parameter of a request a provider does not take."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["is_rejection", "rejected_parameter", "status_of"]

_REJECTED = frozenset({400, 422})
_OTHER_WORDS: dict[str, str] = {
    "n": r"number of (completions|choices|candidates|generations|samples)"
    r"|\bcandidate_?count\b"
    r"|\b(multiple|several|single|one) (completion|choice|candidate)",
    "logprobs": r"log[ _-]?prob|\Ainclude\b",  # OpenAI's Responses API
}
"""How providers speak of a parameter without its name, as regular expressions."""


def rejected_parameter(error: BaseException, candidates: Collection[str]) -> str | None:
    """Return the request parameter that a provider or its client does not take.

    Args:
        error: Why the request failed.
        candidates: Parameters that could be left out of the request.

    Returns:
        One of the candidates: the one that the error names (``error.param``), else
        the one that its text mentions first. None where the error is no rejection of
        the request, names something else, or does not say.

    Example:
        >>> error = TypeError("create() got an unexpected keyword argument 'n'")
        >>> rejected_parameter(error, ["temperature", "n"])
        'n'
    """
    if not is_rejection(error):
        return None
    named = getattr(error, "param", None)
    text = named if isinstance(named, str) and named else _text(error)
    places = {name: _place(name, text) for name in candidates}
    found = {name: place for name, place in places.items() if place is not None}
    return min(found, key=found.__getitem__) if found else None


def is_rejection(error: BaseException) -> bool:
    """Return whether a request was refused for what it asks: not sent, not billed.

    Example:
        >>> is_rejection(TypeError("create() got an unexpected keyword argument 'n'"))
        True
        >>> is_rejection(TypeError("'NoneType' object is not iterable"))
        False
    """
    if isinstance(error, TypeError):  # any other comes after the reply
        return "unexpected keyword argument" in str(error)
    return isinstance(error, NotImplementedError) or status_of(error) in _REJECTED


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error, or its cause, carries; None without one.

    Reads ``status_code``, ``code`` and ``status`` of the error and of its response,
    and botocore's ``ResponseMetadata``.

    Example:
        >>> status_of(ConnectionResetError()) is None
        True
    """
    for holder in (error, error.__cause__):
        response = getattr(holder, "response", None)
        if isinstance(response, Mapping):
            metadata: Any = response.get("ResponseMetadata") or {}
            status = metadata.get("HTTPStatusCode")
            return status if isinstance(status, int) else None
        for place in (holder, response):
            for name in ("status_code", "code", "status"):
                status = getattr(place, name, None)
                if isinstance(status, int) and not isinstance(status, bool):
                    return int(status)
    return None


def _text(error: BaseException) -> str:
    body = getattr(error, "body", None)
    return str(error) if body is None else f"{error} {body}"


def _place(parameter: str, text: str) -> int | None:
    # The text of a body is often that of a dict, in which a line break is \ and n.
    pattern = rf"(?<![\w\\]){re.escape(parameter)}(?!\w)"
    if parameter in _OTHER_WORDS:
        pattern += f"|{_OTHER_WORDS[parameter]}"
    found = re.search(pattern, text, re.IGNORECASE)
    return None if found is None else found.start()
