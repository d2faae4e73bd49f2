"""An agent with a tool: its calls pass, its answer is held against what came back.

python examples/agent.py
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from snne_guard import SNNEGuard
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url

runs: list[str] = []


@tool
def opening_hours(place: str) -> str:
    """Return the opening hours of a place in town."""
    runs.append(place)
    return f"The {place} opens at 9 and closes at 17."


class CallsToolFirst(ChatOpenAI):
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
        if any(isinstance(message, ToolMessage) for message in messages):
            return super()._generate(messages, stop, run_manager, **kwargs)
        call = {"name": "opening_hours", "args": {"place": "library"}, "id": "call-1"}
        reply = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


settings: dict[str, Any] = {
    "model": MODEL_NAME,
    "base_url": embedded_server_url(),
    "api_key": "none-needed",
    "temperature": 0,
    "max_tokens": 64,
    "stop": ["\n", "."],
}
agent = create_agent(
    model=SNNEGuard(
        CallsToolFirst(**settings),
        threshold=0.5,
        context="tool_messages",
        min_grounded=0.3,
    ),
    tools=[opening_hours],
    system_prompt="Answer in one short sentence.",
)

result = agent.invoke({"messages": [HumanMessage("When does the library open?")]})
for message in result["messages"]:
    print(f"{message.type}: {message.text or message.tool_calls[0]['name']}")
    record = message.response_metadata.get("snne_guard")
    if record is not None:
        print(f"  decision {record['decision']}, reasons {record['reasons']}")
        print(f"  grounded {record['grounded']}")
print("tool runs:", len(runs))
