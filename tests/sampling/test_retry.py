"""What is tried again, when, and how often: the one layer of retries."""

from __future__ import annotations

import asyncio
import email.utils
import http
import json
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import RetryCallState

from snne_guard.sampling import retry
from snne_guard.sampling.retry import (
    MAX_RETRY_AFTER,
    aretrying,
    is_bad_request,
    is_transient,
    perhaps_billed,
    retry_after,
    retrying,
)
from tests.support.chat_server import ChatServer, Reply, chat_openai, error


class ProviderError(Exception):
    """What a provider's client raises; takes any attributes."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("made up")
        self.__dict__.update(attributes)


class APITimeoutError(Exception):
    """Has the name that transport errors of the usual clients have."""


class ReadTimeoutError(APITimeoutError):
    pass


def answered(status: int | None = None, **headers: str) -> ProviderError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = SimpleNamespace(status_code=status, headers=named)
    return ProviderError(response=response)


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


class RecordingEvent(threading.Event):
    """Notes how long it was waited for, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        return self.is_set()


def run(
    send: Callable[[], str], *, attempts: int, stop: threading.Event, way: str
) -> str:
    """Send in the loop of either twin."""
    if way == "threads":
        for attempt in retrying(attempts=attempts, stop=stop):
            with attempt:
                return send()
        raise AssertionError

    async def tasks() -> str:
        async for attempt in aretrying(attempts=attempts):
            with attempt:
                return send()
        raise AssertionError

    return asyncio.run(tasks())


WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_state: RetryCallState) -> float:
        return 0.0

    monkeypatch.setattr(retry, "_jitter", none)


def failing_first(faults: list[BaseException]) -> tuple[Callable[[], str], list[int]]:
    sent: list[int] = []

    def send() -> str:
        sent.append(len(sent))
        if len(sent) <= len(faults):
            raise faults[len(sent) - 1]
        return "Paris"

    return send, sent


@WAYS
@pytest.mark.usefixtures("no_jitter")
def test_what_passes_is_tried_again(way: str) -> None:
    send, sent = failing_first([answered(503), ConnectionResetError()])
    assert run(send, attempts=3, stop=RecordingEvent(), way=way) == "Paris"
    assert len(sent) == 3


@WAYS
@pytest.mark.parametrize("attempts", [1, 2, 5])
@pytest.mark.usefixtures("no_jitter")
def test_as_often_as_told_and_the_providers_own_error_at_the_end(
    way: str, attempts: int
) -> None:
    faults: list[BaseException] = [answered(503) for _ in range(9)]
    send, sent = failing_first(faults)
    with pytest.raises(ProviderError) as caught:
        run(send, attempts=attempts, stop=RecordingEvent(), way=way)
    assert len(sent) == attempts
    assert caught.value is faults[attempts - 1]


@WAYS
@pytest.mark.parametrize(
    "fault",
    [
        answered(401),
        ValueError("no"),
        ProviderError(status_code=429, code="insufficient_quota"),
        answered(429, retry_after="61"),
        answered(429, retry_after_ms="60001"),
        KeyboardInterrupt(),
    ],
)
def test_what_stays_is_not_tried_again(way: str, fault: BaseException) -> None:
    send, sent = failing_first([fault])
    with pytest.raises(type(fault)):
        run(send, attempts=5, stop=RecordingEvent(), way=way)
    assert len(sent) == 1


@pytest.mark.usefixtures("no_jitter")
def test_what_the_provider_asks_for_is_waited_for() -> None:
    stop = RecordingEvent()
    faults: list[BaseException] = [
        answered(429, retry_after="3"),
        answered(429, retry_after_ms="1500"),
        answered(429, retry_after=str(MAX_RETRY_AFTER)),
        answered(503),
    ]
    send, _sent = failing_first(faults)
    assert run(send, attempts=5, stop=stop, way="threads") == "Paris"
    assert stop.waits == [3.0, 1.5, 60.0, 0.0]


def test_jitter_is_added_and_grows_within_a_limit() -> None:
    stop = RecordingEvent()
    faults: list[BaseException] = [answered(429, retry_after="3") for _ in range(9)]
    send, _sent = failing_first(faults)
    assert run(send, attempts=10, stop=stop, way="threads") == "Paris"
    assert all(3.0 <= wait <= 3.0 + 8.0 for wait in stop.waits)
    assert stop.waits[0] <= 3.0 + 0.25
    assert len(set(stop.waits)) > 1


def test_a_stop_ends_a_wait_at_once() -> None:
    stop, failed = threading.Event(), threading.Event()
    sent: list[int] = []
    caught: list[BaseException] = []

    def send() -> str:
        sent.append(1)
        failed.set()
        raise answered(429, retry_after="60")

    def work() -> None:
        try:
            run(send, attempts=2, stop=stop, way="threads")
        except ProviderError as fault:
            caught.append(fault)

    thread = threading.Thread(target=work)
    thread.start()
    assert failed.wait(10)
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
    assert len(caught) == 1


def test_after_a_stop_nothing_is_tried_again() -> None:
    stop = RecordingEvent()
    stop.set()
    send, sent = failing_first([answered(503)])
    with pytest.raises(ProviderError):
        run(send, attempts=5, stop=stop, way="threads")
    assert (len(sent), stop.waits) == (1, [])


async def test_cancelling_the_task_ends_a_wait_at_once() -> None:
    failed = asyncio.Event()

    async def work() -> None:
        async for attempt in aretrying(attempts=2):
            with attempt:
                failed.set()
                raise answered(429, retry_after="60")

    task = asyncio.create_task(work())
    await asyncio.wait_for(failed.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)


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


def named(name: str) -> Exception:
    """Return an error as an HTTP client raises it; we know them by their names."""
    kind: type[Exception] = type(name, (Exception,), {})
    return kind()


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
