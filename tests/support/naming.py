"""Servers that name a city in the form that they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, Field

from tests.support import provider_protocols as protocols
from tests.support.chat_protocol import Usage
from tests.support.chat_server import ChatServer, Reply, Request, Script, ToolCall
from tests.support.chat_server import chat_openai as _chat_openai
from tests.support.provider_server import ProviderServer

__all__ = ["SCHEMAS", "City", "CityDict", "Maker", "chat_anthropic", "giving", "makers"]


class City(BaseModel):
    """A city."""

    name: str = Field(min_length=2)


class CityDict(TypedDict):
    """A city."""

    name: str


SCHEMAS: dict[str, Any] = {
    "pydantic": City,
    "typed_dict": CityDict,
    "dict": {
        "title": "City",
        "description": "A city.",
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}

Maker = tuple[Callable[[Script], ChatServer], Callable[[ChatServer], BaseChatModel]]


def giving(name: str) -> Script:
    """Give a city in the form that is asked for, and in no other."""

    def script(request: Request) -> Reply:
        if request.body.get("tools"):
            call = ToolCall(name="City", arguments={"name": name})
            return Reply(texts=[None] * request.n, tool_calls=[[call]] * request.n)
        if request.body.get("response_format"):
            return Reply(texts=[f'{{"name": "{name}"}}'] * request.n)
        return Reply(texts=[name] * request.n)

    return script


def chat_anthropic(server: ChatServer, **options: Any) -> BaseChatModel:
    """Return the real client, pointed at a server that speaks its language."""
    kind: Any = pytest.importorskip("langchain_anthropic").ChatAnthropic
    url = server.url.removesuffix("/v1")
    settings = {"model": "test-model", "api_key": "test", "max_retries": 0}
    made = kind(base_url=url, **settings, **options)
    assert isinstance(made, BaseChatModel)
    return made


def _write(request: Request, reply: Reply, usage: Usage) -> Any:
    body: Any = protocols.ANTHROPIC.write(request, reply, usage)
    if reply.tool_calls:
        body["content"] = [
            {
                "type": "tool_use",
                "id": f"toolu_{place}",
                "name": call.name,
                "input": call.arguments,
            }
            for place, call in enumerate(reply.tool_calls[0])
        ]
    return body


ANTHROPIC = replace(protocols.ANTHROPIC, write=_write)
"""Anthropic's language, with calls of tools."""


def makers() -> dict[str, Maker]:
    """Return how to make a server and a model on it, by provider."""
    return {
        "anthropic": (
            lambda script: ProviderServer(ANTHROPIC, script),
            chat_anthropic,
        ),
        "openai": (ChatServer, _chat_openai),
    }
