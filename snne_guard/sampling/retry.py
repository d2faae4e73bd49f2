"""One layer of retries for samples: what is transient, and how long to wait."""

from __future__ import annotations

import email.utils
import math
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

__all__ = [
    "aretried",
    "blamed",
    "is_bad_request",
    "is_transient",
    "perhaps_billed",
    "rejects",
    "retried",
    "retry_after",
]

T = TypeVar("T")

MAX_RETRY_AFTER = 60.0
"""Seconds; a provider that asks for more has failed as far as one call can tell."""

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
_BAD_REQUEST_STATUS = frozenset({400, 404, 422})
# The transport errors of the HTTP clients that providers build on, by name, so that
# none of them has to be installed.
_TRANSIENT_NAMES = frozenset(
    {
        "APIConnectionError",
        "APITimeoutError",
        "ChunkedEncodingError",
        "ClientConnectionError",
        "ConnectionError",  # of requests and botocore, which is not Python's own
        "HTTPClientError",
        "Timeout",
        "TransportError",
    }
)
# A request had gone out, or not even that.
_CLOSED_NAMES = frozenset(
    {
        "APITimeoutError",
        "ChunkedEncodingError",
        "ClientPayloadError",
        "HTTPClientError",
        "ReadError",
        "ReadTimeout",
        "RemoteProtocolError",
        "ServerDisconnectedError",
        "TimeoutException",
    }
)
_UNSENT_NAMES = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
_NUMBER_OF_REPLIES = re.compile(
    r"number of (completions|choices|candidates|generations|samples)"
    r"|\bcandidate_?count\b"
    r"|\b(multiple|several|single|one) (completion|choice|candidate)",
    re.IGNORECASE,
)
"""How providers name ``n`` without naming it."""
_EXHAUSTED_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_jitter = wait_random_exponential(multiplier=0.25, max=8.0)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error of a provider's client carries.

    Some LangChain classes raise an error of their own, which has it in its cause.
    """
    for holder in (error, error.__cause__):
        status = _own_status(holder)
        if status is not None:
            return status
    return None


def _own_status(error: object) -> int | None:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore's
        told = cast("Mapping[str, Any]", response).get("ResponseMetadata", {})
        return cast("int | None", told.get("HTTPStatusCode"))
    for holder in (error, response):
        for name in ("status_code", "code", "status"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool):
                return status
    return None


def _headers(error: object) -> Any:  # noqa: ANN401 - each client has its own kind
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        told = cast("Mapping[str, Any]", response).get("ResponseMetadata", {})
        return told.get("HTTPHeaders")
    return getattr(response, "headers", None)


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed a moment later.

    Example:
        >>> is_transient(ConnectionResetError()), is_transient(ValueError("no"))
        (True, False)
    """
    code = getattr(error, "code", None)
    if isinstance(code, str) and code in _EXHAUSTED_CODES:
        return False
    status = status_of(error)
    if status is not None:
        return status in _TRANSIENT_STATUS or status >= 500  # noqa: PLR2004 - HTTP
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    if getattr(error, "is_retryable", False) is True:
        return True
    return any(base.__name__ in _TRANSIENT_NAMES for base in type(error).__mro__)


def is_bad_request(error: BaseException) -> bool:
    """Return whether the provider, or its client, refuses a parameter."""
    if status_of(error) in _BAD_REQUEST_STATUS or isinstance(
        error, NotImplementedError
    ):
        return True
    # Other errors of the client's own code come after the reply, which was billed.
    return isinstance(error, TypeError) and "unexpected keyword argument" in str(error)


def blamed(error: BaseException) -> str | None:
    """Return the parameter that a provider names as the culprit, None if none."""
    param = getattr(error, "param", None)
    return param if isinstance(param, str) and param else None


