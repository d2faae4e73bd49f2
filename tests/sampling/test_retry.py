"""What is tried again, when, and how often: the one layer of retries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from snne_guard.sampling.retry import (
    MAX_RETRY_AFTER,
    aretried,
    retried,
)
from tests.sampling.provider_errors import ProviderError, answered


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
        return retried(send, attempts=attempts, stop=stop)

    async def asend() -> str:
        return send()

    return asyncio.run(aretried(asend, attempts=attempts))


WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])


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
    assert failed.wait(60)
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

    async def send() -> None:
        failed.set()
        raise answered(429, retry_after="60")

    task = asyncio.create_task(aretried(send, attempts=2))
    await asyncio.wait_for(failed.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)
