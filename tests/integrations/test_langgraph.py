"""A node that measures, an edge that goes by it, a person who is asked."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from snne_guard import (
    ConfigurationError,
    GuardedChatModel,
    InputError,
    MissingExtraError,
    SNNEGuard,
)
from snne_guard_integrations import _extras
from snne_guard_integrations.langgraph import (
    UncertaintyState,
    add_records,
    route_on_uncertainty,
    uncertainty_node,
)
from tests.support.agents import OWN, SPREAD, asked, run, saying, turns
from tests.support.chat_server import ChatServer, Request, chat_openai
from tests.support.examples import printed
from tests.support.guarded_graph import THREAD, graph_of
from tests.support.guarding import WHOLE, Witness, is_sample, run_in_loop

UNCERTAIN = turns(answer=saying(OWN), samples=saying(*SPREAD))
CERTAIN = turns(answer=saying(OWN), samples=saying(OWN, "It opens at nine"))


def guard_on(server: ChatServer, **options: Any) -> SNNEGuard:
    settings: dict[str, Any] = {"method": "snne", "threshold": 0.4, **options}
    return SNNEGuard(chat_openai(server), **settings)


def answers_among(requests: list[Request]) -> int:
    return sum(not is_sample(request) for request in requests)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("answers", [False, True])
def test_an_accepted_answer_goes_on(way: str, *, answers: bool) -> None:
    with ChatServer(CERTAIN) as server:
        state = run(graph_of(guard_on(server), None, answers=answers), way)
        assert answers_among(server.requests) == 1
    (record,) = state["uncertainty"]
    assert state["messages"][-1].content == OWN
    assert (record["decision"], record["message_id"]) == (
        "accept",
        state["messages"][-1].id,
    )
    assert OWN not in json.dumps(record)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("answers", [False, True])
def test_an_uncertain_one_waits_for_a_person_and_nothing_is_drawn_again(
    way: str, *, answers: bool
) -> None:
    with ChatServer(UNCERTAIN) as server:
        graph = graph_of(guard_on(server), InMemorySaver(), answers=answers)
        waiting = run(graph, way, config=THREAD)
        before = len(server.requests)
        state = run(graph, way, Command(resume="At ten."), THREAD)
        assert len(server.requests) == before
    value = waiting["__interrupt__"][0].value
    assert (value["answer"], value["u"]["decision"]) == (OWN, "flag")
    assert [message.content for message in state["messages"]][1:] == ["At ten."]
    assert len(state["uncertainty"]) == 1


def test_another_process_goes_on_from_the_file(
    tmp_path: Path, needs: Callable[[str], Any]
) -> None:
    sqlite = needs("langgraph.checkpoint.sqlite")
    file = tmp_path / "threads.db"
    with ChatServer(UNCERTAIN) as server:
        connection = sqlite3.connect(file, check_same_thread=False)
        graph = graph_of(guard_on(server), sqlite.SqliteSaver(connection))
        assert "__interrupt__" in run(graph, "invoke", config=THREAD)
        connection.close()
        before = len(server.requests)
        module = [sys.executable, "-m", "tests.support.guarded_graph"]
        done = subprocess.run(  # noqa: S603 - this interpreter, a module of the tests
            [*module, server.url, file, "At ten."],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert len(server.requests) == before
    assert done.stdout.strip() == "At ten.", done.stderr


@pytest.mark.parametrize("way", WHOLE)
def test_the_messages_before_the_answer_are_its_prompt(way: str) -> None:
    witness = Witness()
    with ChatServer(CERTAIN) as server:
        guard = guard_on(server, observers=[witness], n=3)
        node = uncertainty_node(guard)
        messages = [HumanMessage("Hours?"), AIMessage(OWN, id="mine")]
        if way == "invoke":
            update = node.invoke({"messages": messages})
        else:
            update = run_in_loop(node.ainvoke({"messages": messages}))
        (request,) = server.requests
    assert request.texts == ["Hours?"]
    assert set(update) == {"uncertainty"}
    assert update["uncertainty"][0]["message_id"] == "mine"
    assert (witness.last.id, witness.last.cost.calls) == (
        update["uncertainty"][0]["id"],
        1,
    )


@pytest.mark.parametrize("way", WHOLE)
def test_an_answer_that_a_guard_gave_is_not_measured_again(way: str) -> None:
    with ChatServer(CERTAIN) as server:
        guard = guard_on(server)
        state = {"messages": [HumanMessage("Hours?"), guard.invoke("Hours?")]}
        before = len(server.requests)
        node = uncertainty_node(guard)
        if way == "invoke":
            update = node.invoke(state)
        else:
            update = run_in_loop(node.ainvoke(state))
        assert len(server.requests) == before
    found = state["messages"][-1].response_metadata["snne_guard"]
    assert update["uncertainty"][0]["id"] == found["id"]


@pytest.mark.parametrize("way", WHOLE)
def test_samples_are_in_no_stream_and_nor_is_what_is_refused(way: str) -> None:
    modes = ["messages", "updates", "values"]

    async def streamed(graph: Any) -> list[Any]:
        stream = graph.astream(asked(), stream_mode=modes)
        events = graph.astream_events(asked(), version="v2")
        return [part async for part in stream] + [event async for event in events]

    with ChatServer(UNCERTAIN) as server:
        guard = guard_on(server, on_uncertain="refuse", trace_samples=False)
        graph = StateGraph(UncertaintyState)
        graph.add_node("measure", uncertainty_node(guard))
        graph.add_edge(START, "measure")
        compiled = graph.compile()
        if way == "invoke":
            shown = repr(list(compiled.stream(asked(), stream_mode=modes)))  # type: ignore[call-overload]
        else:
            shown = repr(run_in_loop(streamed(compiled)))
    assert not any(text in shown for text in (OWN, *SPREAD))
    assert guard.refusal in shown


def test_the_edge_knows_where_it_leads() -> None:
    with ChatServer(CERTAIN) as server:
        drawn = graph_of(guard_on(server), None).get_graph()
    edges = {(e.source, e.target) for e in drawn.edges if e.source == "measure"}
    assert edges == {("measure", END), ("measure", "person")}


@pytest.mark.parametrize(
    ("decision", "to"),
    [
        ("accept", "go"),
        ("flag", "ask"),
        ("refuse", "ask"),
        ("fallback", "ask"),
        ("unscored", "tools"),
    ],
)
def test_each_decision_has_its_edge(decision: str, to: str) -> None:
    route = route_on_uncertainty(accept="go", uncertain="ask", unscored="tools")
    state = {
        "messages": [AIMessage("", id="1"), HumanMessage("no", id="2")],
        "uncertainty": [
            {"id": "a", "message_id": "1", "decision": decision},
            {"id": "b", "message_id": "0", "decision": "accept"},
        ],
    }
    assert route(state) == to


def test_what_passed_unscored_is_uncertain_unless_told_otherwise() -> None:
    route = route_on_uncertainty(accept="go", uncertain="ask")
    record = {"id": "a", "message_id": "1", "decision": "unscored"}
    state = {"messages": [AIMessage("", id="1")], "uncertainty": [record]}
    assert route(state) == "ask"


@dataclass
class Talk:
    """A state with names of its own."""

    turns: list[Any] = field(default_factory=list)
    measured: list[dict[str, Any]] = field(default_factory=list)


def test_a_state_may_have_other_names_and_be_no_dict() -> None:
    with ChatServer(CERTAIN) as server:
        names = {"messages": "turns", "uncertainty": "measured"}
        update = uncertainty_node(guard_on(server), **names).invoke(
            Talk(turns=[HumanMessage("Hours?")])
        )
    route = route_on_uncertainty(accept="go", uncertain="ask", **names)
    assert route(Talk(**update)) == "go"


def test_a_record_of_another_message_does_not_count() -> None:
    route = route_on_uncertainty(accept="go", uncertain="ask")
    record = {"id": "a", "message_id": "1", "decision": "accept"}
    for messages in ([AIMessage("", id="2")], []):
        with pytest.raises(InputError, match="has no record"):
            route({"messages": messages, "uncertainty": [record]})


def test_an_answer_without_an_id_gets_one() -> None:
    with ChatServer(CERTAIN) as server:
        guard = guard_on(
            server,
            on_uncertain="fallback",
            fallback=lambda _value: "Ask.",
            threshold=0.0,
        )
        server.script = UNCERTAIN
        update = uncertainty_node(guard).invoke({"messages": [HumanMessage("Hours?")]})
    assert update["messages"][0].content == "Ask."
    assert update["uncertainty"][0]["message_id"] == update["messages"][0].id
    assert update["messages"][0].id


def test_wiring_that_makes_no_sense_is_refused() -> None:
    with ChatServer(CERTAIN) as server:
        guard = guard_on(server, threshold=None)
        model: Any = GuardedChatModel(guard)
        with pytest.raises(ConfigurationError, match="needs an SNNEGuard, got Guarded"):
            uncertainty_node(model)
        node = uncertainty_node(guard)
        with pytest.raises(InputError, match="messages in the state's 'messages'"):
            node.invoke({"messages": []})
        update = node.invoke({"messages": [HumanMessage("Hours?")]})
    with pytest.raises(ConfigurationError, match="has no threshold"):
        route_on_uncertainty(accept="go", uncertain="ask")(update)


def test_records_start_from_nothing() -> None:
    assert add_records(None, None) == []


@pytest.mark.usefixtures("embedded")
def test_the_example_stops_and_goes_on() -> None:
    lines = printed("integrations/with_langgraph")
    assert any("Au" in line for line in lines)
    assert any(line.startswith("a person is asked") for line in lines)
    assert lines[-1] == "ai: Nobody knows."


def test_an_older_langgraph_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_extras, "version", lambda _name: "1.0.0")
    monkeypatch.delitem(sys.modules, "snne_guard_integrations.langgraph")
    with pytest.raises(MissingExtraError, match=r"langgraph 1\.1\.5 or later \(found"):
        import snne_guard_integrations.langgraph  # noqa: F401
