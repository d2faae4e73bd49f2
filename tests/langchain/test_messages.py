"""What is read from LangChain messages: text, calls, endings, usage."""

from __future__ import annotations

import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from snne_guard.cost import Cost
from snne_guard.engine import read_cost
from snne_guard.langchain.messages import reply_of
from snne_guard.types import Reply

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
    assert reply_of(AIMessage(content)).text == text


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "\u200b\u200d", "\x00\x07", "\u3164\u2800", "\ufffc", "\u0301"],
)
def test_invisible_replies_are_unreadable(text: str) -> None:
    assert reply_of(AIMessage(text)).unreadable
    assert not reply_of(AIMessage(f"{text}.")).unreadable
    calls = [{"name": "pay", "args": {}, "id": "1"}]
    assert not reply_of(AIMessage(text, tool_calls=calls)).unreadable


@pytest.mark.parametrize(
    ("text", "unreadable"),
    [
        ("****", True),
        ("** **", False),  # as it is written, a page shows it
        ("*", False),  # which operator?
        ("```json\n```", True),
        ("``````", True),
        ("```\n4\n```", False),
        ("<!-- to do -->", True),
        ("<!-- a --> \n<!-- b -->", True),
        ("<!-- to do -->4", False),
        ("<!-- never closed", False),
        ('{"city": "Paris", "city": "Rome"}', True),
        ('```json\n[{"a": {"b": 1, "b": 1}}]\n```', True),
        ('{"a": {"c": 1}, "b": {"c": 1}}', False),
        ('{"a": 1, "a": ', False),  # no JSON
    ],
)
def test_what_shows_nothing_or_two_things_is_unreadable(
    text: str, *, unreadable: bool
) -> None:
    assert reply_of(AIMessage(text)).unreadable is unreadable


def test_arguments_with_a_key_twice_and_calls_without_a_name_are_unreadable() -> None:
    def called(name: str | None, args: str) -> AIMessage:
        invalid = {"name": name, "args": args, "id": "1", "error": None}
        call: Any = {**invalid, "type": "invalid_tool_call"}
        return AIMessage("", invalid_tool_calls=[call])

    assert not reply_of(called("pay", '{"n": 1')).unreadable
    assert reply_of(called("pay", '{"n": 1, "n": 2}')).unreadable
    assert reply_of(called(None, '{"n": 1')).unreadable
    # It says that it calls something, and the class has read no call.
    said = AIMessage("Let me look.", response_metadata={"finish_reason": "tool_calls"})
    assert reply_of(said).unreadable


@pytest.mark.parametrize(
    ("metadata", "reported", "truncated", "refused"),
    [
        ({}, False, False, False),
        ({}, True, True, False),
        ({"finish_reason": None}, False, True, False),
        ({"finish_reason": 3}, False, True, False),
        ({"finish_reason": "abort"}, False, True, False),
        ({"done_reason": "length"}, True, True, False),
        ({"finish_reason": "eos_token"}, True, False, False),
        ({"finish_reason": "SAFETY"}, False, False, True),
        ({"stop_reason": "refusal"}, False, False, True),
        ({"stopReason": "guardrail_intervened"}, False, False, True),
        ({"finish_reason": "MODEL_ARMOR"}, False, False, True),
        ({"prompt_feedback": {"block_reason": "OTHER"}}, True, False, True),
        ({"prompt_feedback": {"block_reason": 0}}, True, True, False),
        ({"finish_reason": "stopstop"}, True, False, False),  # said twice in a stream
    ],
)
def test_a_reply_is_complete_only_if_its_provider_says_so(
    metadata: dict[str, Any], *, reported: bool, truncated: bool, refused: bool
) -> None:
    message = AIMessage("Paris", response_metadata=metadata)
    sample = reply_of(message, reports_finish_reason=reported)
    assert (sample.truncated, sample.refused) == (truncated, refused)


READABLE: list[dict[str, Any]] = [
    {"type": "redacted_thinking", "data": "x"},
    {"type": "citation", "url": "x"},
    {"type": "compaction", "encrypted_content": "x"},
    {"type": "non_standard", "value": {"type": "reference", "reference_ids": [1]}},
    {"index": 1},
    {"type": "text", "text": ".", "reference": {"reference_ids": [1]}},  # Mistral
    {"type": "text", "text": ".", "extras": {"signature": "x"}, "index": 1},
]
UNREADABLE: list[dict[str, Any]] = [
    {"type": "audio", "base64": "AAAA"},
    {"type": "web_search_tool_result", "content": []},
    {"type": "image_url", "image_url": {"url": "x"}},
    {"type": "tool_use", "name": "pay"},  # without a call in tool_calls
    {"type": "kind_of_next_year"},
    {"type": "non_standard", "value": {"type": "image"}},
    {"json": {"a": 1}},
    {"type": "text", "text": {"value": "x"}},
    {"type": "text", "text": ".", "image": "x"},
    {"type": "text", "text": ".", "extras": {"video": {"url": "x"}}},
    {"type": "output_text", "text": "Rome"},  # LangChain's own text has it not
    {"type": "reference", "text": "Rome"},
]


@pytest.mark.parametrize("block", [*READABLE, *UNREADABLE])
def test_content_that_is_no_text_is_noticed(block: dict[str, Any]) -> None:
    message = AIMessage([{"type": "text", "text": "Paris"}, block])
    assert reply_of(message).unreadable is (block in UNREADABLE)


