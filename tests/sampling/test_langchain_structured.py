"""Structured output: samples in a form that no client parses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from snne_guard import SNNEGuard
from snne_guard.sampling import Draw, SamplingPlan
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_options import request_options
from tests.sampling.schemas import City
from tests.support.chat_server import (
    ChatServer,
    Reply,
    chat_openai,
    response,
)
from tests.support.guarding import (
    WHOLE,
    Witness,
    ask,
    is_sample,
    record,
    samples_of,
    split,
)


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


def test_a_plain_form_of_structured_output_is_sent_as_it_is() -> None:
    form = {"type": "json_object"}
    with ChatServer(split('{"name":"M"}', ['{"name":"M"}', "oops"])) as server:
        model = chat_openai(server, extra_body={"user": "u1"}).bind(
            response_format=form
        )
        assert record(SNNEGuard(model).invoke("x"))["n_used"] == 5
        (sample,) = samples_of(server)
    assert (sample.body["response_format"], sample.body["user"]) == (form, "u1")
