"""An agent whose uncertain answers a person decides on.

python examples/integrations/with_langchain_agent.py
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from snne_guard.langchain import embedded_model
from snne_guard_integrations.langchain_agent import UncertaintyMiddleware

agent = create_agent(
    embedded_model(temperature=0, seed=1, max_tokens=64, stop=["\n", "."]),
    system_prompt="Answer in one short sentence.",
    middleware=[UncertaintyMiddleware(threshold=0.7, on_uncertain="interrupt")],
    checkpointer=InMemorySaver(),
)

questions = {
    "1": "What is the chemical symbol for gold?",
    "2": "Who won the 1907 village chess cup of Ebnat?",
}
for thread, question in questions.items():
    config: Any = {"configurable": {"thread_id": thread}}
    state = agent.invoke({"messages": [{"role": "user", "content": question}]}, config)
    if "__interrupt__" in state:
        asked = state["__interrupt__"][0].value
        u = asked["uncertainty"]["uncertainty"]
        print(f"a person is asked, u={u:.2f}")
        # True lets the answer stand; a text replaces it.
        state = agent.invoke(Command(resume="Nobody knows."), config)
    print(f"{question}\n  {state['messages'][-1].text}")
