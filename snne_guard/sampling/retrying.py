"""Send a failed request again: as it is, or without what the provider rejects.

What fails for a moment is sent again as it is, where neither model nor client does so.
A provider that rejects a parameter is asked again without it, in the same draw.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from typing import Any, Protocol, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_exponential_jitter,
)

__all__ = [
    "ATTEMPTS",
    "Steps",
    "asynchronous_retrying",
    "carry_out",
    "carry_out_in_task",
    "is_transient",
    "rejected_parameter",
    "retrying",
    "status_of",
    "without_rejected",
]

ATTEMPTS = 3
"""Requests that are sent for one draw before it counts as failed."""

_TRANSIENT_CODES = frozenset({408, 409, 425, 429})
_SERVER_ERROR = 500
# The errors of HTTP clients by name, so that none of these has to be installed.
_TRANSIENT_NAMES = frozenset(
    {
        "APIConnectionError",
        "APITimeoutError",
        "ChunkedEncodingError",
        "ClientConnectionError",
        "ClientPayloadError",
        "ConnectionError",
        "HTTPClientError",
        "Timeout",
        "TransportError",
    }
)
_BACKOFF = wait_exponential_jitter(initial=0.5, max=8.0)
_LONGEST_WAIT = 60.0
_REJECTED_CODES = frozenset({400, 422})
_OTHER_WORDS: dict[str, str] = {
    "n": r"number of (completions|choices|candidates|generations|samples)"
    r"|\bcandidate_?count\b"
    r"|\b(multiple|several|single|one) (completion|choice|candidate)",
    "logprobs": r"log[ _-]?prob|\Ainclude\b",  # OpenAI's Responses API
}
"""How providers speak of a parameter without its name, as regular expressions."""


# -- As it is --------------------------------------------------------------------------


def is_transient(error: BaseException, /) -> bool:
    """Return whether the same request may succeed a moment later.

    Example:
        >>> is_transient(ConnectionResetError()), is_transient(ValueError("bad"))
        (True, False)
    """
    if not isinstance(error, Exception):
        return False
    code = status_of(error)
    if code is not None:
        return code in _TRANSIENT_CODES or code >= _SERVER_ERROR
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    return any(kind.__name__ in _TRANSIENT_NAMES for kind in type(error).__mro__)


def retrying(ended: threading.Event, /) -> Retrying:
    """Return the retries of one draw in a thread; they stop when the call has ended."""
    return Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_attempt(ATTEMPTS) | stop_when_event_set(ended),
        wait=_wait,
        sleep=sleep_using_event(ended),
        reraise=True,
    )


def asynchronous_retrying() -> AsyncRetrying:
    """Return the retries of one draw in a task."""
    return AsyncRetrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_attempt(ATTEMPTS),
        wait=_wait,
        reraise=True,
    )


def _wait(state: RetryCallState) -> float:
    """Return the seconds that ``Retry-After`` asks for, else those of the backoff."""
    error = state.outcome.exception() if state.outcome else None
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    try:
        asked = float(headers["retry-after"])
    except (KeyError, TypeError, ValueError):  # no header, or a date, which is rare
        return _BACKOFF(state)
    return min(max(0.0, asked), _LONGEST_WAIT)


# -- Without what the provider rejects -------------------------------------------------


class HasOptional(Protocol):
    """A request that can do without some of its parameters."""

    @property
    def optional(self) -> Collection[str]:
        """Parameters that may be left out where the provider rejects them."""
        ...


Result = TypeVar("Result")
Request = TypeVar("Request", bound=HasOptional)

Steps = Generator[Any, Any, Result]
"""Yields requests, and seconds to wait as floats; is sent results and thrown errors."""


def without_rejected(
    make: Callable[..., Request], rejected: set[str]
) -> Steps[tuple[Request, Any]]:
    """Send a request, and again without each parameter that the provider rejects.

    Args:
        make: Returns the request; takes the parameters to leave out, ``left_out``.
        rejected: What the provider is known to reject; what it takes a request without
            is added.

    Returns:
        The request that was answered, and its result.
    """
    left_out = frozenset(rejected)
    while True:
        request = make(left_out=left_out)
        try:
            result = yield request
        except Exception as error:
            parameter = rejected_parameter(error, request.optional)
            if parameter is None:
                raise
            left_out |= {parameter}
        else:
            rejected |= left_out
            return request, result


def carry_out(
    steps: Steps[Result], send: Callable[[Any], Any], /
) -> tuple[Result, int]:
    """Carry out steps in a thread; return their result and how many requests failed."""
    sent, failed = None, 0
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, float):
                    time.sleep(step)
                else:
                    sent = send(step)
            except BaseException as error:  # noqa: BLE001 - the generator raises it
                failed += 1
                step = steps.throw(error)
            else:
                step = steps.send(sent)
    except StopIteration as end:
        return end.value, failed


async def carry_out_in_task(
    steps: Steps[Result], send: Callable[[Any], Awaitable[Any]], /
) -> tuple[Result, int]:
    """Carry out steps in a task, as ``carry_out`` does in a thread."""
    sent, failed = None, 0
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    sent = await send(step)
            except BaseException as error:  # noqa: BLE001 - the generator raises it
                failed += 1
                step = steps.throw(error)
            else:
                step = steps.send(sent)
    except StopIteration as end:
        return end.value, failed


def rejected_parameter(error: BaseException, optional: Collection[str]) -> str | None:
    """Return the parameter without which a rejected request should be sent again.

    Args:
        error: Why the request failed.
        optional: Parameters that could be left out of the request.

    Returns:
        The parameter that the error names (``error.param``), else the one that its text
        mentions first. Where it names none, ``"logprobs"``: an answer must not fail for
        what only the guard wants. None where it is no rejection of the request, or
        names something that cannot be left out.

    Example:
        >>> error = TypeError("create() got an unexpected keyword argument 'n'")
        >>> rejected_parameter(error, ["temperature", "n"])
        'n'
    """
    if not _is_rejection(error):
        return None
    named = getattr(error, "param", None)
    named = named if isinstance(named, str) and named else None
    text = named or f"{error} {getattr(error, 'body', None) or ''}"
    places = {name: _place(name, text) for name in optional}
    found = {name: place for name, place in places.items() if place is not None}
    if found:
        return min(found, key=found.__getitem__)
    says_nothing = named is None and status_of(error) is not None
    return "logprobs" if says_nothing and "logprobs" in optional else None


def _is_rejection(error: BaseException) -> bool:
    """Return whether a request was refused for what it asks: not sent, not billed."""
    if isinstance(error, TypeError):  # any other comes after the reply
        return "unexpected keyword argument" in str(error)
    return isinstance(error, NotImplementedError) or status_of(error) in _REJECTED_CODES


def _place(parameter: str, text: str) -> int | None:
    # The text of a body is often that of a dict, in which a line break is \ and n.
    pattern = rf"(?<![\w\\]){re.escape(parameter)}(?!\w)"
    if parameter in _OTHER_WORDS:
        pattern += f"|{_OTHER_WORDS[parameter]}"
    found = re.search(pattern, text, re.IGNORECASE)
    return None if found is None else found.start()


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
