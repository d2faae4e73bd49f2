"""One guard used by many at once, cancelled, pickled, watched by bad observers."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard import Assessment, GuardedChatModel, SNNEGuard
from snne_guard.assess import observe
from snne_guard.types import SampleEvent
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    Request,
    always,
    chat_openai,
    rejecting_n,
)
from tests.support.guarding import Witness, ask, record, samples_of, split, until
from tests.support.patience import in_time


def echo(request: Request) -> Reply:
    """Answer with the question, so that a mix-up of calls would show."""
    return Reply(texts=[request.prompt])


def check(message: Any, number: int) -> None:
    assert message.content == f"question {number}"
    found = record(message)
    assert (found["decision"], found["uncertainty"]) == ("accept", 0.0)
    assert (found["n_used"], found["cost"]["calls"]) == (5, 2)


def test_fifty_threads_share_one_guard() -> None:
    with ChatServer(echo) as server:
        model = chat_openai(server)
        before = model.model_dump()
        guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
        with ThreadPoolExecutor(50) as pool:
            messages = list(
                pool.map(guard.invoke, [f"question {i}" for i in range(50)])
            )
        assert model.model_dump() == before
        assert len(server.requests) == 100
    for number, message in enumerate(messages):
        check(message, number)
    assert len({record(message)["id"] for message in messages}) == 50


async def test_two_hundred_tasks_share_one_guard() -> None:
    with ChatServer(echo) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        messages = await asyncio.gather(
            *(guard.ainvoke(f"question {number}") for number in range(200))
        )
        assert len(server.requests) == 400
    for number, message in enumerate(messages):
        check(message, number)


async def test_threads_and_tasks_keep_to_one_limit() -> None:
    with ChatServer(rejecting_n(always("x", delay=0.02))) as server:
        guard = SNNEGuard(chat_openai(server), n=4, max_concurrency=2)
        await asyncio.gather(
            *(guard.ainvoke("x") for _ in range(5)),
            *(asyncio.to_thread(guard.invoke, "x") for _ in range(5)),
        )
        assert len([one for one in samples_of(server) if one.n == 1]) == 30
        assert server.peak <= 2


async def test_cancelling_ends_the_calls_in_flight_and_reports_the_partial_cost() -> (
    None
):
    witness = Witness()
    gate = Gate()
    with ChatServer(split(always("Paris", gate=gate), ["Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, observers=[witness])
        task = asyncio.create_task(guard.ainvoke("x"))
        await until(lambda: any(event.role == "sample" for event in witness.ended))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.wait_until, requests=2, abandoned=1)
        gate.open()
    await until(lambda: witness.assessments)
    assert witness.last.reasons[-1] == "cancelled"
    assert len(witness.last.samples) == 4
    assert (witness.last.cost.calls, witness.last.decision) == (1, None)


async def test_leaving_a_stream_early_ends_the_samples() -> None:
    witness = Witness()
    with ChatServer(split("one two three", always("x", stall=True))) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, observers=[witness])
        stream = guard.astream("x")
        async for _chunk in stream:
            break
        await asyncio.to_thread(server.wait_until, requests=2)
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator
        await asyncio.to_thread(server.wait_until, abandoned=1)
    await until(lambda: witness.assessments)
    assert witness.last.reasons[-1] == "cancelled"


class Raising:
    def on_sample_start(self, _event: SampleEvent) -> None:
        raise RuntimeError

    async def on_assessment(self, _assessment: Assessment) -> None:
        raise RuntimeError


class Hanging:
    def __init__(self) -> None:
        self.release = threading.Event()

    def on_assessment(self, _assessment: Assessment) -> None:
        self.release.wait(60)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_observers_that_raise_or_hang_never_touch_the_answer(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(limit: float) -> None:
        monkeypatch.setattr(observe, "_FLUSH_SECONDS", limit)
        hanging, witness = Hanging(), Witness()
        watching = [Raising(), hanging, witness]
        with ChatServer(always("Paris")) as server:
            guard = SNNEGuard(chat_openai(server), threshold=0.4, observers=watching)
            for _ in range(3):
                assert record(ask(guard, "x", way))["decision"] == "accept"
            hanging.release.set()
        assert guard.observer_failures == 10  # 6 starts, 3 assessments, 1 that hangs
        assert len(witness.assessments) == 3

    in_time(check, seconds=0.3)


def test_the_assessment_of_an_invoke_reaches_observers_under_its_id() -> None:
    witness = Witness()
    with ChatServer(always("Paris")) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, observers=[witness])
        message = guard.invoke("x")
    assert [a.id for a in witness.assessments] == [record(message)["id"]]
    assert witness.last.to_metadata() == record(message)
    roles = Counter(event.role for event in witness.ended)
    assert roles == {"answer": 1, "sample": 1}
    assert {event.assessment_id for event in witness.started} == {witness.last.id}


def test_a_guard_is_picklable_where_its_model_is() -> None:
    guard = SNNEGuard(
        FakeListChatModel(responses=["a"]), n=3, threshold=0.4, max_concurrency=2
    )
    again = pickle.loads(pickle.dumps(guard))  # noqa: S301 - our own bytes
    assert repr(again) == repr(guard)
    assert record(again.invoke("x"))["decision"] == "accept"
    # Also once they know their model.
    third = pickle.loads(pickle.dumps(again))  # noqa: S301 - likewise
    for copied in (third, copy.deepcopy(again), copy.copy(again)):
        assert record(copied.invoke("x"))["decision"] == "accept"
    model = pickle.loads(pickle.dumps(GuardedChatModel(guard)))  # noqa: S301 - likewise
    assert record(model.invoke("x"))["decision"] == "accept"
