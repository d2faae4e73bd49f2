"""Tools and schemas that are bound to other models, each in its own form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.tools import tool
from pydantic import BaseModel

from snne_guard import ConfigurationError, SNNEGuard
from tests.langchain.others import OTHER, anthropic, messages_api, other_openai
from tests.langchain.support import (
    MODEL,
    REFUSING,
    WHOLE,
    ask,
    chat_openai,
    guarded,
    in_loop,
    metadata_of,
)
from tests.support.observers import Watcher
from tests.support.openai_server import (
    Answer,
    Asked,
    Server,
    always,
    calling,
)


@tool
def transfer(amount: int) -> str:
    """Send money."""
    return f"sent {amount}"


class City(BaseModel):
    """A town."""

    name: str
    people: int


PARIS = {"name": "Paris", "people": 2}


# -- Tools and schemas -----------------------------------------------------------------


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("said", "alike"), [({"amount": 5}, True), ({"amount": 6}, False)]
)
def test_tools_are_bound_to_each_in_its_own_form(
    said: Any, alike: bool, way: str
) -> None:
    with (
        Server(lambda _: calling({"amount": 5})) as server,
        Server(messages_api("", call=said, name="transfer")) as other,
    ):
        guard = guarded(
            server, n=3, other_models=[anthropic(other)], tool_calls="score", **REFUSING
        )
        message = ask(guard.bind_tools([transfer], tool_choice="any"), way)
        tools = other.requests[0].body["tools"]
        assert [each["name"] for each in tools] == ["transfer"]
        assert other.requests[0].body["tool_choice"] == {"type": "any"}
    assert bool(message.tool_calls) is alike
    assert metadata_of(message)["n_used"] == 3


def test_tools_bound_again_replace_the_first() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with Server(always()) as server, Server(messages_api()) as other:
        guard = guarded(server, other_models=[anthropic(other)])
        bound: Any = guard.bind_tools([transfer])
        bound.bound.bind_tools([add]).invoke("Where?")
        bound.bound.model_copy(update={"n": 4}).bind_tools([add]).invoke("Where?")
        tools = [asked.body["tools"] for asked in other.requests]
    assert [[each["name"] for each in given] for given in tools] == [["add"], ["add"]]


def test_an_agent_binds_its_tools_to_each() -> None:
    def script(asked: Asked) -> Answer:
        last = asked.body["messages"][-1]
        done = Answer(texts=["Done."])
        return calling({"amount": 5}) if last["role"] == "user" else done

    with Server(script) as server, Server(messages_api("Done.")) as other:
        guard = guarded(server, other_models=[anthropic(other)], threshold=0.4)
        agent: Any = create_agent(guard, [transfer])
        state = agent.invoke({"messages": [("user", "Pay")]})
        assert state["messages"][-1].text == "Done."
        assert metadata_of(state["messages"][-1])["n_used"] == 5
        (asked,) = other.requests  # a call that passes unscored draws no sample
        results = [
            block["type"]
            for turn in asked.body["messages"]
            for block in turn["content"]
            if isinstance(block, dict)
        ]
    assert {"tool_use", "tool_result"} <= {*results}


def test_what_cannot_be_bound_says_to_which_model() -> None:
    with Server(always()) as server:
        guard = guarded(server, other_models=[MODEL])
        with pytest.raises(ConfigurationError, match="'FakeListChatModel' cannot be"):
            guard.bind_tools([transfer])
        with pytest.raises(ConfigurationError, match="'FakeListChatModel' cannot be"):
            guard.with_structured_output(City)
        claude = guarded(server, other_models=[anthropic(server)])
        with pytest.raises(ConfigurationError, match="'claude'"):
            claude.bind_tools([{"type": "web_search_20250305", "name": "web_search"}])


def test_tools_that_only_the_model_has_are_an_error() -> None:
    with Server(always()) as server:
        model = chat_openai(server).bind_tools([transfer])
        other = other_openai(server)
        with pytest.raises(ConfigurationError, match=f"{OTHER!r} has no tools"):
            SNNEGuard(model, other_models=[other]).invoke("Pay")
        guard = guarded(server, other_models=[other])
        with pytest.raises(ConfigurationError, match=f"{OTHER!r} has no schema"):
            guard.bind(response_format={"type": "json_object"}).invoke("Where?")
        both = SNNEGuard(model, other_models=[other.bind_tools([transfer])])
        assert metadata_of(both.invoke("Pay"))["n_used"] == 5


def test_an_agent_s_schema_is_asked_for_by_a_tool() -> None:
    def script(asked: Asked) -> Answer:
        return calling(PARIS, name=asked.body["tools"][0]["function"]["name"])

    called = messages_api("", call=PARIS, name="City")
    with Server(script) as server, Server(called) as other:
        guard = guarded(server, other_models=[anthropic(other)], tool_calls="score")
        agent: Any = create_agent(guard, response_format=ToolStrategy(City))
        state = agent.invoke({"messages": [("user", "Where?")]})
        assert state["structured_response"] == City.model_validate(PARIS)
        assert len(other.requests) == 1
        by_provider: Any = create_agent(guard, response_format=ProviderStrategy(City))
        with pytest.raises(ConfigurationError, match=r"'claude' has no schema.*Tool"):
            by_provider.invoke({"messages": [("user", "Where?")]})


def filled(asked: Asked) -> Answer:
    if asked.body.get("tools"):
        return calling(PARIS, name="City")
    return Answer(texts=[json.dumps(PARIS)], logprobs=False)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("include_raw", [True, False])
@pytest.mark.parametrize("method", ["function_calling", "json_schema", "json_mode"])
@pytest.mark.parametrize("people", [2, 3])
def test_structured_answers_are_compared_by_value(
    people: int, method: Any, include_raw: bool, way: str
) -> None:
    said = {"people": people, "name": "Paris"}
    called = messages_api("I fill it in.", call=said, name="City")
    with (
        Server(filled) as server,
        Server(called) as other,
        Server(always(json.dumps(said), model=OTHER)) as third,
    ):
        watcher = Watcher()
        others = [anthropic(other), other_openai(third)]
        guard = guarded(server, n=5, other_models=others, observers=[watcher])
        chain = guard.with_structured_output(
            City, method=method, include_raw=include_raw
        )
        asked = "Where?"
        found: Any = (
            chain.invoke(asked) if way == "invoke" else in_loop(chain.ainvoke(asked))
        )
        found = found["parsed"] if include_raw else found
        assert found == City.model_validate(PARIS)
        assert other.requests[0].body["tools"][0]["name"] == "City"
        assert third.requests[0].body["response_format"]["type"] == "json_schema"
    (assessment,) = watcher.assessments
    assert assessment.n_used == 5
    assert assessment.uncertainty is not None
    assert (assessment.uncertainty < 0.05) is (people == 2)
