"""LangChain agents on the local chat server: scripts, tools, and every way to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool

from snne_guard_integrations.langchain_agent import UncertaintyMiddleware
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    Script,
    ToolCall,
    chat_openai,
)
from tests.support.guarding import is_sample, run_in_loop

__all__ = [
    "OWN",
    "SPREAD",
    "agent_on",
    "asked",
    "calling",
    "guarding",
    "last",
    "paper_of",
    "run",
    "saying",
    "turns",
]

OWN = "It opens at nine."
SPREAD = ("Nobody knows it.", "At noon, I think!", "Closed on Mondays.", "In spring.")
"""Samples that have no word in common with the answer or one another."""


def saying(*texts: str) -> Reply:
    return Reply(texts=texts)


def calling(*places: str, name: str = "opening_hours") -> Reply:
    """Call a tool; each place is one more sample."""
    return Reply(
        texts=[None],
        tool_calls=[[ToolCall(name=name, arguments={"place": p})] for p in places],
    )


def turns(
    *,
    answer: Reply | None = None,
    samples: Reply | None = None,
    call: Reply | None = None,
    call_samples: Reply | None = None,
) -> Script:
    """Call tools until one has answered, then answer; samples have their own replies.

    Args:
        answer: The final answer.
        samples: Samples of it.
        call: The turn that calls tools, None for an agent that answers at once.
        call_samples: Samples of that.
    """

    def script(request: Request) -> Reply:
        done = any(message.get("role") == "tool" for message in request.messages)
        if call is not None and not done:
            found = call_samples if is_sample(request) else call
        else:
            found = samples if is_sample(request) else answer
        return found or saying(OWN)

    return script


def paper_of(ran: list[str]) -> BaseTool:
    """Return a tool that notes what it was run with."""

    @tool
    def opening_hours(place: str) -> str:
        """Return the opening hours of a place."""
        ran.append(place)
        return f"The {place} opens at nine."

    return opening_hours


def guarding(**options: Any) -> UncertaintyMiddleware:
    return UncertaintyMiddleware(**{"method": "snne", **options})


def agent_on(
    server: ChatServer,
    *middleware: Any,
    tools: Sequence[Any] = (),
    model: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Return an agent on the server, guarded as told."""
    return create_agent(
        chat_openai(server, **(model or {})),
        tools=[*tools],
        middleware=middleware,
        **options,
    )


def asked(question: str = "When does the library open?") -> dict[str, Any]:
    return {"messages": [("user", question)]}


def run(
    agent: Any, way: str, value: Any = None, config: Any = None, **options: Any
) -> dict[str, Any]:
    """Run an agent in one of the two ways; return its state at the end."""
    value = asked() if value is None else value
    if way == "invoke":
        found = agent.invoke(value, config, **options)
    else:
        found = run_in_loop(agent.ainvoke(value, config, **options))
    assert isinstance(found, dict)
    return found


def last(state: dict[str, Any]) -> AIMessage:
    """Return the last message of a state."""
    message = state["messages"][-1]
    assert isinstance(message, AIMessage)
    return message
