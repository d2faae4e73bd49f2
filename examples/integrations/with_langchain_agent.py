"""An agent whose uncertain answers a person decides on.

python examples/integrations/with_langchain_agent.py
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url
from snne_guard_integrations.langchain_agent import UncertaintyMiddleware


@tool
def opening_hours(place: str) -> str:
    """Return the opening hours of a place in town."""
    return f"The {place} opens at 9 and closes at 17."


class CallsToolsFirst(ChatOpenAI):
    """The embedded model is too small to call tools, so its first turn is written here.

    With a model that calls tools by itself, leave this class out.
    """

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> ChatResult:
        question = str(messages[1].text)
        if "library" not in question or isinstance(messages[-1], ToolMessage):
            return super()._generate(messages, stop, run_manager, **kwargs)
        call = {"name": "opening_hours", "args": {"place": "library"}, "id": "call-1"}
        reply = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


settings: dict[str, Any] = {
    "model": MODEL_NAME,
    "base_url": embedded_server_url(),
    "api_key": "none-needed",
    "temperature": 0,
    "max_tokens": 32,
    "stop": ["\n", "."],
}
agent = create_agent(
    CallsToolsFirst(**settings),
    tools=[opening_hours],
    system_prompt="Answer in one short sentence.",
    middleware=[UncertaintyMiddleware(threshold=0.6, on_uncertain="interrupt")],
    checkpointer=InMemorySaver(),
)

questions = {
    "1": "What is the chemical symbol for gold?",
    "2": "When does the library open?",
}
for thread, question in questions.items():
    config: Any = {"configurable": {"thread_id": thread}}
    state = agent.invoke({"messages": [{"role": "user", "content": question}]}, config)
    if "__interrupt__" in state:
        print("a person is asked")
        reply = {"type": "respond", "message": "At nine."}
        state = agent.invoke(Command(resume={"decisions": [reply]}), config)
    for message in state["messages"]:
        print(f"{message.type}: {message.content or message.tool_calls[0]['name']}")
    for record in state["uncertainty"]:
        print(f"  {record['kind']}: {record['decision']}, u={record['uncertainty']}")
