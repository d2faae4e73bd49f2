"""A guarded stream over models that give their answer whole all the same."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import ConfigurableField

from snne_guard import GuardedChatModel, SNNEGuard
from tests.support.chat_server import (
    ChatServer,
    Reply,
    ToolCall,
    Usage,
    always,
    chat_openai,
)
from tests.support.guarding import ask, record, split

STREAMS = ("stream", "astream")
MODELS = (SNNEGuard, GuardedChatModel)


@pytest.mark.parametrize(
    "options", [{"disable_streaming": True}, {"streaming": False}], ids=str
)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("way", STREAMS)
def test_the_answer_comes_in_one_piece_and_is_assessed(
    way: str, kind: Any, options: dict[str, bool]
) -> None:
    script = split("Paris", always("Paris", usage=Usage(prompt=7, completion=1)))
    with ChatServer(script) as server:
        guard = SNNEGuard(chat_openai(server, **options), threshold=0.4)
        message = ask(guard if kind is SNNEGuard else kind(guard), "x", way)
    assert isinstance(message, AIMessageChunk)
    assert message.content == "Paris"
    assert (record(message)["decision"], record(message)["n_used"]) == ("accept", 5)
    assert "logprobs" not in message.response_metadata


@pytest.mark.parametrize("way", STREAMS)
def test_tool_calls_of_it_survive(way: str) -> None:
    call = ToolCall(name="weather", arguments={"city": "Metz"})
    with ChatServer(lambda _request: Reply(texts=(None,), tool_calls=((call,),))) as it:
        guard = SNNEGuard(chat_openai(it, disable_streaming=True))
        message = ask(guard, "x", way)
    assert [called["args"] for called in message.tool_calls] == [{"city": "Metz"}]
    assert record(message)["reasons"] == ["no_threshold", "tool_calls"]


@pytest.mark.parametrize("way", STREAMS)
def test_usage_is_counted_once(way: str) -> None:
    with ChatServer(always("Paris", usage=Usage(prompt=7, completion=1))) as server:
        bare = chat_openai(server, disable_streaming=True)
        message = ask(SNNEGuard(bare), "x", way)
    assert message.usage_metadata is not None
    assert message.usage_metadata["total_tokens"] == 8


@pytest.mark.parametrize("way", STREAMS)
def test_a_model_whose_settings_the_call_chooses(way: str) -> None:
    # LangChain makes such a model anew, with every setting given, streaming too.
    chosen: Any = {"configurable": {"limit": 9}}
    with ChatServer(always("Paris")) as server:
        model = chat_openai(server).configurable_fields(
            max_tokens=ConfigurableField(id="limit")
        )
        assert ask(SNNEGuard(model), "x", way, chosen).content == "Paris"
