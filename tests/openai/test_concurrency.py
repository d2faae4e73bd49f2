"""Many calls at once, calls that end early, and replies that come late."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from typing import Any

import openai
import pytest

from snne_guard.openai import guard_client
from tests.openai.guarded import guarded
from tests.support.observers import Watcher
from tests.support.openai_server import (
    RESPONSES,
    Answer,
    Asked,
    Server,
    always,
)


def test_fifty_threads_share_a_client() -> None:
    with guarded(always("Paris"), "threads", n=3, max_concurrency=4) as (server, call):
        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(lambda _: call(), range(50)))
        assert len(server.requests) == 100
    assert {answer.snne_guard["n_used"] for answer in answers} == {3}


@pytest.mark.parametrize("method", ["responses.create", "assess"])
async def test_cancellation_ends_the_draws(method: str) -> None:
    def script(asked: Asked) -> Answer:
        return Answer(hang=True) if asked.is_sample else Answer()

    watcher = Watcher()
    with Server(script) as server:
        given: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        async with openai.AsyncOpenAI(**given) as own:
            client = guard_client(own, n=3, observers=[watcher])
            task = asyncio.create_task(attrgetter(method)(client)(**RESPONSES))
            await asyncio.to_thread(server.wait_for_requests, 3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_for_abandoned, 2)
    assert "cancelled" in watcher.only.reasons
