"""Middleware on real agents: flag, refuse, fall back, raise, ask a person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, wrap_model_call
from langchain.agents.structured_output import ToolStrategy
from langchain.chat_models import init_chat_model
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field, SecretStr

from snne_guard import ConfigurationError, SNNEGuard, UncertainAnswerError
from snne_guard.langchain import is_refusal
from snne_guard_integrations.langchain_agent import UncertaintyMiddleware
from tests.integrations.support import ScriptedModel
from tests.langchain.support import in_loop
from tests.support.calibrations import calibration
from tests.support.observers import Watcher
from tests.support.openai_server import Server, always

THREAD: Any = {"configurable": {"thread_id": "1"}}


def unsure(**options: Any) -> ScriptedModel:
    return ScriptedModel(**{"answer": "Paris", "samples": ("Lyon", "Bonn"), **options})


def guarding(**options: Any) -> UncertaintyMiddleware:
    return UncertaintyMiddleware(
        **{"n": 3, "method": "snne", "threshold": 0.4, **options}
    )


def ask(agent: Any, way: str = "invoke", question: str = "Where?") -> Any:
    given = {"messages": [HumanMessage(question)]}
    if way == "invoke":
        return agent.invoke(given, THREAD)
    return asyncio.run(agent.ainvoke(given, THREAD))


def record(message: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = message.response_metadata["snne_guard"]
    return metadata


def look_up(place: str) -> str:
    """Look a place up."""
    return f"{place} is in the east."


def calls_then_answers(messages: list[BaseMessage]) -> AIMessage:
    if isinstance(messages[-1], ToolMessage):
        return AIMessage("In the east.")
    call: Any = {"name": "look_up", "args": {"place": "Ebnat"}, "id": "1"}
    return AIMessage("", tool_calls=[call])


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_an_uncertain_answer_is_flagged(way: str) -> None:
    model, watcher = unsure(), Watcher()
    agent = create_agent(model, middleware=[guarding(observers=[watcher])])
    message = ask(agent, way)["messages"][-1]
    assert (message.text, record(message)["decision"]) == ("Paris", "flag")
    assert model.drawn == 3
    assert len(watcher.assessments) == 1


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_refused_answer_is_in_no_state_stream_or_checkpoint(way: str) -> None:
    saver = InMemorySaver()
    middleware = guarding(on_uncertain="refuse")
    agent = create_agent(unsure(), middleware=[middleware], checkpointer=saver)
    given: Any = {"messages": [HumanMessage("Where?")]}

    modes: Any = ["messages", "updates", "values"]

    async def streamed() -> list[Any]:
        parts = agent.astream(given, THREAD, stream_mode=modes)
        events = agent.astream_events(given, THREAD, version="v2")
        return [*[each async for each in parts], *[each async for each in events]]

    if way == "invoke":
        shown: Any = list(agent.stream(given, THREAD, stream_mode=modes))
    else:
        shown = asyncio.run(streamed())
    shown = [*shown, *saver.list(THREAD)]
    assert "certain enough" in repr(shown)
    for text in ("Paris", "Lyon", "Bonn"):
        assert text not in repr(shown)
    assert is_refusal(agent.get_state(THREAD).values["messages"][-1])


def test_a_fallback_model_gets_the_tools_too() -> None:
    other = ScriptedModel(answer=calls_then_answers)
    middleware = guarding(on_uncertain="fallback", fallback=other)
    agent = create_agent(unsure(), tools=[look_up], middleware=[middleware])
    messages = ask(agent)["messages"]
    assert messages[2].content == "Ebnat is in the east."
    assert messages[-1].text == "In the east."
    assert record(messages[-1])["decision"] == "fallback"


def test_turns_that_call_tools_pass_unscored_and_draw_no_samples() -> None:
    model = ScriptedModel(answer=calls_then_answers, samples=("In the east.",))
    agent = create_agent(model, tools=[look_up], middleware=[guarding()])
    messages = ask(agent)["messages"]
    assert record(messages[1])["reasons"] == ["tool_calls"]
    assert record(messages[1])["decision"] == "unscored"
    assert messages[2].content == "Ebnat is in the east."
    assert record(messages[3])["decision"] == "accept"
    assert model.drawn == 4


# -- What cannot be guarded ------------------------------------------------------------


class Place(BaseModel):
    name: str


def named(name: str) -> AIMessage:
    call: Any = {"name": "Place", "args": {"name": name}, "id": "1"}
    return AIMessage("", tool_calls=[call])


def test_a_structured_answer_is_scored_as_a_call_where_there_are_no_tools() -> None:
    model = ScriptedModel(answer=named("Paris"), samples=(named("Paris"),))
    agent = create_agent(
        model, middleware=[guarding()], response_format=ToolStrategy(Place)
    )
    result = ask(agent)
    assert result["structured_response"] == Place(name="Paris")
    assert record(result["messages"][1])["uncertainty"] == 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"on_uncertain": "refuse"},
        {"threshold": (0.1, 0.4)},
        {"on_uncertain": lambda _: "refuse"},
    ],
)
def test_a_refusal_that_fits_no_response_format_is_raised(options: Any) -> None:
    agent = create_agent(
        unsure(), middleware=[guarding(**options)], response_format=Place
    )
    with pytest.raises(UncertainAnswerError):
        ask(agent)


def test_a_guarded_model_is_not_guarded_twice() -> None:
    agent = create_agent(SNNEGuard(unsure()), middleware=[guarding()])
    with pytest.raises(ConfigurationError, match="is guarded already"):
        ask(agent)


def test_middleware_that_goes_past_the_guard_is_an_error() -> None:
    @wrap_model_call
    def another(request: Any, handler: Any) -> Any:
        return handler(request.override(model=unsure()))

    inner: AgentMiddleware[Any, Any, Any] = another
    agent = create_agent(unsure(), middleware=[guarding(), inner])
    with pytest.raises(ConfigurationError, match="List UncertaintyMiddleware last"):
        ask(agent)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n": 1}, "n to be"), ({"colour": "red"}, "colour")],
)
def test_bad_options_are_refused_at_construction(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        guarding(**options)


def test_it_takes_a_calibration_of_the_agent_s_model() -> None:
    middleware = UncertaintyMiddleware(calibration=calibration(model="m"))
    with pytest.raises(ConfigurationError, match="model='m', here model=None"):
        ask(create_agent(unsure(), middleware=[middleware]))


def test_what_a_guard_has_learnt_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    agent = create_agent(unsure(), middleware=[guarding()])
    for _ in range(2):
        ask(agent, question="Where? " * 200)
    warnings = [each for each in caplog.messages if "over 1000 characters" in each]
    assert len(warnings) == 1  # a guard warns once


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_the_model_may_be_chosen_by_the_configuration(way: str) -> None:
    with Server(always()) as server:
        model: Any = init_chat_model(
            "openai:first",
            configurable_fields=("model", "top_p"),
            base_url=server.url,
            api_key="none",
        )
        middleware = [guarding(max_concurrency=2)]
        agent = create_agent(model, tools=[look_up], middleware=middleware)
        for name in ("second", "third"):
            chosen: Any = {
                "configurable": {"model": f"openai:{name}", "thread_id": "1"}
            }
            given: Any = {"messages": [HumanMessage("Where?")]}
            if way == "invoke":
                state = agent.invoke(given, chosen)
            else:
                state = in_loop(agent.ainvoke(given, chosen))
            assert record(state["messages"][-1])["decision"] == "accept"
            bodies = [asked.body for asked in server.requests]
            assert {body["model"] for body in bodies} == {name}
            assert all(body["tools"] for body in bodies)
            server.requests.clear()


class Claude(ChatAnthropic):
    """A ChatAnthropic that answers without a server, and keeps what it is asked."""

    asked: list[dict[str, Any]] = Field(default_factory=list)

    def _generate(self, messages: Any, **options: Any) -> ChatResult:  # type: ignore[override]
        self.asked.append(options)
        message = AIMessage("Paris", response_metadata={"stop_reason": "end_turn"})
        return ChatResult(generations=[ChatGeneration(message=message)])


def test_a_guarded_agent_can_cache_its_prompt() -> None:
    model = Claude(
        model_name="claude-sonnet-5", api_key=SecretStr("x"), timeout=None, stop=None
    )
    middleware = [AnthropicPromptCachingMiddleware(), guarding()]
    agent = create_agent(model, tools=[look_up], middleware=middleware)
    assert record(ask(agent)["messages"][-1])["n_used"] == 3
    assert len(model.asked) == 3
    for options in model.asked:
        assert options["cache_control"]["type"] == "ephemeral"
        assert options["tools"][-1]["cache_control"]["type"] == "ephemeral"
