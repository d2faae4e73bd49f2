"""Views of a guarded client as a server sees them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.openai.guarded import PATHS, guarded
from tests.support.openai_clients import WAYS
from tests.support.openai_server import Answer, Asked

ALL = ["plain", "examples", "reasoning"]
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
