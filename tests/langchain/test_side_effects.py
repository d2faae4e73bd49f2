"""Calls of which no sample may be drawn."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from snne_guard.engine import may_act
from snne_guard.langchain.wrappers import ModelTree
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
    "Anthropic": {"tools": [{"name": "add", "input_schema": SCHEMA}]},
    "Anthropic, bash": {"tools": [{"type": "bash_20250124", "name": "bash"}]},
    "Gemini": {"tools": [{"function_declarations": [{"name": "add"}]}]},
    "Bedrock": {"toolConfig": {"tools": [{"toolSpec": {"name": "add"}}]}},
    "a JSON schema": {"tools": [{"title": "add", **SCHEMA, "type": None}]},
    "stored": {"store": True, "previous_response_id": "resp_1"},
    "what is said": {"extra_body": {"documents": [{"web_search": "x"}]}},
    "switched off": {"background": False, "mcp_servers": []},
}
ACTING: dict[str, Any] = {
    "search": {"tools": [{"type": "web_search"}]},
    "among others": {"tools": [add, {"type": "web_search_20250305", "name": "s"}]},
    "code": {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
    "MCP, Anthropic": {"mcp_servers": [{"type": "url", "url": "x"}]},
    "Gemini, search": {"tools": [{"google_search": {}}]},
    "Bedrock, system": {"toolConfig": {"tools": [{"systemTool": {"name": "nova"}}]}},
    "nested": {"extra_body": {"tools": [{"type": "web_search"}]}},
    "a conversation": {"conversation": "conv_1"},
    "a stored prompt": {"prompt": {"id": "pmpt_1"}},
    "nested anywhere": {"extra_body": {"features": {"web_search": True}}},
    "in a list": {"extra_body": {"routes": [{"tools": [{"type": "web_search"}]}]}},
    "a preset": {"extra_body": {"preset": "my-preset"}},
    "a preset, by name": {"model": "@preset/my-preset"},
    "LiteLLM, a stored prompt": {"extra_body": {"prompt_id": "p1"}},
    "by an option": {"web_search_options": {}},
    "OpenRouter, plugins": {"extra_body": {"plugins": [{"id": "web"}]}},
    "OpenRouter, by name": {"model": "openai/gpt-4o:online"},
    "OpenAI, by name": {"model": "gpt-4o-search-preview"},
    "Qwen": {"extra_body": {"enable_search": True}},
    "xAI": {"extra_body": {"search_parameters": {"mode": "auto"}}},
}


def has_side_effects(model: Any, options: dict[str, Any] | None = None) -> bool:
    return any(map(may_act, ModelTree(model, options).levels))


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


def test_tools_of_googles_own_types_may_act() -> None:
    types: Any = pytest.importorskip("google.genai.types")
    search = types.Tool(google_search=types.GoogleSearch())
    assert has_side_effects(MODEL, {"tools": [search]})
