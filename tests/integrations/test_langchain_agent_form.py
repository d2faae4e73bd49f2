"""Agents that give structured answers: scored as answers, refused without a loop."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.structured_output import (
    ProviderStrategy,
    StructuredOutputValidationError,
    ToolStrategy,
)
from pydantic import BaseModel

from snne_guard.langchain import is_refusal
from tests.support.agents import OWN, agent_on, guarding, last, run, saying, turns
from tests.support.chat_server import ChatServer, Reply, ToolCall, chat_openai
from tests.support.guarding import WHOLE, is_sample

CERTAIN = turns(answer=saying(OWN), samples=saying(OWN, "It opens at nine"))


class City(BaseModel):
    """A city."""

    name: str


def city(*names: str, text: bool = False) -> Reply:
    if text:
        return Reply(texts=[City(name=name).model_dump_json() for name in names])
    calls = [[ToolCall(name="City", arguments={"name": name})] for name in names]
    return Reply(texts=[None], tool_calls=calls)


def strategies() -> list[Any]:
    return [
        pytest.param(ToolStrategy(City), False, id="tool"),
        pytest.param(City, False, id="auto"),
        pytest.param(ProviderStrategy(City), True, id="provider"),
    ]


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(("strategy", "text"), strategies())
@pytest.mark.parametrize("agree", [True, False])
def test_structured_answers_are_scored_by_the_answers_policy(
    way: str, strategy: Any, *, text: bool, agree: bool
) -> None:
    others = ("Metz",) if agree else ("Nice", "Lyon", "Brest", "Lille")
    script = turns(answer=city("Metz", text=text), samples=city(*others, text=text))
    with ChatServer(script) as server:
        middleware = guarding(threshold=0.2, on_uncertain="refuse")
        state = run(agent_on(server, middleware, response_format=strategy), way)
        assert len([r for r in server.requests if not is_sample(r)]) == 1
    (record,) = state["uncertainty"]
    assert record["kind"] == "answer"
    if agree:
        assert state["structured_response"] == City(name="Metz")
    else:
        assert state.get("structured_response") is None
        assert is_refusal(last(state))
        assert "Metz" not in repr(state)


@pytest.mark.parametrize("way", WHOLE)
def test_a_model_whose_name_says_it_gives_structure_is_asked_in_its_own_way(
    way: str,
) -> None:
    script = turns(answer=city("Metz", text=True), samples=city("Metz", text=True))
    with ChatServer(script) as server:
        agent = agent_on(
            server, guarding(), response_format=City, model={"model": "gpt-4o-mini"}
        )
        state = run(agent, way)
        assert "response_format" in server.requests[0].body
    assert state["structured_response"] == City(name="Metz")


@pytest.mark.parametrize("way", WHOLE)
def test_the_fallback_of_a_structured_answer_keeps_the_form(way: str) -> None:
    script = turns(
        answer=city("Metz", text=True),
        samples=city("Nice", "Lyon", "Brest", "Lille", text=True),
    )
    with (
        ChatServer(script) as server,
        ChatServer([city("Paris", text=True)]) as other,
    ):
        middleware = guarding(
            threshold=0.2, on_uncertain="fallback", fallback=chat_openai(other)
        )
        agent = agent_on(server, middleware, response_format=ProviderStrategy(City))
        assert run(agent, way)["structured_response"] == City(name="Paris")


@pytest.mark.parametrize("way", WHOLE)
def test_an_accepted_answer_of_the_wrong_form_is_langchain_s_own_error(
    way: str,
) -> None:
    with ChatServer(CERTAIN) as server:
        agent = agent_on(
            server, guarding(threshold=0.4), response_format=ProviderStrategy(City)
        )
        with pytest.raises(StructuredOutputValidationError):
            run(agent, way)
