"""Parts of a stream, put together to an answer and made from one."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from snne_guard import SamplingError
from snne_guard_integrations._openai.parts import Whole, ends, parts_of
from snne_guard_integrations._openai.requests import Post
from snne_guard_integrations.openai import assessment
from tests.support.chat_server import (
    ChatServer,
    Reply,
    ToolCall,
    always,
)
from tests.support.guarded_openai import REQUEST, guarding
from tests.support.openai_clients import BOTH, client

both = pytest.mark.parametrize("way", BOTH)


def post(**body: Any) -> Post:
    return Post(api="chat", path="/", body=body, given={"cast_to": ChatCompletion})


def test_a_whole_answer_and_its_parts_are_the_same() -> None:
    calls = [
        ToolCall(name="f", arguments={"a": "b c"}),
        ToolCall(name="g", arguments="{}"),
    ]
    with (
        ChatServer([Reply(texts=("Wait.",), tool_calls=[calls])]) as server,
        client(server) as own,
    ):
        whole = own.chat.completions.create(**REQUEST)
        streamed = Whole()
        for chunk in own.chat.completions.create(**REQUEST, stream=True):
            streamed.add(chunk)
    made = Whole()
    for chunk in parts_of(post(stream_options={"include_usage": True}), whole):
        made.add(chunk)
    fields: dict[str, Any] = whole.to_dict()
    for found in (made.answer, streamed.answer):
        message = found["choices"][0]["message"]
        expected = fields["choices"][0]["message"]
        assert message["content"] == expected["content"]
        functions = [call["function"] for call in message["tool_calls"]]
        assert functions == [call["function"] for call in expected["tool_calls"]]
        assert found["choices"][0]["finish_reason"] == "tool_calls"
    assert made.answer["usage"]["total_tokens"] == fields["usage"]["total_tokens"]


def test_unusual_chunks_are_read_as_they_are_meant() -> None:
    def chunk(**fields: Any) -> Any:
        from openai.types.chat import ChatCompletionChunk

        return ChatCompletionChunk.construct(**fields)

    def said(finish: str | None = None, **delta: Any) -> Any:
        return chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])

    # Azure begins with a chunk about the prompt, which is not the end.
    first = chunk(choices=[], prompt_filter_results=[])
    assert not ends(first)
    assert ends(chunk(choices=[], usage={"total_tokens": 3}))
    assert not ends(object())
    whole = Whole()
    parts = [
        first,
        said(content=[{"type": "text", "text": "Par"}]),
        said(content=[{"type": "text", "text": "is"}], function_call={"name": "f"}),
        said("stop", function_call={"arguments": "{"}),
        said("stop", function_call={"arguments": "}"}),
        chunk(choices=[{"index": 1, "delta": {"content": "no"}}, {"index": 0}]),
    ]
    for part in parts:
        whole.add(part)
    choice = whole.answer["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    texts = [part["text"] for part in choice["message"]["content"]]
    assert texts == ["Par", "is"]


@both
def test_an_empty_stream_is_an_empty_answer(way: str) -> None:
    head = {"Content-Type": "text/event-stream"}
    empty = Reply(body="data: [DONE]\n\n", headers=head)
    with ChatServer(lambda r: empty if r.stream else always("x")(r)) as server:
        with guarding(server, way, threshold=0.4) as ask:
            chunks, stream = ask.stream()
            assert (chunks, assessment(stream)["reasons"]) == ([], ["answer_empty"])
        with (
            guarding(server, way, threshold=0.4, on_error="raise") as ask,
            pytest.raises(SamplingError),
        ):
            ask.stream()
