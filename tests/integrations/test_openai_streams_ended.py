"""What ends a stream of a guarded ``openai`` client, and what ends with it."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import openai
import pytest

from snne_guard_integrations.openai import assessment, guard_client
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
)
from tests.support.guarded_openai import REQUEST, content, guarding
from tests.support.guarding import Witness, is_sample, until
from tests.support.openai_clients import BOTH, async_client, client

both = pytest.mark.parametrize("way", BOTH)


@both
@pytest.mark.parametrize("how", ["close", "response", "drop"])
def test_a_stream_that_is_abandoned_ends_its_samples(way: str, how: str) -> None:
    witness = Witness()

    def script(request: Request) -> Reply:
        if is_sample(request):
            return Reply(stall=True)
        return Reply(texts=("It is Paris",), chunk_delay=0.01)

    with (
        ChatServer(script) as server,
        guarding(server, way, threshold=0.4, n=2, observers=[witness]) as ask,
    ):
        stream = ask(**REQUEST, stream=True)
        # On its own loop, which stands still while nobody waits for it.
        ask.wait(asyncio.to_thread(server.wait_until, requests=2))
        ask.first(stream)
        if how == "close":
            ask.close(stream)
        elif how == "response":
            ask.close_response(stream)
        del stream
        gc.collect()
        ask.wait(until(lambda: witness.assessments))
        ask.wait(asyncio.to_thread(server.wait_until, abandoned=1))
    assert witness.last.reasons == ("cancelled",)
    assert witness.last.cost.lower_bound


def slowly(request: Request) -> Reply:
    """Let the answer begin and never end; the samples never come."""
    if is_sample(request):
        return Reply(stall=True)
    return Reply(texts=("It is Paris",), chunk_delay=0.2)


@pytest.mark.parametrize("policy", ["flag", "refuse"])
def test_a_stream_that_another_thread_closes_ends_what_is_read(policy: Any) -> None:
    witness, begun = Witness(), threading.Event()
    with ChatServer(slowly) as server, client(server, timeout=2) as own:
        guarded = guard_client(
            own, n=2, threshold=0.4, on_uncertain=policy, observers=[witness]
        )
        stream = guarded.chat.completions.create(**REQUEST, stream=True)

        def read() -> None:
            begun.set()
            with suppress(openai.APIConnectionError, httpx.HTTPError):
                list(stream)

        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read)
            begun.wait()
            stream.close()
            reading.result()
        server.wait_until(abandoned=1)
    assert witness.last.reasons[-1] in {"answer_failed", "cancelled"}


@pytest.mark.parametrize("policy", ["flag", "refuse"])
async def test_a_stream_that_another_task_closes_ends_what_is_read(policy: Any) -> None:
    witness = Witness()
    with ChatServer(slowly) as server:
        async with async_client(server) as own:
            guarded = guard_client(
                own, n=2, threshold=0.4, on_uncertain=policy, observers=[witness]
            )
            stream = await guarded.chat.completions.create(**REQUEST, stream=True)
            begun = asyncio.Event()

            async def read() -> None:
                begun.set()
                with suppress(openai.APIConnectionError, httpx.HTTPError):
                    [chunk async for chunk in stream]

            reading = asyncio.ensure_future(read())
            await begun.wait()
            await asyncio.sleep(0)
            await stream.close()
            await reading
            await asyncio.to_thread(server.wait_until, abandoned=1)
    assert witness.last.reasons[-1] in {"answer_failed", "cancelled"}


async def test_a_task_that_is_cancelled_ends_everything() -> None:
    witness = Witness()
    with ChatServer([Reply(stall=True)]) as server:
        async with async_client(server) as own:
            guarded = guard_client(own, n=2, observers=[witness])
            asking = asyncio.ensure_future(guarded.chat.completions.create(**REQUEST))
            await asyncio.to_thread(server.wait_until, requests=2)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await until(lambda: witness.assessments)
            await asyncio.to_thread(server.wait_until, abandoned=2)
    assert witness.last.reasons == ("cancelled",)


@both
def test_a_stream_that_breaks_off_raises_or_is_handed_over(way: str) -> None:
    def script(request: Request) -> Reply:
        if is_sample(request):
            return Reply(texts=("Paris",))
        if request.body["model"] == "careful":
            return Reply(texts=("Bern",))
        return Reply(texts=("a b c d",), drop=True)

    with ChatServer(script) as server:
        # Shown already: a second answer behind half of one would be worse.
        with guarding(server, way, threshold=0.4, fallback="careful") as ask:
            stream = ask(**REQUEST, stream=True)
            # The oldest versions of the package pass on what the HTTP client raises.
            with pytest.raises((openai.APIError, httpx.RemoteProtocolError)):
                ask.parts(stream)
        with guarding(
            server, way, threshold=0.4, on_uncertain="refuse", fallback="careful"
        ) as ask:
            chunks, stream = ask.stream()
            assert content(chunks) == "Bern"
            assert assessment(stream)["reasons"] == ["answer_failed"]
