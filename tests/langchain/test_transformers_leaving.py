"""Who leaves a local model draws no more; who asks at the same time draws together."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from snne_guard import TransformersChatModel
from snne_guard.sampling.huggingface import HuggingFaceModel
from tests.support.tiny_llama import make_model, make_tokenizer

QUESTION = "hi"


class Slow:
    """Weights that wait before each step until they are told to go on."""

    def __init__(self) -> None:
        model = make_model()
        model.generation_config.eos_token_id = None
        tokenizer = make_tokenizer()
        tokenizer.eos_token_id = None
        self.steps = threading.Semaphore(0)
        self.count = 0
        self.on_step: Callable[[], None] = lambda: None
        forward = model.forward

        def waiting(input_ids: Any, position_ids: Any = None, **options: Any) -> Any:
            assert self.steps.acquire(timeout=30)
            self.count += 1
            self.on_step()
            return forward(input_ids=input_ids, position_ids=position_ids, **options)

        model.forward = functools.wraps(forward)(waiting)
        self.chat = TransformersChatModel(
            HuggingFaceModel(model, tokenizer), max_tokens=300, temperature=1, seed=1
        )

    def go(self, steps: int) -> None:
        self.steps.release(steps)

    def is_left(self) -> None:
        """Check that the model is left alone; what was asked of it is dropped."""
        self.go(2)
        for thread in threading.enumerate():
            if thread.name == "snne-guard-hf":
                thread.join(30)
                assert not thread.is_alive()
        assert self.count < 20


def test_a_stream_that_is_left_draws_no_more() -> None:
    slow = Slow()
    slow.go(8)
    stream = slow.chat.stream(QUESTION)
    assert next(stream).content  # before the others are drawn
    stream.close()  # type: ignore[attr-defined]
    slow.is_left()


async def test_an_async_stream_that_is_left_draws_no_more() -> None:
    slow = Slow()
    slow.go(8)
    stream = slow.chat.astream(QUESTION)
    assert (await anext(stream)).content
    await stream.aclose()  # type: ignore[attr-defined]
    await asyncio.to_thread(slow.is_left)


async def test_a_cancelled_call_draws_no_more() -> None:
    slow = Slow()
    loop, drawing = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        loop.call_soon_threadsafe(drawing.set)

    slow.on_step = tell
    task = asyncio.create_task(slow.chat.ainvoke(QUESTION))
    slow.go(1)
    await drawing.wait()
    slow.on_step = lambda: None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(slow.is_left)


def test_a_loop_that_is_closed_hears_nothing() -> None:
    slow = Slow()
    slow.go(4)

    async def begin() -> Any:
        stream = slow.chat.astream(QUESTION)
        await anext(stream)
        return stream

    loop = asyncio.new_event_loop()
    stream = loop.run_until_complete(begin())
    loop.close()
    slow.go(5)  # tokens for nobody
    asyncio.run(stream.aclose())
    slow.is_left()


def test_an_error_in_the_middle_of_a_stream() -> None:
    slow = Slow()
    forward = slow.chat.model.model.forward

    def failing(input_ids: Any, position_ids: Any = None, **options: Any) -> Any:
        if slow.count == 4:
            raise ZeroDivisionError
        return forward(input_ids=input_ids, position_ids=position_ids, **options)

    slow.chat.model.model.forward = failing
    slow.go(30)
    got: list[str] = []
    with pytest.raises(ZeroDivisionError):
        got.extend(chunk.text for chunk in slow.chat.stream(QUESTION))
    assert got


def test_a_batch_is_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    submit, asked = slow.chat.model.submit, Counter[str]()

    def counted(*args: Any, **options: Any) -> Any:
        future = submit(*args, **options)
        asked["all"] += 1
        if asked["all"] == 16:
            slow.go(100)  # not before all have asked
        return future

    monkeypatch.setattr(slow.chat.model, "submit", counted)
    chat = slow.chat.model_copy(update={"max_tokens": 3})
    chat.batch([f"question {k}" for k in range(16)])
    assert slow.count <= 6  # two batches; 48 one by one
