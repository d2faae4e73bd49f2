"""A person decides on an agent's uncertain turns, and no sample is drawn again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from snne_guard.langchain import is_refusal
from tests.support.agents import (
    OWN,
    SPREAD,
    agent_on,
    asked,
    calling,
    guarding,
    last,
    paper_of,
    run,
    saying,
    turns,
)
from tests.support.chat_server import ChatServer, Reply, ToolCall
from tests.support.examples import printed
from tests.support.guarding import WHOLE

UNCERTAIN = turns(answer=saying(OWN), samples=saying(*SPREAD))
THREAD = {"configurable": {"thread_id": "1"}}
WILD = calling("museum", "theatre", "church", "pool")


def resume(*decisions: Any) -> Command[Any]:
    return Command(resume={"decisions": list(decisions)})


def asking(**options: Any) -> Any:
    settings = {"threshold": 0.4, "on_uncertain": "interrupt", **options}
    return guarding(**settings)


def payload(state: dict[str, Any]) -> dict[str, Any]:
    """Return what the person is asked."""
    (found,) = state["__interrupt__"]
    assert isinstance(found.value, dict)
    return found.value


@pytest.mark.parametrize("way", WHOLE)
def test_the_answer_waits_for_a_person(way: str) -> None:
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(server, asking(), checkpointer=InMemorySaver())
        waiting = run(agent, way, config=THREAD)
        before = len(server.requests)
        state = run(agent, way, resume({"type": "approve"}), THREAD)
        assert len(server.requests) == before
    assert [message.type for message in waiting["messages"]] == ["human"]
    assert waiting["uncertainty"][0]["decision"] == "fallback"
    question = payload(waiting)
    (action,) = question["action_requests"]
    assert (action["name"], action["args"]) == ("answer", {"content": OWN})
    assert "accepted is at most 0.4" in action["description"]
    (review,) = question["review_configs"]
    assert review["allowed_decisions"] == ["approve", "edit", "reject", "respond"]
    assert question["uncertainty"]["id"] == waiting["uncertainty"][0]["id"]
    assert last(state).content == OWN
    (record,) = state["uncertainty"]
    assert (record["decision"], record["reviewed"]) == ("flag", ["approve"])
    assert record["message_id"] == last(state).id
    assert last(state).response_metadata["snne_guard"] == record
    assert last(state).usage_metadata is not None


class Ends(BaseCallbackHandler):
    """Keeps what every run of a model ended with."""

    run_inline = True

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_llm_end(self, response: LLMResult, **_kwargs: Any) -> None:
        self.seen.append(repr(response))


def test_it_is_in_no_stream_of_messages_before_the_person_has_decided() -> None:
    ends = Ends()
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(server, asking(), checkpointer=InMemorySaver())
        config: Any = {**THREAD, "callbacks": [ends]}
        before = list(agent.stream(asked(), config, stream_mode="messages"))
        after = agent.stream(
            resume({"type": "approve"}), config, stream_mode="messages"
        )
        (shown,) = [message for message, _ in after]
    assert before == []
    assert ends.seen
    assert OWN not in "".join(ends.seen)
    assert shown.content == OWN


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("decision", "said", "outcome"),
    [
        ({"type": "respond", "message": "At ten."}, "At ten.", "fallback"),
        (
            {"type": "edit", "edited_action": {"args": {"content": "At ten."}}},
            "At ten.",
            "fallback",
        ),
        ({"type": "reject"}, "I am not certain enough of", "refuse"),
        ({"type": "reject", "message": "Ask the desk."}, "Ask the desk.", "refuse"),
    ],
)
def test_the_person_may_edit_answer_or_reject(
    way: str, decision: dict[str, Any], said: str, outcome: str
) -> None:
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(server, asking(), checkpointer=InMemorySaver())
        run(agent, way, config=THREAD)
        state = run(agent, way, resume(decision), THREAD)
    assert said in str(last(state).content)
    assert OWN not in repr(state["messages"])
    assert state["uncertainty"][0]["decision"] == outcome
    assert is_refusal(last(state)) is (outcome == "refuse")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("yes", "with 1 of them"),
        ({"decisions": []}, "with 1 of them"),
        ({"decisions": ["approve"]}, "needs a type"),
        ({"decisions": [{"type": "maybe"}]}, "got 'maybe'"),
        ({"decisions": [{"type": "respond"}]}, "needs a message"),
        ({"decisions": [{"type": "edit"}]}, "needs an edited_action"),
        (
            {"decisions": [{"type": "edit", "edited_action": {"args": {"a": 1}}}]},
            "needs an edited_action",
        ),
    ],
)
def test_a_reply_that_is_none_is_asked_for_once_more(reply: Any, error: str) -> None:
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(server, asking(), checkpointer=InMemorySaver())
        run(agent, "invoke", config=THREAD)
        again = run(agent, "invoke", Command(resume=reply), THREAD)
        state = run(agent, "invoke", resume({"type": "approve"}), THREAD)
    assert error in payload(again)["error"]
    assert payload(again)["action_requests"]
    assert last(state).content == OWN


@pytest.mark.parametrize("way", WHOLE)
def test_each_call_of_an_uncertain_turn_is_decided_on(way: str) -> None:
    ran: list[str] = []
    places = ("library", "museum", "church", "pool")
    calls = [
        ToolCall(name="opening_hours", arguments={"place": place}, id=place)
        for place in places
    ]
    script = turns(call=Reply(texts=[None], tool_calls=[calls]), call_samples=WILD)
    with ChatServer(script) as server:
        middleware = guarding(tool_threshold=0.1, on_uncertain_tools="interrupt")
        agent = agent_on(
            server, middleware, tools=[paper_of(ran)], checkpointer=InMemorySaver()
        )
        waiting = run(agent, way, config=THREAD)
        edited = {"name": "opening_hours", "args": {"place": "archive"}}
        state = run(
            agent,
            way,
            resume(
                {"type": "approve"},
                {"type": "edit", "edited_action": edited},
                {"type": "reject", "message": "It is closed."},
                {"type": "respond", "message": "At ten."},
            ),
            THREAD,
        )
    question = payload(waiting)
    assert [action["args"]["place"] for action in question["action_requests"]] == [
        *places
    ]
    assert len(question["review_configs"]) == 1
    assert sorted(ran) == ["archive", "library"]
    replies = {m.tool_call_id: m for m in state["messages"] if m.type == "tool"}
    assert set(replies) == set(places)
    assert (replies["pool"].content, replies["pool"].status) == ("At ten.", "success")
    assert "It is closed." in replies["church"].content
    assert replies["church"].status == "error"
    record = state["uncertainty"][0]
    assert (record["kind"], record["decision"]) == ("tool_calls", "fallback")
    assert record["reviewed"] == ["approve", "edit", "reject", "respond"]


def test_a_turn_whose_calls_are_all_rejected_goes_back_to_the_model() -> None:
    ran: list[str] = []
    script = turns(call=calling("library"), call_samples=WILD)
    with ChatServer(script) as server:
        middleware = guarding(tool_threshold=0.1, on_uncertain_tools="interrupt")
        agent = agent_on(
            server, middleware, tools=[paper_of(ran)], checkpointer=InMemorySaver()
        )
        run(agent, "invoke", config=THREAD)
        state = run(agent, "invoke", resume({"type": "reject"}), THREAD)
    assert ran == []
    kinds = [message.type for message in state["messages"]]
    assert kinds == ["human", "ai", "tool", "ai"]
    assert state["uncertainty"][0]["decision"] == "refuse"


@pytest.mark.parametrize("way", WHOLE)
def test_a_function_may_ask_a_person(way: str) -> None:
    with ChatServer(UNCERTAIN) as server:
        middleware = asking(on_uncertain=lambda _assessment: "interrupt")
        agent = agent_on(server, middleware, checkpointer=InMemorySaver())
        assert payload(run(agent, way, config=THREAD))["action_requests"]


class Hours(BaseModel):
    """Opening hours."""

    opens: str


def hours(*said: str) -> Reply:
    calls = [[ToolCall(name="Hours", arguments={"opens": each})] for each in said]
    return Reply(texts=[None], tool_calls=calls)


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_structured_answer_is_taken_or_left(decision: str) -> None:
    script = turns(answer=hours("nine"), samples=hours("ten", "noon", "two", "six"))
    with ChatServer(script) as server:
        agent = agent_on(
            server, asking(), response_format=Hours, checkpointer=InMemorySaver()
        )
        waiting = run(agent, "invoke", config=THREAD)
        refused = run(agent, "invoke", resume({"type": "edit"}), THREAD)
        state = run(agent, "invoke", resume({"type": decision}), THREAD)
    (action,) = payload(waiting)["action_requests"]
    assert action["args"] == {"content": {"opens": "nine"}}
    assert "one of approve, reject" in payload(refused)["error"]
    if decision == "approve":
        assert state["structured_response"] == Hours(opens="nine")
        assert [message.type for message in state["messages"]] == [
            "human",
            "ai",
            "tool",
        ]
    else:
        assert state.get("structured_response") is None
        assert is_refusal(last(state))


def test_it_goes_on_from_a_file_in_another_process_s_agent(
    tmp_path: Path, needs: Callable[[str], Any]
) -> None:
    sqlite = needs("langgraph.checkpoint.sqlite")

    def agent_of(server: ChatServer) -> Any:
        connection = sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)
        saver = sqlite.SqliteSaver(connection)
        return agent_on(server, asking(), checkpointer=saver), connection

    with ChatServer(UNCERTAIN) as server:
        agent, connection = agent_of(server)
        run(agent, "invoke", config=THREAD)
        connection.close()
        before = len(server.requests)
        agent, connection = agent_of(server)
        state = run(agent, "invoke", resume({"type": "approve"}), THREAD)
        connection.close()
        assert len(server.requests) == before
    assert last(state).content == OWN


def test_a_new_question_lets_go_of_what_waited() -> None:
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(server, asking(), checkpointer=InMemorySaver())
        run(agent, "invoke", config=THREAD)
        server.script = turns(answer=saying("At ten."), samples=saying("At ten."))
        state = run(agent, "invoke", asked("And the museum?"), THREAD)
    assert last(state).content == "At ten."
    assert OWN not in repr(state["messages"])
    assert [record["decision"] for record in state["uncertainty"]] == [
        "fallback",
        "accept",
    ]


@pytest.mark.usefixtures("embedded")
def test_the_example_asks_a_person_only_where_the_model_wavers() -> None:
    lines = printed("integrations/with_langchain_agent")
    assert lines[0].endswith("for gold?")
    assert "Au" in lines[1]
    assert lines[2].startswith("answer: accept")
    assert "a person is asked" in lines
    assert "tool: The library opens at 9 and closes at 17." in lines
    assert "ai: At nine." in lines
