"""What went wrong, in the words of OpenAI's API; no prompt or answer is in them."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx2
import openai
from starlette.exceptions import HTTPException
from starlette.responses import Response

from snne_guard.errors import (
    ConfigurationError,
    GuardTimeoutError,
    InputError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.server.wire import json_response, read_object

__all__ = ["Fault", "fault_of", "of_status", "upstream_status"]

_log = logging.getLogger(__name__)

_PASSED_ON = ("retry-after", "retry-after-ms")
"""Headers of an upstream's error that clients act on."""

_CODES = {400: "invalid_request", 404: "unknown_url"}
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


_OF_REQUESTS: dict[type[Exception], tuple[int, str]] = {
    UnicodeError: (400, "a text in the request cannot be sent on"),
    httpx2.InvalidURL: (400, "this address cannot be sent on"),
    TimeoutError: (408, "the body of the request did not come in time"),
}


class Fault(Exception):  # noqa: N818 - an answer of the API as well as an error
    """An error that the client is told of.

    Args:
        status: The HTTP status.
        message: What is wrong, for people.
        code: What is wrong, for programs.
        headers: Further headers of the answer.
        body: The whole JSON body, in place of an error object made of the above.
    """

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
        self.status, self.code = status, code or _CODES.get(status)
        self.headers = dict(headers or {})
        other = "invalid_request_error" if status < 500 else "server_error"  # noqa: PLR2004
        kind = _TYPES.get(status, other)
        error = {"message": message, "type": kind, "param": None, "code": self.code}
        self.body = body or {"error": error}

    def response(self) -> Response:
        """Return the answer that says so."""
        return json_response(self.body, status=self.status, headers=self.headers)


def upstream_status(error: BaseException) -> int | str | None:
    """Return how the upstream failed; None: the error is not the upstream's."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return "timeout"
    if isinstance(error, openai.APIError | httpx2.HTTPError):
        return "connection"
    unreadable = isinstance(error, SamplingError | json.JSONDecodeError)
    return "unreadable" if unreadable else None


def fault_of(error: Exception, *, secret: str | None = None) -> Fault:
    """Return what the client is told of an error.

    Args:
        error: What was raised.
        secret: The upstream's key where it is the server's, which the client must not
            learn; None where it is the client's.
    """
    if isinstance(error, Fault):
        return error
    if isinstance(error, HTTPException):
        return _of_route(error)
    fault = _of_guard(error) or _of_upstream(error, secret=secret)
    if fault is None:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        place = "".join(f" at {frame.filename}:{frame.lineno}" for frame in last)
        # Not its message, which may hold a prompt or an answer.
        _log.error("a request failed with %s%s", type(error).__name__, place)
        message = "the server failed; its log says with what"
        fault = Fault(500, message, code="server_failed")
    return fault


def _of_route(error: HTTPException) -> Fault:
    detail = "this address is not served, or not by this method"
    return Fault(error.status_code, detail, headers=error.headers)


def _of_guard(error: Exception) -> Fault | None:
    if isinstance(error, GuardTimeoutError):
        return Fault(504, str(error), code="guard_timeout")
    if isinstance(error, ConfigurationError | InputError):
        return Fault(400, str(error))
    for kind, (status, message) in _OF_REQUESTS.items():
        if isinstance(error, kind):
            return Fault(status, message)
    if not isinstance(error, UncertainAnswerError):
        return None
    fault = Fault(422, str(error), code="uncertain_answer")
    fault.body["snne_guard"] = {
        "id": error.assessment_id,
        "decision": "refuse",
        "uncertainty": error.uncertainty,
        "threshold": error.threshold,
        "reasons": list(error.reasons),
    }
    return fault


def _of_upstream(error: Exception, *, secret: str | None) -> Fault | None:
    if isinstance(error, openai.APIStatusError):
        return of_status(error.response, secret=secret)
    status = upstream_status(error)
    if status == "timeout":
        return Fault(504, "the upstream took too long", code="upstream_timeout")
    if status is None:
        return None
    message = "the upstream could not be reached, broke off or gave no answer"
    return Fault(502, message, code="upstream_failed")


def of_status(response: httpx2.Response, *, secret: str | None) -> Fault:
    """Return what the client is told of an upstream's error."""
    status, given = response.status_code, response.headers
    headers = {name: given[name] for name in _PASSED_ON if name in given}
    if secret is not None and status in {401, 403}:
        message = "the upstream does not take this server's key"
        return Fault(502, message, code="upstream_failed")
    message = f"the upstream answered with status {status}"
    if not 400 <= status < 600:  # noqa: PLR2004 - redirects are not followed
        return Fault(502, message, code="upstream_failed")
    body = None
    with suppress(ValueError, openai.OpenAIError, RuntimeError):  # no JSON, or not read
        content = response.content
        if secret:
            content = content.replace(secret.encode(), b"***")
        body = read_object(content)
    message += " and no JSON"
    return Fault(status, message, code="upstream_failed", headers=headers, body=body)
