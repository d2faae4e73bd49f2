"""A script for the chat server: a model that calls tools and keeps to schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.chat_server import Reply, Request, ToolCall

__all__ = ["obedient"]

JSON = Mapping[str, Any]


def obedient(request: Request) -> Reply:
    """Call a tool where one fits, fill a schema where one is given, else say yes."""
    call = _wanted_call(request)
    if call is not None:
        return Reply(tool_calls=([call],))
    schema = _wanted_schema(request)
    if schema is not None:
        return Reply(texts=(json.dumps(_filled(schema, request.prompt)),))
    return Reply(texts=("Yes, and gladly.",))


def _wanted_call(request: Request) -> ToolCall | None:
    tools: Sequence[JSON] = request.body.get("tools") or []
    answered = bool(request.messages) and request.messages[-1]["role"] == "tool"
    if not tools or answered or request.body.get("tool_choice") == "none":
        return None
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    choice = request.body.get("tool_choice")
    forced = choice["function"]["name"] if isinstance(choice, dict) else None
    function = functions[forced or next(iter(functions))]
    arguments = _filled(function.get("parameters") or {}, request.prompt)
    return ToolCall(name=function["name"], arguments=arguments)


def _wanted_schema(request: Request) -> JSON | None:
    wanted = request.body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema: JSON = wanted["json_schema"]["schema"]
        return schema
    if wanted.get("type") == "json_object":
        names = re.findall(r"'(\w+)'", request.prompt)
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
