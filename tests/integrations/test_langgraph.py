"""A graph that measures answers and goes by the result."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from snne_guard import InputError, SNNEGuard
from snne_guard_integrations.langgraph import route_on_uncertainty, uncertainty_node
from tests.integrations.support import ScriptedModel

SURE = ScriptedModel(answer="Paris", samples=("Paris",))


def unsure() -> ScriptedModel:
    return ScriptedModel(answer="Paris", samples=("Lyon", "Bonn"))


def guard_on(model: ScriptedModel, **options: Any) -> SNNEGuard:
    return SNNEGuard(model, **{"n": 3, "method": "snne", "threshold": 0.4, **options})


def graph_of(model: ScriptedModel) -> Any:
    """Build a graph in which a model answers, and a person is asked where in doubt."""

    def answer(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    def person(state: MessagesState) -> Any:
        drawn = state["messages"][-1]
        reply = interrupt({"answer": drawn.text})
        return {"messages": [AIMessage(reply, id=drawn.id)]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_node("measure", uncertainty_node(guard_on(model)))
    graph.add_node("person", person)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", "measure")
    route = route_on_uncertainty(accept=END, uncertain="person")
    graph.add_conditional_edges("measure", route)
    graph.add_edge("person", END)
    return graph.compile(checkpointer=InMemorySaver())


def ask(graph: Any, way: str, given: Any = None) -> Any:
    config = {"configurable": {"thread_id": "1"}}
    given = given or {"messages": [HumanMessage("Where?")]}
    if way == "invoke":
        return graph.invoke(given, config)
    return asyncio.run(graph.ainvoke(given, config))


def decision(message: Any) -> Any:
    return message.response_metadata["snne_guard"]["decision"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_an_answer_of_the_model_is_measured_and_drawn_once(way: str) -> None:
    model = unsure()
    state = ask(graph_of(model), way)
    assert state["__interrupt__"][0].value == {"answer": "Paris"}
    message = state["messages"][-1]
    assert (message.text, decision(message)) == ("Paris", "flag")
    assert message.response_metadata["finish_reason"] == "stop"
    assert model.drawn == 3


def test_resuming_draws_nothing_again() -> None:
    model = unsure()
    graph = graph_of(model)
    ask(graph, "invoke")
    state = ask(graph, "invoke", Command(resume="Nobody knows."))
    assert state["messages"][-1].text == "Nobody knows."
    assert model.drawn == 3


def test_a_message_that_a_guard_gave_is_not_measured_again() -> None:
    guard = guard_on(SURE)
    message = guard.invoke("Where?").model_copy(update={"id": "m"})
    given = {"messages": [HumanMessage("Where?"), message]}
    assert uncertainty_node(guard).invoke(given) == {}


def test_the_state_may_be_an_object() -> None:
    asked: list[AnyMessage] = [HumanMessage("Where?"), AIMessage("Paris", id="1")]
    state = SimpleNamespace(messages=asked)
    update = uncertainty_node(guard_on(unsure())).invoke(state)
    route = route_on_uncertainty(accept=END, uncertain="person")
    assert route(SimpleNamespace(**update)) == "person"


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_run_of_the_graph_can_bring_its_documents(way: str) -> None:
    graph = StateGraph(MessagesState)
    guard = guard_on(SURE, context="client", min_grounded=0.5)
    graph.add_node("measure", uncertainty_node(guard))
    graph.add_edge(START, "measure")
    measure: Any = graph.compile()
    asked = {"messages": [HumanMessage("Where?"), AIMessage("Paris", id="1")]}
    for documents, decided in (("In Paris.", "accept"), ("In Rome.", "flag")):
        config: Any = {"metadata": {"snne_guard_context": documents}}
        if way == "invoke":
            state = measure.invoke(asked, config)
        else:
            state = asyncio.run(measure.ainvoke(asked, config))
        assert decision(state["messages"][-1]) == decided


@pytest.mark.parametrize(
    ("decided", "node"),
    [
        ("accept", "a"),
        ("flag", "b"),
        (None, "b"),
        ("unscored", "c"),
    ],
)
def test_the_edge_goes_by_the_decision(decided: str | None, node: str) -> None:
    metadata = {"snne_guard": {"decision": decided}}
    state = {"messages": [AIMessage("Paris", response_metadata=metadata)]}
    route = route_on_uncertainty(accept="a", uncertain="b", unscored="c")
    assert route(state) == node
    if decided == "unscored":
        assert route_on_uncertainty(accept="a", uncertain="b")(state) == "b"


def test_what_cannot_be_decided_is_an_error() -> None:
    route = route_on_uncertainty(accept="a", uncertain="b")
    with pytest.raises(InputError, match="put uncertainty_node before this edge"):
        route({"messages": [AIMessage("Paris")]})
    with pytest.raises(InputError, match="put uncertainty_node before this edge"):
        route({"messages": [HumanMessage("Where?")]})


@pytest.mark.parametrize("last", [[], [HumanMessage("Where?")], [AIMessage("Paris")]])
def test_states_without_an_answer_to_measure_are_errors(last: list[Any]) -> None:
    with pytest.raises(InputError, match="to be the model's answer, with an id"):
        uncertainty_node(guard_on(SURE)).invoke({"messages": last})
