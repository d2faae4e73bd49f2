"""Many guarded calls at once: threads, tasks, cancellation, loops, forks, nesting."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import openai
import pytest

from snne_guard import Assessment
from snne_guard.scorers import Method
from tests.langchain.support import REFUSING, guarded, metadata_of
from tests.support.observers import Watcher
from tests.support.openai_server import Answer, Asked, Rush, Server, always


def echo(asked: Asked) -> Answer:
    """Repeat the question, so that a mixed-up reply would be seen."""
    return Answer(texts=[asked.body["messages"][-1]["content"]], delay=0.05)


def check(messages: list[Any]) -> None:
    for place, message in enumerate(messages):
        assert message.text == f"number {place}"
        record = metadata_of(message)
        assert (record["decision"], record["n_used"]) == ("accept", 5)
        assert (record["cost"]["calls"], record["reasons"]) == (2, [])
    assert len({metadata_of(message)["id"] for message in messages}) == len(messages)


QUESTIONS = [f"number {place}" for place in range(100)]


@pytest.mark.parametrize("way", ["threads", "tasks"])
async def test_a_hundred_calls_at_once(way: str) -> None:
    with Server(echo) as server, ThreadPoolExecutor(100) as pool:
        guard = guarded(server, **REFUSING)
        if way == "threads":
            messages = list(pool.map(guard.invoke, QUESTIONS))
        else:
            messages = list(await asyncio.gather(*map(guard.ainvoke, QUESTIONS)))
        check(messages)
        assert len(server.requests) == 200


async def test_threads_tasks_and_copies_keep_to_one_limit() -> None:
    rush = Rush()
    with Server(rush) as server:
        guard = guarded(server, threshold=0.4, max_concurrency=3)
        other = guard.model_copy(update={"n": 3})
        await asyncio.gather(
            *(guard.ainvoke("Where?") for _ in range(5)),
            *(asyncio.to_thread(other.invoke, "Where?") for _ in range(5)),
        )
        assert len(server.requests) == 20
    assert rush.most == 3


# -- Cancellation ----------------------------------------------------------------------


async def test_cancelling_aborts_the_draws_in_flight_at_the_server() -> None:
    watcher = Watcher()
    with Server(lambda _: Answer(hang=True)) as server:
        guard = guarded(server, observers=[watcher])
        task = asyncio.create_task(guard.ainvoke("Where?"))
        await asyncio.to_thread(server.wait_for_requests, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.wait_for_abandoned, 2)
    assert watcher.only.reasons == ("cancelled",)
    assert watcher.only.answer is None


async def test_leaving_a_stream_early_aborts_its_samples() -> None:
    def script(asked: Asked) -> Answer:
        if asked.is_sample:
            return Answer(hang=True)
        return Answer(texts=["one two three"], chunk_delay=0.05)

    watcher = Watcher()
    with Server(script) as server:
        stream = guarded(server, observers=[watcher]).astream("Count.")
        async for chunk in stream:
            if chunk.text:
                break
        await stream.aclose()  # type: ignore[attr-defined]  # it is a generator
        await asyncio.to_thread(server.wait_for_abandoned, 1)
        while not watcher.assessments:  # noqa: ASYNC110 - LangChain closes it in its own time
            await asyncio.sleep(0.01)
    assert watcher.only.reasons == ("cancelled",)


# -- Loops, nesting, forks -------------------------------------------------------------


async def test_a_synchronous_call_works_inside_a_running_loop() -> None:
    with Server(always()) as server:
        guard = guarded(server, **REFUSING)
        assert metadata_of(guard.invoke("Where?"))["decision"] == "accept"
        assert "".join(chunk.text for chunk in guard.stream("Where?")) == "Paris"
        assert len(guard.batch(["Where?"] * 3)) == 3
        assert metadata_of(await guard.ainvoke("Where?"))["decision"] == "accept"


async def test_what_may_be_slow_runs_off_the_event_loop() -> None:
    threads: dict[str, int] = {}

    def compare(texts: Sequence[str], *, question: str | None = None) -> Any:
        threads["similarity"] = threading.get_ident()
        return np.eye(len(texts))

    def measure(matrix: Any) -> float:
        threads["method"] = threading.get_ident()
        return float(len(matrix))

    def decide(_: Assessment) -> str:
        threads["on_uncertain"] = threading.get_ident()
        return "flag"

    compare.name = "exact"  # type: ignore[attr-defined]  # as one of the package's
    method = Method(
        name="mine", source="this test", function=measure, limits=(0.0, 9.0)
    )
    options: Any = {"similarity": compare, "method": method, "on_uncertain": decide}
    with Server(always()) as server:
        await guarded(server, threshold=0.0, **options).ainvoke("Where?")
    assert len(threads) == 3
    assert threading.get_ident() not in threads.values()


def all_differ(texts: Sequence[str], *, question: str | None = None) -> Any:
    del question
    return np.eye(len(texts))


@pytest.mark.parametrize("way", ["threads", "tasks"])
async def test_twenty_nested_guards_do_not_starve_one_another(way: str) -> None:
    with Server(always()) as server:
        inner = guarded(server, n=2, threshold=0.4)

        def decide(_: Any) -> Any:
            return inner.invoke("Where?")

        options: Any = {"similarity": all_differ, "on_uncertain": decide}
        guard = guarded(server, n=2, threshold=0.0, max_concurrency=2, **options)
        if way == "tasks":
            messages = await asyncio.gather(*[guard.ainvoke("x") for _ in range(20)])
        else:
            with ThreadPoolExecutor(20) as pool:
                messages = list(pool.map(guard.invoke, ["x"] * 20))
        assert len(server.requests) == 80
    assert {metadata_of(message)["decision"] for message in messages} == {"flag"}


def run_program(program: str, *arguments: str) -> None:
    """Run a program, which must end well."""
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    subprocess.run(command, check=True, timeout=60)  # noqa: S603 - our own program


_FORKING = """
import os, sys
import httpx
from snne_guard import SNNEGuard
from langchain_openai import ChatOpenAI
import threading

