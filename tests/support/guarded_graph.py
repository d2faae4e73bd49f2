"""A graph that asks a person about uncertain answers, also as a process of its own.

    python -m tests.support.guarded_graph URL FILE REPLY

goes on in the thread that waits in ``FILE``, and prints the last message.
"""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import SecretStr

from snne_guard import SNNEGuard
from snne_guard_integrations.langgraph import (
    UncertaintyState,
    route_on_uncertainty,
    uncertainty_node,
)

__all__ = ["THREAD", "graph_of"]

THREAD: Any = {"configurable": {"thread_id": "1"}}


def person(state: UncertaintyState) -> dict[str, Any]:
    """Ask a person, who may give the answer in the model's place."""
    answer = state["messages"][-1]
    said = interrupt({"answer": answer.text, "u": state["uncertainty"][-1]})
    return {"messages": [answer.model_copy(update={"content": said})]}


def graph_of(guard: SNNEGuard, checkpointer: Any, *, answers: bool = False) -> Any:
    """Return the graph.

    Args:
        guard: The guard; its model answers.
        checkpointer: Where its state is kept.
        answers: Whether the guard answers too, instead of a node before it.
    """

    def answer(state: UncertaintyState) -> dict[str, Any]:
        return {"messages": [guard.model.invoke(state["messages"])]}

    graph = StateGraph(UncertaintyState)
    graph.add_node("measure", uncertainty_node(guard))
    graph.add_node("person", person)
    if answers:
        graph.add_edge(START, "measure")
    else:
        graph.add_node("answer", answer)
        graph.add_edge(START, "answer")
        graph.add_edge("answer", "measure")
    route = route_on_uncertainty(accept=END, uncertain="person")
    graph.add_conditional_edges("measure", route)
    graph.add_edge("person", END)
    return graph.compile(checkpointer=checkpointer)


def main() -> None:
    """Go on after an interrupt, in another process."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    url, file, reply = sys.argv[1:]
    model = ChatOpenAI(model="test-model", api_key=SecretStr("test"), base_url=url)
    guard = SNNEGuard(model, method="snne", threshold=0.4)
    with sqlite3.connect(file, check_same_thread=False) as connection:
        graph = graph_of(guard, SqliteSaver(connection))
        state = graph.invoke(Command(resume=reply), THREAD)
    connection.close()
    print(state["messages"][-1].content)  # noqa: T201 - the parent process reads it


if __name__ == "__main__":
    main()
