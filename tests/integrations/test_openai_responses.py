"""The Responses API through a guarded ``openai`` client, streams included."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from pydantic import BaseModel

from snne_guard import SamplingError
from snne_guard_integrations.openai import assessment
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    error,
    in_turn,
    response,
)
from tests.support.guarded_openai import APART, guarding
from tests.support.guarding import Witness, is_sample, split
from tests.support.openai_clients import BOTH

both = pytest.mark.parametrize("way", BOTH)
CREATE = "responses.create"
NO = "I am not certain enough of the answer to give one."
REQUEST: dict[str, Any] = {"model": "test-model", "input": "Capital of France?"}
TEXT = {"type": "output_text", "annotations": [], "text": ""}
LOGPROBS = [{"token": "x", "logprob": -0.1, "bytes": None, "top_logprobs": []}]


def streamed(whole: Reply) -> Reply:
    """Return the same reply as the events of a stream."""
    body = whole.body
    (item,) = body["output"]
    (part,) = item["content"]
    begun = {**body, "status": "in_progress", "output": []}
    at = {"output_index": 0, "item_id": item["id"], "content_index": 0}
    words = part["text"].split(" ")
    words = [words[0], *(f" {word}" for word in words[1:])]
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "item": {**item, "content": []}, **at},
        {"type": "response.content_part.added", "part": TEXT, **at},
        *(
            {
                "type": "response.output_text.delta",
                "delta": word,
                "logprobs": LOGPROBS,
                **at,
            }
            for word in words
        ),
        {
            "type": "response.output_text.done",
            "text": part["text"],
            "logprobs": LOGPROBS,
            **at,
        },
        {"type": "response.content_part.done", "part": part, **at},
        {"type": "response.output_item.done", "item": item, **at},
        {"type": f"response.{body['status']}", "response": body},
    ]
    lines = [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': n})}\n"
        for n, event in enumerate(events)
    ]
    head = {"Content-Type": "text/event-stream"}
    return Reply(body="\n".join([*lines, ""]), usage=whole.usage, headers=head)


def script(answer: str, samples: list[str] | None = None, **options: Any) -> Any:
    """Answer in the form that was asked for; the samples one after another."""
    left = list(samples or APART) * 2

    def decide(request: Request) -> Reply:
        if is_sample(request):
            return response(left.pop(0), logprobs=[-0.1])
        whole = response(answer, logprobs=[-0.1] * len(answer.split()), **options)
        return streamed(whole) if request.stream else whole

    return decide


def said(events: list[Any]) -> str:
    return "".join(
        event.delta for event in events if event.type == "response.output_text.delta"
    )


# --- whole ----------------------------------------------------------------------------


@both
def test_a_response_carries_its_assessment(way: str) -> None:
    with (
        ChatServer(script("It is Paris")) as server,
        guarding(server, way, threshold=0.4) as ask,
    ):
        found = ask(CREATE, **REQUEST, instructions="Be brief.", store=True)
        assert {type(found)} == {Response}
        assert found.output_text == "It is Paris"
        assert found.output[0].content[0].logprobs == []
        assert assessment(found)["decision"] == "flag"
        asked = ask(CREATE, **REQUEST, include=["message.output_text.logprobs"])
        assert asked.output[0].content[0].logprobs
    answer, *samples = sorted(server.requests[:5], key=is_sample)
    assert answer.body["store"] is True
    assert {sample.body["store"] for sample in samples} == {False}
    assert {r.body["instructions"] for r in server.requests[:5]} == {"Be brief."}


@both
def test_a_refused_response_says_so_and_nothing_else(way: str) -> None:
    with (
        ChatServer(script("It is Paris")) as server,
        guarding(server, way, threshold=0.4, on_uncertain="refuse") as ask,
    ):
        found = ask(CREATE, **REQUEST)
        assert (type(found), found.output_text) == (Response, NO)
        assert (found.id, found.status, found.usage.output_tokens) == (
            "resp_2",
            "completed",
            2,
        )
        assert assessment(found)["decision"] == "refuse"
        assert "Paris" not in found.to_json()
        form = {"format": {"type": "json_object"}}
        found = ask(CREATE, **REQUEST, text=form)
    assert found.output_text == ""
    assert found.output[0].content[0].refusal == NO


class City(BaseModel):
    name: str


@both
def test_a_parsed_response_is_the_user_s_type_or_a_refusal(way: str) -> None:
    texts = [json.dumps({"name": name}) for name in APART]
    with ChatServer(script('{"name": "Paris"}', texts)) as server:
        with guarding(server, way, threshold=0.4) as ask:
            found = ask("responses.parse", **REQUEST, text_format=City)
            assert found.output_parsed == City(name="Paris")
            assert assessment(found)["decision"] == "flag"
        with guarding(server, way, threshold=0.2, on_uncertain="refuse") as ask:
            found = ask("responses.parse", **REQUEST, text_format=City)
            assert found.output_parsed is None
            assert found.output[0].content[0].refusal == NO


@both
@pytest.mark.parametrize(
    "options",
    [
        {"conversation": "conv_1"},
        {"background": True},
        {"tools": [{"type": "web_search"}]},
        {"prompt": {"id": "p"}, "input": openai.omit},
    ],
)
def test_what_could_act_is_asked_once_and_counts_as_uncertain(
    way: str, options: dict[str, Any]
) -> None:
    with (
        ChatServer(script("Paris")) as server,
        guarding(server, way, threshold=0.4, on_uncertain="refuse") as ask,
    ):
        found = ask(CREATE, **{**REQUEST, **options})
    assert found.output_text == NO
    assert assessment(found)["reasons"] == ["side_effects"]
    assert len(server.requests) == 1


@both
def test_an_earlier_response_is_read_by_the_samples_too(way: str) -> None:
    with (
        ChatServer(script("Paris", ["Paris"] * 4)) as server,
        guarding(server, way, threshold=0.4) as ask,
    ):
        found = ask(CREATE, **REQUEST, previous_response_id="resp_1")
    assert assessment(found)["decision"] == "accept"
    assert {r.body["previous_response_id"] for r in server.requests} == {"resp_1"}


@both
def test_a_response_that_failed_is_an_error_or_handed_over(way: str) -> None:
    with ChatServer([response("", failed="server_error")]) as server:
        with (
            guarding(server, way) as ask,
            pytest.raises(SamplingError, match="server_error"),
        ):
            ask(CREATE, **REQUEST)
        with guarding(server, way, fallback=lambda _request: "Ask Anna.") as ask:
            found = ask(CREATE, **REQUEST)
            assert found.output_text == "Ask Anna."
            assert assessment(found)["reasons"] == ["answer_failed"]


# --- streamed -------------------------------------------------------------------------


@both
def test_events_flow_and_the_last_one_carries_the_assessment(way: str) -> None:
    with (
        ChatServer(script("It is Paris")) as server,
        guarding(server, way, threshold=0.4) as ask,
    ):
        events, stream = ask.stream(CREATE, **REQUEST)
        assert said(events) == "It is Paris"
        assert assessment(events[-1].response) == assessment(stream)
        assert assessment(stream)["decision"] == "flag"
        assert not any(getattr(event, "logprobs", None) for event in events)
        plain = ask.parts(ask(CREATE, on=ask.own, **REQUEST, stream=True))
        assert [event.type for event in events] == [event.type for event in plain]
        assert not events[-1].response.output[0].content[0].logprobs
        assert not events[-2].item.content[0].logprobs
        assert not events[-3].part.logprobs


@both
@pytest.mark.parametrize("structured", [False, True])
def test_a_refused_stream_has_all_its_events_and_none_of_the_answer(
    way: str, *, structured: bool
) -> None:
    form: dict[str, Any] = {}
    if structured:
        form = {"text": {"format": {"type": "json_object"}}}
    with (
        ChatServer(script("It is Paris")) as server,
        guarding(server, way, threshold=0.4, on_uncertain="refuse") as ask,
    ):
        events, stream = ask.stream(CREATE, **REQUEST, **form)
        stem = "response.refusal" if structured else "response.output_text"
        assert [event.type for event in events] == [
            "response.created",
            "response.output_item.added",
            "response.content_part.added",
            f"{stem}.delta",
            f"{stem}.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
        assert [event.sequence_number for event in events] == list(range(8))
        assert events[3].delta == NO
        assert assessment(stream)["decision"] == "refuse"
        assert assessment(events[-1].response) == assessment(stream)
        assert not any("Paris" in event.to_json() for event in events)


@both
def test_the_package_s_own_helper_reads_a_guarded_stream(way: str) -> None:
    with ChatServer(script("It is Paris")) as server:
        with guarding(server, way, threshold=0.4) as ask:
            found = ask.helped("responses.stream", **REQUEST)
            assert found.output_text == "It is Paris"
            assert assessment(found)["decision"] == "flag"
        with guarding(server, way, threshold=0.4, on_uncertain="refuse") as ask:
            assert ask.helped("responses.stream", **REQUEST).output_text == NO


@both
def test_what_has_no_text_streams_as_it_is(way: str) -> None:
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "weather",
        "arguments": "{}",
    }
    whole = response("").body
    made = Response.construct(**{**whole, "output": [call]})
    with (
        ChatServer([error(500)]) as server,
        guarding(server, way, fallback=lambda _request: made) as ask,
    ):
        events, stream = ask.stream(CREATE, **REQUEST)
    assert [event.type for event in events] == [
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
    ]
    assert events[-1].response.output[0].name == "weather"
    assert assessment(stream)["decision"] == "fallback"


@both
def test_a_stream_without_an_end_is_an_empty_answer(way: str) -> None:
    witness = Witness()
    head = {"Content-Type": "text/event-stream"}
    begun = {**response("").body, "status": "in_progress", "output": []}
    event = {"type": "response.created", "sequence_number": 0, "response": begun}
    for body in ("\n", f"event: response.created\ndata: {json.dumps(event)}\n\n"):
        with (
            ChatServer(
                split(in_turn([Reply(body=body, headers=head)]), script("x"))
            ) as server,
            guarding(server, way, threshold=0.4, observers=[witness]) as ask,
        ):
            _, stream = ask.stream(CREATE, **REQUEST)
        assert assessment(stream)["reasons"] == ["answer_empty"]