@pytest.mark.parametrize(
    ("beside", "unreadable"),
    [
        ({"images": [{"url": "x"}]}, True),
        ({"audio": b"AAAA"}, True),
        ({"attachments": [{"id": "f_1"}]}, True),
        ({"executed_tools": [{"type": "search"}]}, True),  # Groq
        ({"function_call": {"name": "pay", "arguments": "{}"}}, True),  # and no call
        ({"reasoning_content": "hm", "citations": ["x"]}, False),  # xAI, DeepSeek
        ({"__gemini_function_call_thought_signatures__": {"1": "x"}}, False),
        ({"usage": {"prompt_tokens": 5}, "stop_reason": "end_turn"}, False),  # Bedrock
        ({"parsed": {"city": "Paris"}, "refusal": None}, False),  # OpenAI
        ({"images": [], "audio": None, "score": 0.5}, False),
    ],
)
def test_what_stands_beside_the_content_is_read_or_noticed(
    beside: dict[str, Any], *, unreadable: bool
) -> None:
    message = AIMessage("Paris", additional_kwargs=beside)
    assert reply_of(message).unreadable is unreadable


ABSURD: list[Any] = [10**400, -1, float("nan"), float("inf"), True, None, {}]
FOUR = Reply(text="x", token_logprobs=(-0.1,) * 4)
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
            [Reply(text="x")],
            Cost(lower_bound=True),
        ),
        (None, [FOUR], Cost(completion_tokens=4, lower_bound=True)),
        ({"output_tokens": "5"}, [], Cost(lower_bound=True)),
        *(
            ({"input_tokens": one, "output_tokens": one}, [], Cost(lower_bound=True))
            for one in ABSURD
        ),
        ({"output_token_details": {"reasoning": 10**400}}, [], Cost(lower_bound=True)),
    ],
)
def test_usage_is_counted_once_and_marked_where_it_is_too_low(
    usage: Any, samples: list[Reply], cost: Cost
) -> None:
    sent = Cost(calls=1, attempts=1)
    assert read_cost(samples, usage) == sent + cost


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 150_000,
        "<think>" + "</thin" * 170_000,
        "\u200b" * 10**6,
        "<!--" * 250_000,
        "<!---->" * 150_000 + "x",
        "`" * 10**6,
        "*" * 10**6 + "x",
        '{"a":' * 200_000,
        "[{}," * 250_000,
    ],
)
def test_a_text_of_a_megabyte_is_read_in_time_linear_in_it(text: str) -> None:
    start = time.thread_time()  # however busy the machine is
    reply_of(AIMessage(text))
    assert time.thread_time() - start < 2


# -- Messages of real providers -------------------------------------------------------


def said(content: Any, **metadata: Any) -> AIMessage:
    return AIMessage(content, response_metadata=metadata)


def beside(extra: dict[str, Any], text: str = "") -> AIMessage:
    metadata = {"finish_reason": "stop"}
    return AIMessage(text, additional_kwargs=extra, response_metadata=metadata)


LOGPROBS = {"token_logprobs": (-0.5, -0.25), "tokens": ("Pa", "ris")}
BROKEN = {"name": "pay", "args": '{"n": ', "id": "1", "error": None}
SHAPES: dict[str, tuple[AIMessage, dict[str, Any]]] = {
    "OpenAI": (
        said(
            "Paris",
            model_name="gpt-5-mini-2026",
            finish_reason="stop",
            id="chatcmpl-1",
            logprobs={"content": PARIS, "refusal": None},
        ),
        {
            "text": "Paris",
            "finish_reason": "stop",
            "model": "gpt-5-mini-2026",
            "response_id": "chatcmpl-1",
            **LOGPROBS,
        },
    ),
    "OpenAI, Responses, cut off": (
        said(
            "Par",
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
        {"text": "Par", "finish_reason": "max_output_tokens", "truncated": True},
    ),
    "OpenAI, refusal beside the text": (
        beside({"refusal": "I cannot help with that."}),
        {"text": "", "finish_reason": "stop", "refused": True},
    ),
    "OpenAI, refusal in a v1 block": (
        said(
            [{"type": "non_standard", "value": {"type": "refusal", "refusal": "No."}}],
            status="completed",
        ),
        {"text": "", "finish_reason": "completed", "refused": True},
    ),
    "OpenAI, a call with broken JSON": (
        AIMessage("", invalid_tool_calls=[{**BROKEN, "type": "invalid_tool_call"}]),
        {"text": "", "tool_calls": '[{"args":"{\\"n\\": ","name":"pay"}]'},
    ),
    "OpenAI, spoken": (
        beside({"audio": {"data": "AAAA", "transcript": "Paris"}}),
        {"text": "", "finish_reason": "stop", "unreadable": True},
    ),
    "Snowflake, empty places": (
        beside({"audio": {"id": "", "expires_at": 0}, "refusal": ""}, "Paris"),
        {"text": "Paris", "finish_reason": "stop"},
    ),
    "Anthropic": (
        said(
            [
                {"type": "thinking", "thinking": "France?", "signature": "x"},
                {"type": "text", "text": "Paris", "citations": []},
            ],
            id="msg_1",
            model="claude-4",
            model_name="claude-4",
            stop_reason="end_turn",
            stop_sequence=None,
        ),
        {
            "text": "Paris",
            "finish_reason": "end_turn",
            "model": "claude-4",
            "response_id": "msg_1",
        },
    ),
    "Ollama": (
        said("Paris", model="llama3", done_reason="stop", logprobs=PARIS),
        {"text": "Paris", "finish_reason": "stop", "model": "llama3", **LOGPROBS},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_messages_of_real_providers(shape: str) -> None:
    message, fields = SHAPES[shape]
    sample, expected = reply_of(message), Reply(**fields)
    assert sample == expected
    assert sample.response_id == expected.response_id
