"""``preflight`` on other models, with LangChain around it, and when things fail."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from snne_guard import ConfigurationError, GuardTimeoutError, Prices, SNNEGuard
from snne_guard.langchain.preflight import seen_in
from snne_guard.sampling.collect import Reply as Drawn
from snne_guard.types import Sample
from tests.support.chat_samplers import Sampler
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    Request,
    chat_openai,
    error,
    in_turn,
)
from tests.support.examining import GOOD, WAYS, examined, statuses
from tests.support.guarding import Witness, until
from tests.support.handlers import EverythingHandler
from tests.support.patience import in_time

pytestmark = pytest.mark.usefixtures("same_prompts")

# --- models that are no OpenAI -------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_any_class_of_chat_model_is_examined(way: str) -> None:
    replies = iter(AIMessage(f"reply {number}") for number in range(9))
    report = examined(SNNEGuard(GenericFakeChatModel(messages=replies)), way)
    assert report.ok
    assert statuses(report) == {
        "variation": "works",
        "temperature": "missing",
        "n": "missing",
        "logprobs": "missing",
        "seed": "missing",
        "cache": "works",
        "max_tokens": "unknown",
        "usage": "missing",
    }
    assert report.model is None
    assert report.settings == {"method": "snne"}
    assert not SNNEGuard(FakeListChatModel(responses=["Paris"])).preflight().ok


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("beside", [True, False])
def test_what_is_no_log_probability_is_told_from_none(
    *, wrapped: bool, beside: bool
) -> None:
    def garbled(entries: Any, **options: Any) -> bool:
        where = {"logprobs": {"content": entries} if wrapped else entries}
        message = AIMessage("x", response_metadata={} if beside else where)
        info = where if beside else None
        generation = ChatGeneration(message=message, generation_info=info)
        drawn = Drawn(samples=(Sample(text="x", **options),))
        return seen_in(drawn, LLMResult(generations=[[generation]])).garbled

    assert garbled([{"token": "x", "logprob": 0.5}])
    assert not garbled([{"token": "x", "logprob": -1}], token_logprobs=(-1.0,))
    assert not garbled([{"token": "y", "logprob": -1}], misaligned=True)
    assert not garbled([])
    assert not garbled(None)
    assert not seen_in(Drawn(samples=()), None).garbled


def test_a_model_that_is_never_sampled_cannot_be_examined() -> None:
    with ChatServer(Sampler()) as server:
        model = chat_openai(server).bind(tools=[{"type": "web_search"}])
        with pytest.raises(ConfigurationError, match="nothing to examine"):
            SNNEGuard(model).preflight()
        assert server.requests == []


def test_money_is_counted_where_prices_are_given() -> None:
    with ChatServer(Sampler()) as server:
        prices = Prices(prompt=1_000_000.0, completion=2_000_000.0)
        report = SNNEGuard(chat_openai(server), prices=prices).preflight()
        billed = server.billed
    assert report.cost.money == billed.prompt_tokens + 2 * billed.completion_tokens


@pytest.fixture
def langchain_cache() -> Iterator[None]:
    set_llm_cache(InMemoryCache())
    yield
    set_llm_cache(None)


@pytest.mark.usefixtures("langchain_cache")
def test_langchains_own_cache_answers_for_no_sample() -> None:
    with ChatServer(Sampler()) as server:
        report = SNNEGuard(chat_openai(server)).preflight()
        assert "LangChain's is on" in report.finding("cache").message
        off = SNNEGuard(chat_openai(server, cache=False)).preflight()
        assert "LangChain's" not in off.finding("cache").message
    assert report.ok


# --- faults --------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_the_providers_own_error_comes_through(way: str) -> None:
    with ChatServer(in_turn([error(401, "bad key")])) as server:
        with pytest.raises(Exception, match="bad key"):
            examined(SNNEGuard(chat_openai(server)), way)
        assert len(server.requests) == 1


@pytest.mark.parametrize("way", WAYS)
def test_what_is_transient_is_tried_again(way: str) -> None:
    sampler = Sampler()

    def script(request: Request) -> Reply:
        # One request goes out after the other, so none of them fails twice.
        return error(503) if request.index % 3 == 0 else sampler(request)

    with ChatServer(script) as server:
        report = examined(SNNEGuard(chat_openai(server)), way)
        sent = len(server.requests)
    failed = range(0, sent, 3)
    assert report.ok
    assert report.cost.attempts == sent == len(failed) + report.cost.calls
    assert len(failed) > 2


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_says_nothing_times_out(way: str) -> None:
    with ChatServer([Reply(stall=True)]) as server:
        guard = SNNEGuard(chat_openai(server))
        with pytest.raises(GuardTimeoutError, match=r"within the timeout of 0\.2 s"):
            examined(guard, way, timeout=0.2)


@pytest.mark.parametrize("way", WAYS)
def test_when_time_is_up_the_report_says_what_is_known(way: str) -> None:
    def check(limit: float) -> None:
        gate, sampler = Gate(), Sampler()

        def script(request: Request) -> Reply:
            return Reply(gate=gate) if request.temperature == 0 else sampler(request)

        with ChatServer(script) as server:
            report = examined(SNNEGuard(chat_openai(server)), way, timeout=limit)
            gate.open()
        assert report.ok
        late = {"temperature", "n", "seed", "cache"}
        assert statuses(report) == GOOD | dict.fromkeys(late, "unknown")
        assert report.cost.lower_bound

    in_time(check)


async def test_cancelling_ends_what_is_in_flight() -> None:
    with ChatServer([Reply(stall=True)]) as server:
        task = asyncio.create_task(SNNEGuard(chat_openai(server)).apreflight())
        await until(lambda: server.answering)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not server.answering)
        assert server.abandoned == 1


@pytest.mark.parametrize("way", WAYS)
def test_handlers_see_the_requests_and_observers_no_assessment(way: str) -> None:
    recorder, witness = EverythingHandler(), Witness()
    with ChatServer(Sampler()) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="refuse",
            observers=[witness],
        )
        report = examined(guard, way, {"callbacks": [recorder]})
        sent = len(server.requests)
    assert report.ok
    assert recorder.names.count("on_llm_end") == sent
    assert (witness.started, witness.assessments) == ([], [])
