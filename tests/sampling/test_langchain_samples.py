"""What a request for samples carries, and whom it goes to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from snne_guard.sampling import Draw, Reply, SamplingPlan
from snne_guard.sampling.collect import count_by
from snne_guard.sampling.langchain import AsyncSamples, Samples
from snne_guard.sampling.langchain_route import Route
from snne_guard.sampling.langchain_runs import AsyncRunLog, RunLog
from snne_guard.sampling.memory import Memory
from snne_guard.types import Cost
from tests.support.chat_server import (
    ChatServer,
    Request,
    Script,
    always,
    chat_openai,
    cycle,
    error,
    in_turn,
    rejecting,
    rejecting_n,
)
from tests.support.chat_server import Reply as Served
from tests.support.handlers import EverythingHandler

WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])
MESSAGES = [SystemMessage("Be short."), HumanMessage("Capital of France?")]
ONE = Draw(index=0, n=1)
FOUR = Draw(index=0, n=4)
LOOPS: list[asyncio.Runner] = []
FURTHER: list[None] = []
"""An entry for each request beside the first, which whoever sends it counts."""


@pytest.fixture(autouse=True)
def one_loop() -> Iterator[None]:
    """Give all requests of a test one loop, since connections are kept open."""
    FURTHER.clear()
    count_by(lambda: FURTHER.append(None))
    with asyncio.Runner() as runner:
        LOOPS[:] = [runner]
        yield
    count_by(lambda: None)


def send(
    way: str,
    model: Runnable[Any, Any],
    draw: Draw = ONE,
    *,
    memory: Memory | None = None,
    plan: SamplingPlan | None = None,
    asked: bool = False,
    log: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Reply:
    """Send one request by one of the twins."""
    plan = SamplingPlan() if plan is None else plan
    options: dict[str, Any] = {
        "route": Route.of(model, plan),
        "messages": MESSAGES,
        "kwargs": kwargs,
        "plan": plan,
        "memory": Memory() if memory is None else memory,
        "logprobs": asked,
    }
    log = {"config": {}} if log is None else log
    if way == "threads":
        return Samples(**options).listen(RunLog(**log)).send(draw)
    samples = AsyncSamples(**options).listen(AsyncRunLog(**log))
    return LOOPS[0].run(samples.send(draw))


def request_of(way: str, draw: Draw = ONE, **options: Any) -> Request:
    """Return the request that reaches the server."""
    bound = options.pop("bound", {})
    model_options = options.pop("model", {})
    with ChatServer(always("Paris")) as server:
        send(way, chat_openai(server, **model_options).bind(**bound), draw, **options)
        (request,) = server.requests
    return request


# --- what a request carries ----------------------------------------------------------


@WAYS
def test_the_whole_conversation_is_asked_again(way: str) -> None:
    request = request_of(way)
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert request.texts == ["Be short.", "Capital of France?"]
    assert set(request.body) == {"messages", "model", "stream", "temperature"}


@WAYS
def test_several_replies_are_asked_for_at_once(way: str) -> None:
    with ChatServer(cycle(["a", "b", "c", "d"])) as server:
        reply = send(way, chat_openai(server), FOUR)
        assert [request.n for request in server.requests] == [4]
        billed = server.billed
    assert [sample.text for sample in reply.samples] == ["a", "b", "c", "d"]
    assert {sample.model for sample in reply.samples} == {"test-model"}
    assert reply.cost == Cost(
        calls=1,
        prompt_tokens=billed.prompt_tokens,
        completion_tokens=billed.completion_tokens,
    )


@WAYS
def test_the_temperature_is_the_samples_own_wherever_the_user_set_one(way: str) -> None:
    plan = SamplingPlan(temperature=0.7)
    assert request_of(way, plan=plan).temperature == 0.7
    assert request_of(way, plan=plan, model={"temperature": 0}).temperature == 0.7
    assert request_of(way, plan=plan, bound={"temperature": 0}).temperature == 0.7
    assert request_of(way, plan=plan, temperature=0).temperature == 0.7


@WAYS
@pytest.mark.parametrize("place", ["model", "bound", "call"])
def test_a_seed_is_another_one_for_each_request(way: str, place: str) -> None:
    options: dict[str, Any] = {"seed": 40} if place == "call" else {place: {"seed": 40}}
    seeds = [
        request_of(way, Draw(index=index, n=1), **options).body["seed"]
        for index in (0, 1, 5)
    ]
    assert seeds == [41, 42, 46]


@WAYS
def test_a_seed_of_zero_is_a_seed(way: str) -> None:
    assert request_of(way, model={"seed": 0}).body["seed"] == 1


@WAYS
def test_what_would_garble_or_leave_traces_is_left_off(way: str) -> None:
    bound = {"n": 3, "stream": True, "logprobs": True, "top_logprobs": 2, "store": True}
    body = request_of(way, bound=bound).body
    assert body["store"] is False
    assert body["stream"] is False
    assert not {"n", "logprobs", "top_logprobs"} & set(body)
    call = request_of(way, n=3, logprobs=True, top_logprobs=2, store=True).body
    assert call["store"] is False
    assert not {"n", "logprobs", "top_logprobs"} & set(call)


@WAYS
def test_the_users_other_options_stay(way: str) -> None:
    body = request_of(way, bound={"stop": ["a"], "user": "u"}, stop=["b"]).body
    assert (body["stop"], body["user"]) == (["b"], "u")


@WAYS
@pytest.mark.parametrize("place", ["model", "bound", "call", None])
def test_the_samples_token_limit_stands_before_the_users(
    way: str, place: str | None
) -> None:
    limit = {"max_tokens": 500}
    options: dict[str, Any] = limit if place == "call" else {place or "model": limit}
    if place is None:
        options = {}
    plan = SamplingPlan(sample_max_tokens=9)
    assert request_of(way, plan=plan, **options).body["max_completion_tokens"] == 9


@WAYS
def test_log_probabilities_are_asked_for_where_they_are_wanted(way: str) -> None:
    assert not request_of(way).logprobs
    with ChatServer(always("Paris it is")) as server:
        reply = send(way, chat_openai(server), asked=True)
        assert server.requests[0].logprobs
    assert reply.samples[0].token_logprobs == (-0.1, -0.1, -0.1)


@WAYS
def test_no_cache_answers_for_a_sample(way: str) -> None:
    set_llm_cache(InMemoryCache())
    try:
        with ChatServer(cycle(["a", "b"])) as server:
            model = chat_openai(server)
            texts = [send(way, model).samples[0].text for _ in range(2)]
            own = chat_openai(server, cache=InMemoryCache())
            send(way, own)
            send(way, own)
            assert len(server.requests) == 4
    finally:
        set_llm_cache(None)
    assert texts == ["a", "b"]


# --- log-probabilities that are refused ----------------------------------------------


@WAYS
def test_refused_log_probabilities_are_left_off_and_it_is_remembered(way: str) -> None:
    memory = Memory()
    with ChatServer(rejecting("logprobs", cycle(["a", "b"]))) as server:
        model = chat_openai(server)
        reply = send(way, model, FOUR, memory=memory, asked=True)
        assert [request.logprobs for request in server.requests] == [True, False]
        assert (len(reply.samples), len(FURTHER)) == (4, 1)
        assert memory.logprobs is False
        send(way, model, memory=memory, asked=True)
        assert [request.logprobs for request in server.requests][2:] == [False]


def refusing_without_a_word(then: Script) -> Script:
    refusal = error(400, "no")
    return lambda request: refusal if request.logprobs else then(request)


@WAYS
def test_a_refusal_without_a_word_is_tried_without_for_a_single_reply(way: str) -> None:
    with ChatServer(refusing_without_a_word(always("Paris"))) as server:
        model = chat_openai(server)
        with pytest.raises(openai.BadRequestError):
            send(way, model, FOUR, asked=True)
        assert len(server.requests) == 1
        assert send(way, model, ONE, asked=True).samples[0].text == "Paris"


@WAYS
@pytest.mark.parametrize(
    ("seen", "status"), [(True, 400), (None, 401), (None, 500), (False, 400)]
)
def test_what_log_probabilities_have_nothing_to_do_with_is_raised(
    way: str, status: int, *, seen: bool | None
) -> None:
    memory = Memory()
    if seen is not None:
        memory.settle_logprobs(seen=seen)
    with ChatServer([error(status, "logprobs")]) as server:
        with pytest.raises(openai.APIStatusError):
            send(way, chat_openai(server), memory=memory, asked=True)
        assert len(server.requests) == 1
        assert server.requests[0].logprobs is (seen is not False)


# --- several candidates --------------------------------------------------------------


@pytest.fixture
def servers() -> Iterator[Callable[[Script, Script], tuple[ChatServer, ChatServer]]]:
    opened: list[ChatServer] = []

    def start(first: Script, second: Script) -> tuple[ChatServer, ChatServer]:
        opened.extend([ChatServer(first).__enter__(), ChatServer(second).__enter__()])
        return opened[0], opened[1]

    yield start
    for server in opened:
        server.__exit__(None, None, None)


def with_fallback(pair: tuple[ChatServer, ChatServer], **options: Any) -> Any:
    first, second = (
        chat_openai(server, model=name)
        for server, name in zip(pair, ("first", "second"), strict=True)
    )
    return first.with_fallbacks([second], **options)


@WAYS
def test_the_next_candidate_is_asked_after_a_failure(way: str, servers: Any) -> None:
    pair = servers(in_turn([error(401)]), always("Paris"))
    reply = send(way, with_fallback(pair), FOUR)
    assert {(sample.text, sample.model) for sample in reply.samples} == {
        ("Paris", "second")
    }
    assert len(FURTHER) == 1
    assert [len(server.requests) for server in pair] == [1, 1]


@WAYS
@pytest.mark.parametrize(("status", "param"), [(404, None), (400, "messages")])
def test_a_refusal_that_is_not_for_n_lets_the_next_candidate_give_them_all(
    way: str, status: int, param: str | None, servers: Any
) -> None:
    pair = servers(in_turn([error(status, "n", param=param)]), always("Paris"))
    if param is not None:
        pair[0].script = in_turn([error(status, "too long", param=param)])
    reply = send(way, with_fallback(pair), FOUR)
    assert {sample.model for sample in reply.samples} == {"second"}
    assert [len(server.requests) for server in pair] == [1, 1]


@WAYS
def test_a_failure_that_the_fallbacks_do_not_handle_is_raised(
    way: str, servers: Any
) -> None:
    pair = servers(in_turn([error(401)]), always("Paris"))
    handled = with_fallback(pair, exceptions_to_handle=(openai.RateLimitError,))
    with pytest.raises(openai.AuthenticationError):
        send(way, handled)
    assert pair[1].requests == []


@WAYS
def test_the_last_candidates_failure_is_raised(way: str, servers: Any) -> None:
    pair = servers(in_turn([error(401)]), in_turn([error(403)]))
    with pytest.raises(openai.PermissionDeniedError):
        send(way, with_fallback(pair))


@WAYS
def test_a_rejected_n_keeps_the_samples_with_one_model(way: str, servers: Any) -> None:
    pair = servers(rejecting_n(always("Paris")), always("Lyon"))
    model = with_fallback(pair)
    with pytest.raises(openai.BadRequestError):
        send(way, model, FOUR)
    assert pair[1].requests == []
    assert send(way, model, ONE).samples[0].text == "Paris"


# --- runs ----------------------------------------------------------------------------


@WAYS
def test_each_request_is_a_run_of_its_own(way: str) -> None:
    handler = EverythingHandler()
    script = in_turn([Served(texts=["Paris"]), error(401)])
    with ChatServer(script) as server, get_usage_metadata_callback() as usage:
        model, log = chat_openai(server), {"config": {"callbacks": [handler]}}
        send(way, model, FOUR, log=log)
        counted = usage.usage_metadata["test-model"]
        assert counted["output_tokens"] == server.billed.completion_tokens == 4
        with pytest.raises(openai.AuthenticationError):
            send(way, model, log=log)
    assert handler.names == [
        "on_chat_model_start",
        "on_llm_end",
        "on_chat_model_start",
        "on_llm_error",
    ]
    assert handler.events[0].kwargs["options"] == {"n": 4}


@WAYS
def test_a_model_that_does_not_say_its_name_has_none(way: str) -> None:
    reply = send(way, FakeListChatModel(responses=["Paris"]))
    assert [(s.text, s.model) for s in reply.samples] == [("Paris", None)]
    assert reply.cost == Cost(calls=1, lower_bound=True)
