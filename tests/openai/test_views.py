"""Views of a guarded client as a server sees them."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard.views import View
from tests.openai.guarded import PATHS, guarded, text_of
from tests.support.openai_clients import WAYS
from tests.support.openai_server import Answer, Asked

ALL = ["plain", "examples", "reasoning"]
SYSTEM = {"role": "developer", "content": "Be brief."}
QUESTION = "Capital of France?"


def turns(asked: Asked) -> list[Any]:
    given = asked.body.get("messages") or asked.body.get("input")
    return given if isinstance(given, list) else [{"role": "user", "content": given}]


def view_of(asked: Asked) -> str:
    if "Answer:" in str(turns(asked)[-1]["content"]):
        return "reasoning"
    return "examples" if len(turns(asked)) > 2 else "plain"


def script(asked: Asked) -> Answer:
    reasons = view_of(asked) == "reasoning"
    return Answer(texts=["I think. Answer: Paris" if reasons else "Paris"] * asked.n)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_the_server_gets_each_view_once(path: str, way: str, stream: bool) -> None:
    with guarded(script, way, n=4, threshold=0.1, views=ALL) as (server, call):
        answer = call(path, stream=stream)
        record = (call.parts(answer)[-1] if stream else answer).snne_guard
        (asked,) = [asked for asked in server.requests if not asked.is_sample]
        drawn = {view_of(asked): turns(asked) for asked in server.samples}
    assert turns(asked) == drawn["plain"] == [{"role": "user", "content": QUESTION}]
    assert drawn["examples"][-1:] == drawn["plain"]
    assert [turn["role"] for turn in drawn["examples"]] == [
        *("user", "assistant") * 3,
        "user",
    ]
    assert drawn["reasoning"][0]["content"].startswith(f"{QUESTION}\n\nFirst think")
    assert (record["n_used"], record["uncertainty"]) == (4, 0.0)
    assert (record["method"], record["decision"]) == ("snne", "accept")


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        (PATHS[0], "max_tokens"),
        (PATHS[0], "max_completion_tokens"),
        (PATHS[1], "max_output_tokens"),
    ],
)
def test_reasoning_has_room_and_no_stop_texts(path: str, limit: str) -> None:
    stop = {} if limit == "max_output_tokens" else {"stop": ["\n"]}
    with guarded(script, "threads", n=4, views=ALL) as (server, call):
        call(path, **{limit: 20}, **stop)
        bodies = {view_of(asked): asked.body for asked in server.samples}
    limits = {name: body[limit] for name, body in bodies.items()}
    assert limits == {"plain": 20, "examples": 20, "reasoning": 532}
    assert "stop" not in bodies["reasoning"]
    assert bodies["plain"].get("stop") == stop.get("stop")


@pytest.mark.parametrize("path", PATHS)
def test_samples_with_tools_or_a_schema_are_plain(path: str) -> None:
    chat = path == PATHS[0]
    function = {"name": "f", "parameters": {}}
    tool = {"type": "function", "function": function}
    form = {"response_format": {"type": "json_object"}}
    with guarded(script, "threads", n=4, views=ALL) as (server, call):
        call(path, tools=[tool if chat else {"type": "function", **function}])
        call(path, **(form if chat else {"text": {"format": {"type": "json_object"}}}))
        assert {view_of(asked) for asked in server.requests} == {"plain"}


@pytest.mark.parametrize("way", WAYS)
def test_a_broken_view_loses_its_samples_alone(way: str) -> None:
    views = ["plain", View("broken", lambda messages: messages.clear())]  # type: ignore[arg-type,return-value]
    with guarded(script, way, n=5, threshold=0.4, views=views) as (server, call):
        answer = call()
        assert {view_of(asked) for asked in server.requests} == {"plain"}
    assert text_of(answer) == "Paris"
    record = answer.snne_guard
    assert (record["n_used"], record["reasons"]) == (3, ["samples_failed"])
    assert record["decision"] == "accept"
