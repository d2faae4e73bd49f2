"""LangChain messages, in the shapes of real providers, as samples and costs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)

from snne_guard.sampling.langchain.messages import (
    cost_of,
    question_of,
    sample_of,
    without_logprobs,
)
from snne_guard.types import Cost, Sample


def tokens(*pairs: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": value} for token, value in pairs]


PARIS = tokens(("Pa", -0.5), ("ris", -0.25))

SHAPES: dict[str, tuple[AIMessage, Sample]] = {
    "OpenAI": (
        AIMessage(
            "Paris",
            response_metadata={
                "model_name": "gpt-5-mini-2026",
                "finish_reason": "stop",
                "id": "chatcmpl-1",
                "logprobs": {"content": PARIS, "refusal": None},
            },
        ),
        Sample(
            text="Paris",
            finish_reason="stop",
            model="gpt-5-mini-2026",
            response_id="chatcmpl-1",
            token_logprobs=(-0.5, -0.25),
            tokens=("Pa", "ris"),
        ),
    ),
    "OpenAI, Responses": (
        AIMessage(
            [
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "text", "text": "Paris", "annotations": [{"type": "url"}]},
            ],
            response_metadata={
                "id": "resp_1",
                "model": "gpt-5",
                "model_name": "gpt-5",
                "status": "completed",
                "incomplete_details": None,
            },
        ),
        Sample(
            text="Paris", finish_reason="completed", model="gpt-5", response_id="resp_1"
        ),
    ),
    "OpenAI, Responses, cut off": (
        AIMessage(
            "Par",
            response_metadata={
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
        ),
        Sample(text="Par", finish_reason="max_output_tokens", truncated=True),
    ),
    "OpenAI, refusal beside the text": (
        AIMessage(
            "",
            additional_kwargs={"refusal": "I cannot help with that."},
            response_metadata={"finish_reason": "stop"},
        ),
        Sample(text="", finish_reason="stop", refused=True),
    ),
    "OpenAI, refusal in a v1 block": (
        AIMessage(
            [{"type": "non_standard", "value": {"type": "refusal", "refusal": "No."}}],
            response_metadata={"status": "completed"},
        ),
        Sample(text="", finish_reason="completed", refused=True),
    ),
    "OpenAI, a call": (
        AIMessage(
            "",
            tool_calls=[{"name": "pay", "args": {"to": "A", "n": 5}, "id": "call_1"}],
            response_metadata={"finish_reason": "tool_calls"},
        ),
        Sample(
            text="",
            finish_reason="tool_calls",
            tool_calls='[{"args":{"n":5,"to":"A"},"name":"pay"}]',
        ),
    ),
    "OpenAI, a call with broken JSON": (
        AIMessage(
            "",
            invalid_tool_calls=[
                {"name": "pay", "args": '{"n": ', "id": "1", "error": None}
            ],
            response_metadata={"finish_reason": "length"},
        ),
        Sample(
            text="",
            finish_reason="length",
            truncated=True,
            tool_calls='[{"args":"{\\"n\\": ","name":"pay"}]',
        ),
    ),
    "OpenAI, spoken": (
        AIMessage(
            "",
            additional_kwargs={"audio": {"data": "AAAA", "transcript": "Paris"}},
            response_metadata={"finish_reason": "stop"},
        ),
        Sample(text="", finish_reason="stop", unreadable=True),
    ),
    "Azure, filtered": (
        AIMessage("", response_metadata={"finish_reason": "content_filter"}),
        Sample(text="", finish_reason="content_filter", refused=True),
    ),
    "Anthropic": (
        AIMessage(
            [
                {"type": "thinking", "thinking": "France?", "signature": "x"},
                {"type": "text", "text": "Paris", "citations": []},
            ],
            response_metadata={
                "id": "msg_1",
                "model": "claude-4",
                "model_name": "claude-4",
                "stop_reason": "end_turn",
                "stop_sequence": None,
            },
        ),
        Sample(
            text="Paris",
            finish_reason="end_turn",
            model="claude-4",
            response_id="msg_1",
        ),
    ),
    "Anthropic, a call": (
        AIMessage(
            [{"type": "tool_use", "id": "t", "name": "pay", "input": {"n": 5}}],
            tool_calls=[{"name": "pay", "args": {"n": 5}, "id": "t"}],
            response_metadata={"stop_reason": "tool_use"},
        ),
        Sample(
            text="",
            finish_reason="tool_use",
            tool_calls='[{"args":{"n":5},"name":"pay"}]',
        ),
    ),
    "Anthropic, refusal": (
        AIMessage("No", response_metadata={"stop_reason": "refusal"}),
        Sample(text="No", finish_reason="refusal", refused=True),
    ),
    "Anthropic, paused": (
        AIMessage("Let me", response_metadata={"stop_reason": "pause_turn"}),
        Sample(text="Let me", finish_reason="pause_turn", truncated=True),
    ),
    "Gemini": (
        AIMessage(
            "Paris",
            response_metadata={"finish_reason": "STOP", "model_name": "gemini-3"},
        ),
        Sample(text="Paris", finish_reason="STOP", model="gemini-3"),
    ),
    "Gemini, blocked": (
        AIMessage("", response_metadata={"finish_reason": "SAFETY"}),
        Sample(text="", finish_reason="SAFETY", refused=True),
    ),
    "Gemini, an odd end": (
        AIMessage("", response_metadata={"finish_reason": "MALFORMED_FUNCTION_CALL"}),
        Sample(
            text="",
            finish_reason="MALFORMED_FUNCTION_CALL",
            truncated=True,
            unreadable=True,
        ),
    ),
    "Bedrock, guarded": (
        AIMessage("Sorry", response_metadata={"stopReason": "guardrail_intervened"}),
        Sample(text="Sorry", finish_reason="guardrail_intervened", refused=True),
    ),
    "Ollama": (
        AIMessage(
            "Paris",
            response_metadata={
                "model": "llama3",
                "done_reason": "stop",
                "logprobs": PARIS,
            },
        ),
        Sample(
            text="Paris",
            finish_reason="stop",
            model="llama3",
            token_logprobs=(-0.5, -0.25),
            tokens=("Pa", "ris"),
        ),
    ),
    "Together": (
        AIMessage(
            "Paris",
            response_metadata={
                "finish_reason": "eos",
                "logprobs": {"tokens": ["Pa", "ris"], "token_logprobs": [-0.5, -0.25]},
            },
        ),
        Sample(
            text="Paris",
            finish_reason="eos",
            token_logprobs=(-0.5, -0.25),
            tokens=("Pa", "ris"),
        ),
    ),
    "DeepSeek": (
        AIMessage(
            "Paris",
            additional_kwargs={"reasoning_content": "France?"},
            response_metadata={"finish_reason": "stop"},
        ),
        Sample(text="Paris", finish_reason="stop"),
    ),
    "a function call of old": (
        AIMessage(
            "",
            additional_kwargs={"function_call": {"name": "pay", "arguments": "{}"}},
            response_metadata={"finish_reason": "function_call"},
        ),
        Sample(
            text="",
            finish_reason="function_call",
            tool_calls='[{"args":{},"name":"pay"}]',
        ),
    ),
    "an image": (
        AIMessage(
            [{"type": "text", "text": "Look:"}, {"type": "image", "base64": "AAAA"}],
            response_metadata={"finish_reason": "STOP"},
        ),
        Sample(text="Look:", finish_reason="STOP", unreadable=True),
    ),
    "a fake model": (AIMessage("Paris"), Sample(text="Paris")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_messages_of_real_providers(shape: str) -> None:
    message, expected = SHAPES[shape]
    found = sample_of(message)
    assert found == expected
    assert found.response_id == expected.response_id


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>hm</think>Paris", "Paris"),
        (" \n<think>\nhm\n</think>\n\nParis ", "Paris "),
        ("<think>never closed", "<think>never closed"),
        ("hm, it is\n</think>\n\nParis", "hm, it is\n</think>\n\nParis"),
        ("5 euros</think>Paid", "5 euros</think>Paid"),
        ("<think>a</think>b<think>c</think>d", "b<think>c</think>d"),
        ("Say <think> aloud", "Say <think> aloud"),
        (["Pa", "ris"], "Paris"),
    ],
)
def test_only_reasoning_at_the_start_is_no_part_of_the_text(
    content: Any, text: str
) -> None:
    assert sample_of(AIMessage(content)).text == text


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n\t", "\u200b\u200d", "\u2060\ufeff", "\x00\x07", "\u00ad"),
        *("\u3164\u2800", "\ufffc", "\u0301", " \ufe0f", "\u034f\u17b4"),
    ],
)
def test_invisible_replies_are_unreadable(text: str) -> None:
    assert sample_of(AIMessage(text)).unreadable
    assert not sample_of(AIMessage(f"{text}.")).unreadable
    calls = [{"name": "pay", "args": {}, "id": "1"}]
    assert not sample_of(AIMessage(text, tool_calls=calls)).unreadable


@pytest.mark.parametrize(
    ("metadata", "reports_finish_reason", "truncated"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"finish_reason": None}, False, True),
        ({"finish_reason": ""}, False, True),
        ({"finish_reason": 3}, False, True),
        ({"finish_reason": "abort"}, False, True),
        ({"stop_reason": "model_context_window_exceeded"}, True, True),
        ({"finish_reason": "model_length"}, True, True),
        ({"done_reason": "length"}, True, True),
        ({"done": False}, False, True),
        ({"done": True}, False, False),
        ({"finish_reason": "eos_token"}, True, False),
    ],
)
def test_a_reply_is_complete_only_if_its_provider_says_so(
    metadata: dict[str, Any], *, reports_finish_reason: bool, truncated: bool
) -> None:
    message = AIMessage("Paris", response_metadata=metadata)
    assert (
        sample_of(message, reports_finish_reason=reports_finish_reason).truncated
        is truncated
    )


READABLE: list[dict[str, Any]] = [
    {"type": "redacted_thinking", "data": "x"},
    {"type": "citation", "url": "x"},
    {"type": "non_standard", "value": {"type": "reference", "reference_ids": [1]}},
    {"index": 1},
]
UNREADABLE: list[dict[str, Any]] = [
    {"type": "audio", "base64": "AAAA"},
    {"type": "web_search_tool_result", "content": []},
    {"type": "computer_call", "action": {"type": "click"}},
    {"type": "file", "file_id": "f"},
    {"type": "image_generation_call", "result": "AAAA"},
    {"type": "image_url", "image_url": {"url": "x"}},
    {"type": "kind_of_next_year"},
    {"type": "non_standard", "value": {"type": "image"}},
    {"json": {"a": 1}},
]


@pytest.mark.parametrize("block", [*READABLE, *UNREADABLE])
def test_content_that_is_no_text_is_noticed(block: dict[str, Any]) -> None:
    message = AIMessage([{"type": "text", "text": "Paris"}, block])
    assert sample_of(message).unreadable is (block in UNREADABLE)


def test_calls_are_compared_without_their_ids() -> None:
    def calling(call_id: str, args: dict[str, Any]) -> str | None:
        call = {"name": "add", "args": args, "id": call_id}
        return sample_of(AIMessage("", tool_calls=[call])).tool_calls

    assert calling("1", {"a": 1, "b": [2]}) == calling("2", {"b": [2], "a": 1})
    assert calling("1", {"a": 1, "b": [2]}) != calling("1", {"a": 1, "b": [3]})
    assert calling("1", {"a": float("nan")}) is not None


def test_log_probabilities_of_other_tokens_are_not_used() -> None:
    message = AIMessage("Rome", response_metadata={"logprobs": {"content": PARIS}})
    assert sample_of(message).token_logprobs is None
    thought = tokens(("<think>", -9.0), ("hm", -9.0), ("</think>", -9.0))
    message = AIMessage(
        "<think>hm</think>Paris",
        response_metadata={"logprobs": {"content": [*thought, *PARIS]}},
    )
    assert sample_of(message).token_logprobs == (-0.5, -0.25)


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([HumanMessage("a"), AIMessage("b"), HumanMessage("c")], "c"),
        ([HumanMessage("a"), AIMessage("b")], "a"),
        ([HumanMessage([{"type": "text", "text": "see"}, {"type": "image"}])], "see"),
        ([SystemMessage("a")], None),
        ([], None),
    ],
)
def test_the_question_is_the_last_human_message(
    messages: list[BaseMessage], question: str | None
) -> None:
    assert question_of(messages) == question


def usage(read: int, written: int, **details: int) -> Any:
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_token_details": details,
    }


FOUR = Sample(text="x", token_logprobs=(-0.1,) * 4)


@pytest.mark.parametrize(
    ("message", "samples", "output", "cost"),
    [
        (
            AIMessage("x", usage_metadata=usage(9, 4, cache_read=8)),
            (FOUR,),
            None,
            Cost(prompt_tokens=9, cached_tokens=8, completion_tokens=4),
        ),
        (
            AIMessage("x", usage_metadata=usage(9, 4)),
            (FOUR, FOUR, FOUR),  # a server that counts one choice only
            None,
            Cost(prompt_tokens=9, completion_tokens=4, lower_bound=True),
        ),
        (
            AIMessage("x", usage_metadata=usage(9, 0)),
            (Sample(text="x"),),
            None,
            Cost(prompt_tokens=9, lower_bound=True),
        ),
        (
            AIMessage("x"),
            (Sample(text="x"),),
            {"token_usage": {"prompt_tokens": 9, "completion_tokens": 2}},
            Cost(prompt_tokens=9, completion_tokens=2),
        ),
        (AIMessage("x"), (FOUR,), None, Cost(completion_tokens=4, lower_bound=True)),
        (None, (), None, Cost(lower_bound=True)),
    ],
)
def test_usage_is_counted_once_and_told_where_it_is_too_low(
    message: AIMessage | None, samples: tuple[Sample, ...], output: Any, cost: Cost
) -> None:
    assert cost_of(message, samples, output) == cost


@pytest.mark.parametrize("kind", [AIMessage, AIMessageChunk])
def test_log_probabilities_are_taken_off_a_copy(kind: Any) -> None:
    kept = {"finish_reason": "stop"}
    message = kind(content="x", response_metadata={**kept, "logprobs": PARIS})
    bare = without_logprobs(message)
    assert type(bare) is kind
    assert bare.response_metadata == kept
    assert "logprobs" in message.response_metadata
    assert without_logprobs(bare) is bare


@pytest.mark.parametrize(
    "text", ["<think>" * 150_000, "<think>" + "</thin" * 170_000, "\u200b" * 10**6]
)
def test_a_text_of_a_megabyte_is_read_in_time_linear_in_it(text: str) -> None:
    start = time.perf_counter()
    sample_of(AIMessage(text))
    assert time.perf_counter() - start < 2
