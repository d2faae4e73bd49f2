"""What is read from LangChain messages: text, calls, endings, usage."""

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
    question_of,
    sample_of,
    without_logprobs,
)
from snne_guard.sampling.reading import read_cost
from snne_guard.types import Cost, Sample

PARIS = [{"token": "Pa", "logprob": -0.5}, {"token": "ris", "logprob": -0.25}]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>hm</think>Paris", "Paris"),
        (" \n<think>\nhm\n</think>\n\nParis ", "Paris "),
        ("<think>never closed", "<think>never closed"),
        ("5 euros</think>Paid", "5 euros</think>Paid"),
        ("<think>a</think>b<think>c</think>d", "b<think>c</think>d"),
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
        *("", " \n\t", "\u200b\u200d", "\x00\x07"),
        *("\u3164\u2800", "\ufffc", "\u0301", "\u034f\u17b4"),
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
        ({"finish_reason": 3}, False, True),
        ({"finish_reason": "abort"}, False, True),
        ({"done_reason": "length"}, True, True),
        ({"finish_reason": "eos_token"}, True, False),
    ],
)
def test_a_reply_is_complete_only_if_its_provider_says_so(
    metadata: dict[str, Any], *, reports_finish_reason: bool, truncated: bool
) -> None:
    message = AIMessage("Paris", response_metadata=metadata)
    sample = sample_of(message, reports_finish_reason=reports_finish_reason)
    assert (sample.truncated, sample.refused) == (truncated, False)


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("finish_reason", "SAFETY"),
        ("stop_reason", "refusal"),
        ("stopReason", "guardrail_intervened"),
    ],
)
def test_a_reply_that_its_provider_holds_back_is_a_refusal(key: str, word: str) -> None:
    sample = sample_of(AIMessage("No", response_metadata={key: word}))
    assert (sample.refused, sample.truncated) == (True, False)


READABLE: list[dict[str, Any]] = [
    {"type": "redacted_thinking", "data": "x"},
    {"type": "citation", "url": "x"},
    {"type": "non_standard", "value": {"type": "reference", "reference_ids": [1]}},
    {"index": 1},
]
UNREADABLE: list[dict[str, Any]] = [
    {"type": "audio", "base64": "AAAA"},
    {"type": "web_search_tool_result", "content": []},
    {"type": "image_url", "image_url": {"url": "x"}},
    {"type": "tool_use", "name": "pay"},  # without a call in tool_calls
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
    thought = [
        {"token": each, "logprob": -9.0} for each in ("<think>", "hm", "</think>")
    ]
    message = AIMessage(
        "<think>hm</think>Paris",
        response_metadata={"logprobs": {"content": [*thought, *PARIS]}},
    )
    assert sample_of(message).token_logprobs == (-0.5, -0.25)


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([HumanMessage("a"), AIMessage("b"), HumanMessage("c")], "c"),
        ([HumanMessage([{"type": "text", "text": "see"}, {"type": "image"}])], "see"),
        ([SystemMessage("a")], None),
    ],
)
def test_the_question_is_the_last_human_message(
    messages: list[BaseMessage], question: str | None
) -> None:
    assert question_of(messages) == question


FOUR = Sample(text="x", token_logprobs=(-0.1,) * 4)
USAGE = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
DETAILS = {
    "input_token_details": {"cache_read": 8},
    "output_token_details": {"reasoning": 3},
}


@pytest.mark.parametrize(
    ("usage", "samples", "cost"),
    [
        (
            USAGE | DETAILS,
            [FOUR],
            Cost(
                prompt_tokens=9,
                cached_tokens=8,
                completion_tokens=4,
                reasoning_tokens=3,
            ),
        ),
        (
            USAGE,
            [FOUR] * 3,  # a server that counts one choice only
            Cost(prompt_tokens=9, completion_tokens=4, lower_bound=True),
        ),
        (
            USAGE | {"input_tokens": -1, "output_tokens": 0},
            [Sample(text="x")],
            Cost(lower_bound=True),
        ),
        (None, [FOUR], Cost(completion_tokens=4, lower_bound=True)),
        ({"output_tokens": "5"}, [], Cost(lower_bound=True)),
    ],
)
def test_usage_is_counted_once_and_marked_where_it_is_too_low(
    usage: Any, samples: list[Sample], cost: Cost
) -> None:
    sent = Cost(calls=1, attempts=1)
    assert read_cost(samples, usage) == sent + cost


@pytest.mark.parametrize("kind", [AIMessage, AIMessageChunk])
def test_log_probabilities_are_taken_off_a_copy(kind: Any) -> None:
    kept = {"finish_reason": "stop"}
    message = kind(content="x", response_metadata={**kept, "logprobs": PARIS})
    bare = without_logprobs(message)
    assert type(bare) is kind
    assert bare.response_metadata == kept
    assert "logprobs" in message.response_metadata


@pytest.mark.parametrize(
    "text", ["<think>" * 150_000, "<think>" + "</thin" * 170_000, "\u200b" * 10**6]
)
def test_a_text_of_a_megabyte_is_read_in_time_linear_in_it(text: str) -> None:
    start = time.thread_time()  # however busy the machine is
    sample_of(AIMessage(text))
    assert time.thread_time() - start < 2


# -- Messages of real providers -------------------------------------------------------

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
    "a function call of old": (
        AIMessage("Paid.", additional_kwargs={"function_call": {"name": "pay"}}),
        Sample(text="Paid.", unreadable=True),
    ),
    "a fake model": (AIMessage("Paris"), Sample(text="Paris")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_messages_of_real_providers(shape: str) -> None:
    message, expected = SHAPES[shape]
    sample = sample_of(message)
    assert sample == expected
    assert sample.response_id == expected.response_id
