"""The self-check as a server sees it, asked through a real ChatOpenAI."""

from __future__ import annotations

import math
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from snne_guard import SNNEGuard
from snne_guard.self_check import SelfCheck
from tests.langchain.support import CALLS, ask, chat_openai, guarded, metadata_of
from tests.support.openai_server import Answer, Asked, Server, rejecting

PROMPT = SelfCheck().prompt


def asks_check(asked: Asked, prompt: str = PROMPT) -> bool:
    last = asked.body["messages"][-1]
    return bool(last["content"] == prompt)


def checking(
    word: str, answer: str = "Paris", *, prompt: str = PROMPT, **fields: Any
) -> Any:
    """Return a script that says one thing to a self-check, another one to the rest."""

    def script(asked: Asked) -> Answer:
        if asks_check(asked, prompt):
            return Answer(texts=[word], **fields)
        return Answer(texts=[answer])

    return script


@pytest.mark.parametrize("way", CALLS)
def test_the_model_is_asked_about_its_own_answer(way: str) -> None:
    with Server(checking("No")) as server:
        guard = guarded(server, n=4, threshold=0.4, self_check=True)
        messages = [SystemMessage("Be brief."), HumanMessage("Where?")]
        found = metadata_of(ask(guard, way, messages=messages))
        (check,) = [asked for asked in server.requests if asks_check(asked)]
    assert [message["content"] for message in check.body["messages"]] == [
        "Be brief.",
        "Where?",
        "Paris",
        PROMPT,
    ]
    assert (check.body["logprobs"], check.body["top_logprobs"]) == (True, 5)
    assert "temperature" not in check.body
    assert not check.body.get("stream")
    # The server gives No a log-probability of -0.1, and Yes the rest.
    assert found["self_check"] == pytest.approx(1 - math.exp(-0.1))
    assert (found["n_used"], found["disagreement"]) == (3, 0.0)
    assert (found["decision"], found["cost"]["calls"]) == ("accept", 3)


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        ("It is right.", {}),
        ("Yes", {"finish": "content_filter"}),
        ("Yes", {"status": 401}),
    ],
)
def test_a_check_that_says_nothing_is_named(word: str, fields: Any) -> None:
    with Server(checking(word, **fields)) as server:
        found = metadata_of(guarded(server, self_check=True).invoke("Where?"))
    assert (found["self_check"], found["n_used"]) == (0.5, 4)
    assert "self_check_unknown" in found["reasons"]


@pytest.mark.parametrize("bound", [False, True])
def test_the_check_has_no_tools_or_schema_wherever_the_user_set_them(
    *, bound: bool
) -> None:
    function = {"type": "function", "function": {"name": "f", "parameters": {}}}
    extra = {"tools": [function], "stop": ["."], "top_k": 5}
    schema = {"response_format": {"type": "json_object"}}
    options: dict[str, Any] = {"extra_body": extra}
    options |= schema if bound else {"model_kwargs": schema}
    with Server(checking("Yes")) as server:
        model = chat_openai(server, **({} if bound else options))
        guard = SNNEGuard(model.bind(**options) if bound else model, self_check=True)
        guard.invoke("Where?")
        checks = [asked.body for asked in server.requests if asks_check(asked)]
        others = [asked.body for asked in server.requests if not asks_check(asked)]
    (check,) = checks
    assert not check.keys() & {"tools", "response_format", "stop"}
    assert check["top_k"] == 5
    for body in others:
        assert body.keys() >= {"tools", "response_format", "stop"}


@pytest.mark.parametrize("named", [True, False])
def test_a_server_without_other_tokens_is_asked_without_them(named: bool) -> None:
    script = rejecting("top_logprobs", checking("Yes"), named=named)
    with Server(script) as server:
        guard = guarded(server, n=3, self_check=True)
        records = [metadata_of(guard.invoke("Where?")) for _ in range(2)]
        again = [asked.body for asked in server.requests if asks_check(asked)]
    for record in records:
        assert record["self_check"] == 1.0  # the word alone
        assert (record["method"], record["reasons"]) == ("wsnne", ["no_threshold"])
    # What was rejected once is not asked for again.
    assert ["top_logprobs" in body for body in again] == [True, False, False]
    assert all(body["logprobs"] for body in again)
