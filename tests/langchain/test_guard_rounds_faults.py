"""Rounds against a server that misbehaves: nothing hangs, is lost, or paid twice."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tenacity import RetryCallState

from snne_guard import SNNEGuard
from snne_guard.sampling import retry
from snne_guard.types import Score
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    Script,
    chat_openai,
    cycle,
    error,
    failing,
)
from tests.support.guarding import WHOLE, ask, is_sample, record, split
from tests.support.patience import in_time

TWINS = pytest.mark.parametrize("way", WHOLE)


def never(score: Score, missing: int) -> bool:
    del score, missing
    return False


THREE: dict[str, Any] = {"n": 10, "rounds": (3, 6, 10), "threshold": 0.4}
ALL: dict[str, Any] = {**THREE, "stopping": never}


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_state: RetryCallState) -> float:
        return 0.0

    monkeypatch.setattr(retry, "_jitter", none)


def in_round(place: int, fault: Script, then: Script) -> Script:
    """Have the requests for samples of one round, counted from 1, misbehave."""
    lock, seen = threading.Lock(), list[int]()

    def script(request: Request) -> Reply:
        if not is_sample(request):
            return then(request)
        with lock:
            if request.n not in seen:
                seen.append(request.n)
        return (fault if seen.index(request.n) + 1 == place else then)(request)

    return script


PARIS = split("Paris", ["Paris"])


@TWINS
def test_a_round_that_fails_for_good_is_passed_over(way: str) -> None:
    script = in_round(2, lambda _request: error(403, "no"), PARIS)
    # n is 2, 3 and 4 in the three rounds, so that a request tells its round.
    with ChatServer(script) as server:
        found = record(ask(SNNEGuard(chat_openai(server), **ALL), "x", way))
    assert (found["n_requested"], found["n_used"]) == (10, 7)
    assert found["reasons"] == ["samples_failed"]
    assert found["cost"]["rounds"] == 3


@TWINS
def test_a_round_is_repeated_and_then_the_next_one_goes_out(way: str) -> None:
    fails = failing(PARIS, rate=1.0, status=503)
    once = cycle(["Paris"])
    tries = list[int]()

    def first_then(request: Request) -> Reply:
        tries.append(request.n)
        return (fails if len(tries) == 1 else once)(request)

    with ChatServer(in_round(2, first_then, PARIS)) as server:
        found = record(ask(SNNEGuard(chat_openai(server), **ALL), "x", way))
        asked = [request.n for request in server.requests if is_sample(request)]
    assert asked == [2, 3, 3, 4]
    assert (found["n_used"], found["reasons"]) == (10, [])
    assert (found["cost"]["calls"], found["cost"]["attempts"]) == (4, 5)


@TWINS
def test_a_stalled_round_ends_with_the_time_and_what_came_is_scored(way: str) -> None:
    def stalls(request: Request) -> Reply:
        del request
        return Reply(stall=True)

    def check(limit: float) -> None:
        with ChatServer(in_round(2, stalls, PARIS)) as server:
            guard = SNNEGuard(
                chat_openai(server), **ALL, sample_timeout=limit, min_samples=2
            )
            found = record(ask(guard, "x", way))
            asked = [request.n for request in server.requests if is_sample(request)]
        assert asked == [2, 3]  # no further round is begun
        assert (found["n_requested"], found["n_used"]) == (10, 3)
        assert found["reasons"] == ["samples_late"]
        assert found["cost"]["lower_bound"] is True
        assert found["cost"]["samples_saved"] == 0

    in_time(check)


def test_cancelling_in_a_later_round_ends_what_is_in_flight() -> None:
    waiting = threading.Event()

    def stalls(request: Request) -> Reply:
        del request
        waiting.set()
        return Reply(stall=True)

    async def run(server: ChatServer) -> None:
        guard = SNNEGuard(chat_openai(server), **ALL)
        call = asyncio.ensure_future(guard.ainvoke("x"))
        assert await asyncio.to_thread(waiting.wait, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with ChatServer(in_round(2, stalls, PARIS)) as server:
        asyncio.run(run(server))
        server.wait_until(abandoned=1)


def test_with_one_failure_in_five_every_call_ends_and_tells_the_truth() -> None:
    calls = 60
    script = split("Paris", cycle(["Paris", "Paris", "Lyon", "Rome"]))

    def flaky(request: Request) -> Reply:
        return (failing_samples if is_sample(request) else script)(request)

    failing_samples = failing(script, rate=0.2, seed=5)

    async def run(server: ChatServer) -> list[Any]:
        guard = SNNEGuard(
            chat_openai(server), **THREE, max_concurrency=16, breaker=None
        )
        return await asyncio.gather(*(guard.ainvoke(f"q{i}") for i in range(calls)))

    with ChatServer(flaky) as server:
        found = [record(message) for message in asyncio.run(run(server))]
        billed, sent = server.billed.requests, len(server.requests)
    costs = [one["cost"] for one in found]
    assert sum(cost["calls"] for cost in costs) == billed
    assert sum(cost["attempts"] for cost in costs) == sent
    for one, cost in zip(found, costs, strict=True):
        assert one["decision"] in {"accept", "flag"}
        assert one["n_requested"] + cost["samples_saved"] == 10
        assert one["n_used"] <= one["n_requested"]
        assert ("stopped_early" in one["reasons"]) == (cost["samples_saved"] > 0)
