"""Brakes: budgets, rules and the breaker hold samples back, never an answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from snne_guard import (
    Breaker,
    Budget,
    ConfigurationError,
    GuardTimeoutError,
    Prices,
    SNNEGuard,
)
from snne_guard.sampling import retry
from tests.sampling.test_breaker import Clock
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    Request,
    Script,
    Usage,
    always,
    chat_openai,
    error,
    failing,
    in_turn,
    rejecting_n,
)
from tests.support.guarding import WAYS, WHOLE, ask, is_sample, record, split
from tests.support.patience import in_time

EACH = Usage(prompt=100, completion=10)  # of every request: 110 tokens
PARIS = always("Paris", usage=EACH)
SCHEDULES = ("concurrent", "answer_first")


def samples_of(server: ChatServer) -> int:
    return sum(is_sample(request) and request.n == 1 for request in server.requests)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let retries follow at once."""
    monkeypatch.setattr(retry, "_jitter", lambda _state: 0.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("way", WHOLE)
def test_a_call_draws_the_samples_that_it_can_afford(way: str, schedule: Any) -> None:
    with ChatServer(rejecting_n(PARIS)) as server:
        # What one request brings is only known once the server has said so.
        guard = SNNEGuard(chat_openai(server), schedule=schedule, threshold=0.5)
        ask(guard, "x", way)
        guard = guard.on(guard.model, budget=Budget(tokens_per_call=3 * 110))
        sent = len(server.requests)
        found = record(ask(guard, "x", way))
        assert len(server.requests) - sent == 3
    assert found["reasons"] == ["over_budget"]
    assert (found["n_requested"], found["n_used"]) == (5, 3)
    assert found["decision"] == "accept"
    assert found["cost"]["prompt_tokens"] + found["cost"]["completion_tokens"] <= 330


@pytest.mark.parametrize("on_error", ["uncertain", "accept"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_cannot_afford_a_score_is_unscored(
    way: str, schedule: Any, on_error: Any
) -> None:
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(
            chat_openai(server),
            schedule=schedule,
            budget=Budget(tokens_per_call=129),
            threshold=0.5,
            on_uncertain="refuse",
            on_error=on_error,
        )
        message = ask(guard, "x", way)
        assert len(server.requests) == 1  # the answer is always drawn
    found = record(message)
    assert found["reasons"] == ["over_budget"]
    assert (found["uncertainty"], found["n_used"]) == (None, 0)
    refused = on_error == "uncertain"
    assert found["decision"] == ("refuse" if refused else "unscored")
    assert (message.content == "Paris") is not refused


@pytest.mark.parametrize("way", WHOLE)
def test_a_minute_is_shared_by_a_guard_and_those_made_from_it(way: str) -> None:
    clock = Clock()
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(
            chat_openai(server), n=3, budget=Budget(tokens_per_minute=400)
        )
        guard.shared.ledger._clock = clock
        other = guard.on(chat_openai(server), temperature=0.5)
        assert record(ask(guard, "x", way))["n_used"] == 3  # 110 + 120 tokens
        assert "over_budget" in record(ask(other, "x", way))["reasons"]
        clock.now += 60
        assert record(ask(guard, "x", way))["n_used"] == 3


def test_a_budget_in_money_counts_at_the_prices_given() -> None:
    prices = Prices(prompt=1.0, completion=10.0)  # 200 millionths a request
    with ChatServer(rejecting_n(PARIS)) as server:
        options: dict[str, Any] = {"prices": prices, "schedule": "answer_first"}
        guard = SNNEGuard(chat_openai(server), **options)
        guard.invoke("x")
        limited = guard.on(guard.model, budget=Budget(money_per_call=810e-6))
        cost = record(limited.invoke("x"))["cost"]
    assert cost["money"] == pytest.approx(800e-6)


async def test_with_a_budget_only_the_first_call_waits_for_its_answer() -> None:
    gates = [Gate(), Gate()]
    held = iter(gates)

    def script(request: Request) -> Reply:
        gate = None if is_sample(request) else next(held)
        return Reply(texts=["Paris"], usage=EACH, gate=gate)

    with ChatServer(script) as server:
        guard = SNNEGuard(chat_openai(server), budget=Budget(tokens_per_call=10_000))
        first = asyncio.create_task(guard.ainvoke("x"))
        await asyncio.to_thread(server.wait_until, requests=1)
        await asyncio.sleep(0.05)
        assert len(server.requests) == 1
        gates[0].open()
        assert record(await first)["n_used"] == 5
        second = asyncio.create_task(guard.ainvoke("x"))
        await asyncio.to_thread(server.wait_until, requests=4)
        gates[1].open()
        assert record(await second)["n_used"] == 5


def test_what_a_skipped_call_takes_counts_too() -> None:
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(
            chat_openai(server), sample_rate=0.0, budget=Budget(tokens_per_minute=1000)
        )
        assert record(guard.invoke("x"))["reasons"] == ["no_threshold", "not_sampled"]
        assert guard.shared.ledger._minute.tokens == 110


def test_an_answer_that_fails_unbilled_holds_nothing() -> None:
    with ChatServer(always("", status=401)) as server:
        guard = SNNEGuard(chat_openai(server), budget=Budget(tokens_per_minute=1000))
        with pytest.raises(Exception, match="401"):
            guard.invoke("x")
        assert guard.shared.ledger._minute.tokens == 0


def test_an_answer_that_was_perhaps_billed_stays_booked() -> None:
    replies = [Reply(texts=["Paris"], usage=EACH), Reply(stall=True)]
    booked = Budget(tokens_per_minute=1000)

    def check(limit: float) -> None:
        with ChatServer(in_turn(replies)) as server:
            model = chat_openai(server)
            guard = SNNEGuard(model, sample_rate=0.0, timeout=limit, budget=booked)
            for _ in range(2):
                with suppress(GuardTimeoutError):
                    guard.invoke("x")
            assert server.billed.requests == 1
            assert guard.shared.ledger._minute.tokens == 110 + 110

    in_time(check)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"budget": 1000}, r"budget must be Budget\(...\) or None; got 1000"),
        ({"budget": Budget(money_per_call=1)}, "needs prices"),
        ({"breaker": True}, r"breaker must be Breaker\(...\) or None; got True"),
        ({"sample_when": "long"}, "sample_when must be a plain function .* got 'long'"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], named: str
) -> None:
    with (
        ChatServer(PARIS) as server,
        pytest.raises(ConfigurationError, match=named),
    ):
        SNNEGuard(chat_openai(server), **options)


