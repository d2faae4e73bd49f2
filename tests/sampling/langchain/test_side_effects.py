"""Calls of which no sample may be drawn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from snne_guard.sampling.langchain import has_side_effects
from tests.langchain.support import MODEL


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class Pay(BaseModel):
    """Pay."""

    amount: int


SCHEMA = {"type": "object", "properties": {}}
HARMLESS: dict[str, Any] = {
    "nothing": {},
    "no tools": {"tools": []},
    "LangChain's tools": {"tools": [add, Pay, len]},
    "OpenAI": {"tools": [{"type": "function", "function": {"name": "add"}}]},
    "OpenAI, custom": {"tools": [{"type": "custom", "name": "add"}]},
    "OpenAI, computer": {"tools": [{"type": "computer_use_preview"}]},
    "OpenAI, local shell": {"tools": [{"type": "local_shell"}]},
    "Anthropic": {"tools": [{"name": "add", "input_schema": SCHEMA}]},
    "Anthropic, bash": {"tools": [{"type": "bash_20250124", "name": "bash"}]},
    "Gemini": {"tools": [{"function_declarations": [{"name": "add"}]}]},
    "Bedrock": {"toolConfig": {"tools": [{"toolSpec": {"name": "add"}}]}},
    "a JSON schema": {"tools": [{"title": "add", **SCHEMA, "type": None}]},
    "an earlier response": {"previous_response_id": "resp_1"},
    "stored": {"store": True},
    "switched off": {"background": False, "mcp_servers": []},
}
ACTING: dict[str, Any] = {
    "search": {"tools": [{"type": "web_search"}]},
    "among others": {"tools": [add, {"type": "web_search_20250305", "name": "s"}]},
    "code": {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
    "images": {"tools": [{"type": "image_generation"}]},
    "MCP": {"tools": [{"type": "mcp", "server_label": "x", "server_url": "x"}]},
    "MCP, Anthropic": {"mcp_servers": [{"type": "url", "url": "x"}]},
    "Gemini, search": {"tools": [{"google_search": {}}]},
    "Gemini, code": {"tools": [{"code_execution": {}}]},
    "Bedrock, system": {"toolConfig": {"tools": [{"systemTool": {"name": "nova"}}]}},
    "nested": {"extra_body": {"tools": [{"type": "web_search"}]}},
    "a conversation": {"conversation": "conv_1"},
    "in the background": {"background": True},
    "by an option": {"web_search_options": {}},
}


@pytest.mark.parametrize("name", [*HARMLESS, *ACTING])
def test_calls_that_act_on_the_world_are_known(name: str) -> None:
    options = {**HARMLESS, **ACTING}[name]
    acts = name in ACTING
    assert has_side_effects(MODEL, options) is acts
    assert has_side_effects(MODEL.bind(**options).with_retry()) is acts
    both = MODEL.with_fallbacks([MODEL.bind(**options)])
    assert has_side_effects(both) is acts


def test_what_is_set_on_the_model_itself_counts() -> None:
    body = {"tools": [{"type": "web_search"}]}
    for extra, acts in ((body, True), ({"top_k": 5}, False)):
        model = ChatOpenAI(model="m", api_key=SecretStr("k"), extra_body=extra)
        assert has_side_effects(model) is acts


def test_googles_own_tool_types_are_read() -> None:
    types: Any = pytest.importorskip("google.genai.types")
    search = types.Tool(google_search=types.GoogleSearch())
    declared = types.Tool(function_declarations=[{"name": "add"}])
    assert has_side_effects(MODEL, {"tools": [search]})
    assert not has_side_effects(MODEL, {"tools": [declared]})
    assert not has_side_effects(MODEL, {"tools": [SimpleNamespace()]})
