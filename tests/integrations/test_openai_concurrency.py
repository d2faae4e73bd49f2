"""One guarded ``openai`` client, many calls at once: none sees another's."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from snne_guard import Budget, GuardTimeoutError, ModelCancelledError
from snne_guard_integrations.openai import assessment, guard_client
from tests.support.chat_server import ChatServer, Reply, Request, always, error
from tests.support.guarded_openai import REQUEST, content, guarding
from tests.support.guarding import is_sample, split
from tests.support.openai_clients import BOTH, async_client, client

both = pytest.mark.parametrize("way", BOTH)
CALLS = 24


def request(number: int) -> dict[str, Any]:
    return {"model": f"model-{number % 3}", "messages": [message(number)]}


def message(number: int) -> dict[str, str]:
    return {"role": "user", "content": f"number {number}"}


def echo(asked: Request) -> Reply:
    """Answer with the question; every third model's samples are all different."""
    sure = asked.body["model"] != "model-0" or not is_sample(asked)
    words = [asked.prompt if sure else f"{asked.index} x{n}" for n in range(asked.n)]
    return Reply(texts=words)


def check(number: int, text: str | None, found: Any) -> str:
    expected = "refuse" if number % 3 == 0 else "accept"
    assert found["decision"] == expected
    assert (text == f"number {number}") is (expected == "accept")
    return str(found["id"])


def test_threads_share_a_client_and_nothing_else() -> None:
    with ChatServer(echo) as server, client(server) as own:
        guarded = guard_client(own, n=3, threshold=0.4, on_uncertain="refuse")

        def ask(number: int) -> str:
            options: dict[str, Any] = request(number)
            if number % 2:
                stream = guarded.chat.completions.create(**options, stream=True)
                return check(number, content(list(stream)), assessment(stream))
            whole = guarded.chat.completions.create(**options)
            return check(number, whole.choices[0].message.content, assessment(whole))

        with ThreadPoolExecutor(8) as pool:
            ids = set(pool.map(ask, range(CALLS)))
    assert len(ids) == CALLS


async def test_tasks_share_a_client_and_nothing_else() -> None:
    with ChatServer(echo) as server:
        async with async_client(server) as own:
            guarded = guard_client(own, n=3, threshold=0.4, on_uncertain="refuse")

            async def ask(number: int) -> str:
                options: dict[str, Any] = request(number)
                if number % 2:
                    stream = await guarded.chat.completions.create(
                        **options, stream=True
                    )
                    chunks = [chunk async for chunk in stream]
                    return check(number, content(chunks), assessment(stream))
                whole = await guarded.chat.completions.create(**options)
                text = whole.choices[0].message.content
                return check(number, text, assessment(whole))

            ids = set(await asyncio.gather(*map(ask, range(CALLS))))
    assert len(ids) == CALLS


async def test_the_plain_client_works_where_a_loop_is_running_already() -> None:
    with ChatServer(always("Paris")) as server, client(server) as own:
        guarded = guard_client(own, threshold=0.4)
        found = guarded.chat.completions.create(**REQUEST)
        chunks = list(guarded.chat.completions.create(**REQUEST, stream=True))
    assert assessment(found)["decision"] == "accept"
    assert content(chunks) == "Paris"


@both
def test_a_place_is_held_while_an_answer_streams(way: str) -> None:
    with (
        ChatServer(always("It is Paris")) as server,
        guarding(server, way, threshold=0.4, max_concurrency=1) as ask,
    ):
        for _ in range(2):
            chunks, stream = ask.stream()
            assert content(chunks) == "It is Paris"
            assert assessment(stream)["n_used"] == 5
        assert server.peak == 1


@both
def test_the_answer_keeps_the_client_s_own_retries(way: str) -> None:
    left = [error(500, retry_after=0), error(500, retry_after=0)]

    def script(asked: Request) -> Reply:
        if is_sample(asked) or not left:
            return Reply(texts=("Paris",))
        return left.pop()

    with (
        ChatServer(script) as server,
        guarding(
            server, way, threshold=0.4, client_options={"max_retries": 2}, method="snne"
        ) as ask,
    ):
        assert assessment(ask())["decision"] == "accept"
        assert sum(not is_sample(asked) for asked in server.requests) == 3


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_cancels_its_own_request_has_failed(stream: bool) -> None:
    class GivesUp(openai.AsyncOpenAI):
        async def request(self, *_args: Any, **_kwargs: Any) -> Any:
            raise asyncio.CancelledError

    own = GivesUp(api_key="test")
    asked = {**REQUEST, "stream": stream}
    async with own:
        guarded = guard_client(own, threshold=0.4)
        with pytest.raises(ModelCancelledError):
            await guarded.chat.completions.create(**asked)
        handing = guard_client(own, threshold=0.4, fallback=lambda _asked: "Lyon")
        found = await handing.chat.completions.create(**asked)
        if stream:
            assert content([part async for part in found]) == "Lyon"
        else:
            assert found.choices[0].message.content == "Lyon"
    assert assessment(found)["decision"] == "fallback"


@both
def test_a_budget_is_one_for_all_models_and_streams(way: str) -> None:
    with (
        ChatServer(always("Paris")) as server,
        guarding(
            server, way, threshold=0.4, budget=Budget(tokens_per_minute=40)
        ) as ask,
    ):
        reasons: list[str] = []
        for number in range(8):
            _, stream = ask.stream(**request(number))
            reasons += assessment(stream)["reasons"]
    assert "over_budget" in reasons


@both
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_does_not_come_in_time_is_an_error(
    way: str, *, stream: bool
) -> None:
    stalling = split(lambda _asked: Reply(stall=True), ["Paris"])
    with (
        ChatServer(stalling) as server,
        guarding(server, way, threshold=0.4, timeout=0.2) as ask,
        pytest.raises(GuardTimeoutError),
    ):
        ask(**REQUEST, stream=stream)
