"""What a guarded call cost: every request, token and unit of money, counted once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from snne_guard import Assessment, ConfigurationError, GuardTimeoutError, Prices
from snne_guard.langchain import SNNEGuard
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    Script,
    Usage,
    always,
    chat_openai,
    error,
    in_turn,
    rejecting,
    rejecting_n,
)
from tests.support.guarding import (
    WAYS,
    WHOLE,
    Witness,
    ask,
    is_sample,
    record,
    split,
    until,
)
from tests.support.patience import in_time

PRICES = Prices(prompt=2.0, completion=8.0, cached=0.5)
SCHEDULES = ("concurrent", "answer_first")


def warm(request: Request) -> Reply:
    """Find the prompt of every request but the first in the cache."""
    cached = 1024 if request.index else 0
    return Reply(
        texts=["Paris"], usage=Usage(prompt=1500, completion=40, cached=cached)
    )


def money_billed(server: ChatServer) -> float:
    billed = server.billed
    fresh = billed.prompt_tokens - billed.cached_tokens
    return (
        fresh * 2.0 + billed.cached_tokens * 0.5 + billed.completion_tokens * 8.0
    ) / 1_000_000


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("way", WHOLE)
def test_the_money_is_what_the_server_bills(way: str, schedule: Any) -> None:
    with ChatServer(rejecting_n(warm)) as server:
        guard = SNNEGuard(chat_openai(server), schedule=schedule, prices=PRICES)
        cost = record(ask(guard, "x", way))["cost"]
        billed = server.billed
    assert (cost["calls"], cost["prompt_tokens"]) == (5, billed.prompt_tokens)
    assert cost["cached_tokens"] == billed.cached_tokens
    assert cost["completion_tokens"] == billed.completion_tokens
    assert cost["money"] == pytest.approx(money_billed(server))
    assert cost["lower_bound"] is False
    assert cost["seconds"] > 0


@pytest.mark.parametrize("way", WAYS)
def test_there_is_no_money_without_prices(way: str) -> None:
    with ChatServer(always("Paris")) as server:
        found = record(ask(SNNEGuard(chat_openai(server)), "x", way))
    assert found["cost"]["money"] is None


@pytest.mark.parametrize("way", WHOLE)
def test_samples_that_fail_or_are_late_cost_what_was_billed(way: str) -> None:
    replies = [error(503), error(401), Reply(stall=True), *[Reply(texts=["Paris"])] * 9]

    def check(limit: float) -> None:
        script = split("Paris", rejecting_n(in_turn(replies)))
        with ChatServer(script) as server:
            guard = SNNEGuard(chat_openai(server), prices=PRICES, sample_timeout=limit)
            found = record(ask(guard, "x", way))
            cost, sent = found["cost"], len(server.requests)
        assert found["reasons"] == ["no_threshold", "samples_failed", "samples_late"]
        assert (found["n_used"], cost["calls"]) == (3, server.billed.requests)
        assert cost["attempts"] == sent
        assert cost["money"] == pytest.approx(money_billed(server))
        assert cost["lower_bound"] is True  # one was in flight at the end

    in_time(check)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_an_answer_that_is_asked_for_twice_counts_as_two_attempts(way: str) -> None:
    script = rejecting("logprobs", always("Paris"))
    with ChatServer(script) as server:
        guard = SNNEGuard(chat_openai(server), n=2, schedule="answer_first")
        cost = record(ask(guard, "x", way))["cost"]
        assert cost["attempts"] == len(server.requests) == 3
    assert cost["calls"] == 2


@pytest.mark.parametrize(
    ("script", "stalls"),
    [(always("", status=503), False), (always("", stall=True), True)],
)
@pytest.mark.parametrize("way", WHOLE)
def test_an_answer_that_fails_was_perhaps_billed(
    way: str, script: Script, stalls: bool
) -> None:
    def check(limit: float) -> None:
        witness = Witness()
        with ChatServer(split(script, rejecting_n(always("", status=401)))) as server:
            guard = SNNEGuard(
                chat_openai(server),
                schedule="answer_first",
                observers=[witness],
                timeout=limit if stalls else None,
            )
            with pytest.raises(GuardTimeoutError if stalls else Exception):
                ask(guard, "x", way)
        cost = witness.last.cost
        assert (cost.calls, cost.attempts, cost.lower_bound) == (0, 1, stalls)

    in_time(check, seconds=0.3)


async def test_a_call_that_is_cancelled_tells_that_more_was_in_flight() -> None:
    witness = Witness()
    with ChatServer(always("", stall=True)) as server:
        guard = SNNEGuard(
            chat_openai(server), schedule="answer_first", observers=[witness]
        )
        calling = asyncio.create_task(guard.ainvoke("x"))
        await asyncio.to_thread(server.wait_until, requests=1)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    await until(lambda: witness.assessments)
    assert witness.last.reasons == ("cancelled",)
    assert (witness.last.cost.attempts, witness.last.cost.lower_bound) == (1, True)


def test_prices_must_be_prices() -> None:
    with ChatServer(always("Paris")) as server, pytest.raises(ConfigurationError) as no:
        SNNEGuard(chat_openai(server), prices=(2.0, 8.0))  # type: ignore[arg-type]
    assert "Prices(...) or None; got (2.0, 8.0)" in str(no.value)


def test_prices_stay_with_a_guard_on_another_model() -> None:
    with ChatServer(always("Paris")) as server:
        guard = SNNEGuard(chat_openai(server), prices=PRICES)
        found: Assessment = guard.on(chat_openai(server), n=3).assess("x")
        assert found.cost.money == pytest.approx(money_billed(server))
        assert "prices=Prices(prompt=2.0" in repr(guard)


def test_only_requests_for_samples_are_at_temperature_one() -> None:
    # What the scripts above tell answers and samples apart by.
    with ChatServer(always("Paris")) as server:
        SNNEGuard(chat_openai(server), schedule="answer_first").invoke("x")
        assert [is_sample(request) for request in server.requests] == [False, True]
