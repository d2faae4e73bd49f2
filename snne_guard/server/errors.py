"""Errors as OpenAI's API reports them, without any prompt or answer."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import httpx2
import openai
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from snne_guard.errors import (
    ConfigurationError,
    GuardTimeoutError,
    InputError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.files import first_problem, json_object

_log = logging.getLogger(__name__)

UPSTREAM_ERRORS = (openai.OpenAIError, httpx2.HTTPError, SamplingError, OverflowError)
"""What is raised where the upstream failed; no number of a client's can overflow."""

SERVER_ERROR = 500
"""The least status that says that a server failed."""

_PASSED_ON = ("retry-after", "retry-after-ms")
"""Headers of an upstream's error that clients act on."""

_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|(.))")
_CODES = {400: "invalid_request", 404: "unknown_url", 502: "upstream_failed"}
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class Fault(Exception):  # noqa: N818 - an answer of the API as well as an error
    """An error that is reported to the client, by an error object or by ``body``."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})
        other = "server_error" if status >= SERVER_ERROR else "invalid_request_error"
        kind = _TYPES.get(status, other)
        code = code or _CODES.get(status)
        error = {"message": message, "type": kind, "param": None, "code": code}
        self.body = body or {"error": error}


def fault_of(error: BaseException, *, secret: str | None = None) -> Fault:
    """Return the fault to answer a client with after an error.

    An unexpected one is logged, without its message, which may hold a text. ``secret``
    is the upstream's key where it is the server's, which the client must not learn.
    """
    if isinstance(error, openai.APIStatusError | httpx2.HTTPStatusError):
        return _of_status(error.response, secret=secret)
    if isinstance(error, openai.APIError) and error.body:
        return _of_stream(error, secret=secret)
    for kinds, make in _FAULTS.items():
        if isinstance(error, kinds):
            return make(error)
    _log.error("a request failed with %s", place_of(error))
    # Half a character, NaN, an address that is too long.
    if isinstance(error, ValueError | httpx2.InvalidURL):
        return Fault(400, "the request cannot be forwarded")
    message = "the server failed; its log names the error"
    return Fault(500, message, code="server_failed")


def place_of(error: BaseException) -> str:
    """Return an exception's type and place; its message may hold a text or a key."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" at {frame.filename}:{frame.lineno}" for frame in last)
    return f"{type(error).__name__}{place}"


def _of_status(response: httpx2.Response, *, secret: str | None) -> Fault:
    status, given = response.status_code, response.headers
    if secret is not None and status in {401, 403}:
        return Fault(502, "the upstream does not accept this server's key")
    if not response.is_error:  # redirects are not followed
        return Fault(502, f"the upstream answered with status {status}")
    body = None
    with suppress(InputError, RecursionError):
        body = without(secret, json_object(response.content))
        json.dumps(body)  # what is just not too deep to be read may be so to be sent
    return Fault(
        status,
        f"the upstream answered with status {status} and no JSON",
        code="upstream_failed",
        headers={
            name: without(secret, given[name]) for name in _PASSED_ON if name in given
        },
        body=body,
    )


def _of_stream(error: openai.APIError, *, secret: str | None) -> Fault:
    said = error.body if isinstance(error.body, dict) else {"message": str(error.body)}
    said = without(secret, said)
    fault = Fault(502, str(said.get("message") or _NO_ANSWER))
    fault.body["error"] |= said
    return fault


def without(secret: str | None, value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return a value of decoded JSON with ``***`` in place of the server's key."""
    if not secret:
        return value
    if isinstance(value, dict):
        return {without(secret, k): without(secret, v) for k, v in value.items()}
    if isinstance(value, list):
        return [without(secret, each) for each in value]
    if not isinstance(value, str):
        return value
    hidden = value.replace(secret, "***")
    # A text may quote JSON, in which the key looks different.
    plain = _ESCAPED.sub(lambda found: found[2] or chr(int(found[1], 16)), hidden)
    return "***" if secret in plain else hidden


def _withheld(error: UncertainAnswerError) -> Fault:
    fault = Fault(422, str(error), code="uncertain_answer")
    fault.body["snne_guard"] = {
        "id": error.assessment_id,
        "decision": "refuse",
        "uncertainty": error.uncertainty,
        "threshold": error.threshold,
        "reasons": list(error.reasons),
    }
    return fault


_UNSERVED = "this address is not served, or not by this method"
_NO_ANSWER = "the upstream could not be reached, broke off or gave no answer"
_FAULTS: dict[tuple[type[BaseException], ...], Callable[[Any], Fault]] = {
    (Fault,): lambda error: error,
    (asyncio.CancelledError,): lambda _: Fault(
        503, "the server is stopping", code="server_stopping"
    ),
    (HTTPException,): lambda error: Fault(
        error.status_code, _UNSERVED, headers=error.headers
    ),
    (UncertainAnswerError,): _withheld,
    (ValidationError,): lambda error: Fault(400, first_problem(error)),
    (ConfigurationError, InputError): lambda error: Fault(400, str(error)),
    (GuardTimeoutError,): lambda error: Fault(504, str(error), code="guard_timeout"),
    (TimeoutError,): lambda _: Fault(408, "the request body arrived too slowly"),
    (openai.APITimeoutError, httpx2.TimeoutException): lambda _: Fault(
        504, "the upstream took too long", code="upstream_timeout"
    ),
    UPSTREAM_ERRORS: lambda _: Fault(502, _NO_ANSWER),
}
