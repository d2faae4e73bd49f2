"""Tools that are bound to a guard, and its fallback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tools import tool

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
from tests.support.guarding import WAYS, ask, record, split
from tests.support.naming import makers

GUARDED = pytest.mark.parametrize("guarded", [False, True], ids=["guard", "chat_model"])
DISAGREE = ["Paris", "Rome", "Nice", "Metz"]


@tool
def look(place: str) -> str:
    """Look up a place."""
    return f"{place} is there."


@tool
def elsewhere(place: str) -> str:
    """Look elsewhere."""
    return place


def calling(request: Request) -> Reply:
    """Call the first tool that is offered, and answer once it has been called."""
    calls = request.body.get("tools") and "is there" not in str(request.messages)
    if not calls:
        return always("Lyon")(request)
    call = ToolCall(name="look", arguments={"place": "Lyon"})
    return Reply(texts=[None] * request.n, tool_calls=[[call]] * request.n)


def guard_with(
    server: ChatServer, fallback: Any, *, guarded: bool, **options: Any
) -> Any:
    settings = {"threshold": 0.1, "on_uncertain": "fallback", "n": 3, **options}
    guard = SNNEGuard(chat_openai(server), fallback=fallback, **settings)
    return GuardedChatModel(guard) if guarded else guard


def uncertain() -> ChatServer:
    return ChatServer(split("Paris", DISAGREE))


def names_in(request: Request) -> list[str]:
    tools = request.body.get("tools", [])
    return [each.get("function", each).get("name") for each in tools]


@GUARDED
@pytest.mark.parametrize("behind", ["openai", "anthropic"])
@pytest.mark.parametrize("way", WAYS)
def test_a_fallback_may_call_the_tools_that_the_model_may(
    way: str, behind: str, guarded: bool
) -> None:
    serve, chat = makers()[behind]
    with uncertain() as server, serve(calling) as other:
        guard = guard_with(server, chat(other), guarded=guarded)
        message = ask(guard.bind_tools([look]), "Where?", way)
        assert [call["name"] for call in message.tool_calls] == ["look"]
        assert record(message)["decision"] == "fallback"
        for request in (*server.requests, *other.requests):
            assert names_in(request) == ["look"]


@GUARDED
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model.bind(seed=7),
        lambda model: model.bind(seed=7).with_retry(),
        lambda model: model.with_config(tags=["mine"]).bind(seed=7),
        lambda model: model.with_fallbacks([model]).bind(seed=7),
        lambda model: model.bind_tools([elsewhere]).bind(seed=7),
        lambda model: (
            model.bind(seed=7)
            .configurable_fields(config=ConfigurableField(id="config"))
            .with_retry()
        ),
        lambda model: SNNEGuard(model.bind(seed=7), n=2),
        lambda model: GuardedChatModel(SNNEGuard(model.bind(seed=7), n=2)),
    ],
    ids=[
        *("bind", "retry", "config", "fallbacks", "over", "fields"),
        *("guard", "chat_model"),
    ],
)
def test_one_in_wrappers_gets_them_too(
    wrap: Callable[[Any], Any], guarded: bool
) -> None:
    with uncertain() as server, ChatServer(calling) as other:
        guard = guard_with(server, wrap(chat_openai(other)), guarded=guarded)
        message = guard.bind_tools([look]).invoke("Where?")
        assert [call["name"] for call in message.tool_calls] == ["look"]
        answers = [each for each in other.requests if each.body["seed"] == 7]
        assert [names_in(request) for request in answers] == [["look"]]


@GUARDED
def test_those_that_are_bound_last_are_the_ones(guarded: bool) -> None:
    with uncertain() as server, ChatServer(calling) as other:
        guard = guard_with(server, chat_openai(other), guarded=guarded)
        if not guarded:
            guard = guard.bind_tools([elsewhere])
        guard.bind_tools([look]).invoke("Where?")
        assert [names_in(request) for request in other.requests] == [["look"]]


@pytest.mark.parametrize(
    "fallback",
    [
        lambda _messages: "Lyon",
        RunnableLambda(lambda _messages: AIMessage("Lyon")),
        RunnableLambda(lambda _messages: AIMessage("Lyon")).with_retry(),
        RunnableLambda(lambda _m, **_kwargs: AIMessage("Lyon")).bind(seed=7),
        FakeListChatModel(responses=["Lyon"]),
        FakeListChatModel(responses=["Lyon"]).bind(stop=["x"]),
        RunnableLambda(str) | FakeListChatModel(responses=["Lyon"]),
    ],
    ids=["function", "lambda", "retry", "kwargs", "no_tools", "bound", "chain"],
)
@GUARDED
def test_one_that_takes_no_tools_answers_without(fallback: Any, guarded: bool) -> None:
    with uncertain() as server:
        guard = guard_with(server, fallback, guarded=guarded).bind_tools([look])
        assert guard.invoke("Where?").content == "Lyon"


def test_without_a_fallback_there_is_nothing_to_bind_to() -> None:
    with uncertain() as server:
        guard = guard_with(server, None, guarded=False, on_uncertain="refuse")
        assert guard.bind_tools([look]).fallback is None
        model = GuardedChatModel(guard)
        bound: Any = model.bind_tools([look])
        assert bound.bound is model


WEB = {"type": "web_search_20250305", "name": "web_search"}
GOOGLE: dict[str, Any] = {"google_search": {}}
PLAIN = {
    "name": "look",
    "description": "Look up a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("front", "behind", "sent"),
    [
        ("anthropic", "openai", ["look"]),
        ("anthropic", "anthropic", ["look", "web_search"]),
    ],
)
def test_tools_of_one_provider_s_own_stay_with_its_class(
    front: str, behind: str, sent: list[str]
) -> None:
    (serve, chat), (serve_other, chat_other) = makers()[front], makers()[behind]
    down: Script = always("", status=401)
    with serve(down) as server, serve_other(calling) as other:
        guard = SNNEGuard(chat(server), fallback=chat_other(other))
        bound = guard.bind_tools([PLAIN, WEB], tool_choice="any")
        assert bound.invoke("Where?").tool_calls[0]["name"] == "look"
        [request] = other.requests
        assert names_in(request) == sent
        word = {"openai": "required", "anthropic": {"type": "any"}}
        assert request.body["tool_choice"] == word[behind]


class Down(FakeListChatModel):
    """A model that takes any tool, and fails."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools, **kwargs)

    def _call(self, *_args: Any, **_kwargs: Any) -> str:
        raise RuntimeError