def rejects(error: BaseException, parameter: str) -> bool | None:
    """Return whether a provider refuses a request for one of its parameters.

    Returns:
        None where it refuses the request and does not say why.

    Example:
        >>> rejects(TypeError("got an unexpected keyword argument 'n'"), "n")
        True
    """
    if not is_bad_request(error) or status_of(error) == 404:  # noqa: PLR2004 - HTTP
        return False
    param, about = blamed(error), str(error)
    # The text of a body is often that of a dict, in which a new line is \\ and n.
    name = re.compile(rf"(?<![\w\\]){re.escape(parameter)}(?!\w)")
    if name.search(param or "") or name.search(about):
        return True
    if parameter == "n" and _NUMBER_OF_REPLIES.search(about):
        return True
    return None if param is None else False


def perhaps_billed(error: BaseException) -> bool:
    """Return whether a reply was on its way, or there, when a request failed.

    Example:
        >>> perhaps_billed(TimeoutError()), perhaps_billed(ConnectionRefusedError())
        (True, False)
    """
    if status_of(error) is not None or is_bad_request(error):
        return False
    names = _names_of_causes(error)
    if names & _UNSENT_NAMES:
        return False
    if isinstance(error, TimeoutError) or names & _CLOSED_NAMES:
        return True
    return not is_transient(error)


def _names_of_causes(error: BaseException | None) -> set[str]:
    """Return the names of an error's classes, and of those of what caused it."""
    names: set[str] = set()
    for _ in range(8):  # a chain may be a circle
        if error is None:
            break
        names.update(base.__name__ for base in type(error).__mro__)
        error = error.__cause__
    return names


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the provider asks to wait, None if it does not say.

    Reads ``retry-after-ms`` and ``Retry-After``, as seconds or as an HTTP date
    (RFC 9110, section 10.2.3).
    """
    headers = _headers(error) or _headers(error.__cause__)
    if headers is None:
        return None
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after") or headers.get("Retry-After")
    seconds = _number(value)
    if seconds is None and value:
        seconds = _seconds_until(str(value))
    return seconds


def retried(send: Callable[[], T], *, attempts: int, stop: threading.Event) -> T:
    """Return what a request brings, sent again where what failed may pass.

    Args:
        send: Sends the request.
        attempts: How often it is sent at most.
        stop: Ends this, also while it waits.

    Raises:
        Exception: What the last request failed with.

    Example:
        >>> retried(lambda: "Paris", attempts=4, stop=threading.Event())
        'Paris'
    """
    faults: list[Exception] = []
    try:
        return send()
    except Exception as error:  # noqa: BLE001 - raised again in the loop below
        faults.append(error)

    def again() -> T:
        if faults:  # only what has failed is worth the loop, so it begins with that
            raise faults.pop()
        return send()

    loop = Retrying(
        **_options(attempts, stop),
        sleep=lambda seconds: cast("None", stop.wait(float(seconds))),
    )
    return loop(again)


async def aretried(send: Callable[[], Awaitable[T]], *, attempts: int) -> T:
    """Do the same in a task; cancelling it ends this, also while it waits."""
    faults: list[Exception] = []
    try:
        return await send()
    except Exception as error:  # noqa: BLE001 - raised again in the loop below
        faults.append(error)

    async def again() -> T:
        if faults:
            raise faults.pop()
        return await send()

    return await AsyncRetrying(**_options(attempts, None))(again)


def _options(attempts: int, stop: threading.Event | None) -> dict[str, Any]:
    def may_retry(error: BaseException) -> bool:
        if stop is not None and stop.is_set():
            return False
        return is_transient(error) and (retry_after(error) or 0.0) <= MAX_RETRY_AFTER

    return {
        "retry": retry_if_exception(may_retry),
        "stop": stop_after_attempt(attempts),
        "wait": _wait,
        "reraise": True,
    }


def _wait(state: RetryCallState) -> float:
    # Jitter also on top of Retry-After: all samples of a call were told the same time.
    error = None if state.outcome is None else state.outcome.exception()
    asked = None if error is None else retry_after(error)
    return (asked or 0.0) + _jitter(state)


def _number(value: object) -> float | None:
    try:
        number = float(cast("Any", value))
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(date: str) -> float | None:
    try:
        moment = email.utils.parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(
        0.0, (moment - datetime.fromtimestamp(time.time(), tz=UTC)).total_seconds()
    )
