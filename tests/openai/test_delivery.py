"""What an application gets for an answer, accepted or not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

from snne_guard import (
    ConfigurationError,
    UncertainAnswerError,
)
from tests.openai.guarded import PATHS, REFUSAL, guarded, text_of
from tests.support.observers import Watcher
from tests.support.openai_clients import WAYS, content
from tests.support.openai_server import (
    APART,
    CHAT,
    RESPONSES,
    Answer,
    Asked,
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
    assert found == bare.to_dict()
    assert answer.model_dump()["snne_guard"] == record
    assert json.loads(answer.to_json())["snne_guard"]["id"] == record["id"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_refused_answer_is_an_ordinary_one(path: str, way: str) -> None:
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
    assert "Paris" not in answer.to_json()


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
    with guarded(script, way, observers=[watcher]) as (_, call):
        answer = call()
    (choice,) = answer.choices
    assert watcher.only.answer is not None
    assert watcher.only.answer.text == choice.message.content == "Paris"


@pytest.mark.parametrize("way", WAYS)
def test_a_withheld_answer_can_be_an_error(way: str) -> None:
    script = split("Paris", *APART)
    with guarded(script, way, threshold=0.4, on_uncertain="raise") as (_, call):
        with pytest.raises(UncertainAnswerError, match=r"uncertainty of 1\.000") as it:
            call()
        assert it.value.uncertainty == 1.0
        locals_ = []
        trace = it.value.__traceback__
        while trace is not None:
            if "/snne_guard/" in trace.tb_frame.f_code.co_filename:
                locals_.append(repr(trace.tb_frame.f_locals))
            trace = trace.tb_next
    assert locals_
    assert not any("Paris" in each for each in locals_)


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


def test_a_fallback_may_be_async() -> None:
    async def fallback(body: dict[str, Any]) -> str:
        assert body == CHAT
        return "Bern"

    options: Any = {"on_uncertain": "fallback", "fallback": fallback, "threshold": 0.4}
    with guarded(split("Paris", *APART), "tasks", **options) as (_, call):
        assert text_of(call()) == "Bern"


def test_a_plain_function_as_fallback_runs_off_the_event_loop() -> None:
    def fallback(_: dict[str, Any]) -> str:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return "Bern"
        return "on the loop"

    options: Any = {"on_uncertain": "fallback", "fallback": fallback, "threshold": 0.4}
    with guarded(split("Paris", *APART), "tasks", **options) as (_, call):
        assert text_of(call()) == "Bern"


@pytest.mark.parametrize("way", WAYS)
def test_without_a_text_a_refusal_is_an_error(way: str) -> None:
    options: Any = {"threshold": 0.4, "on_uncertain": "refuse", "refusal": None}
    with (
        guarded(split("Paris", *APART), way, **options) as (_, call),
        pytest.raises(UncertainAnswerError),
    ):
        call()


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
def test_an_assessment_of_no_answer_is_the_client_s_error(way: str) -> None:
    with guarded(always(status=400), way) as (_, call):
        with pytest.raises(openai.BadRequestError):
            call.wait(call.client.assess(**CHAT))


@pytest.mark.parametrize("way", WAYS)
def test_the_user_s_question_is_told_to_the_engine(way: str) -> None:
    def question(messages: list[Any]) -> str:
        return f"{len(messages)}: {messages[0]['content']}"

    with guarded(always("Paris"), way, question=question) as (_, call):
        chat = call.wait(call.client.assess(**CHAT))
        response = call.wait(call.client.assess(**RESPONSES))
    assert chat.question == response.question == "1: Capital of France?"
