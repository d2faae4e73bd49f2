"""A fallback behind structured output: a model is asked in the form that is parsed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from snne_guard import GuardedChatModel, SNNEGuard
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    Script,
    ToolCall,
    always,
    chat_openai,
)
from tests.support.guarding import WHOLE, run_in_loop

CITIES = ["Lyon", "Nice", "Lille", "Metz", "Brest", "Dijon"]


class City(BaseModel):
    """A city."""

    name: str


def naming(*names: str) -> Script:
    """Give a city in the form that is asked for, and none where no form is."""
    left = itertools.cycle(names)

    def script(request: Request) -> Reply:
        said = [next(left) for _ in range(request.n)]
        if request.body.get("tools"):
            calls = [[ToolCall(name="City", arguments={"name": n})] for n in said]
            return Reply(texts=[None] * request.n, tool_calls=calls)
        if request.body.get("response_format"):
            return Reply(texts=[f'{{"name": "{name}"}}' for name in said])
        return Reply(texts=said)

    return script


def asked(runnable: Any, way: str) -> Any:
    if way == "invoke":
        return runnable.invoke("Capital of France?")
    return run_in_loop(runnable.ainvoke("Capital of France?"))


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
@pytest.mark.parametrize(
    "first", [naming(*CITIES), always("", status=401)], ids=["unsure", "failing"]
)
def test_a_model_answers_in_the_form_that_is_parsed(
    first: Script, method: str, way: str, *, chat_model: bool
) -> None:
    with ChatServer(first) as server, ChatServer(naming("Paris")) as other:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.1,
            on_uncertain="fallback",
            fallback=chat_openai(other),
        )
        model = GuardedChatModel(guard) if chat_model else guard
        found = asked(model.with_structured_output(City, method=method), way)
        assert found == City(name="Paris")
        whole = model.with_structured_output(City, method=method, include_raw=True)
        raw = asked(whole, way)
        assert len(other.requests) == 2
    assert raw["parsed"] == City(name="Paris")
    assert raw["raw"].response_metadata["snne_guard"]["decision"] == "fallback"


@pytest.mark.parametrize(
    "fallback",
    [
        lambda _messages: AIMessage('{"name": "A"}'),
        FakeListChatModel(responses=['{"name": "A"}']),
    ],
    ids=["function", "plain_model"],
)
def test_what_cannot_be_asked_has_to_know_the_form(fallback: Any) -> None:
    with ChatServer(always("", status=401)) as server:
        guard = SNNEGuard(chat_openai(server), fallback=fallback)
        found = guard.with_structured_output(City, method="json_mode").invoke("x")
    assert found == City(name="A")