def check(guard):
    record = guard.invoke("Where?").response_metadata["snne_guard"]
    return record["decision"] == "accept" and record["n_used"] == 5

model = ChatOpenAI(model="m", api_key="test", base_url=sys.argv[1], max_retries=0)
guard = SNNEGuard(model, threshold=0.4, max_concurrency=2)
assert check(guard)
calls = [threading.Thread(target=check, args=(guard,)) for _ in range(5)]
for call in calls:
    call.start()
child = os.fork()
if child == 0:
    # A client of its own: at the fork a thread may hold a lock of the parent's.
    options = dict(model="m", api_key="test", base_url=sys.argv[1], max_retries=0)
    own = ChatOpenAI(**options, http_client=httpx.Client())
    os._exit(0 if check(guard.model_copy(update={"guarded": own})) else 1)
_, status = os.waitpid(child, 0)
for call in calls:
    call.join()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_forks_while_calls_are_in_flight() -> None:
    with Server(lambda _: Answer(delay=0.1)) as server:
        run_program(_FORKING, server.url)


_LEAVING = """
import sys
from langchain_core.language_models import FakeListChatModel
from snne_guard import GuardTimeoutError, SNNEGuard

hanging = FakeListChatModel(responses=["Paris"], sleep=600)
try:
    SNNEGuard(hanging, timeout=0.2).invoke("Where?")
except GuardTimeoutError:
    sys.exit(0)
sys.exit("the call did not time out")
"""


def test_a_provider_that_hangs_does_not_keep_a_process_from_ending() -> None:
    run_program(_LEAVING)


# -- All at once -----------------------------------------------------------------------


async def test_three_hundred_tasks_that_are_cancelled_and_fail() -> None:
    """Nothing hangs, each call is observed once, and the limit is free at the end."""
    chance, lock = random.Random(7), threading.Lock()  # noqa: S311 - no secret

    def script(asked: Asked) -> Answer:
        with lock:
            fails, delay = chance.random() < 0.3, chance.random() * 0.02
        status = chance.choice([401, 402, 410]) if fails else 200
        return Answer(status=status, delay=delay, texts=["Paris"] * asked.n)

    watcher = Watcher()
    with Server(script) as server:
        guard = guarded(
            server, n=3, threshold=0.4, max_concurrency=40, observers=[watcher]
        )

        async def call(place: int) -> str:
            """Return how a call ends; every third is cancelled."""
            task = asyncio.create_task(guard.ainvoke(f"number {place}"))
            if place % 3 == 0:
                await asyncio.sleep(chance.random() * 0.5)
                task.cancel()
            try:
                message = await task
            except asyncio.CancelledError:
                return "cancelled"
            except openai.APIError:
                return "failed"
            return str(metadata_of(message)["decision"])

        ends = await asyncio.gather(*map(call, range(300)))
        server.script = always()
        last = await asyncio.wait_for(guard.ainvoke("Where?"), 10)
    assert metadata_of(last)["decision"] == "accept"
    assert min(ends.count(end) for end in ("cancelled", "failed", "accept")) > 10
    observed = Counter(each.question for each in watcher.assessments)
    assert max(observed.values()) == 1
    # A call may be cancelled before it has begun, or once it was observed.
    ended = {f"number {n}" for n, end in enumerate(ends) if end != "cancelled"}
    whole = {e.question for e in watcher.assessments if "cancelled" not in e.reasons}
    assert {*ended, "Where?"} <= whole