async def not_plain(messages: list[BaseMessage]) -> bool:
    await asyncio.sleep(0)
    return not messages


def test_an_async_rule_is_refused() -> None:
    with ChatServer(PARIS) as server, pytest.raises(ConfigurationError) as caught:
        SNNEGuard(chat_openai(server), sample_when=not_plain)  # type: ignore[arg-type]
    assert "plain function" in str(caught.value)


def later(messages: list[BaseMessage]) -> Any:
    return not_plain(messages)


def long(messages: list[BaseMessage]) -> bool:
    return len(messages[-1].text) > 10


@pytest.mark.parametrize("way", WAYS)
def test_a_rule_skips_questions_that_are_not_worth_samples(way: str) -> None:
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.5, on_uncertain="refuse", sample_when=long
        )
        short = ask(guard, "hello", way)
        assert len(server.requests) == 1
        found = record(ask(guard, "What is the capital of France?", way))
    assert record(short)["reasons"] == ["skipped_by_rule"]
    assert (record(short)["decision"], short.content) == ("unscored", "Paris")
    assert (found["decision"], found["n_used"]) == ("accept", 5)


@pytest.mark.parametrize(
    "rule",
    [lambda messages: messages["no such key"], later],
    ids=["raises", "async"],
)
@pytest.mark.parametrize("way", WHOLE)
def test_a_rule_that_fails_skips_nothing(
    way: str, rule: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.5, sample_when=rule)
        found = record(ask(guard, "secret", way))
    assert found["reasons"] == ["sample_when_failed"]
    assert (found["decision"], found["n_used"]) == ("accept", 5)
    assert "sample_when failed with TypeError" in caplog.text
    assert "secret" not in caplog.text


def emptying(messages: list[BaseMessage]) -> bool:
    messages.clear()
    return True


def test_a_rule_cannot_change_what_is_asked() -> None:
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), sample_when=emptying)
        assert record(guard.invoke("Is it?"))["n_used"] == 5
        assert {request.prompt for request in server.requests} == {"Is it?"}


def test_rule_rate_and_token_limit_work_together() -> None:
    with ChatServer(PARIS) as server:
        options: dict[str, Any] = {"sample_when": long, "sample_max_tokens": 7}
        guard = SNNEGuard(chat_openai(server), sample_rate=0.0, **options)
        assert "skipped_by_rule" in record(guard.invoke("hello"))["reasons"]
        assert "not_sampled" in record(guard.invoke("hello " * 9))["reasons"]
        assert not any(map(is_sample, server.requests))
        record(SNNEGuard(chat_openai(server), **options).invoke("hello " * 9))
        limits = {
            request.body.get("max_completion_tokens")
            for request in server.requests
            if is_sample(request)
        }
    assert limits == {7}


