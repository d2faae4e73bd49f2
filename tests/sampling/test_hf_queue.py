"""Who asks at the same time shares a batch, and gets their own replies and errors."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import pytest

from snne_guard.sampling.huggingface import (
    Completion,
    GenerationSettings,
    HuggingFaceModel,
)
from tests.support.guarding import until
from tests.support.tiny_llama import make_model, make_tokenizer

SETTINGS = GenerationSettings(max_tokens=8, seed=1)
LONG = GenerationSettings(max_tokens=400, seed=1)


class Watched:
    """A model that tells of its forwards, and can be made to wait or fail."""

    def __init__(self) -> None:
        self.model = make_model()
        self.model.generation_config.eos_token_id = None
        self.sizes: list[int] = []
        self.before: Callable[[Any], None] = lambda ids: None  # noqa: ARG005 - a stand-in
        forward = self.model.forward

        def watched(input_ids: Any, position_ids: Any = None, **options: Any) -> Any:
            self.before(input_ids)
            self.sizes.append(len(input_ids))
            return forward(input_ids=input_ids, position_ids=position_ids, **options)

        self.model.forward = functools.wraps(forward)(watched)
        self.tokenizer = make_tokenizer()
        self.tokenizer.eos_token_id = None  # so that all replies have full length
        self.local = HuggingFaceModel(self.model, self.tokenizer)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def wait_for_the_end() -> None:
    """Wait until no thread of a queue is left."""
    for thread in threading.enumerate():
        if thread.name == "snne-guard-hf":
            thread.join(30)
            assert not thread.is_alive()


def test_callers_in_threads_share_a_batch(watched: Watched) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def hold(_ids: Any) -> None:
        entered.set()
        assert go_on.wait(30)

    watched.before = hold
    first = watched.local.submit("first", settings=SETTINGS)
    assert entered.wait(30)
    with ThreadPoolExecutor(8) as pool:
        futures = list(
            pool.map(
                lambda k: watched.local.submit(f"p{k}", n=2, settings=SETTINGS),
                range(8),
            )
        )
    go_on.set()
    texts = [[reply.text for reply in future.result(30)] for future in futures]
    assert len(first.result(30)) == 1
    # One row for the first; then 8 prompts, each read once, and 16 replies.
    assert watched.sizes == [1] * 8 + [8] + [16] * 7
    for k in (0, 5):
        (alone,) = watched.local.generate([f"p{k}"], n=2, settings=SETTINGS)
        assert [reply.text for reply in alone] == texts[k]


async def test_tasks_share_a_batch(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, asked = threading.Event(), list[int]()
    submit = watched.local._submit

    def noting(jobs: Any) -> Any:
        futures = submit(jobs)
        asked.append(len(jobs))
        return futures

    def hold(_ids: Any) -> None:
        assert go_on.wait(30)

    watched.before = hold
    monkeypatch.setattr(watched.local, "_submit", noting)
    calls = [
        asyncio.create_task(watched.local.agenerate([f"p{k % 2}"], settings=SETTINGS))
        for k in range(6)
    ]
    await until(lambda: len(asked) == 6)
    go_on.set()
    assert len(await asyncio.gather(*calls)) == 6
    # Far fewer than the 48 forwards that six calls one by one take.
    assert len(watched.sizes) <= 24


def test_short_replies_do_not_wait_for_long_ones(watched: Watched) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def hold(_ids: Any) -> None:
        assert asked.wait(30)
        assert len(watched.sizes) < 30 or go_on.wait(30)

    watched.before = hold
    long, short = (
        watched.local.submit("ab", settings=settings) for settings in (LONG, SETTINGS)
    )
    asked.set()
    assert short.result(30)
    assert not long.done()
    go_on.set()
    assert long.result(30)


def test_an_error_goes_to_the_caller_that_caused_it(watched: Watched) -> None:
    def fail(ids: Any) -> None:
        if ids.shape[1] == 5:
            msg = "device-side assert"
            raise RuntimeError(msg)

    watched.before = fail
    futures = [
        watched.local.submit(prompt, settings=SETTINGS)
        for prompt in ("abc", "fives", "abd")
    ]
    errors = [future.exception(30) for future in futures]
    assert list(map(str, errors)) == ["None", "device-side assert", "None"]


def test_an_error_in_a_request_alone(watched: Watched) -> None:
    def fail(_ids: Any) -> None:
        raise ZeroDivisionError

    watched.before = fail
    with pytest.raises(ZeroDivisionError):
        watched.local.generate(["ab"], settings=SETTINGS)
    wait_for_the_end()
    watched.before = lambda ids: None  # noqa: ARG005 - as before
    assert watched.local.generate(["ab"], settings=SETTINGS)


def test_others_keep_what_they_have_when_one_fails(watched: Watched) -> None:
    heard: list[Any] = []

    def fail(ids: Any) -> None:
        if len(ids) == 2 and len(watched.sizes) == 3:
            raise ZeroDivisionError

    watched.before = fail
    one = watched.local.submit("ab", settings=SETTINGS, listener=heard.extend)
    two = watched.local.submit("xy", settings=SETTINGS)
    (reply,) = one.result(30)
    assert two.result(30)
    assert tuple(heard) == reply.tokens
    (alone,) = watched.local.generate(["ab"], settings=SETTINGS)
    assert reply.text == alone[0].text


def test_who_cancels_drops_the_request(watched: Watched) -> None:
    futures: list[Future[tuple[Completion, ...]]] = []

    go_on = threading.Event()

    def hold_and_cancel(_ids: Any) -> None:
        assert go_on.wait(30)
        if len(watched.sizes) == 4:
            futures[0].cancel()

    watched.before = hold_and_cancel
    futures.append(watched.local.submit("ab", n=3, settings=LONG))
    futures.append(watched.local.submit("xy", settings=SETTINGS))
    go_on.set()
    assert futures[1].result(30)
    with pytest.raises(CancelledError):
        futures[0].result(30)
    wait_for_the_end()
    assert len(watched.sizes) == 8
    assert watched.sizes[4:] == [4, 1, 1, 1]


def test_what_is_cancelled_in_the_queue_is_never_read(watched: Watched) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def hold(_ids: Any) -> None:
        entered.set()
        assert go_on.wait(30)

    watched.before = hold
    first = watched.local.submit("ab", settings=SETTINGS)
    assert entered.wait(30)
    second = watched.local.submit("xy", settings=SETTINGS)
    assert second.cancel()
    go_on.set()
    assert first.result(30)
    wait_for_the_end()
    assert watched.sizes == [1] * 8


def test_a_caller_that_is_interrupted_drops_its_requests(watched: Watched) -> None:
    left = threading.Event()

    def fail(ids: Any) -> None:
        if ids.shape[1] == 3:
            raise ZeroDivisionError
        assert len(watched.sizes) < 30 or left.wait(30)

    watched.before = fail
    with pytest.raises(ZeroDivisionError):
        watched.local.generate(["abc", "ab"], settings=LONG)
    left.set()
    wait_for_the_end()
    assert len(watched.sizes) < 300


async def test_a_cancelled_task_drops_its_requests(watched: Watched) -> None:
    loop, reading = asyncio.get_running_loop(), asyncio.Event()
    left = threading.Event()

    def tell(_ids: Any) -> None:
        loop.call_soon_threadsafe(reading.set)
        assert len(watched.sizes) < 30 or left.wait(30)

    watched.before = tell
    task = asyncio.create_task(watched.local.agenerate(["ab"], settings=LONG))
    await reading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    left.set()
    await asyncio.to_thread(wait_for_the_end)
    assert len(watched.sizes) < 390


def test_no_thread_is_left(watched: Watched) -> None:
    watched.local.generate(["ab"], settings=SETTINGS)
    wait_for_the_end()


def test_a_full_batch_leaves_the_rest_for_the_next(watched: Watched) -> None:
    local = HuggingFaceModel(watched.model, watched.tokenizer, max_batch_size=4)
    settings = GenerationSettings(max_tokens=2, seed=1)
    local.generate(["a", "b", "c"], n=2, settings=settings)
    assert watched.sizes == [2, 4, 1, 2]


def test_a_listener_that_fails_ends_its_request(watched: Watched) -> None:
    def fail(_tokens: Any) -> None:
        raise ZeroDivisionError

    one = watched.local.submit("ab", settings=LONG, listener=fail)
    two = watched.local.submit("xy", settings=SETTINGS)
    assert two.result(30)
    assert isinstance(one.exception(30), ZeroDivisionError)
    wait_for_the_end()
    assert len(watched.sizes) < 20


def test_a_listener_may_fail_after_the_end(watched: Watched) -> None:
    futures: list[Future[tuple[Completion, ...]]] = []
    go_on = threading.Event()

    def fail(_tokens: Any) -> None:
        futures[0].cancel()
        raise ZeroDivisionError

    def hold(_ids: Any) -> None:
        assert go_on.wait(30)

    watched.before = hold
    futures.append(watched.local.submit("ab", settings=LONG, listener=fail))
    go_on.set()
    with pytest.raises(CancelledError):
        futures[0].result(30)
    wait_for_the_end()
