"""Options in odd places, and what samples carry of them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel

from snne_guard import SNNEGuard
from snne_guard.sampling.langchain_effects import side_effects
from snne_guard.sampling.langchain_models import Candidate
from tests.support.chat_server import (
    ChatServer,
    Gate,
    always,
    chat_openai,
)
from tests.support.guarding import (
    WHOLE,
    ask,
    is_sample,
    record,
    run_in_loop,
    samples_of,
    split,
    until,
)
from tests.support.handlers import EverythingHandler
from tests.support.patience import in_time

PARIS = ["Paris"]


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("place", ["extra_body", "bound", "call"])
def test_options_in_odd_places_do_not_reach_the_samples(way: str, place: str) -> None:
    odd: dict[str, Any] = {"temperature": 0.0, "seed": 5, "n": 3, "user": "u1"}
    with ChatServer(split("Paris", PARIS)) as server:
        model: Any = chat_openai(server)
        kwargs: dict[str, Any] = {}
        if place == "bound":
            model = model.bind(extra_body=odd)
        elif place == "call":
            kwargs = {"extra_body": odd}
        else:
            model = chat_openai(server, extra_body=odd)
        guard = SNNEGuard(model, threshold=0.4)
        assert record(ask(guard, "x", way, **kwargs))["n_used"] == 5
        (sample,) = samples_of(server)
    assert (sample.n, sample.temperature) == (4, 1.0)
    assert sample.body["user"] == "u1"
    assert sample.body["seed"] == 6
    assert odd == {"temperature": 0.0, "seed": 5, "n": 3, "user": "u1"}


def test_a_store_in_an_odd_place_is_off_for_samples() -> None:
    with ChatServer(split("Paris", PARIS)) as server:
        model = chat_openai(server, extra_body={"store": True, "metadata": {"a": "b"}})
        SNNEGuard(model, threshold=0.4).invoke("x")
        found = {is_sample(r): r.body for r in server.requests}
    assert (found[False]["store"], found[False]["metadata"]) == (True, {"a": "b"})
    # OpenAI takes metadata only with what is stored.
    assert (found[True]["store"], "metadata" in found[True]) == (False, False)


class Serving(FakeListChatModel):
    """Has fields with which a provider does more than answer."""

    mcp_servers: list[dict[str, str]] | None = None
    extra_body: dict[str, Any] | None = None
    model_kwargs: dict[str, Any] | None = None


@pytest.mark.parametrize(
    ("fields", "kwargs", "acts"),
    [
        ({}, {}, False),
        ({"mcp_servers": [{"url": "u"}]}, {}, True),
        ({"extra_body": {"tools": [{"type": "mcp"}]}}, {"tools": []}, True),
        ({"model_kwargs": {"web_search_options": {}}}, {}, True),
        ({"extra_body": {"user": "u"}}, {}, False),
    ],
)
def test_what_the_fields_of_a_model_make_run_is_told_too(
    fields: Any, kwargs: Any, acts: bool
) -> None:
    model = Serving(responses=["x"], **fields)
    assert side_effects(Candidate(model=model), kwargs) is acts


@pytest.mark.parametrize("way", WHOLE)
def test_streaming_options_of_the_answer_do_not_reach_the_samples(way: str) -> None:
    with ChatServer(split("Paris", PARIS)) as server:
        model = chat_openai(server)
        guard = SNNEGuard(model, threshold=0.4)
        streamed = ask(
            guard, "x", "stream" if way == "invoke" else "astream", stream_usage=True
        )
        bound = SNNEGuard(model.bind(stream_options={"include_usage": True}), n=3)
        record(ask(bound, "x", "stream"))
        assert all("stream_options" not in r.body for r in samples_of(server))
    assert record(streamed)["n_used"] == 5


def test_a_bound_token_limit_does_not_beat_that_of_samples() -> None:
    with ChatServer(split("Paris", PARIS)) as server:
        model = chat_openai(server).bind(max_completion_tokens=500)
        SNNEGuard(model, sample_max_tokens=10).invoke("x")
        (sample,) = samples_of(server)
    assert sample.body["max_completion_tokens"] == 10


@pytest.mark.parametrize(
    ("options", "acts"),
    [
        ({"tools": [{"google_search": {}}]}, True),
        ({"tools": [{"code_execution": {}}]}, True),
        ({"tools": [{"type": "web_search"}]}, True),
        ({"extra_body": {"tools": [{"type": "mcp"}]}}, True),
        ({"web_search_options": {}}, True),
        ({"mcp_servers": [{"url": "u"}]}, True),
        ({"background": True}, True),
        ({"background": False}, False),
        ({"conversation": "c1"}, True),
        ({"conversation": {"id": "c1"}}, True),
        ({"extra_body": {"conversation": {"id": "c1"}}}, True),
        ({"model_kwargs": {"extra_body": {"background": True}}}, True),
        ({"tools": [{"name": "web_search"}]}, True),
        ({"tools": [{"type": ["odd"]}]}, True),
        ({"tools": [{"function_declarations": [], "google_search": {}}]}, True),
        ({"tools": [{"name": "f", "description": "d", "parameters": {}}]}, False),
        ({"tools": [{"title": "f", "properties": {}}]}, False),
        ({"tools": [{"toolSpec": {"name": "f"}}]}, False),
        ({"tools": [max]}, False),
        ({"tools": None}, False),
        ({"mcp_servers": []}, False),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, False),
        ({"tools": [{"name": "f", "input_schema": {}}]}, False),
        ({"tools": [{"function_declarations": []}]}, False),
        ({}, False),
    ],
)
def test_what_runs_at_the_provider_is_told_from_what_is_only_proposed(
    options: Any, acts: bool
) -> None:
    model = FakeListChatModel(responses=["x"])
    assert side_effects(Candidate(model=model, kwargs=options), {}) is acts
    assert side_effects(Candidate(model=model), options) is acts


def test_a_limit_in_an_odd_place_does_not_beat_that_of_samples() -> None:
    odd = {"max_completion_tokens": 500, "model_kwargs": {"max_tokens": 500, "n": 2}}
    with ChatServer(split("Paris", PARIS)) as server:
        model = chat_openai(server, extra_body=odd)
        SNNEGuard(model, sample_max_tokens=10).invoke("x")
        (sample,) = samples_of(server)
    assert sample.body["max_completion_tokens"] == 10
    assert sample.body["model_kwargs"] == {"max_tokens": 10}
    assert odd == {
        "max_completion_tokens": 500,
        "model_kwargs": {"max_tokens": 500, "n": 2},
    }


@pytest.mark.parametrize("way", WHOLE)
def test_an_answer_from_the_cache_costs_nothing(way: str) -> None:
    set_llm_cache(InMemoryCache())
    try:
        with ChatServer(split("Paris", PARIS)) as server:
            guard = SNNEGuard(chat_openai(server))
            ask(guard, "x", way)
            before = server.billed
            cost = record(ask(guard, "x", way))["cost"]
            billed = server.billed.completion_tokens - before.completion_tokens
    finally:
        set_llm_cache(None)
    assert (cost["calls"], cost["completion_tokens"]) == (1, billed)


@pytest.mark.parametrize("way", WHOLE)
def test_what_was_in_flight_at_the_end_makes_the_cost_a_lower_bound(way: str) -> None:
    def check(limit: float) -> None:
        with ChatServer(split("Paris", always("", stall=True))) as server:
            guard = SNNEGuard(chat_openai(server), sample_timeout=limit)
            assert record(ask(guard, "x", way))["cost"]["lower_bound"] is True

    in_time(check, seconds=0.3)


def test_a_run_that_ends_after_the_decision_is_closed_without_its_text() -> None:
    def check(limit: float) -> None:
        gate, handler = Gate(), EverythingHandler()
        with ChatServer(split("Paris", always("Xanadu", gate=gate))) as server:
            guard = SNNEGuard(
                chat_openai(server),
                threshold=0.4,
                on_uncertain="refuse",
                sample_timeout=limit,
            )
            guard.invoke("x", {"callbacks": [handler]})
            assert len(server.requests) == 2  # else nothing is late
            gate.open()
            run_in_loop(until(lambda: handler.names.count("on_llm_end") == 2))
        assert handler.leaks("Xanadu") == []

    in_time(check, seconds=0.3)
