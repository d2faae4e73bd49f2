"""Options in odd places, providers that reject some: what samples carry."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, SecretStr

from snne_guard import SNNEGuard
from snne_guard.sampling import Draw, SamplingPlan
from snne_guard.sampling.langchain_effects import side_effects
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_options import request_options
from snne_guard.sampling.retry import rejects
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    always,
    chat_openai,
    error,
    rejecting,
    response,
)
from tests.support.guarding import WAYS, WHOLE, Witness, ask, is_sample, record, split
from tests.support.handlers import EverythingHandler

PARIS = ["Paris"]


def samples_of(server: ChatServer) -> list[Request]:
    return [request for request in server.requests if is_sample(request)]


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


@pytest.mark.parametrize("way", WAYS)
def test_a_provider_that_rejects_a_temperature_is_asked_without(way: str) -> None:
    with ChatServer(rejecting("temperature", always("Paris"))) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, schedule="answer_first")
        found = record(ask(guard, "x", way))
        first = len(server.requests)
        again = record(guard.invoke("y"))
        assert len(server.requests) == first + 2
    for each in (found, again):
        assert (each["decision"], each["n_used"]) == ("accept", 5)
        assert each["reasons"] == ["temperature_unset"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_rejection_that_is_not_for_n_sets_off_no_storm(way: str) -> None:
    bad = error(400, "context length exceeded")
    with ChatServer(split("Paris", lambda _request: bad)) as server:
        found = record(ask(SNNEGuard(chat_openai(server), n=10), "x", way))
        assert len(samples_of(server)) == 3  # all, one, one without log-probabilities
        assert found["cost"]["attempts"] == len(server.requests)
    assert "samples_failed" in found["reasons"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_rejection_for_something_else_by_name_sends_no_probe(way: str) -> None:
    bad = error(400, "Too long.\n\nShorten it, or ask less often.", param="messages")
    with ChatServer(split("Paris", lambda _request: bad)) as server:
        found = record(ask(SNNEGuard(chat_openai(server), n=10), "x", way))
        assert len(samples_of(server)) == 1
        assert found["cost"]["attempts"] == len(server.requests) == 2
    assert "samples_failed" in found["reasons"]


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("refused", ["logprobs", "temperature", "n"])
def test_requests_that_were_rejected_and_repeated_are_counted(
    way: str, refused: str
) -> None:
    with ChatServer(always("Paris")) as server:
        server.script = split("Paris", rejecting(refused, always("Paris")))
        if refused == "temperature":  # without it samples look like answers
            server.script = rejecting(refused, always("Paris"))
        found = record(ask(SNNEGuard(chat_openai(server)), "x", way))
        assert found["cost"]["attempts"] == len(server.requests)
    assert found["n_used"] == 5


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


class Country(BaseModel):
    """Where it is."""

    code: str = Field("it", description="Two letters.")
    rivers: dict[str, int] | None = None


class City(BaseModel):
    """A city."""

    name: str
    kind: Literal["town", "city"] = "city"
    countries: list[Country] = Field(default_factory=list[Country])


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"texts": ['{"name":"M"}', "oops"]}, None),
        (
            {"texts": ['{"name":"M"}'], "finish_reasons": ["length", "stop"]},
            "truncated",
        ),
        (
            {"texts": ['{"name":"M"}'], "finish_reasons": ["content_filter", "stop"]},
            "refused",
        ),
    ],
)
def test_one_bad_choice_of_structured_output_loses_no_other(
    way: str, bad: Any, reason: str | None
) -> None:
    witness = Witness()
    with ChatServer(split('{"name":"M"}', lambda _request: Reply(**bad))) as server:
        guard = SNNEGuard(chat_openai(server), observers=[witness])
        chain = guard.with_structured_output(City)
        if way == "invoke":
            found = chain.invoke("x")
        else:
            found = asyncio.run(chain.ainvoke("x"))
        (sample,) = samples_of(server)
        assert witness.last.cost.completion_tokens == server.billed.completion_tokens
    assert found == City(name="M")
    assert sample.body["response_format"]["type"] == "json_schema"
    assert sample.body["response_format"]["json_schema"]["strict"] is True
    assert witness.last.n_used == (5 if reason is None else 3)
    assert witness.last.uncertainty is not None
    if reason is not None:
        assert f"{reason}_samples" in witness.last.reasons


def test_samples_are_asked_for_the_same_schema_as_the_answer() -> None:
    text = '{"name":"M"}'
    with ChatServer(split(text, [text])) as server:
        model = chat_openai(server, extra_body={"user": "u1", "n": 2})
        SNNEGuard(model).with_structured_output(City).invoke("x")
        answer, sample = sorted(server.requests, key=is_sample)
    assert sample.body["response_format"] == answer.body["response_format"]
    assert (sample.body["user"], sample.n) == ("u1", 4)


def test_extra_body_of_a_call_takes_the_place_of_the_models() -> None:
    with ChatServer(split("{}", ["{}"])) as server:
        model = chat_openai(server, extra_body={"user": "u1"}).bind(
            response_format={"type": "json_object"}
        )
        SNNEGuard(model).invoke("x", extra_body={"metadata": {"a": "b"}, "n": 3})
        answer, sample = sorted(server.requests, key=is_sample)
    for request in (answer, sample):
        assert "user" not in request.body
        assert request.body["metadata"] == {"a": "b"}
        assert request.body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("by", ["field", "bound", "call"])
def test_no_sample_through_the_responses_api_is_stored_or_parsed(
    way: str, by: str
) -> None:
    kwargs: dict[str, Any] = {}
    text = '{"name":"M"}'
    with ChatServer([response(text)]) as server:
        model: Any = chat_openai(server)
        if by == "field":
            model = chat_openai(server, use_responses_api=True)
        elif by == "bound":
            model = model.bind(previous_response_id="resp_1")
        else:
            kwargs = {"previous_response_id": "resp_1"}
        guard = SNNEGuard(model.bind(response_format=City, store=True), method="snne")
        found = record(ask(guard, "x", way, **kwargs))
        sent = sorted(server.requests, key=is_sample)
        assert found["cost"]["completion_tokens"] == server.billed.completion_tokens
    assert found["n_used"] == 5
    assert {request.path.split("/")[-1] for request in sent} == {"responses"}
    assert [request.body["store"] for request in sent] == [True, *[False] * 4]
    earlier = None if by == "field" else "resp_1"
    for request in sent:
        assert request.body.get("previous_response_id") == earlier
        assert request.body["text"] == sent[0].body["text"]
        assert not {"n", "logprobs", "top_logprobs"} & set(request.body)


@pytest.mark.parametrize("way", WHOLE)
def test_one_bad_reply_of_the_responses_api_costs_what_it_costs(way: str) -> None:
    bad = iter(["oops", *['{"name":"M"}'] * 3])
    script = split(
        lambda _request: response('{"name":"M"}'), lambda _request: response(next(bad))
    )
    with ChatServer(script) as server:
        model = chat_openai(server, use_responses_api=True).bind(response_format=City)
        found = record(ask(SNNEGuard(model, method="snne"), "x", way))
        assert found["cost"]["completion_tokens"] == server.billed.completion_tokens
    assert found["n_used"] == 5
    assert found["cost"]["calls"] == 5


@pytest.mark.parametrize("way", WHOLE)
def test_a_reply_of_the_responses_api_that_was_cut_off_is_told(way: str) -> None:
    cut = response("Par", incomplete="max_output_tokens")
    with ChatServer(
        split(lambda _request: response("Paris"), lambda _r: cut)
    ) as server:
        model = chat_openai(server, use_responses_api=True)
        found = record(ask(SNNEGuard(model, method="snne"), "x", way))
    assert "truncated_samples" in found["reasons"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_temperature_that_none_takes_is_told_once(way: str) -> None:
    with ChatServer(rejecting("temperature", always("Paris"))) as server:
        other = FakeListChatModel(responses=["Paris"])
        guard = SNNEGuard(chat_openai(server).with_fallbacks([other]))
        reasons = record(ask(guard, "x", way))["reasons"]
    assert reasons.count("temperature_unset") == 1


def test_only_plain_forms_leave_for_the_responses_api() -> None:
    # A type would make OpenAI's client parse, and lose what it cannot parse.
    model = ChatOpenAI(model="m", api_key=SecretStr("k"), use_responses_api=True)
    options = options_of(Candidate(model=model), {"response_format": City})
    assert options["response_format"]["json_schema"]["name"] == "City"
    other = FakeListChatModel(responses=["x"])
    options = options_of(Candidate(model=other), {"response_format": City})
    assert options == {"response_format": City}


def options_of(candidate: Candidate, kwargs: dict[str, Any], n: int = 1) -> Any:
    return request_options(
        candidate,
        kwargs,
        Draw(index=0, n=n),
        plan=SamplingPlan(),
        logprobs=False,
        temperature=True,
    )


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
    with ChatServer(split("Paris", always("", stall=True))) as server:
        guard = SNNEGuard(chat_openai(server), sample_timeout=0.3)
        assert record(ask(guard, "x", way))["cost"]["lower_bound"] is True


def test_a_run_that_ends_after_the_decision_is_closed_without_its_text() -> None:
    handler = EverythingHandler()
    with ChatServer(split("Paris", always("Xanadu", delay=0.8))) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="refuse",
            sample_timeout=0.1,
        )
        guard.invoke("x", {"callbacks": [handler]})
        server.wait_until(requests=2)
        end = 0
        while handler.names.count("on_llm_end") < 2 and end < 1000:
            end += 1
            time.sleep(0.01)
    assert handler.names.count("on_llm_end") == 2
    assert handler.leaks("Xanadu") == []


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (TypeError("got an unexpected keyword argument 'n'"), True),
        (TypeError("got an unexpected keyword argument 'name'"), None),
        (NotImplementedError(), None),
        (ValueError("n"), False),
        (ConnectionResetError("n"), False),
    ],
)
def test_a_rejection_names_its_parameter_or_not(raised: Exception, told: Any) -> None:
    assert rejects(raised, "n") is told


def test_a_rejection_by_a_parameter_of_its_own_or_of_a_missing_model() -> None:
    class StatusError(Exception):
        def __init__(self, status: int, param: str | None) -> None:
            super().__init__("no")
            self.status_code, self.param = status, param

    assert rejects(StatusError(400, "n"), "n") is True
    assert rejects(StatusError(422, None), "n") is None
    assert rejects(StatusError(404, "n"), "n") is False
    assert rejects(StatusError(400, "messages"), "n") is False
    assert rejects(StatusError(400, "body.n"), "n") is True
    assert rejects(StatusError(400, ""), "n") is None


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("n must be 1", True),
        ("max n is 4", True),
        ("The Number of Completions is limited", True),
        ("only one choice is supported", True),
        ("multiple candidates are not enabled", True),
        ("maximum context length exceeded", None),
        ("too long\n\nsee the manual", None),
        (repr({"message": "too long\n\nsee the manual"}), None),
        ("name: no", None),
    ],
)
def test_a_message_names_the_number_of_replies_or_not(message: str, told: Any) -> None:
    class BadRequestError(Exception):
        status_code = 400

    assert rejects(BadRequestError(message), "n") is told
    assert rejects(BadRequestError(message), "temperature") is None


def test_a_plain_form_of_structured_output_is_sent_as_it_is() -> None:
    form = {"type": "json_object"}
    with ChatServer(split('{"name":"M"}', ['{"name":"M"}', "oops"])) as server:
        model = chat_openai(server, extra_body={"user": "u1"}).bind(
            response_format=form
        )
        assert record(SNNEGuard(model).invoke("x"))["n_used"] == 5
        (sample,) = samples_of(server)
    assert (sample.body["response_format"], sample.body["user"]) == (form, "u1")
