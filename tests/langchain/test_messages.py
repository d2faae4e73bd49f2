"""The messages that a guard delivers, apart from any call."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from snne_guard.langchain import messages
from snne_guard.langchain.messages import (
    as_chunk,
    delivered,
    is_refusal,
    refusal_message,
    stream_chunk,
    usage_of,
)
from snne_guard.types import Assessment, Cost, Sample

REFUSED = Assessment(id="a1", answer=Sample(text="Paris"), decision="refuse")


def test_an_answer_is_copied_and_never_changed() -> None:
    answer = AIMessage("Paris", response_metadata={"model_name": "m"})
    message = delivered(answer, REFUSED.to_metadata())
    assert answer.response_metadata == {"model_name": "m"}
    assert message.response_metadata["snne_guard"]["id"] == "a1"
    assert message.response_metadata["model_name"] == "m"


def test_what_is_no_ai_message_is_delivered_as_one() -> None:
    message = delivered(HumanMessage("Paris", id="h1"), REFUSED.to_metadata())
    assert isinstance(message, AIMessage)
    assert (message.content, message.id) == ("Paris", "h1")


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("provider", ["openai", "anthropic", None])
def test_a_refusal_reads_as_text_and_as_a_refusal_where_that_is_known(
    provider: str | None, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_core_knows_refusals", lambda: known)
    answer = AIMessage("Paris", id="r1", response_metadata={"model_provider": provider})
    message = refusal_message("No.", answer=answer, assessment=REFUSED)
    assert message.text == "No."
    assert is_refusal(message)
    assert message.additional_kwargs["refusal"] == "No."
    assert message.response_metadata["model_provider"] == provider
    blocks: list[Any] = message.content_blocks
    kinds = [block["type"] for block in blocks]
    assert kinds == (["text", "refusal"] if known else ["text"])
    assert "Paris" not in str(message)


def test_a_refusal_keeps_what_the_answer_cost_but_nothing_else_of_it() -> None:
    answer = AIMessage(
        "Paris",
        additional_kwargs={"reasoning_content": "France, so Paris"},
        response_metadata={"logprobs": {"content": [{"token": "Paris"}]}},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    )
    message = refusal_message("No.", answer=answer, assessment=REFUSED)
    assert "Paris" not in f"{message!r}"
    assert message.usage_metadata == answer.usage_metadata


def test_tool_calls_survive_as_the_only_chunk_of_a_stream() -> None:
    call = {"name": "f", "args": {"a": "é"}, "id": "c1", "type": "tool_call"}
    chunk = as_chunk(AIMessage("", tool_calls=[call]))
    assert chunk.tool_calls == [call]
    assert chunk.chunk_position == "last"


def test_a_streamed_chunk_is_never_the_last_and_shows_no_log_probabilities() -> None:
    chunk = AIMessageChunk(
        content="x",
        response_metadata={"logprobs": {"content": []}},
        chunk_position="last",
    )
    shown = stream_chunk(chunk, keep_logprobs=False)
    assert (shown.chunk_position, shown.response_metadata) == (None, {})
    kept = stream_chunk(chunk, keep_logprobs=True)
    assert (kept.chunk_position, kept.response_metadata) == (
        None,
        chunk.response_metadata,
    )
    assert chunk.chunk_position == "last"


def test_a_cost_is_told_as_langchain_counts_usage() -> None:
    assert usage_of(Cost(calls=1)) is None
    assert usage_of(Cost(prompt_tokens=3, completion_tokens=2, cached_tokens=1)) == {
        "input_tokens": 3,
        "output_tokens": 2,
        "total_tokens": 5,
        "input_token_details": {"cache_read": 1},
    }


def test_a_refusal_of_a_guarded_fallback_is_still_a_refusal() -> None:
    inner = refusal_message("No.", answer=AIMessage("x"), assessment=REFUSED)
    outer = Assessment(id="a2", answer=None, decision="fallback").to_metadata()
    message = delivered(inner, outer)
    record = message.response_metadata["snne_guard"]
    assert (record["id"], record["fallback"]["id"]) == ("a2", "a1")
    assert is_refusal(message)
    assert not is_refusal(delivered(AIMessage("x"), outer))


def test_calls_that_could_not_be_read_survive_a_stream_too() -> None:
    call = {"name": "f", "args": "{broken", "id": "c1", "error": None}
    chunk = as_chunk(
        AIMessage("", invalid_tool_calls=[{**call, "type": "invalid_tool_call"}])
    )
    (part,) = chunk.tool_call_chunks
    assert (part["name"], part["args"]) == ("f", "{broken")