def outage(*, samples: bool = True) -> tuple[Script, threading.Event]:
    """Fail the requests for samples, or all of them, until it is over."""
    over = threading.Event()

    def script(request: Request) -> Reply:
        if not over.is_set() and (is_sample(request) or not samples):
            return error(503, "overloaded")
        return PARIS(request)

    return script, over


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("way", WHOLE)
def test_samples_are_shed_while_the_provider_fails_and_drawn_again_after(
    way: str, schedule: Any
) -> None:
    script, over = outage()
    clock = Clock()
    with ChatServer(rejecting_n(script)) as server:
        guard = SNNEGuard(
            chat_openai(server),
            schedule=schedule,
            threshold=0.5,
            breaker=Breaker(failures=6, cooldown=10.0),
        )
        guard.shared.circuit._clock = clock
        found = record(ask(guard, "x", way))
        assert set(found["reasons"]) >= {"samples_shed", "too_few_samples"}
        assert samples_of(server) < 4 * 4  # not what four attempts each would be
        sent = len(server.requests)
        other = guard.on(chat_openai(server), temperature=0.9)
        message = ask(other, "x", way)
        assert len(server.requests) == sent + 1
        assert message.content == "Paris"
        assert record(message)["decision"] == "flag"
        assert record(message)["reasons"] == ["samples_shed"]
        clock.now += 10.0
        over.set()
        found = record(ask(guard, "x", way))
        assert (found["decision"], found["reasons"]) == ("accept", [])
        assert record(ask(other, "x", way))["n_used"] == 5


@pytest.mark.usefixtures("impatient")
def test_answers_that_fail_open_the_breaker_too() -> None:
    script, over = outage(samples=False)
    with ChatServer(script) as server:
        guard = SNNEGuard(
            chat_openai(server),
            schedule="answer_first",
            breaker=Breaker(failures=3),
        )
        for _ in range(3):
            with pytest.raises(Exception, match="overloaded"):
                guard.invoke("x")
        over.set()
        assert "samples_shed" in record(guard.invoke("x"))["reasons"]


@pytest.mark.usefixtures("impatient")
def test_without_a_breaker_every_sample_is_tried() -> None:
    script, _ = outage()
    with ChatServer(rejecting_n(script)) as server:
        guard = SNNEGuard(chat_openai(server), breaker=None)
        for _ in range(2):
            found = record(guard.invoke("x"))
            assert "samples_shed" not in found["reasons"]
            assert "samples_failed" in found["reasons"]
        assert samples_of(server) == 2 * 4 * 4


@pytest.mark.usefixtures("impatient")
async def test_a_fifth_of_failures_sheds_nothing() -> None:
    fifth = failing(PARIS, rate=0.2, seed=4, at_most=3)
    script = split(PARIS, rejecting_n(fifth))
    with ChatServer(script) as server:
        guard = SNNEGuard(chat_openai(server), max_concurrency=40)
        messages = await guard.abatch([f"x {number}" for number in range(40)])
        assert len(server.requests) > 40 * 5.5
    reasons = [record(message)["reasons"] for message in messages]
    assert not any({"samples_shed"} & set(found) for found in reasons)
    assert all(record(message)["n_used"] == 5 for message in messages)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_limit_on_the_wait_scores_what_has_arrived(way: str, schedule: Any) -> None:
    replies = [Reply(stall=True), Reply(texts=["Paris"])]

    def check(limit: float) -> None:
        with ChatServer(split("Paris", rejecting_n(in_turn(replies)))) as server:
            model = chat_openai(server)
            options: dict[str, Any] = {"threshold": 0.4, "schedule": schedule}
            guard = SNNEGuard(model, sample_timeout=limit, **options)
            found = record(ask(guard, "x", way))
        assert (found["decision"], found["n_used"]) == ("accept", 4)
        assert found["reasons"] == ["samples_late"]
        assert found["cost"]["lower_bound"] is True

    in_time(check, seconds=0.7)


@pytest.mark.parametrize("way", WHOLE)
def test_a_budget_bounds_all_rounds_together(way: str) -> None:
    with ChatServer(rejecting_n(PARIS)) as server:
        model = chat_openai(server)
        SNNEGuard(model).invoke("x")
        guard = SNNEGuard(
            model,
            n=10,
            rounds=(3, 10),
            threshold=0.5,
            schedule="answer_first",
            budget=Budget(tokens_per_call=110 * 6),
        )
        found = record(ask(guard, "x", way))
        cost = found["cost"]
    assert found["reasons"] == ["over_budget"]
    assert (found["n_used"], cost["rounds"], cost["samples_saved"]) == (6, 2, 0)
