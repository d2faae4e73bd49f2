"""Send a request again that failed for a moment.

One layer retries: where neither the model nor its client does so itself, the driver
does, with a growing and jittered wait, or the one that ``Retry-After`` asks for.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_exponential,
    wait_random,
)

from snne_guard.engine.vocabulary import SERVER_ERROR, TRANSIENT_CODES, TRANSIENT_NAMES

ATTEMPTS = 3
"""Requests that are sent for one draw before it counts as failed."""

_BACKOFF = wait_exponential(multiplier=0.5) + wait_random(0, 1)
_LONGEST_WAIT = 60.0


def is_transient(error: BaseException, /) -> bool:
    """Recognise an error after which the same request may succeed."""
    code = status_of(error)
    if code is not None:
        return is_transient_status(code)
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    return any(kind.__name__ in TRANSIENT_NAMES for kind in type(error).__mro__)


def is_transient_status(code: int, /) -> bool:
    """Recognise an HTTP status after which the same request may succeed."""
    return code in TRANSIENT_CODES or code >= SERVER_ERROR


def retries(ended: threading.Event, /) -> Retrying:
    """Return the retries of one draw in a thread; they stop when the call has ended."""
    return Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_attempt(ATTEMPTS) | stop_when_event_set(ended),
        wait=_wait,
        sleep=sleep_using_event(ended),
        reraise=True,
    )


def retries_in_task() -> AsyncRetrying:
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


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error, or its cause, carries; None without one.

    Reads ``status_code``, ``code`` and ``status`` of the error and of its response,
    and botocore's ``ResponseMetadata``.
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
                if isinstance(status, int):
                    return int(status)
    return None
