"""Send a request again after a transient failure, where nobody else does."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

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

from snne_guard.sampling.rejections import status_of

__all__ = ["ATTEMPTS", "asynchronous_retrying", "is_transient", "retrying"]

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
    error = state.outcome.exception() if state.outcome else None
    asked = None if error is None else _retry_after(error)
    return _BACKOFF(state) if asked is None else min(asked, _LONGEST_WAIT)


def _retry_after(error: BaseException) -> float | None:
    """Return the seconds that a response asks to wait, None if it asks for none."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if hasattr(headers, "get") else None
    if not isinstance(value, str):
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
