"""What an application gets for an answer: accepted, withheld or failed.

What becomes of odd replies is the same as for LangChain, whose tests hold it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
from operator import attrgetter
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

from snne_guard import ConfigurationError, SamplingError, UncertainAnswerError
from snne_guard.openai import guard_client
from tests.openai.guarded import PATHS, REFUSAL, guarded, text_of
from tests.support.calibrations import calibration
from tests.support.observers import Watcher
from tests.support.openai_clients import WAYS, content
from tests.support.openai_server import (
    APART,
    CHAT,
    RESPONSES,
    Answer,
    Asked,
    Rush,
    Server,
    always,
    split,
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_an_accepted_answer_is_what_the_client_gives(path: str, way: str) -> None:
    with guarded(always("Paris"), way, threshold=0.4) as (server, call):
        answer = call(path)
        bare = call(path, on=call.own)
    record = answer.snne_guard
    assert (record["decision"], record["uncertainty"]) == ("accept", 0.0)
    assert (record["n_used"], record["method"]) == (5, "wsnne")
    assert record["cost"]["calls"] == len(server.requests) - 1
    assert type(answer) is type(bare)
    found = answer.to_dict()
    assert found.pop("snne_guard") == record
    assert found == {**bare.to_dict(), "id": found["id"]}
    assert answer.model_dump()["snne_guard"] == record
    assert json.loads(answer.to_json())["snne_guard"]["id"] == record["id"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_refused_answer_is_an_ordinary_one(
    path: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "snne_guard")
    script = split("Paris", *APART)
    with guarded(script, way, threshold=0.4, on_uncertain="refuse") as (_, call):
        answer = call(path)
        assert type(answer) is type(call(path, on=call.own))
    assert text_of(answer) == REFUSAL
    assert "refusal" not in str(answer.to_dict(exclude_none=True))
    # By its own id the provider might give out what it has stored.
    assert (answer.id[:11], answer.model) == ("snne-guard-", "test-model")
    assert answer.usage.total_tokens == 6
    assert answer.snne_guard["decision"] == "refuse"
    assert "Paris" not in answer.to_json() + repr(answer) + caplog.text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_refusal_can_be_marked_as_one(streamed: bool, way: str) -> None:
    options: Any = {"threshold": 0.4, "on_uncertain": "refuse"}
    script = split("Paris", *APART)
    with guarded(script, way, refusal_as="refusal", **options) as (_, call):
        copy = call.client.with_options(timeout=9)
        if streamed:
            first, *_ = call.parts(call(on=copy, stream=True))
            message = first.choices[0].delta
            response = call.parts(call(PATHS[1], on=copy, stream=True))[-1].response
        else:
            message = call(on=copy).choices[0].message
            response = call(PATHS[1], on=copy)
    assert (message.content, message.refusal) == (None, REFUSAL)
    (part,) = response.output[0].content
    assert (part.type, part.refusal) == ("refusal", REFUSAL)


@pytest.mark.parametrize("way", WAYS)
def test_of_choices_that_nobody_asked_for_the_assessed_one_is_delivered(
    way: str,
) -> None:
    watcher = Watcher()
    choices = [
        {"index": index, "message": {"content": text}, "finish_reason": "stop"}
        for index, text in [(1, "Rome"), (0, "Paris"), (2, "Lyon")]
    ]
    script = split(Answer(body={"id": "c", "choices": choices}), *APART)
    with guarded(script, way, observers=[watcher]) as (server, call):
        (choice,) = call().choices
        assert watcher.only.answer is not None
        assert watcher.only.answer.text == choice.message.content == "Paris"
        server.script = always("Paris", "Rome", choices=2)
        assert content(call.stream()[0]) == "Paris"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "options", [{"on_uncertain": "raise"}, {"on_uncertain": "refuse", "refusal": None}]
)
def test_a_withheld_answer_can_be_an_error_that_says_nothing_of_it(
    options: Any, stream: bool, path: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "snne_guard")
    with guarded(split("Paris", *APART), way, threshold=0.4, **options) as (_, call):
        with pytest.raises(UncertainAnswerError, match=r"uncertainty of 1\.000") as it:
            call(path, stream=stream)
    assert it.value.uncertainty == 1.0
    seen = []
    trace = it.value.__traceback__
    while trace is not None:
        if "/snne_guard/" in trace.tb_frame.f_code.co_filename:
            seen.append(repr(trace.tb_frame.f_locals))
        trace = trace.tb_next
    assert seen
    seen += [repr(it.value), str(pickle.dumps(it.value)), caplog.text]
    assert not any("Paris" in each for each in seen)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_another_model_can_answer_instead(path: str, way: str) -> None:
    uncertain = split("Paris", *APART)

    def script(asked: Asked) -> Answer:
        if asked.body["model"] == "better":
            return Answer(texts=["Bern"], model="better")
        return uncertain(asked)

    options: Any = {"on_uncertain": "fallback", "fallback": "better", "threshold": 0.4}
    with guarded(script, way, **options) as (server, call):
        headers = {"Idempotency-Key": "1"}
        answer = call(path, temperature=0.5, extra_headers=headers)
        assert content(call.stream(path, temperature=0.5)[0]) == "Bern"
    assert (text_of(answer), answer.model) == ("Bern", "better")
    assert answer.snne_guard["decision"] == "fallback"
    assert server.requests[-1].body["temperature"] == 0.5
    keys = [asked.headers.get("idempotency-key") for asked in server.requests]
    assert keys.count("1") == 1  # the answer's


async def awaited(body: dict[str, Any]) -> str:
    assert body == CHAT
    return "Bern"


def plain(_: dict[str, Any]) -> str:
    with pytest.raises(RuntimeError):  # it does not hold up the loop
        asyncio.get_running_loop()
    return "Bern"


@pytest.mark.parametrize("fallback", [awaited, plain])
def test_a_fallback_may_be_an_async_function_or_a_plain_one(fallback: Any) -> None:
    options: Any = {"on_uncertain": "fallback", "fallback": fallback, "threshold": 0.4}
    with guarded(split("Paris", *APART), "tasks", **options) as (_, call):
        assert text_of(call()) == "Bern"


@pytest.mark.parametrize("way", WAYS)
def test_a_function_decides_about_an_uncertain_answer(way: str) -> None:
    choice = {"index": 0, "message": {"content": "Bern"}, "finish_reason": "stop"}
    own = ChatCompletion.construct(id="mine", choices=[choice])
    given: list[Any] = ["flag", "refuse", own, "Ask a librarian.", 3]

    def decide(assessment: Any) -> Any:
        assert assessment.answer.text == "Paris"
        return given.pop(0)

    script = split("Paris", *APART)
    with guarded(script, way, threshold=0.4, on_uncertain=decide) as (_, call):
        assert [text_of(call()) for _ in range(3)] == ["Paris", REFUSAL, "Bern"]
        assert not hasattr(own, "snne_guard")  # it is the user's own
        with pytest.raises(ConfigurationError) as caught:
            call()
        assert "librarian" not in str(caught.value)
        with pytest.raises(ConfigurationError, match="got int"):
            call()
        given.append("fallback")
        with pytest.raises(ConfigurationError, match="guard has none"):
            call()


@pytest.mark.parametrize("way", WAYS)
def test_an_assessment_has_everything(way: str) -> None:
    watcher = Watcher()
    options: Any = {"on_uncertain": "raise", "observers": [watcher]}
    with guarded(split("Paris", *APART), way, threshold=0.4, **options) as (
        server,
        call,
    ):
        found = call.wait(call.client.assess(**CHAT, stream=True))
        assert found is watcher.only
        assert found.answer is not None
        assert found.matrix is not None
        assert found.answer.text == "Paris"
        assert [sample.text for sample in found.samples] == list(APART)
        assert found.matrix.shape == (5, 5)
        assert found.question == "Capital of France?"
        assert found.decision == "refuse"
        server.requests.clear()
        given = "<think>On the Rhine.</think>Bonn"
        own = call.wait(call.client.assess(answer=given, **RESPONSES))
        assert own.answer.text == "Bonn"
        assert len(server.requests) == 4


@pytest.mark.parametrize("way", WAYS)
def test_the_user_s_question_is_told_to_the_engine(way: str) -> None:
    def question(messages: list[Any]) -> str:
        return f"{len(messages)}: {messages[0]['content']}"

    with guarded(always("Paris"), way, question=question) as (_, call):
        chat = call.wait(call.client.assess(**CHAT))
        response = call.wait(call.client.assess(**RESPONSES))
    assert chat.question == response.question == "1: Capital of France?"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("path", "limit"),
    [(PATHS[0], "max_completion_tokens"), (PATHS[1], "max_output_tokens")],
)
def test_a_calibration_holds_for_requests_like_the_graded_ones(
    path: str, limit: str, way: str
) -> None:
    made = {"model": "test-model", "answer_temperature": 0.0, "max_tokens": 9}
    given = calibration(**made, n=3)
    alike: dict[str, Any] = {"temperature": 0, limit: 9}
    others: list[dict[str, Any]] = [
        {**alike, "model": "other"},
        {**alike, "temperature": 0.5},
        {**alike, limit: 10},
        {limit: 9},
    ]
    with guarded(always("Paris"), way, calibration=given) as (_, call):
        record = call(path, **alike).snne_guard
        assert (record["decision"], record["n_requested"]) == ("accept", 3)
        for other in others:
            record = call(path, **other).snne_guard
            found = (record["uncertainty"], record["decision"], record["reasons"])
            assert found == (0.0, "flag", ["uncalibrated"])


# -- Faults ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=401), openai.AuthenticationError),
        (Answer(body={"error": {"code": "x"}}), SamplingError),
        (Answer(body={"id": "x", "choices": []}), SamplingError),
    ],
)
def test_an_answer_that_fails_raises_as_it_is(
    answer: Answer, error: type[Exception], way: str
) -> None:
    with guarded(split(answer, "Paris"), way) as (_, call):
        with pytest.raises(error):
            call()
        with pytest.raises(error):
            call.wait(call.client.assess(**CHAT))


@pytest.mark.parametrize("way", WAYS)
def test_transient_faults_are_retried_in_one_layer(way: str) -> None:
    failed: set[bool] = set()

    def script(asked: Any) -> Answer:
        if asked.is_sample in failed:
            return Answer()
        failed.add(asked.is_sample)
        headers = {"retry-after": "0", "retry-after-ms": "1"}
        return Answer(status=503, headers=headers)

    for retries in (0, 1):
        failed.clear()
        options: Any = {"max_retries": retries}
        with guarded(script, way, client_options=options, n=2) as (server, call):
            assert call().snne_guard["n_used"] == 2
            assert len(server.requests) == 4


@pytest.mark.parametrize("method", ["responses.create", "assess"])
async def test_cancellation_ends_the_draws(method: str) -> None:
    def script(asked: Asked) -> Answer:
        return Answer(hang=True) if asked.is_sample else Answer()

    watcher = Watcher()
    with Server(script) as server:
        given: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        async with openai.AsyncOpenAI(**given) as own:
            client = guard_client(own, n=3, observers=[watcher])
            task = asyncio.create_task(attrgetter(method)(client)(**RESPONSES))
            await asyncio.to_thread(server.wait_for_requests, 3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_for_abandoned, 2)
    assert "cancelled" in watcher.only.reasons


async def test_calls_of_every_model_and_copy_keep_to_one_limit() -> None:
    rush = Rush()
    with Server(rush) as server:
        given: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        async with openai.AsyncOpenAI(**given) as own:
            client = guard_client(own, n=3, max_concurrency=3)
            copies = [client, client.with_options(timeout=9)]
            asked = [{**CHAT, "model": f"model {number}"} for number in range(5)]
            await asyncio.gather(
                *(each.chat.completions.create(**a) for each in copies for a in asked)
            )
        assert len(server.requests) == 20
    assert rush.most == 3
