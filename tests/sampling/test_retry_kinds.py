"""Which errors are transient, how long to wait, what was perhaps billed."""

from __future__ import annotations

import asyncio
import email.utils
import http
import json
import time
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.sampling.retry import (
    is_bad_request,
    is_transient,
    perhaps_billed,
    retry_after,
)
from tests.sampling.provider_errors import ProviderError, answered, named
from tests.support.chat_server import ChatServer, Reply, chat_openai, error


class APITimeoutError(Exception):
    """Has the name that transport errors of the usual clients have."""


class ReadTimeoutError(APITimeoutError):
    pass


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_status_that_passes_is_transient(status: int) -> None:
    assert is_transient(ProviderError(status_code=status))
    assert is_transient(ProviderError(code=status))
    assert is_transient(ProviderError(status=status))
    assert is_transient(answered(status))
    assert not is_bad_request(answered(status))


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_a_status_that_stays_is_not(status: int) -> None:
    assert not is_transient(ProviderError(status_code=status))
    assert not is_transient(answered(status))


def test_a_status_of_pythons_own_enum_counts() -> None:
    assert is_transient(ProviderError(code=http.HTTPStatus.TOO_MANY_REQUESTS))


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_rejected_parameter_is_a_bad_request(status: int) -> None:
    assert is_bad_request(ProviderError(status_code=status))


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached"])
def test_an_exhausted_account_is_not_asked_again(code: str) -> None:
    assert not is_transient(ProviderError(status_code=429, code=code))
    assert is_transient(ProviderError(status_code=429, code="rate_limit_exceeded"))


@pytest.mark.parametrize("code", [["a"], {"a": 1}, True, None, 1.5])
def test_a_code_of_any_kind_is_no_obstacle(code: object) -> None:
    assert is_transient(ProviderError(status_code=503, code=code))
    assert not is_transient(ProviderError(code=code))


@pytest.mark.parametrize(
    ("fault", "transient"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (APITimeoutError(), True),
        (ReadTimeoutError(), True),
        (ProviderError(is_retryable=True), True),
        (ProviderError(is_retryable=False), False),
        (ProviderError(is_retryable="yes"), False),
        (ValueError("no"), False),
        (OSError("disk"), False),
        (KeyboardInterrupt(), False),
        (asyncio.CancelledError(), False),
    ],
)
def test_errors_without_a_status_are_told_by_their_kind(
    fault: BaseException, *, transient: bool
) -> None:
    assert is_transient(fault) is transient


def test_the_status_decides_where_there_is_one() -> None:
    assert not is_transient(ProviderError(status_code=401, is_retryable=True))


@pytest.mark.parametrize(
    ("fault", "bad"),
    [
        (TypeError("create() got an unexpected keyword argument 'n'"), True),
        (TypeError("the reply has no choices"), False),
        (ValueError("the reply says error"), False),
        (NotImplementedError(), True),
        (RuntimeError(), False),
        (json.JSONDecodeError("half a reply", "{", 1), False),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "half a letter"), False),
    ],
)
def test_a_client_that_refuses_a_parameter_is_told_from_a_garbled_reply(
    fault: BaseException, *, bad: bool
) -> None:
    assert is_bad_request(fault) is bad


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "2"}, 2.0),
        ({"Retry_After": "1.5"}, 1.5),
        ({"retry_after": "0"}, 0.0),
        ({"retry_after_ms": "250"}, 0.25),
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25),
        ({"retry_after_ms": "soon", "retry_after": "9"}, 9.0),
        ({"retry_after": "-1"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": ""}, None),
        ({"other": "2"}, None),
        ({}, None),
    ],
)
def test_the_provider_says_how_long_to_wait(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(answered(429, **headers)) == seconds


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 09:28:30 +0200", 30.0),
        ("Wed, 21 Oct 2015 07:28:30 -0000", 30.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("Wed, 99 Oct 2015 07:28:30 GMT", None),
    ],
)
def test_the_provider_names_a_date(
    date: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = email.utils.parsedate_to_datetime("Wed, 21 Oct 2015 07:28:00 GMT")
    monkeypatch.setattr(time, "time", now.timestamp)
    assert retry_after(answered(429, retry_after=date)) == seconds


@pytest.mark.parametrize(
    "fault",
    [ProviderError(), ProviderError(response=None), ProviderError(response="text")],
)
def test_an_error_without_headers_says_nothing(fault: BaseException) -> None:
    assert retry_after(fault) is None


@given(st.text())
def test_whatever_the_header_says_the_wait_is_none_or_not_negative(value: str) -> None:
    seconds = retry_after(answered(429, retry_after=value))
    assert seconds is None or 0 <= seconds < float("inf")


def caught_from(reply: Reply) -> BaseException:
    with ChatServer([reply]) as server, pytest.raises(Exception) as caught:  # noqa: PT011 - looked at by the test
        chat_openai(server).invoke("x")
    return caught.value


def test_the_real_clients_errors_are_understood() -> None:
    busy = caught_from(error(429, retry_after=7))
    assert isinstance(busy, openai.RateLimitError)
    assert (is_transient(busy), retry_after(busy)) == (True, 7.0)
    broke = caught_from(error(429, code="insufficient_quota"))
    assert not is_transient(broke)
    assert is_bad_request(caught_from(error(400, "n", param="n")))
    dropped = caught_from(Reply(drop=True))
    assert (is_transient(dropped), is_bad_request(dropped)) == (True, False)
    odd = caught_from(Reply(status=503, body={"error": {"code": ["a", {"b": 1}]}}))
    assert is_transient(odd)


def test_a_garbled_reply_of_the_real_client_is_final() -> None:
    garbled = caught_from(Reply(malformed=True))
    assert (is_transient(garbled), is_bad_request(garbled)) == (False, False)


def lost_connection(cause: Exception | None = None) -> Exception:
    nothing: Any = None
    error = openai.APIConnectionError(request=nothing)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "billed"),
    [
        (lost_connection(named("RemoteProtocolError")), True),
        (lost_connection(named("ReadError")), True),
        (lost_connection(named("TimeoutException")), True),
        (lost_connection(named("ConnectError")), False),
        (lost_connection(named("ConnectTimeout")), False),
        (lost_connection(named("PoolTimeout")), False),
        (lost_connection(), False),
        (ValueError("no JSON"), True),
        (TimeoutError(), True),
    ],
)
def test_a_request_that_came_back_broken_was_perhaps_billed(
    error: Exception, *, billed: bool
) -> None:
    assert perhaps_billed(error) is billed


def test_errors_that_cause_each_other_end_nothing() -> None:
    one, two = ConnectionError("one"), ConnectionError("two")
    one.__cause__, two.__cause__ = two, one
    assert not perhaps_billed(one)
