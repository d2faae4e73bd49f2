"""Tools and agents with a guard in the model's place."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from snne_guard import SNNEGuard
from tests.langchain.support import (
    CALLS,
    REFUSING,
    WHOLE,
    ask,
    chat_openai,
    guarded,
    in_loop,
    metadata_of,
)
from tests.support.openai_server import Answer, Asked, Scripted, Server, calling

COMPARING: dict[str, Any] = {**REFUSING, "tool_calls": "score"}


@tool
def transfer(amount: int, to: str = "A. Example") -> str:
    """Send money."""
    return f"sent {amount} to {to}"


def calls(answer: Any, *samples: Any) -> Scripted:
    """Answer with a call; give each sample the next of the others."""
    return lambda asked: calling(*samples) if asked.is_sample else calling(answer)


def agent_script(*samples: int) -> Scripted:
    """Call the tool, then say what it returned."""
    first = calls({"amount": 5}, *({"amount": amount} for amount in samples))

    def script(asked: Asked) -> Answer:
        last = asked.body["messages"][-1]
        return first(asked) if last["role"] == "user" else Answer(texts=["Done."])

    return script


# -- Tools -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", CALLS)
def test_a_call_of_a_bound_tool_passes_unscored_and_no_sample_is_paid_for(
    way: str,
) -> None:
    with Server(lambda _: calling({"amount": 5})) as server:
        guard = guarded(server, **REFUSING)
        message = ask(guard.bind_tools([transfer]), way)
        assert len(server.requests) == 1
        assert server.requests[0].body["tools"][0]["function"]["name"] == "transfer"
    (call,) = message.tool_calls
    assert (call["name"], call["args"]) == ("transfer", {"amount": 5})
    record = metadata_of(message)
    assert (record["decision"], record["reasons"]) == ("unscored", ["tool_calls"])


@pytest.mark.parametrize("way", CALLS)
@pytest.mark.parametrize(
    ("samples", "decision"),
    [((5, 5, 5, 5), "accept"), ((6, 7, 8, 9), "refuse")],
)
def test_calls_are_compared_where_that_is_asked_for(
    way: str, samples: tuple[int, ...], decision: str
) -> None:
    with Server(agent_script(*samples)) as server:
        guard = guarded(server, **COMPARING)
        message = ask(guard.bind_tools([transfer]), way)
    assert metadata_of(message)["decision"] == decision
    assert bool(message.tool_calls) is (decision == "accept")


def test_calls_that_were_cut_off_are_no_members() -> None:
    cut = replace(calling({"amount": 5}), finish="length")
    with Server(lambda _: cut) as server:
        guard = guarded(server, **COMPARING)
        record = metadata_of(guard.bind_tools([transfer]).invoke("Pay."))
    assert (record["decision"], record["n_used"]) == ("refuse", 1)
    assert "truncated_samples" in record["reasons"]


def test_text_beside_a_call_that_cannot_be_read_is_the_answer() -> None:
    # An agent sees no call there, ends, and shows the text.
    broken = {"name": "transfer", "args": "{", "id": "1", "error": "no JSON"}
    texts = ["Paid.", "No.", "Later.", "Five?", "Who?"]
    replies = [
        AIMessage(text, invalid_tool_calls=[{**broken, "type": "invalid_tool_call"}])
        for text in texts
    ]
    model = GenericFakeChatModel(messages=iter(replies))
    guard = SNNEGuard(model, threshold=0.1, on_uncertain="refuse")
    message = guard.bind(tools=[{"type": "function", "function": {"name": "f"}}])
    record = metadata_of(message.invoke("Pay."))
    assert (record["decision"], record["n_used"]) == ("refuse", 5)


def test_tools_are_bound_to_a_fallback_too() -> None:
    with (
        Server(calls({"amount": 5}, *[{"amount": n} for n in (1, 2, 3, 4)])) as server,
        Server(calls({"amount": 7})) as second,
    ):
        options = {**COMPARING, "on_uncertain": "fallback"}
        guard = guarded(server, **options, fallback=chat_openai(second))
        message = guard.bind_tools([transfer], tool_choice="any").invoke("Pay.")
        assert second.requests[0].body["tool_choice"] == "required"
    assert message.tool_calls[0]["args"] == {"amount": 7}


# -- Agents ----------------------------------------------------------------------------


def messages_of(app: Any, way: str) -> list[Any]:
    state = {"messages": [("user", "Pay 5.")]}
    after = app.invoke(state) if way == "invoke" else in_loop(app.ainvoke(state))
    messages: list[Any] = after["messages"]
    return messages


def graph_of(guard: SNNEGuard) -> Any:
    model = RunnableLambda(itemgetter("messages")) | guard.bind_tools([transfer])
    node: Any = model | (lambda message: {"messages": [message]})
    graph = StateGraph(MessagesState)
    graph.add_node("model", node)
    graph.add_node("tools", ToolNode([transfer]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


AGENTS = pytest.mark.parametrize(
    "make", [graph_of, lambda guard: create_agent(guard, [transfer])]
)


@AGENTS
@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("tool_calls", ["skip", "score"])
def test_an_agent_calls_its_tool_and_is_guarded(
    tool_calls: Any, way: str, make: Any
) -> None:
    with Server(agent_script(5, 5, 5, 5)) as server:
        guard = guarded(server, **REFUSING, tool_calls=tool_calls)
        _, called, returned, last = messages_of(make(guard), way)
    assert called.tool_calls[0]["name"] == "transfer"
    assert returned.content == "sent 5 to A. Example"
    assert last.text == "Done."
    decision = "unscored" if tool_calls == "skip" else "accept"
    assert metadata_of(called)["decision"] == decision
    assert metadata_of(last)["decision"] == "accept"


@AGENTS
@pytest.mark.parametrize("way", WHOLE)
def test_an_agent_whose_call_is_refused_calls_no_tool(way: str, make: Any) -> None:
    with Server(agent_script(6, 7, 8, 9)) as server:
        guard = guarded(server, **COMPARING)
        _, last = messages_of(make(guard), way)
    assert not last.tool_calls
    assert metadata_of(last)["decision"] == "refuse"
