"""The local chat server's faults: lost connections, stalls, crowds, a late end."""

import asyncio
import itertools
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage

from tests.support.chat_server import (
    Billed,
    ChatServer,
    Gate,
    Reply,
    Request,
    always,
    chat_openai,
)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["drop", "reset"])
def test_loses_the_connection_in_the_body(fault: str, *, stream: bool) -> None:
    with ChatServer(always("a b c d", **{fault: True})) as server:
        model = chat_openai(server)
        with pytest.raises(Exception, match=r"(?i)connection|closed|reset") as caught:
            list(model.stream("?")) if stream else model.invoke("?")
    error: BaseException | None = caught.value
    kinds = []
    while error is not None:
        kinds.append(type(error))
        error = error.__cause__ or error.__context__
    assert (ConnectionResetError in kinds) is (fault == "reset")
    assert server.billed == Billed()
    assert server.abandoned == 0


@pytest.mark.parametrize("stream", [False, True])
def test_sends_malformed_json(*, stream: bool) -> None:
    with ChatServer(always("a b c d", malformed=True)) as server:
        model = chat_openai(server)
        with pytest.raises(json.JSONDecodeError):
            list(model.stream("?")) if stream else model.invoke("?")
    assert server.billed == Billed()


def test_stalls_until_the_client_gives_up() -> None:
    with ChatServer(always("a", stall=True)) as server:
        with pytest.raises(openai.APITimeoutError):
            chat_openai(server, timeout=0.05).invoke("?")
        server.wait_until(requests=1, abandoned=1)
        assert server.answering == 0
    assert server.billed == Billed()


def test_closes_while_a_client_waits() -> None:
    with ThreadPoolExecutor(1) as pool:
        with ChatServer(always("a", stall=True)) as server:
            waiting = pool.submit(chat_openai(server).invoke, "?")
            server.wait_until(requests=1)
        with pytest.raises(openai.APIConnectionError):
            waiting.result(60)


def test_holds_replies_back_until_the_gate_opens() -> None:
    gate = Gate()

    async def ask(server: ChatServer) -> list[object]:
        model = chat_openai(server)
        tasks = [asyncio.create_task(model.ainvoke("?")) for _ in range(3)]
        await asyncio.to_thread(server.wait_until, requests=3)
        assert server.answering == 3
        tasks[0].cancel()
        await asyncio.to_thread(server.wait_until, abandoned=1)
        gate.open()
        return await asyncio.gather(*tasks, return_exceptions=True)

    with ChatServer(always("a", gate=gate)) as server:
        found = asyncio.run(ask(server))
    assert isinstance(found[0], asyncio.CancelledError)
    assert [m.content for m in found[1:] if isinstance(m, AIMessage)] == ["a", "a"]
    assert (server.peak, server.answering, server.billed.requests) == (3, 0, 2)


def test_waits_before_answering_and_between_chunks() -> None:
    with ChatServer(always("a b", delay=0.03, chunk_delay=0.03)) as server:
        model, began = chat_openai(server), time.monotonic()
        parts = [part.content for part in model.stream("?")]
        # Four chunks: the role, two words and the end.
        assert time.monotonic() - began >= 0.03 + 3 * 0.03
    assert "".join(str(part) for part in parts) == "a b"


def test_serves_300_connections_at_once() -> None:
    gate = Gate()

    async def ask(server: ChatServer) -> list[Any]:
        model = chat_openai(server)
        waiting = asyncio.create_task(model.abatch(["?"] * 300))
        await asyncio.to_thread(server.wait_until, requests=300)
        gate.open()
        return list(await waiting)

    with ChatServer(always("a", gate=gate)) as server:
        found = asyncio.run(ask(server))
    assert [message.content for message in found] == ["a"] * 300
    assert (server.peak, server.billed.requests) == (300, 300)


def test_raises_the_fault_of_a_script_at_the_end() -> None:
    def broken(request: Request) -> Reply:
        raise LookupError(request.prompt)

    with (
        pytest.raises(LookupError, match="who"),
        ChatServer(broken) as server,
        pytest.raises(openai.InternalServerError),
    ):
        chat_openai(server).invoke("who")


def test_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    for _ in itertools.repeat(None, 3):
        with ChatServer() as server:
            chat_openai(server).invoke("?")
    assert set(threading.enumerate()) <= before


def test_says_what_it_waited_for_in_vain() -> None:
    expected = "expected 1 and 0, got 0 requests"
    with ChatServer() as server, pytest.raises(AssertionError, match=expected):
        server.wait_until(requests=1, seconds=0.01)
