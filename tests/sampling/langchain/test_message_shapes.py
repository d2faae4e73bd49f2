"""LangChain messages of real providers, a row each, and the samples they become."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage

from snne_guard.sampling.langchain.messages import sample_of
from snne_guard.types import Sample

PARIS = [{"token": "Pa", "logprob": -0.5}, {"token": "ris", "logprob": -0.25}]

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
