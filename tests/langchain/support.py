"""Guards on a real ChatOpenAI that talks to a scripted server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Coroutine, Mapping, Sequence
from contextvars import copy_context
from functools import cache, reduce
from operator import add
from typing import Any, TypeVar

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from snne_guard import SNNEGuard
from tests.support.openai_server import Answer, Asked, Server

__all__ = [
    "CALLS",
    "MODEL",
    "REFUSAL",
    "WHOLE",
    "ask",
    "calling",
    "chat_openai",
    "guarded",
    "in_loop",
    "metadata_of",
    "obedient",
]

JSON = Mapping[str, Any]
T = TypeVar("T")
CALLS = ("invoke", "ainvoke", "stream", "astream", "batch", "abatch")
"""Every way to call a chat model."""
WHOLE = ("invoke", "ainvoke")
"""The ways of a thread and of a task, where the others add nothing."""
MODEL = FakeListChatModel(responses=["Paris"])
"""A model that answers "Paris" to everything, without a server."""
REFUSAL = "I am not certain enough of the answer to give one."
"""The guard's own refusal."""


def chat_openai(server: Server, **options: Any) -> ChatOpenAI:
    """Return the real client, pointed at the server; it does not retry."""
    settings: dict[str, Any] = {
        "model": "test-model",
        "api_key": SecretStr("test"),
        "base_url": server.url,
        "max_retries": 0,
        "timeout": 60,
        **options,
    }
    return ChatOpenAI(**settings)


def guarded(server: Server, **options: Any) -> SNNEGuard:
    """Return a guard on that client."""
    return SNNEGuard(chat_openai(server), **options)


def metadata_of(message: Any) -> dict[str, Any]:
    """Return what the guard put into a message."""
    metadata: dict[str, Any] = message.response_metadata["snne_guard"]
    return metadata


def ask(
    model: Runnable[Any, Any],
    way: str,
    config: Any = None,
    *,
    messages: Any = "Where?",
) -> AIMessage:
    """Call a chat model in one of the ways and return the whole message."""
    if way.startswith("a"):
        return in_loop(_aask(model, way, config, messages))
    if way == "stream":
        return _joined(list(model.stream(messages, config)))
    if way == "batch":
        return _message(model.batch([messages], config)[0])
    return _message(model.invoke(messages, config))


async def _aask(
    model: Runnable[Any, Any], way: str, config: Any, messages: Any
) -> AIMessage:
    if way == "astream":
        return _joined([chunk async for chunk in model.astream(messages, config)])
    if way == "abatch":
        return _message((await model.abatch([messages], config))[0])
    return _message(await model.ainvoke(messages, config))


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run something in the loop that all calls share, as clients keep connections."""
    return _loop().run(work, context=copy_context())


@cache
def _loop() -> asyncio.Runner:
    return asyncio.Runner()


def _joined(chunks: list[Any]) -> AIMessage:
    assert [chunk.chunk_position for chunk in chunks][-1] == "last"
    return _message(reduce(add, chunks))


def _message(message: Any) -> AIMessage:
    assert isinstance(message, AIMessage)
    return message


def calling(*arguments: Any, name: str = "transfer") -> Answer:
    """Return replies that call a tool, one choice with each of the arguments.

    Arguments that are a text go into the reply as they are, JSON or not.
    """
    choices = []
    for index, given in enumerate(arguments):
        text = given if isinstance(given, str) else json.dumps(given)
        function = {"name": name, "arguments": text}
        call = {"id": f"call_{index}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choices.append(
            {"index": index, "message": message, "finish_reason": "tool_calls"}
        )
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "test-model"}
    usage = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}
    return Answer(body={**body, "choices": choices, "usage": usage})


def obedient(asked: Asked) -> Answer:
    """Call a tool where one fits, fill a schema where one is given, else say yes."""
    function, model = _wanted_function(asked), asked.body["model"]
    prompt = json.dumps(asked.body.get("messages", []), ensure_ascii=False)
    if function is not None:
        arguments = _filled(function.get("parameters") or {}, prompt)
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": function["name"], "arguments": json.dumps(arguments)},
        }
        return Answer(texts=[None], message={"tool_calls": [call]}, finish="tool_calls")
    schema = _wanted_schema(asked, prompt)
    if schema is not None:
        return Answer(texts=[json.dumps(_filled(schema, prompt))], model=model)
    return Answer(texts=["Yes, and gladly."], model=model)


def _wanted_function(asked: Asked) -> dict[str, Any] | None:
    tools: Sequence[JSON] = asked.body.get("tools") or []
    answered = asked.body["messages"][-1]["role"] == "tool"
    choice = asked.body.get("tool_choice")
    if not tools or answered or choice == "none":
        return None
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    forced = choice["function"]["name"] if isinstance(choice, dict) else None
    wanted: dict[str, Any] = functions[forced or next(iter(functions))]
    return wanted


def _wanted_schema(asked: Asked, prompt: str) -> JSON | None:
    wanted = asked.body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema: JSON = wanted["json_schema"]["schema"]
        return schema
    if wanted.get("type") == "json_object":
        names = re.findall(r"'(\w+)'", prompt)
        return {"properties": {name: {"type": "string"} for name in names}}
    return None


def _filled(schema: JSON, prompt: str) -> dict[str, Any]:
    properties: Mapping[str, JSON] = schema.get("properties") or {}
    return {name: _value(part, prompt) for name, part in properties.items()}


def _value(schema: JSON, prompt: str) -> Any:
    if schema.get("type") == "integer":
        number = re.search(r"\((-?\d+)\)", prompt)
        return int(number[1]) if number else 0
    quoted = re.search(r"'([^']+)'", prompt)
    return quoted[1] if quoted else "something"
