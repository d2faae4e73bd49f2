"""One guard for the ``openai`` package, used by many threads and tasks at once."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import openai
import pytest

from snne_guard import AsyncOpenAIGuard, OpenAIGuard
from tests.support.chat_server import ChatServer, Gate, Reply, Request, always, error
from tests.support.guarding import Witness, until
from tests.support.openai_clients import async_client, client

trace: ContextVar[str] = ContextVar("trace", default="nowhere")


def echo(_request: Request) -> Reply:
    return Reply()  # every choice repeats the question


def test_threads_share_a_guard_and_its_limit() -> None:
    questions = [f"question {index}" for index in range(24)]
    with ChatServer(echo) as server, client(server) as whom:
        guard = OpenAIGuard(whom, model="m", n=3, threshold=0.4, max_concurrency=3)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(guard.assess, questions))
        assert server.peak <= 3
    assert [each.question for each in found] == questions
    for each in found:
        assert each.scored == (each.question,) * 3
        assert (each.decision, each.cost.calls) == ("accept", 2)


async def test_tasks_share_a_guard_and_its_limit() -> None:
    questions = [f"question {index}" for index in range(24)]
    with ChatServer(echo) as server:
        async with async_client(server) as whom:
            guard = AsyncOpenAIGuard(whom, model="m", n=3, max_concurrency=3)
            found = await asyncio.gather(*map(guard.assess, questions))
        assert server.peak <= 3
    assert [each.scored for each in found] == [(q,) * 3 for q in questions]


async def test_a_cancelled_call_ends_its_requests_and_is_recorded() -> None:
    gate, witness = Gate(), Witness()
    with ChatServer(always("Paris", gate=gate)) as server:
        async with async_client(server) as whom:
            guard = AsyncOpenAIGuard(whom, model="m", observers=[witness])
            call = asyncio.create_task(guard.assess("x"))
            await asyncio.to_thread(server.wait_until, requests=2)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.to_thread(server.wait_until, abandoned=2)
        gate.open()
    await until(lambda: witness.assessments)
    assert witness.last.reasons == ("cancelled",)
    assert witness.last.cost.lower_bound
    assert witness.last.cost.attempts == 2


def test_samples_are_drawn_in_the_caller_s_context() -> None:
    seen: list[tuple[str, bool]] = []

    class Watched(openai.OpenAI):
        def post(self, *args: Any, **kwargs: Any) -> Any:
            here = threading.current_thread() is threading.main_thread()
            seen.append((trace.get(), here))
            return super().post(*args, **kwargs)

    trace.set("this call")
    with ChatServer(echo) as server, Watched(base_url=server.url, api_key="x") as whom:
        OpenAIGuard(whom, model="m", n=3).assess("x")
    # Tracers of the openai package find their parent span in such variables.
    assert sorted(seen) == [("this call", False), ("this call", True)]


def test_nothing_that_was_asked_or_said_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "snne_guard")
    with ChatServer(echo) as server, client(server) as whom:
        guard = OpenAIGuard(whom, model="m", n=3, threshold=0.4)
        guard.assess("a secret question")
        server.script = lambda _request: error(400, "secret")
        with pytest.raises(openai.BadRequestError):
            guard.assess("a secret question")
    own = [r.getMessage() for r in caplog.records if r.name.startswith("snne_guard")]
    assert not any("secret" in message for message in own)
