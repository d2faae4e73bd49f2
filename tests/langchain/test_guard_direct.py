"""Guards whose requests go past LangChain's callbacks: nothing else is left out."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_debug, set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI

from snne_guard import SNNEGuard
from tests.support.chat_server import (
    ChatServer,
    always,
    chat_openai,
    cycle,
    in_turn,
    rejecting_n,
    response,
)
from tests.support.guarding import WHOLE, ask, record, samples_of
from tests.support.handlers import EverythingHandler
from tests.support.rate_limits import Counting

POLICIES = pytest.mark.parametrize("policy", ["flag", "refuse"])
"""With the second the answer is asked for quietly, since it may be withheld."""
BOTH = pytest.mark.parametrize("way", WHOLE)
STEPS = ("invoke", "ainvoke", "generate", "agenerate")


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps of LangChain's that requests passed through."""
    steps: list[str] = []

    def noting(step: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            steps.append(step)
            return getattr(BaseChatModel, step)(self, *args, **kwargs)

        return method

    for step in STEPS:
        monkeypatch.setattr(ChatOpenAI, step, noting(step), raising=False)
    return steps


@BOTH
@POLICIES
def test_a_model_with_methods_of_its_own_is_asked_by_them(
    way: str, policy: Any, passed: list[str]
) -> None:
    with ChatServer(cycle(["Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.9, on_uncertain=policy)
        assert ask(guard, "x", way).content == "Paris"
    own = [step for step in passed if step.startswith("a") == way.startswith("a")]
    # The answer by invoke, which calls generate; the samples by that alone.
    assert sorted(own) == sorted([way, *[way.replace("invoke", "generate")] * 2])


@BOTH
@POLICIES
@pytest.mark.parametrize("wrapped", [False, True])
def test_who_is_told_of_a_call_is_told_of_every_request(
    way: str, policy: Any, *, wrapped: bool
) -> None:
    handler = EverythingHandler()
    with ChatServer(rejecting_n(cycle(["Paris"]))) as server:
        model: Any = chat_openai(server)
        model = model.bind(stop=["."]) if wrapped else model
        guard = SNNEGuard(model, n=3, threshold=0.9, on_uncertain=policy)
        ask(guard, "x", way, {"callbacks": [handler]})
        asked = len(server.requests)
        stops = [request.body.get("stop") for request in server.requests]
    assert handler.names.count("on_chat_model_start") == asked == 4
    assert handler.names.count("on_llm_end") == 3
    assert handler.names.count("on_llm_error") == 1
    assert stops == [["."] if wrapped else None] * 4


@BOTH
@POLICIES
def test_every_request_waits_for_the_models_rate_limiter(way: str, policy: Any) -> None:
    limiter = Counting()
    with ChatServer(rejecting_n(cycle(["Paris"]))) as server:
        model = chat_openai(server, rate_limiter=limiter)
        ask(SNNEGuard(model, threshold=0.9, on_uncertain=policy), "x", way)
        assert limiter.asked == len(server.requests) > 5  # some were refused


@BOTH
@POLICIES
def test_a_cache_answers_for_the_answer_and_for_no_sample(
    way: str, policy: Any
) -> None:
    set_llm_cache(InMemoryCache())
    try:
        with ChatServer(always("Paris")) as server:
            guard = SNNEGuard(chat_openai(server), threshold=0.9, on_uncertain=policy)
            costs = [record(ask(guard, "x", way))["cost"] for _ in range(2)]
            assert len(samples_of(server)) == 2
            assert len(server.requests) == 3
    finally:
        set_llm_cache(None)
    assert [cost["calls"] for cost in costs] == [2, 1]


@BOTH
@POLICIES
def test_a_model_that_streams_does_so_for_the_answer_alone(
    way: str, policy: Any
) -> None:
    with ChatServer(cycle(["Paris"])) as server:
        model = chat_openai(server, streaming=True)
        guard = SNNEGuard(model, threshold=0.9, on_uncertain=policy)
        assert ask(guard, "x", way).content == "Paris"
        streamed = [request.body.get("stream") for request in server.requests]
    assert sorted(map(bool, streamed)) == [False, True]


@BOTH
@POLICIES
@pytest.mark.parametrize("version", ["v0", "v1"])
@pytest.mark.parametrize("responses", [False, True])
def test_the_answer_is_as_the_bare_model_gives_it(
    way: str, policy: Any, version: str, *, responses: bool
) -> None:
    options: dict[str, Any] = {"use_responses_api": responses}
    if version == "v1":
        options["output_version"] = version
    script = in_turn([response("Paris")]) if responses else cycle(["Paris"])
    with ChatServer(script) as server:
        model = chat_openai(server, **options)
        bare = ask(model, "x", way)
        guard = SNNEGuard(model, threshold=0.9, on_uncertain=policy)
        message = ask(guard, "x", way)
    assert (type(message), message.content) == (AIMessage, bare.content)
    assert message.usage_metadata == bare.usage_metadata
    assert bare.id is not None
    assert message.id is not None
    assert len(message.id) == len(bare.id)
    assert message.id.split("-")[0] == bare.id.split("-")[0]
    ours, theirs = ({**each.response_metadata} for each in (message, bare))
    for found in (ours, theirs):
        found.pop("id", None)
        found.pop("logprobs", None)
    assert ours.pop("snne_guard")["decision"] == "accept"
    assert ours == theirs


@BOTH
@POLICIES
def test_images_are_sent_alike_for_the_answer_and_the_samples(
    way: str, policy: Any
) -> None:
    image = {
        "type": "image",
        "source_type": "base64",
        "mime_type": "image/png",
        "data": "aGk=",
    }
    messages = [HumanMessage([{"type": "text", "text": "What is it?"}, image])]
    with ChatServer(cycle(["Paris"])) as server:
        model = chat_openai(server)
        ask(model, messages, way)
        ask(SNNEGuard(model, threshold=0.9, on_uncertain=policy), messages, way)
        sent = [request.messages for request in server.requests]
    assert len(sent) == 3
    assert sent[0] == sent[1] == sent[2]


@BOTH
def test_a_verbose_model_prints_its_answer(
    way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(cycle(["Paris"])) as server:
        ask(SNNEGuard(chat_openai(server)), "x", way)
        assert capsys.readouterr().out == ""
        loud = chat_openai(server, verbose=True)
        ask(loud, "x", way)
        bare = capsys.readouterr().out
        ask(SNNEGuard(loud), "x", way)
        assert capsys.readouterr().out == bare


@BOTH
def test_debugging_prints_every_request(
    way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    set_debug(value=True)
    try:
        with ChatServer(cycle(["Paris"])) as server:
            ask(SNNEGuard(chat_openai(server)), "x", way)
    finally:
        set_debug(value=False)
    assert capsys.readouterr().out.count("[llm/start]") == 2
