"""A graph that stops to ask a person about uncertain answers, and goes on later.

python examples/integrations/with_langgraph.py
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from snne_guard import SNNEGuard
from snne_guard.langchain import embedded_model
from snne_guard_integrations.langgraph import route_on_uncertainty, uncertainty_node

model = embedded_model(temperature=0, seed=1, max_tokens=64, stop=["\n", "."])


def person(state: MessagesState) -> dict[str, Any]:
    answer = state["messages"][-1]
    u = answer.response_metadata["snne_guard"]["uncertainty"]
    reply = interrupt({"answer": answer.text, "uncertainty": u})
    return {"messages": [AIMessage(reply, id=answer.id)]}  # replaces the answer


graph = StateGraph(MessagesState)
graph.add_node("measure", uncertainty_node(SNNEGuard(model, threshold=0.7)))
graph.add_node("person", person)
graph.add_edge(START, "measure")
route = route_on_uncertainty(accept=END, uncertain="person")
graph.add_conditional_edges("measure", route)
graph.add_edge("person", END)
app = graph.compile(checkpointer=InMemorySaver())

system = SystemMessage("Answer in one short sentence.")
questions = {
    "1": "What is the chemical symbol for gold?",
    "2": "Who won the 1907 village chess cup of Ebnat?",
}
for thread, question in questions.items():
    config: Any = {"configurable": {"thread_id": thread}}
    state = app.invoke({"messages": [system, HumanMessage(question)]}, config)
    if "__interrupt__" in state:
        asked = state["__interrupt__"][0].value
        print(f"a person is asked, u={asked['uncertainty']:.2f}")
        # Resuming draws no sample again, not even in another process.
        state = app.invoke(Command(resume="Nobody knows."), config)
    print(f"{question}\n  {state['messages'][-1].text}")
