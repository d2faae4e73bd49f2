from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from snne_guard.errors import ModelCancelledError
from snne_guard.sampling.within import OutOfTimeError, awithin, within

place: contextvars.ContextVar[str] = contextvars.ContextVar("place")


def test_without_a_limit_the_caller_s_own_thread_asks() -> None:
    assert within(threading.current_thread, None) is threading.current_thread()


def test_the_thread_sees_the_caller_s_context() -> None:
    place.set("here")
    assert within(place.get, 60.0) == "here"


async def test_what_does_not_return_in_time_is_out_of_time() -> None:
    never = threading.Event()
    with pytest.raises(OutOfTimeError):
        within(never.wait, 0.01)
    never.set()
    with pytest.raises(OutOfTimeError):
        await awithin(asyncio.Event().wait(), 0.01)


def _fail(error: BaseException) -> None:
    raise error


async def _afail(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("kind", [TimeoutError, ValueError, KeyboardInterrupt])
async def test_the_provider_s_own_errors_come_through(
    kind: type[BaseException],
) -> None:
    for seconds in (None, 60.0):
        with pytest.raises(kind) as caught:
            within(lambda: _fail(kind("its own")), seconds)
        assert str(caught.value) == "its own"
    if kind is not KeyboardInterrupt:  # it would end the loop of this test
        with pytest.raises(kind, match="its own"):
            await awithin(_afail(kind("its own")), 60.0)


@pytest.mark.parametrize("seconds", [None, 60.0])
async def test_what_cancels_itself_has_failed(seconds: float | None) -> None:
    def ask() -> None:
        with pytest.raises(ModelCancelledError):
            within(lambda: _fail(asyncio.CancelledError()), seconds)

    ask()
    await asyncio.to_thread(ask)  # where no loop runs
    with pytest.raises(ModelCancelledError):
        await awithin(_afail(asyncio.CancelledError()), seconds)


@pytest.mark.parametrize("seconds", [None, 60.0])
async def test_a_task_that_is_cancelled_ends(seconds: float | None) -> None:
    async def wait() -> None:
        await awithin(asyncio.Event().wait(), seconds)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
