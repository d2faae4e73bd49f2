"""Structured output and tools: decided on before any parser sees a reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from snne_guard import UncertainAnswerError
from tests.openai.guarded import REFUSAL, guarded
from tests.support.observers import Watcher
from tests.support.openai_clients import WAYS
from tests.support.openai_server import Answer, always, split

REFUSING: dict[str, Any] = {"threshold": 0.4, "on_uncertain": "refuse"}
PARSES = ("chat.completions.parse", "responses.parse")
HELPERS = ("chat.completions.stream", "responses.stream")


class City(BaseModel):
    name: str
    founded: int


GOOD = '{"name": "Paris", "founded": 250}'
BAD = '{"name": "Secretville", "founded": "long ago"}'
OTHERS = tuple(json.dumps({"name": n, "founded": i}) for i, n in enumerate("ABCD"))


def schema(path: str) -> dict[str, Any]:
    return {"response_format" if path.startswith("chat") else "text_format": City}


def parsed(answer: Any) -> Any:
    if hasattr(answer, "output_parsed"):
        return answer.output_parsed
    return answer.choices[0].message.parsed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PARSES)
def test_an_accepted_answer_is_parsed(path: str, way: str) -> None:
    with guarded(always(GOOD), way, **REFUSING) as (server, call):
        answer = call(path, **schema(path))
    assert parsed(answer) == City(name="Paris", founded=250)
    assert answer.snne_guard["decision"] == "accept"
    formats = [
        asked.body.get("response_format") or asked.body["text"]
        for asked in server.requests
    ]
    assert all(one == formats[0] for one in formats)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PARSES)
@pytest.mark.parametrize("text", [GOOD, BAD])
def test_a_refused_answer_parses_to_nothing(path: str, text: str, way: str) -> None:
    watcher = Watcher()
    script = split(text, *OTHERS)
    with guarded(script, way, **REFUSING, observers=[watcher]) as (_, call):
        answer = call(path, **schema(path))
    assert parsed(answer) is None
    assert REFUSAL in answer.to_json()
    assert text not in answer.to_json()
    assert answer.snne_guard["decision"] == "refuse"
    assert watcher.only.answer is not None
    assert watcher.only.answer.text == text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PARSES)
def test_the_parser_s_error_comes_after_the_decision(path: str, way: str) -> None:
    watcher = Watcher()
    options: Any = {"threshold": 0.4, "observers": [watcher]}
    with (
        guarded(split(BAD, *OTHERS), way, **options) as (_, call),
        pytest.raises(ValidationError, match="long ago"),  # it was delivered
    ):
        call(path, **schema(path))
    assert watcher.only.decision == "flag"
    options["on_uncertain"] = "raise"
    with (
        guarded(split(BAD, *OTHERS), way, **options) as (_, call),
        pytest.raises(UncertainAnswerError) as caught,
    ):
        call(path, **schema(path))
    assert "Secretville" not in repr(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", HELPERS)
def test_a_refused_stream_parses_to_nothing(path: str, way: str) -> None:
    with guarded(split(BAD, *OTHERS), way, **REFUSING) as (_, call):
        final = call.helped(path, **schema(path))
    assert parsed(final) is None
    assert "Secretville" not in final.to_json()
    with guarded(always(GOOD), way, **REFUSING) as (_, call):
        assert parsed(call.helped(path, **schema(path))).name == "Paris"


# -- Tools -----------------------------------------------------------------------------

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "pay", "parameters": {"type": "object"}},
}


def paying(amount: int) -> dict[str, Any]:
    function = {"name": "pay", "arguments": json.dumps({"to": "Ann", "sum": amount})}
    return {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_calls_a_bound_tool_passes(way: str) -> None:
    script = always("", message=paying(5), finish="tool_calls")
    with guarded(script, way, **REFUSING) as (server, call):
        answer = call(tools=[TOOL])
    assert answer.choices[0].message.tool_calls[0].function.name == "pay"
    record = answer.snne_guard
    assert (record["decision"], record["reasons"]) == ("unscored", ["tool_calls"])
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_call_of_a_tool_that_is_not_bound_is_scored(way: str) -> None:
    script = split(Answer(texts=[""], message=paying(5)), "I cannot pay.")
    with guarded(script, way, **REFUSING) as (_, call):
        answer = call()
    assert answer.choices[0].message.content == REFUSAL
    assert answer.choices[0].message.tool_calls is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "body", [{"tools": [{"type": "web_search"}]}, {"prompt": {"id": "pmpt_1"}}]
)
def test_what_could_act_is_drawn_once(body: dict[str, Any], way: str) -> None:
    with guarded(always("Paris"), way, **REFUSING) as (server, call):
        answer = call("responses.create", **body)
    assert len(server.requests) == 1
    assert answer.output_text == REFUSAL
    assert answer.snne_guard["reasons"][0] == "side_effects"
