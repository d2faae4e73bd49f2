"""Answers and samples drawn through the real ``openai`` clients, by both twins."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from snne_guard.types import ResponseSet
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    ToolCall,
    cycle,
    error,
    ignoring_n,
    in_turn,
    rejecting,
    rejecting_n,
    response,
)
from tests.support.guarding import split
from tests.support.openai_clients import BOTH, sampling

DRAWN = ["Paris", "Lyon", "Rome", "Bonn"]
both = pytest.mark.parametrize("way", BOTH)


def texts(found: ResponseSet) -> list[str]:
    return [sample.text for sample in found.samples]


def samples_asked(server: ChatServer) -> list[Request]:
    return [request for request in server.requests if "temperature" in request.body]


@both
def test_an_answer_and_four_samples_take_two_requests(way: str) -> None:
    with (
        ChatServer(split("Paris", DRAWN)) as server,
        sampling(server, way, options={"max_tokens": 9}) as sample,
    ):
        found = sample("Capital of France?", user="me")
    assert (found.answer.text, texts(found)) == ("Paris", DRAWN)
    assert (found.question, found.reasons) == ("Capital of France?", ())
    assert (found.n_requested, found.include_answer) == (5, True)
    assert all(each.model == "test-model" for each in found.samples)
    assert all(each.token_logprobs == (-0.1,) for each in found.samples)
    assert (found.cost.calls, found.cost.attempts, found.cost.rounds) == (2, 2, 1)
    assert found.cost.prompt_tokens == server.billed.prompt_tokens
    assert found.cost.completion_tokens == server.billed.completion_tokens == 5
    assert found.cost.seconds > 0
    assert not found.cost.lower_bound
    for request in server.requests:
        assert request.body["max_tokens"] == 9
        assert request.body["user"] == "me"
        assert request.logprobs


@both
def test_without_the_answer_all_members_are_samples(way: str) -> None:
    with (
        ChatServer(split("Paris", DRAWN)) as server,
        sampling(server, way, n=3, include_answer=False, temperature=0.7) as sample,
    ):
        server.script = cycle(DRAWN)
        found = sample("x")
    assert (found.n_requested, found.include_answer) == (3, False)
    assert len(found.samples) == 3
    assert [r.temperature for r in samples_asked(server)] == [0.7]


@both
def test_choices_in_another_order_stay_with_their_index(way: str) -> None:
    shuffled = Reply(texts=DRAWN, order=[2, 0, 3, 1])
    with (
        ChatServer(split("Paris", in_turn([shuffled]))) as server,
        sampling(server, way) as sample,
    ):
        assert texts(sample("x")) == DRAWN


@both
def test_n_that_is_ignored_is_topped_up_and_learnt(way: str) -> None:
    with (
        ChatServer(split("Paris", ignoring_n(DRAWN))) as server,
        sampling(server, way) as sample,
    ):
        found = sample("x")
        assert sorted(texts(found)) == sorted(DRAWN)
        assert [r.n for r in samples_asked(server)] == [4, 1, 1, 1]
        sample("x")
    assert [r.n for r in samples_asked(server)[4:]] == [1, 1, 1, 1]
    assert found.cost.calls == found.cost.attempts == 5


@both
@pytest.mark.parametrize(("cap", "asked"), [(1, [4, 2, 2, 1, 1, 1, 1]), (3, [4, 2, 2])])
def test_n_that_is_capped_or_refused_comes_in_smaller_requests(
    way: str, cap: int, asked: list[int]
) -> None:
    script = rejecting_n(cycle(DRAWN), max_n=cap)
    with (
        ChatServer(split("Paris", script)) as server,
        sampling(server, way) as sample,
    ):
        found = sample("x")
        assert sorted(texts(found)) == sorted(DRAWN)
        # One of the halves may be parted again before the other one is sent.
        numbers = [r.n for r in samples_asked(server)]
        assert sorted(numbers, reverse=True) == asked
        assert numbers[:2] == [4, 2]
        before = len(numbers)
        assert len(sample("x").samples) == 4
        learnt = [r.n for r in samples_asked(server)[before:]]
    assert learnt == ([1] * 4 if cap == 1 else [2, 2])
    # What was refused was not billed, and nothing that was is asked for again.
    assert found.cost.completion_tokens == 5
    assert found.reasons == ()


@both
def test_a_model_that_refuses_a_temperature_is_asked_without(way: str) -> None:
    with (
        ChatServer(rejecting("temperature", cycle(["Paris"]))) as server,
        sampling(server, way, n=3) as sample,
    ):
        found = sample("x")
        assert found.reasons == ("temperature_unset",)
        assert len(found.samples) == 2
        assert found.cost.attempts == 3
        refused = len(samples_asked(server))
        assert sample("x").reasons == ("temperature_unset",)
    assert refused == len(samples_asked(server)) == 1


@both
def test_a_model_that_refuses_log_probabilities_is_asked_without(way: str) -> None:
    with (
        ChatServer(rejecting("logprobs", cycle(["Paris"]))) as server,
        sampling(server, way, n=3) as sample,
    ):
        found = sample("x")
        assert len(found.samples) == 2
        assert found.samples[0].token_logprobs is None
        before = len(server.requests)
        sample("x")
        assert not any(r.logprobs for r in server.requests[before:])
    assert found.reasons == ()


@both
def test_an_answer_never_fails_for_what_only_the_guard_wanted(way: str) -> None:
    silent = error(400, "Bad request.")  # no word of why

    def script(request: Request) -> Reply:
        return silent if request.logprobs else Reply(texts=["Paris"])

    with (
        ChatServer(script) as server,
        sampling(server, way, n=2, schedule="answer_first") as sample,
    ):
        found = sample("x")
        assert (found.answer.text, texts(found)) == ("Paris", ["Paris"])
        assert found.cost.attempts == len(server.requests) == 4
        sample("x")
        assert len(server.requests) == 6  # the samples have settled it
        # What is wrong with the user's own request is the user's to know.
        server.script = lambda _request: silent
        with pytest.raises(openai.BadRequestError, match="Bad request"):
            sample("x")


@both
def test_a_reasoning_model_refuses_the_old_name_of_the_token_limit(way: str) -> None:
    with (
        ChatServer(rejecting("max_tokens", cycle(["Paris"]))) as server,
        sampling(server, way, n=2, sample_max_tokens=9) as sample,
    ):
        assert len(sample("x").samples) == 1
        sample("x")
    limits = [r.body.get("max_tokens") for r in server.requests]
    assert sorted(limits, key=str) == [9, None, None, None, None]
    newer = [r.body.get("max_completion_tokens") for r in samples_asked(server)]
    assert newer == [None, 9, 9]


@both
def test_log_probabilities_can_be_left_alone(way: str) -> None:
    with (
        ChatServer(cycle(DRAWN)) as server,
        sampling(server, way, logprobs=False) as sample,
    ):
        sample("x")
    assert not any("logprobs" in request.body for request in server.requests)


@both
def test_the_user_s_own_log_probabilities_are_the_user_s(way: str) -> None:
    script = rejecting("logprobs", cycle(DRAWN))
    with (
        ChatServer(script) as server,
        sampling(server, way, schedule="answer_first") as sample,
        pytest.raises(openai.BadRequestError),
    ):
        sample("x", logprobs=True)
    assert len(server.requests) == 1


@both
def test_tools_are_only_proposed_and_compared_as_json(way: str) -> None:
    calls = Reply(tool_calls=[[ToolCall(name="f", arguments={"b": 1, "a": 2})]])
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    with ChatServer([calls]) as server, sampling(server, way, n=3) as sample:
        found = sample("x", tools=[tool])
        first = server.requests[0].body
    assert "temperature" not in first  # with tools the answer comes first
    assert found.answer.tool_calls == '[{"args":{"a":2,"b":1},"name":"f"}]'
    assert {each.tool_calls for each in found.samples} == {found.answer.tool_calls}


@both
@pytest.mark.parametrize("schedule", ["concurrent", "answer_first"])
def test_what_would_act_at_the_provider_is_not_sampled(way: str, schedule: Any) -> None:
    with (
        ChatServer(cycle(DRAWN)) as server,
        sampling(server, way, schedule=schedule) as sample,
    ):
        found = sample("x", web_search_options={})
        assert len(server.requests) == 1
        assert "logprobs" not in server.requests[0].body
    assert (found.samples, found.reasons) == ((), ("side_effects",))
    assert (found.cost.calls, found.cost.attempts) == (1, 1)


# --- the Responses API ----------------------------------------------------------------


def responding(request: Request) -> Reply:
    """Answer as the Responses API does, each sample another text."""
    asked = "message.output_text.logprobs" in (request.body.get("include") or ())
    return response(f"Paris {request.index}", logprobs=[-0.5, -0.25] if asked else None)


@both
def test_responses_are_drawn_one_by_one_and_not_stored(way: str) -> None:
    with (
        ChatServer(responding) as server,
        sampling(server, way, api="responses", n=3) as sample,
    ):
        found = sample("x", previous_response_id="resp_1")
    assert {request.path[-10:] for request in server.requests} == {"/responses"}
    assert len({found.answer.text, *texts(found)}) == 3
    assert found.answer.token_logprobs == (-0.5, -0.25)
    assert found.cost.prompt_tokens == server.billed.prompt_tokens
    stored = [request.body.get("store") for request in samples_asked(server)]
    assert stored == [False, False]
    assert all(r.body["previous_response_id"] == "resp_1" for r in server.requests)


@both
def test_a_reasoning_model_refuses_what_responses_ask_for(way: str) -> None:
    refusal = error(400, "logprobs are not supported with reasoning models.")
    without_temperature = rejecting("temperature", responding)

    def script(request: Request) -> Reply:
        asked = request.body.get("include")
        return refusal if asked else without_temperature(request)

    with (
        ChatServer(script) as server,
        sampling(server, way, api="responses", n=2, schedule="answer_first") as sample,
    ):
        found = sample("x")
        assert found.reasons == ("temperature_unset",)
        assert (found.cost.calls, found.cost.attempts) == (2, 4)
        before = len(server.requests)
        sample("x")
    assert len(server.requests) == before + 2


@both
def test_a_truncated_response_is_recognised(way: str) -> None:
    cut = response("Par", incomplete="max_output_tokens")
    with (
        ChatServer([cut]) as server,
        sampling(server, way, api="responses", n=2) as sample,
    ):
        found = sample("x")
    assert found.answer.truncated
    assert found.samples[0].truncated