@pytest.mark.parametrize("own", [WEB, GOOGLE])
def test_where_none_is_left_the_fallback_stays_as_it_is(own: dict[str, Any]) -> None:
    with ChatServer(calling) as other:
        guard = SNNEGuard(Down(responses=["x"]), fallback=chat_openai(other))
        assert guard.bind_tools([own]).invoke("Where?").content == "Lyon"
        assert "tools" not in other.requests[0].body


def test_options_of_one_class_s_own_stay_with_it() -> None:
    serve, chat = makers()["anthropic"]
    down: Script = always("", status=401)
    choice = {"type": "function", "function": {"name": "look"}}
    with ChatServer(down) as server, serve(calling) as other:
        guard = SNNEGuard(chat_openai(server), fallback=chat(other))
        bound = guard.bind_tools([look], tool_choice=choice, strict=True)
        assert bound.invoke("Where?").tool_calls[0]["name"] == "look"
        assert "tool_choice" not in other.requests[0].body


@pytest.mark.parametrize("failing", [False, True])
def test_an_agent_goes_on_with_what_the_fallback_calls(failing: bool) -> None:
    first = always("", status=401) if failing else split("Paris", DISAGREE)
    with ChatServer(first) as server, ChatServer(calling) as other:
        model = guard_with(server, chat_openai(other), guarded=True)
        agent: Any = create_agent(model, [look])
        found = agent.invoke({"messages": [("user", "Where?")]})["messages"]
    assert [each.type for each in found] == ["human", "ai", "tool", "ai"]
    assert (found[2].content, found[3].content) == ("Lyon is there.", "Lyon")
