"""The callback handler beside agents and graphs: which turns it assesses."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph

from snne_guard import SNNEGuard
from snne_guard_integrations.callback import SNNECallbackHandler, WatchedRun
from snne_guard_integrations.langchain_agent import UncertaintyMiddleware
from tests.support.chat_server import ChatServer, Reply, Request, ToolCall, chat_openai
from tests.support.guarding import WHOLE, Witness, is_sample, run_in_loop

ASKED = {"messages": [("user", "When does the library open?")]}


@tool
def opening_hours(place: str) -> str:
    """Return when a place opens."""
    return f"{place}: at nine"


CALL = ToolCall(name="opening_hours", arguments={"place": "library"})


def helpful(request: Request) -> Reply:
    """Call the tool, then say what it said; samples say something else."""
    if request.messages[-1]["role"] != "tool":
        return Reply(texts=(None,), tool_calls=((CALL,),))
    return Reply(texts=("At ten." if is_sample(request) else "At nine.",))


def shadow(model: Any, **options: Any) -> tuple[SNNECallbackHandler, Witness]:
    witness = Witness()
    guard = SNNEGuard(model, n=3, method="snne", threshold=0.2, observers=[witness])
    return SNNECallbackHandler(guard, **options), witness


def work(agent: Any, way: str, config: Any) -> Any:
    if way == "invoke":
        return agent.invoke(ASKED, config)
    return run_in_loop(agent.ainvoke(ASKED, config))


@pytest.mark.parametrize("way", WHOLE)
def test_an_agents_turns_are_assessed_each_by_its_kind(way: str) -> None:
    with ChatServer(helpful) as server:
        model = chat_openai(server)
        handler, witness = shadow(model)
        with handler:
            done = work(
                create_agent(model, [opening_hours]), way, {"callbacks": [handler]}
            )
        drawn = [request for request in server.requests if is_sample(request)]
    assert done["messages"][-1].text == "At nine."
    calling, final = witness.assessments
    assert "tool_calls" in calling.reasons
    assert final.scored == ("At nine.", "At ten.", "At ten.")
    assert (final.decision, handler.counts.assessed) == ("flag", 2)
    # Drawn with the agent's tools at hand, after the very messages that it had.
    (sample,) = drawn
    assert sample.body["tools"][0]["function"]["name"] == "opening_hours"
    assert [m["role"] for m in sample.messages] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("way", WHOLE)
def test_an_agent_that_loops_ends_as_it_does_alone(way: str) -> None:
    with ChatServer([Reply(texts=(None,), tool_calls=((CALL,),))]) as server:
        model = chat_openai(server)
        handler, _ = shadow(model, max_queue=2)
        agent = create_agent(model, [opening_hours])
        with handler, pytest.raises(GraphRecursionError):
            work(agent, way, {"callbacks": [handler], "recursion_limit": 11})
        assert len(server.requests) == handler.counts.seen
    counts = handler.counts
    assert counts.seen == counts.taken == counts.assessed + counts.dropped >= 5


def test_a_tool_that_raises_ends_the_agent_as_it_does_alone() -> None:
    @tool("opening_hours")
    def failing(place: str) -> str:
        """Return when a place opens."""
        raise OSError(place)

    with ChatServer(helpful) as server:
        model = chat_openai(server)
        handler, witness = shadow(model)
        with handler, pytest.raises(OSError, match="library"):
            work(create_agent(model, [failing]), "invoke", {"callbacks": [handler]})
    assert [found.reasons[-1] for found in witness.assessments] == ["tool_calls"]


def test_a_middleware_that_measures_already_is_not_assessed_twice() -> None:
    with ChatServer(helpful) as server:
        model = chat_openai(server)
        handler, _ = shadow(model)
        guarding = UncertaintyMiddleware(n=3, method="snne")
        agent = create_agent(model, [opening_hours], middleware=[guarding])
        with handler:
            work(agent, "invoke", {"callbacks": [handler]})
    assert handler.counts.reasons == {"guarded": 2}


class State(TypedDict, total=False):
    draft: str
    answer: str


def graph(model: ChatOpenAI) -> Any:
    def draft(_state: State) -> State:
        return {"draft": str(model.invoke("Think of a city").text)}

    def answer(state: State) -> State:
        return {"answer": str(model.invoke(f"Improve: {state['draft']}").text)}

    built: Any = StateGraph(State)
    built.add_node("draft", draft)
    built.add_node("answer", answer)
    built.add_edge(START, "draft")
    built.add_edge("draft", "answer")
    built.add_edge("answer", END)
    return built.compile()


def is_final(run: WatchedRun) -> bool:
    return bool(run.metadata.get("langgraph_node") == "answer")


def test_a_rule_takes_one_node_of_a_graph_and_no_sample_is_streamed() -> None:
    def say(request: Request) -> Reply:
        return Reply(texts=("sample" if is_sample(request) else request.prompt,))

    with ChatServer(say) as server:
        model = chat_openai(server)
        handler, witness = shadow(model, take_when=is_final)
        with handler:
            streamed = graph(model).stream(
                {}, {"callbacks": [handler]}, stream_mode="messages"
            )
            texts = [message.text for message, _ in streamed]
    assert "sample" not in "".join(texts)
    assert handler.counts.reasons == {"not_taken": 1}
    assert witness.last.scored == ("Improve: Think of a city", "sample", "sample")


def test_the_embedded_model_is_watched_for_real(embedded: ChatOpenAI) -> None:
    handler, witness = shadow(embedded)
    with handler:
        answer = embedded.invoke(
            "What is the capital of France?", {"callbacks": [handler]}
        )
    assert witness.last.answer is not None
    assert witness.last.answer.text == answer.text
    assert (witness.last.n_requested, len(witness.last.samples)) == (3, 2)
    assert handler.counts.assessed == 1
