"""The guard where a chat model is demanded: agents, tools, structured output."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.exceptions import OutputParserException
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableLambda,
    RunnableParallel,
)
from langchain_core.tools import tool
from pydantic import BaseModel

from snne_guard import (
    ConfigurationError,
    GuardedChatModel,
    SNNEGuard,
    UncertainAnswerError,
)
from snne_guard.langchain.reseat import reseat
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    ToolCall,
    always,
    chat_openai,
)
from tests.support.guarding import Witness, ask, is_sample, record, split

LISTING = ["invoke", "ainvoke"]


@tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"It rains in {city}."


def agent_script(request: Request) -> Reply:
    if any(message["role"] == "tool" for message in request.messages):
        return Reply(texts=["It rains."])
    return Reply(
        texts=[None],
        tool_calls=[[ToolCall(name="weather", arguments={"city": "Metz"})]],
    )


@pytest.mark.parametrize("way", LISTING)
def test_an_agent_calls_tools_unscored_and_has_its_last_answer_guarded(
    way: str,
) -> None:
    with ChatServer(agent_script) as server:
        model = GuardedChatModel(
            SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        )
        agent = create_agent(model, tools=[weather])
        given: Any = {"messages": [("user", "Weather in Metz?")]}
        if way == "invoke":
            messages = agent.invoke(given)["messages"]
        else:
            messages = asyncio.run(agent.ainvoke(given))["messages"]
        assert [is_sample(request) for request in server.requests] == [
            False,
            False,
            True,
        ]
    called, answered = messages[1], messages[-1]
    assert record(called)["reasons"] == ["tool_calls"]
    assert record(answered)["decision"] == "accept"
    assert answered.content == "It rains."


@pytest.mark.parametrize("guarded", [False, True])
def test_bound_tools_reach_answer_and_samples(guarded: bool) -> None:
    with ChatServer(always("No tool needed.")) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        runnable: Any = GuardedChatModel(guard) if guarded else guard
        message = runnable.bind_tools([weather]).invoke("Hello")
        names = [r.body["tools"][0]["function"]["name"] for r in server.requests]
    assert names == ["weather", "weather"]
    assert record(message)["decision"] == "accept"


class City(BaseModel):
    """A city."""

    name: str
    inhabitants: int


def city(name: str, inhabitants: float) -> str:
    return json.dumps({"name": name, "inhabitants": inhabitants})


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("way", LISTING)
def test_structured_output_is_guarded_field_by_field(
    way: str, guarded: bool, method: str
) -> None:
    def script(request: Request) -> Reply:
        name = "Metz" if not is_sample(request) else "Lyon"
        if request.body.get("tools"):
            arguments = {"name": name, "inhabitants": 5}
            return Reply(
                texts=[None], tool_calls=[[ToolCall(name="City", arguments=arguments)]]
            )
        return Reply(texts=[city(name, 5)])

    witness = Witness()
    with ChatServer(script) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, observers=[witness])
        runnable: Any = GuardedChatModel(guard) if guarded else guard
        chain = runnable.with_structured_output(City, method=method)
        if way == "invoke":
            parsed = chain.invoke("Which?")
        else:
            parsed = asyncio.run(chain.ainvoke("Which?"))
    assert parsed == City(name="Metz", inhabitants=5)
    (assessment,) = witness.assessments
    assert assessment.n_used == 5
    assert assessment.matrix is not None
    assert assessment.matrix[1, 2] == 1.0
    assert 0.3 < assessment.matrix[0, 1] < 0.9  # one field of two differs
    assert assessment.uncertainty is not None
    assert 0 < assessment.uncertainty < 1


@pytest.mark.parametrize("guarded", [False, True])
def test_a_refused_structured_answer_raises_for_no_parser_could_read_it(
    guarded: bool,
) -> None:
    with ChatServer(
        split(city("Metz", 5), [city("Lyon", 1), city("Nice", 2)])
    ) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.1, on_uncertain="refuse")
        runnable: Any = GuardedChatModel(guard) if guarded else guard
        with pytest.raises(UncertainAnswerError):
            runnable.with_structured_output(City).invoke("Which?")


def test_include_raw_carries_the_assessment_on_the_raw_message() -> None:
    with ChatServer(always(city("Metz", 5))) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        found = guard.with_structured_output(City, include_raw=True).invoke("Which?")
    assert found["parsed"] == City(name="Metz", inhabitants=5)
    assert record(found["raw"])["decision"] == "accept"


def test_a_structured_chain_without_a_model_in_it_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="bypassed"):
        reseat(RunnableLambda(str), lambda model: model)
    with pytest.raises(ConfigurationError, match="bypassed"):
        reseat(RunnableLambda(str) | RunnableLambda(str), lambda model: model)
    with pytest.raises(ConfigurationError, match="bypassed"):
        reseat(RunnableParallel(raw=RunnableLambda(str)), lambda model: model)


def test_a_model_is_found_inside_bindings_and_fallbacks_of_all_branches() -> None:
    parser: Runnable[Any, Any] = RunnableLambda(str)
    model: Runnable[Any, Any] = FakeListChatModel(responses=["x"])
    chain = (model | parser).with_config(tags=["t"])
    seen: list[Any] = []

    def guarded(found: Any) -> Any:
        seen.append(found)
        return RunnableLambda(lambda _value: "guarded")

    assert reseat(chain, guarded).invoke("x") == "guarded"
    both = (model | parser).with_fallbacks([chain])
    assert reseat(both, guarded).invoke("x") == "guarded"
    assert seen == [model, model, model]
    for without in (
        parser.with_config(tags=["t"]),
        (model | parser).with_fallbacks([parser]),
        parser.with_fallbacks([model | parser]),
    ):
        with pytest.raises(ConfigurationError, match="bypassed"):
            reseat(without, guarded)


def test_tracers_are_told_nothing_of_a_model_that_is_not_chosen_yet() -> None:
    with ChatServer(always("x")) as server:
        model = chat_openai(server).configurable_fields(
            temperature=ConfigurableField(id="heat")
        )
        assert GuardedChatModel(SNNEGuard(model))._get_ls_params() == {}


def test_what_does_not_parse_is_the_parsers_own_error() -> None:
    with ChatServer(always("no JSON")) as server:
        chain = GuardedChatModel(SNNEGuard(chat_openai(server))).with_structured_output(
            City, method="json_mode"
        )
        with pytest.raises(OutputParserException):
            chain.invoke("Which?")


def test_with_retry_and_with_fallbacks_wrap_a_guarded_model() -> None:
    with ChatServer(split("Paris", ["a", "b", "c", "d"])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="raise")
        other = FakeListChatModel(responses=["Ask an atlas."])
        retried = GuardedChatModel(guard).with_retry(stop_after_attempt=2)
        assert retried.with_fallbacks([other]).invoke("x").content == "Ask an atlas."


def test_a_guarded_model_can_be_the_model_of_a_guard_chain() -> None:
    with ChatServer(always("Paris")) as server:
        model = GuardedChatModel(SNNEGuard(chat_openai(server), n=3, threshold=0.4))
        message = ask(model.bind(stop=["x"]), "Capital?", "invoke")
        assert [request.body["stop"] for request in server.requests] == [["x"], ["x"]]
    assert isinstance(message, AIMessage)
    assert record(message)["n_used"] == 3


def test_tools_are_bound_to_every_model_of_a_chain_of_fallbacks() -> None:
    with ChatServer(always("", status=401)) as down, ChatServer(always("Up.")) as up:
        model = chat_openai(down).with_fallbacks([chat_openai(up)])
        guarded = GuardedChatModel(SNNEGuard(model, threshold=0.4))
        message = guarded.bind_tools([weather]).invoke("Hello")
        assert all(request.body["tools"] for request in up.requests)
        assert len(up.requests) == 2
    assert (message.content, record(message)["decision"]) == ("Up.", "accept")


def test_langchains_cache_never_answers_for_a_guarded_model() -> None:
    set_llm_cache(InMemoryCache())
    try:
        with (
            ChatServer(split("A", ["a", "b"])) as one,
            ChatServer(always("B")) as two,
        ):
            flagging = SNNEGuard(chat_openai(one), threshold=0.1)
            refusing = SNNEGuard(chat_openai(two), threshold=0.1, on_uncertain="refuse")
            assert GuardedChatModel(flagging).invoke("x").content == "A"
            assert GuardedChatModel(refusing).invoke("x").content == "B"
            assert len(two.requests) == 2
    finally:
        set_llm_cache(None)


@pytest.mark.parametrize("way", LISTING)
def test_a_configured_model_keeps_its_configuration_inside(way: str) -> None:
    with ChatServer(always("Paris")) as server:
        model = chat_openai(server, temperature=0.2).configurable_fields(
            temperature=ConfigurableField(id="heat")
        )
        guarded = GuardedChatModel(SNNEGuard(model, n=3, threshold=0.4))
        ask(guarded, "x", way, {"configurable": {"heat": 0.7}})
        heats = sorted(str(request.temperature) for request in server.requests)
    assert heats == ["0.7", "1.0"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_model_left_open_is_guarded_as_a_chat_model_too(way: str) -> None:
    with ChatServer(always("Paris")) as server:
        model = init_chat_model(
            configurable_fields=("model",),
            model_provider="openai",
            base_url=server.url,
            api_key="test",
        )
        guarded = GuardedChatModel(SNNEGuard(model, n=3, threshold=0.4))
        message = ask(guarded, "x", way, {"configurable": {"model": "chosen"}})
        assert {request.body["model"] for request in server.requests} == {"chosen"}
    assert record(message)["decision"] == "accept"


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("way", LISTING)
def test_structured_output_of_a_model_left_open_is_guarded(
    way: str, guarded: bool
) -> None:
    witness = Witness()
    with ChatServer(always(city("Metz", 5))) as server:
        model = init_chat_model(
            configurable_fields=("model",),
            model_provider="openai",
            base_url=server.url,
            api_key="test",
        )
        guard = SNNEGuard(model, n=3, threshold=0.4, observers=[witness])
        runnable: Any = GuardedChatModel(guard) if guarded else guard
        chain = runnable.with_structured_output(City)
        config: Any = {"configurable": {"model": "chosen"}}
        if way == "invoke":
            parsed = chain.invoke("Which?", config)
        else:
            parsed = asyncio.run(chain.ainvoke("Which?", config))
    assert parsed == City(name="Metz", inhabitants=5)
    assert witness.last.decision == "accept"


@pytest.mark.parametrize("guarded", [False, True])
def test_structured_output_of_a_chain_of_fallbacks_is_guarded(guarded: bool) -> None:
    witness = Witness()
    with (
        ChatServer(always("", status=401)) as down,
        ChatServer(always(city("M", 5))) as up,
    ):
        model = chat_openai(down).with_fallbacks([chat_openai(up)])
        guard = SNNEGuard(model, n=3, threshold=0.4, observers=[witness])
        runnable: Any = GuardedChatModel(guard) if guarded else guard
        parsed = runnable.with_structured_output(City).invoke("Which?")
    assert parsed == City(name="M", inhabitants=5)
    assert witness.last.decision == "accept"


def test_the_inner_models_profile_is_the_guarded_models_own() -> None:
    with ChatServer(always("x")) as server:
        model = chat_openai(server, model="gpt-4o")
        assert GuardedChatModel(SNNEGuard(model)).profile == model.profile
