"""Send a request again: what failed for a moment, or asks for what is rejected.

One layer retries: where neither the model nor its client does so itself, the driver
does, with a growing and jittered wait, or the one that ``Retry-After`` asks for. What a
provider rejects is left out by the sender: a draw is a generator of requests, so that
threads and tasks carry out the same steps.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from functools import partial
from typing import Any, TypeVar

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

__all__ = [
    "ATTEMPTS",
    "Steps",
    "arun_steps",
    "asynchronous_retrying",
    "is_transient",
    "is_transient_status",
    "rejected_parameter",
    "retrying",
    "run_steps",
    "status_of",
    "without_rejected",
]

# -- What failed for a moment ----------------------------------------------------------

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
_BACKOFF = wait_exponential(multiplier=0.5) + wait_random(0, 1)
_LONGEST_WAIT = 60.0


def is_transient(error: BaseException, /) -> bool:
    """Return whether the same request may succeed a moment later.

    Example:
        >>> is_transient(ConnectionResetError()), is_transient(ValueError("bad"))
        (True, False)
    """
    code = status_of(error)
    if code is not None:
        return is_transient_status(code)
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    return any(kind.__name__ in _TRANSIENT_NAMES for kind in type(error).__mro__)


def is_transient_status(code: int, /) -> bool:
    """Return whether a request with this HTTP status may succeed a moment later."""
    return code in _TRANSIENT_CODES or code >= _SERVER_ERROR


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
                if isinstance(status, int):
                    return int(status)
    return None


# -- What the provider rejects ---------------------------------------------------------

_LOGPROBS = ("top_logprobs", "logprobs")
_REJECTED_CODES = frozenset({400, 422})

Result = TypeVar("Result")

Steps = Generator[Any, Any, Result]
"""Yields requests, and seconds to wait as floats; is sent results and thrown errors."""


def without_rejected(
    make: Callable[..., Any], rejected: set[str]
) -> Steps[tuple[Any, Any]]:
    """Send a request, and again without each parameter that the provider rejects.

    Args:
        make: Takes the parameters to leave out, ``left_out``, and returns the request;
            those in its attribute ``optional`` may be left out as well.
        rejected: What the provider is known to reject; what a request succeeded without
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
            rejected.update(left_out)
            return request, result


def run_steps(
    steps: Steps[Result], send: Callable[[Any], Any], /
) -> tuple[Result, int]:
    """Run steps in a thread; return their result and how many requests failed."""
    failed, proceed = 0, partial(steps.send, None)
    while True:
        try:
            step = proceed()
        except StopIteration as end:
            return end.value, failed
        try:
            sent = (time.sleep if isinstance(step, float) else send)(step)
            proceed = partial(steps.send, sent)
        except BaseException as error:  # noqa: BLE001 - the generator raises it
            failed += 1
            proceed = partial(steps.throw, error)


async def arun_steps(
    steps: Steps[Result], send: Callable[[Any], Awaitable[Any]], /
) -> tuple[Result, int]:
    """Run steps in a task, as ``run_steps`` does in a thread."""
    failed, proceed = 0, partial(steps.send, None)
    while True:
        try:
            step = proceed()
        except StopIteration as end:
            return end.value, failed
        try:
            sent = await (asyncio.sleep if isinstance(step, float) else send)(step)
            proceed = partial(steps.send, sent)
        except BaseException as error:  # noqa: BLE001 - the generator raises it
            failed += 1
            proceed = partial(steps.throw, error)


def rejected_parameter(error: BaseException, optional: Collection[str]) -> str | None:
    """Return the parameter without which a rejected request should be sent again.

    Args:
        error: Why the request failed.
        optional: Parameters that could be left out of the request.

    Returns:
        The parameter that the error names first: it may quote the others. Where it
        names none, log-probabilities: an answer must not fail for what only the guard
        wants. None where nothing can be left out, or the request was not refused for
        what it asks.

    Example:
        >>> error = TypeError("create() got an unexpected keyword argument 'n'")
        >>> rejected_parameter(error, ["temperature", "n"])
        'n'
    """
    if not _is_rejection(error):
        return None
    # Clients show a body as a dict, in which a line break is \\ and n.
    said = f"{getattr(error, 'param', '')} {error} {getattr(error, 'body', '')}"
    words = re.findall(r"(?<!\\)\b\w+", said)
    return next((name for name in (*words, *_LOGPROBS) if name in optional), None)


def _is_rejection(error: BaseException) -> bool:
    """Return whether a request was refused for what it asks: not sent, not billed."""
    if isinstance(error, TypeError):  # any other comes after the reply
        return "unexpected keyword argument" in str(error)
    return isinstance(error, NotImplementedError) or status_of(error) in _REJECTED_CODES
