"""A graph that asks a person about uncertain answers, stops, and goes on later.

python examples/integrations/with_langgraph.py
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from snne_guard import SNNEGuard
from snne_guard.langchain.embedded import embedded_model
from snne_guard_integrations.langgraph import (
    UncertaintyState,
    route_on_uncertainty,
    uncertainty_node,
)

model = embedded_model(temperature=0, seed=1, max_tokens=32, stop=["\n", "."])
guard = SNNEGuard(model, threshold=0.5)


def answer(state: UncertaintyState) -> dict[str, Any]:
    prompt = [SystemMessage("Answer in one short sentence."), *state["messages"]]
    return {"messages": [model.invoke(prompt)]}


def person(state: UncertaintyState) -> dict[str, Any]:
    drawn = state["messages"][-1]
    said = interrupt({"answer": drawn.text, "measured": state["uncertainty"][-1]})
    return {"messages": [drawn.model_copy(update={"content": said})]}


graph = StateGraph(UncertaintyState)
graph.add_node("answer", answer)
graph.add_node("measure", uncertainty_node(guard))
graph.add_node("person", person)
graph.add_edge(START, "answer")
graph.add_edge("answer", "measure")
route = route_on_uncertainty(accept=END, uncertain="person")
graph.add_conditional_edges("measure", route)
graph.add_edge("person", END)
app = graph.compile(checkpointer=InMemorySaver())

questions = {
    "1": "What is the chemical symbol for gold?",
    "2": "Who won the 1907 village chess cup of Ebnat?",
}
for thread, question in questions.items():
    config: Any = {"configurable": {"thread_id": thread}}
    state = app.invoke({"messages": [HumanMessage(question)]}, config)
    if "__interrupt__" in state:
        asked = state["__interrupt__"][0].value
        print(f"a person is asked, u={asked['measured']['uncertainty']}")
        # No sample is drawn again, also not by another process.
        state = app.invoke(Command(resume="Nobody knows."), config)
    for message in state["messages"]:
        print(f"{message.type}: {message.content}")
